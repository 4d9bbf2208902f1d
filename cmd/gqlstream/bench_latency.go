package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/bench"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// latencyLoad is a load on a running pipeline.
type latencyLoad struct {
	vertices, edges int
	communities     int
	rate            int // edge events a second
	lasting         time.Duration
	drain           time.Duration // how long to wait for what is behind
}

const (
	latencyMembers      = 50 // of a community
	latencyMessageEvery = 10 * time.Millisecond
	latencySetupMax     = 3 * time.Minute
	latencyDrainMax     = 90 * time.Second
)

// measureLatency runs the pipeline of gqlstream run, sinks and all, under a steady
// load of edges.
func measureLatency(ctx context.Context, w *bench.World) ([]bench.Row, error) {
	goal := latencyLoad{
		vertices: min(w.Vertices, 20_000), edges: min(w.Edges, 400_000), communities: 1000, rate: 10_000,
		lasting: 5 * time.Second, drain: latencyDrainMax,
	}
	few := goal
	few.communities = 10
	if w.Quick {
		goal.vertices, goal.edges = min(w.Vertices, 3000), min(w.Edges, 30_000)
		goal.communities, goal.rate, goal.lasting = 50, 2000, time.Second
		few = goal
		few.communities = 5
	}
	var rows []bench.Row
	for _, load := range []struct {
		name string
		latencyLoad
	}{{"latency/few", few}, {"latency", goal}} {
		s, err := load.measure(ctx, w)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", load.name, err)
		}
		note := fmt.Sprintf("%d communities of %d, %d events/s for %v in messages of %d, %d vertices, %d edges",
			load.communities, latencyMembers, load.rate, load.lasting, load.perMessage(), load.vertices, load.edges)
		if s.unanswered > 0 {
			note += fmt.Sprintf("; %d of %d messages unanswered after %v, counted as if answered then",
				s.unanswered, len(s.stored), load.drain)
		}
		rows = append(rows,
			bench.AtMost(bench.Row{
				Name: load.name, Value: bench.Quantile(s.stored, 0.99), Unit: "ms wall p99",
				Reference: "steps are cut every 100 ms", Note: "stored to published, sinks included; " + note,
			}, 250),
			bench.Row{Name: load.name + "/median", Value: bench.Quantile(s.stored, 0.5), Unit: "ms wall"},
			bench.Row{Name: load.name + "/sent", Value: bench.Quantile(s.sent, 0.99), Unit: "ms wall p99", Note: "from the sending of the message on"},
		)
	}
	return rows, nil
}

func (l latencyLoad) perMessage() int {
	return max(1, int(float64(l.rate)*latencyMessageEvery.Seconds()))
}

// latencies are in milliseconds, one a message.
type latencies struct {
	stored, sent []float64
	unanswered   int
}

// measure opens a pipeline, fills it, loads it, and waits until it has answered.
func (l latencyLoad) measure(ctx context.Context, w *bench.World) (result latencies, err error) {
	dir, err := w.TempDir()
	if err != nil {
		return result, err
	}
	classes, err := classesFromFlag("2")
	if err != nil {
		return result, err
	}
	settings := fileConfig{Classes: classes, State: dir, HTTP: httpConfig{Listen: httpOff}}
	answers := &answerSink{arrived: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p, err := openPipeline(ctx, settings, pipelineOptions{log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return result, err
	}
	p.sinks = append(p.sinks, answers) // the last one: the others are done when it is called
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx) }()
	w.Say("        %d communities at %d events/s: filling", l.communities, l.rate)
	g := w.NewGraph(l.vertices)
	last, err := l.fill(ctx, p.broker, g)
	if err == nil && !answers.wait(ctx, last, latencySetupMax) {
		err = fmt.Errorf("no estimate after %v", latencySetupMax)
	}
	if err == nil {
		w.Say("        loading")
		var sent []message
		sent, err = l.load(ctx, p.broker, g)
		if err == nil {
			answers.wait(ctx, sent[len(sent)-1].position, l.drain)
			result = answers.latencies(sent)
		}
	}
	cancel()
	if stopped := <-ended; !errors.Is(stopped, context.Canceled) {
		err = errors.Join(err, stopped)
	}
	return result, errors.Join(err, p.close())
}

// fill publishes the graph, then what is known of the vertices, then the members,
// and returns the position of the last of them.
func (l latencyLoad) fill(ctx context.Context, b *broker, g *bench.Graph) (event.Position, error) {
	publisher, err := ingest.NewPublisher(b.nc, ingest.PublisherConfig{Pending: 1024})
	if err != nil {
		return 0, err
	}
	defer publisher.Close()
	var batch event.Batch
	for range l.edges {
		batch.Edges = append(batch.Edges, g.Edge())
	}
	for v := range l.vertices {
		id, class := event.NumberID(uint64(v)), g.Group(v)%2
		units := batch.Units(2)
		units[class] = event.One/2 + uint32(g.Rand().IntN(event.One/2))
		units[1-class] = event.One - units[class]
		batch.Predictions = append(batch.Predictions, event.Prediction{Vertex: id, Units: units})
		if v%20 == 0 {
			batch.Labels = append(batch.Labels, event.Label{Vertex: id, Class: event.Class(class)})
		}
	}
	writer := streamWriter{publisher: publisher}
	if err := writer.write(ctx, &batch); err != nil {
		return 0, err
	}
	members := event.Batch{}
	for c := range l.communities {
		for range latencyMembers {
			members.Members = append(members.Members, event.Member{
				Community: fmt.Sprint("c", c), Vertex: event.NumberID(uint64(g.Rand().IntN(l.vertices))), Multiplicity: 1,
			})
		}
	}
	if err := writer.write(ctx, &members); err != nil {
		return 0, err
	}
	last := event.Batch{Members: members.Members[:1]} // whose change is sure to give an estimate
	last.Members[0].Multiplicity = 2
	if err := writer.write(ctx, &last); err != nil {
		return 0, err
	}
	if err := publisher.Flush(ctx); err != nil {
		return 0, err
	}
	_, position := publisher.Stored()
	_, err = publishControl(ctx, b.js, "flush")
	return position, err
}

// message is what became of one message.
type message struct {
	sent, stored time.Time
	position     event.Position
}

// load publishes edges at the rate, four insertions for one deletion of an edge
// inserted before, and returns when each message was sent and stored.
func (l latencyLoad) load(ctx context.Context, b *broker, g *bench.Graph) ([]message, error) {
	js, err := jetstream.New(b.nc)
	if err != nil {
		return nil, err
	}
	defer js.CleanupPublisher()
	messages := make([]message, max(1, int(l.lasting/latencyMessageEvery)))
	failures := make([]error, len(messages))
	var inserted []event.Edge
	var batch event.Batch
	var waiting sync.WaitGroup
	begun := time.Now()
	for i := range messages {
		batch.Edges = batch.Edges[:0]
		for j := range l.perMessage() {
			e := g.Edge()
			if j%5 == 4 && len(inserted) > 0 {
				e = inserted[g.Rand().IntN(len(inserted))]
				e.Remove = true
			} else {
				inserted = append(inserted, e)
			}
			batch.Edges = append(batch.Edges, e)
		}
		m := nats.NewMsg(event.Subject(event.KindEdge))
		m.Header.Set(event.HeaderContentType, event.Arrow)
		if m.Data, err = event.EncodeArrow(event.KindEdge, &batch, 0, len(batch.Edges)); err != nil {
			return nil, err
		}
		if err := sleepUntil(ctx, begun.Add(time.Duration(i)*latencyMessageEvery)); err != nil {
			return nil, err
		}
		messages[i].sent = time.Now()
		future, err := js.PublishMsgAsync(m)
		if err != nil {
			return nil, err
		}
		waiting.Go(func() {
			select {
			case ack := <-future.Ok():
				messages[i].stored, messages[i].position = time.Now(), event.Position(ack.Sequence)
			case failures[i] = <-future.Err():
			case <-ctx.Done():
				failures[i] = ctx.Err()
			}
		})
	}
	waiting.Wait()
	return messages, errors.Join(failures...)
}

// answerSink notes when the estimates of a position were out.
type answerSink struct {
	mutex     sync.Mutex
	positions []event.Position
	at        []time.Time
	arrived   chan struct{} // holds one when positions has grown
}

// Write implements sinks.Sink.
func (s *answerSink) Write(_ context.Context, estimates []quant.Estimate) error {
	if len(estimates) == 0 {
		return nil
	}
	s.mutex.Lock()
	s.positions = append(s.positions, event.Position(estimates[0].Position))
	s.at = append(s.at, time.Now())
	s.mutex.Unlock()
	select {
	case s.arrived <- struct{}{}:
	default:
	}
	return nil
}

// Close implements sinks.Sink.
func (*answerSink) Close() error { return nil }

// wait waits for an answer that covers a position and reports whether it came.
func (s *answerSink) wait(ctx context.Context, position event.Position, most time.Duration) bool {
	timeout := time.NewTimer(most)
	defer timeout.Stop()
	for {
		s.mutex.Lock()
		n := len(s.positions)
		covered := n > 0 && s.positions[n-1] >= position
		s.mutex.Unlock()
		if covered {
			return true
		}
		select {
		case <-s.arrived:
		case <-timeout.C:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// latencies returns how long each message, in the order of positions, took to the
// first answer that covers it.
func (s *answerSink) latencies(messages []message) (l latencies) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	now := time.Now()
	next := 0
	for _, m := range messages {
		for next < len(s.positions) && s.positions[next] < m.position {
			next++
		}
		at := now
		if next < len(s.at) {
			at = s.at[next]
		} else {
			l.unanswered++
		}
		const ms = float64(time.Millisecond)
		l.stored = append(l.stored, max(float64(at.Sub(m.stored)), ms/1000)/ms) // the ack may come late
		l.sent = append(l.sent, float64(at.Sub(m.sent))/ms)
	}
	return l
}
