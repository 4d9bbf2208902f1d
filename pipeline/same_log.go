package pipeline

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/internal/checkpoint"
	"gqlstream/pipeline/config"
	"gqlstream/sinks"
)

// recordedPlace is a place of the input log recorded by this pipeline.
type recordedPlace struct {
	ingest.Place
	log string // name of the log at that time
}

// checkLogIsThere refuses to create a log if the state directory knows one: an empty broker would
// give new events the positions of the lost ones.
func (p *Pipeline) checkLogIsThere(ctx context.Context, accept bool) error {
	_, err := p.Broker.JS.Stream(ctx, p.names.In.Log)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil //nolint:nilerr // EnsureStreams reports what is wrong
	}
	places := p.statePlaces()
	if len(places) == 0 || accept {
		return nil
	}
	newest := places[0]
	return fmt.Errorf(
		"the broker has no log %s, and %s in %s has read one to position %d. Nothing was made:"+
			" restore a backup of the log (gqlstream restore, or nats stream restore), or begin "+
			"an empty"+
			" one with run --accept-log",
		p.names.In.Log, newest.KeptBy, p.settings.State, newest.Position,
	)
}

// statePlaces returns the places recorded in the state directory, newest first.
func (p *Pipeline) statePlaces() (places []recordedPlace) {
	if at, ok := p.reached.read(); ok {
		at.Stream = p.names.In.Log
		places = append(places, at)
	}
	dir := checkpoint.Look(checkpoint.Disk{}, checkpointsIn(p.settings.State))
	for _, m := range dir.Manifests() {
		_, id := ResumeOf(m)
		id.Stream = p.names.In.Log
		places = append(places, recordedPlace{
			ingest.Place{Identity: *id, KeptBy: fmt.Sprintf("checkpoint %d", m.Position)},
			m.Stream.Log,
		})
	}
	slices.SortStableFunc(places,
		func(a, b recordedPlace) int { return int(b.Position) - int(a.Position) })
	return places
}

// outputPlaces returns the places that the output log and the followers have recorded of a log.
func (p *Pipeline) outputPlaces(ctx context.Context) (places []recordedPlace) {
	add := func(log string, position uint64, digest, keptBy string) {
		if log == p.logID && position > 0 {
			id := ingest.Identity{
				Stream:   p.names.In.Log,
				Position: event.Position(position),
				Digest:   ingest.ParseDigest(digest),
			}
			places = append(places, recordedPlace{ingest.Place{Identity: id, KeptBy: keptBy}, log})
		}
	}
	// otherwise the writers report what is wrong
	marks, _ := sinks.Marks(ctx, p.Broker.JS, p.names.Out)
	for _, m := range marks {
		add(m.Log, m.Position, m.Digest, fmt.Sprintf("the newest mark of shard %d in %s",
			m.Shard, p.names.Out.Estimates))
	}
	for _, s := range p.positionShelves() {
		log, at := sinks.StatePlace(ctx, s)
		add(log, at.Position, at.Digest, s.String())
	}
	return places
}

// Kept returns every place of the log recorded by a run with these settings, and the damaged or
// missing position files.
func Kept(
	ctx context.Context,
	b *broker.Broker,
	settings config.Settings,
) (places []ingest.Place, damaged []error, err error) {
	p := &Pipeline{settings: settings, Broker: b}
	if p.names.In, p.names.Out, err = settings.Names(); err != nil {
		return nil, nil, err
	}
	stream, err := b.JS.Stream(ctx, p.names.In.Log)
	if err != nil {
		return nil, nil, err
	}
	p.logID, p.reached.path = broker.LogName(stream), reachedIn(settings.State)
	for _, at := range append(p.statePlaces(), p.outputPlaces(ctx)...) {
		places = append(places, at.Place)
	}
	for _, s := range p.positionShelves() {
		if err := sinks.VerifyState(ctx, s); err != nil {
			damaged = append(damaged, err)
		}
	}
	return places, append(damaged, p.missingPositions(ctx)...), nil
}

// positionShelves lists the storage of the positions of followers.
func (p *Pipeline) positionShelves() (list []sinks.StateStore) {
	list = []sinks.StateStore{
		p.stateStore("alerts", "alerting.json"), p.stateStore("history", "history.json"),
	}
	out := p.settings.Output
	for _, file := range []string{out.File, out.Alerts} {
		if file != "" && file != "-" {
			list = append(list, sinks.FileStore(sinks.PositionFile(file)))
		}
	}
	if out.Parquet != "" {
		list = append(list, sinks.FileStore(sinks.PartsPositionFile(out.Parquet)))
	}
	return list
}

// agreeOnLog names the log, and compares it with all recorded places. It refuses a log that is not
// the one read before, unless the operator accepts it.
func (p *Pipeline) agreeOnLog(ctx context.Context, accept bool) error {
	stream, err := p.Broker.JS.Stream(ctx, p.names.In.Log)
	if err != nil {
		return err
	}
	places := p.statePlaces()
	// an earlier release, or another tool, created it
	if stream.CachedInfo().Config.Metadata[broker.LogNameKey] == "" {
		name := broker.LogName(stream)
		if len(places) > 0 && places[0].log != "" &&
			ingest.CheckPlaces(ctx, p.Broker.JS, []ingest.Place{places[0].Place}) == nil {
			name = places[0].log // it is a copy of that log
		}
		if err := ingest.NameLog(ctx, p.Broker.JS, p.names.In.Log, name); err != nil {
			return err
		}
		p.logID = name
	} else {
		p.logID = broker.LogName(stream)
	}
	places = append(places, p.outputPlaces(ctx)...)
	for _, at := range places {
		p.recorded = append(p.recorded, at.Place)
	}
	err = ingest.CheckPlaces(ctx, p.Broker.JS, p.recorded)
	switch {
	case !accept:
		return err
	case errors.Is(err, ingest.ErrWrongHistory):
		p.log.Warn("the log is accepted as it is", "because", err)
		err = p.acceptLog(ctx, places)
	}
	p.recorded = nil // the prefix may differ as well
	return err
}

// acceptLog gives the log another name if the disagreeing places have this one, so that its earlier
// records no longer count, and drops the disagreeing states.
func (p *Pipeline) acceptLog(ctx context.Context, places []recordedPlace) error {
	again := false
	for _, at := range places {
		err := ingest.CheckPlaces(ctx, p.Broker.JS, []ingest.Place{at.Place})
		if err != nil && !errors.Is(err, ingest.ErrWrongHistory) {
			return err
		}
		again = again || err != nil && (at.log == p.logID || at.log == "")
	}
	if again {
		p.logID = time.Now().UTC().Format(time.RFC3339Nano)
		if err := ingest.NameLog(ctx, p.Broker.JS, p.names.In.Log, p.logID); err != nil {
			return err
		}
	}
	for _, s := range []sinks.StateStore{
		p.stateStore("alerts", "alerting.json"), p.stateStore("history", "history.json"),
	} {
		if log, _ := sinks.StatePlace(ctx, s); log != "" && log != p.logID {
			if err := sinks.ResetState(ctx, s, p.logID); err != nil {
				return err
			}
		}
	}
	if err := p.reached.forget(); err != nil {
		return err
	}
	return p.Checkpoints.Dir.Drop(func(m checkpoint.Manifest) bool {
		_, id := ResumeOf(m)
		id.Stream = p.names.In.Log
		return errors.Is(id.Check(ctx, p.Broker.JS), ingest.ErrWrongHistory)
	})
}

// skipHole records that missing messages are skipped, and returns the rest of the range, if any. A
// state that has applied them continues after them.
func (p *Pipeline) skipHole(ctx context.Context, r ingest.Range) (ingest.Range, error) {
	if r == (ingest.Range{}) {
		return r, nil
	}
	stream, err := p.Broker.JS.Stream(ctx, p.names.In.Log)
	if err != nil {
		return r, err
	}
	holes, err := ingest.Holes(ctx, stream)
	if err != nil || !slices.ContainsFunc(holes, func(hole ingest.Range) bool {
		return hole.First <= r.First && r.Last <= hole.Last
	}) {
		return r, err
	}
	p.log.Warn("messages that the log lacks are skipped from now on; the log records it",
		"positions", r)
	return ingest.Range{}, ingest.Skip(ctx, p.Broker.JS, p.names.In.Log, r)
}

func reachedIn(state string) string { return filepath.Join(state, "reached") }
