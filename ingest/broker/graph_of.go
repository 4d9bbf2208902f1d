package broker

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/event"
)

// graphKinds are the kinds of events that several questions about one graph share. Labels,
// predictions and posts belong to a question.
var graphKinds = []event.Kind{event.KindEdge, event.KindVertex, event.KindMember}

// copyGraph lets a log take the events of another one's graph by a source: the broker copies them,
// in their order, as they come. A log that exists keeps its settings, and is refused if it does not
// copy that graph, because it would lack edges in silence. So is a new one if the other log has
// lost its beginning.
func copyGraph(
	ctx context.Context, js jetstream.JetStream, names StreamNames, want *jetstream.StreamConfig,
) error {
	if names.GraphOf == "" {
		return nil
	}
	stream, err := js.Stream(ctx, want.Name)
	if err == nil {
		for _, source := range stream.CachedInfo().Config.Sources {
			if source.Name == names.GraphOf {
				return nil
			}
		}
		return fmt.Errorf("the log %s exists and does not copy the graph of %s; "+
			"choose another prefix, or delete the log", want.Name, names.GraphOf)
	}
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	graph, err := js.Stream(ctx, names.GraphOf)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("there is no log %s whose graph the log %s could copy; start the run "+
			"of %[1]s first", names.GraphOf, want.Name)
	}
	if err != nil {
		return err
	}
	if first := graph.CachedInfo().State.FirstSeq; first > 1 {
		return fmt.Errorf("the log %s begins at %d, because its beginning was purged: its graph "+
			"cannot be copied", names.GraphOf, first)
	}
	source := &jetstream.StreamSource{Name: names.GraphOf}
	for _, kind := range graphKinds {
		source.SubjectTransforms = append(source.SubjectTransforms,
			jetstream.SubjectTransformConfig{
				Source: Subject(names.GraphOf, kind), Destination: Subject(want.Name, kind),
			})
	}
	want.Sources = []*jetstream.StreamSource{source}
	return nil
}
