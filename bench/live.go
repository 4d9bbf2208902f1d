package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"gqlstream/incremental"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
	"gqlstream/simulate"
	"gqlstream/sinks"
)

// The whole live run is measured on simulated networks that keep changing: from
// encoded messages to estimates that the broker has stored.
const (
	liveVertices    = 30_000 // and liveMembers for each community, if those are more
	liveMembers     = 20
	liveActivity    = 3000 // edges made or dropped a simulated second
	liveLabels      = 0.05 // share of the vertices
	liveLoading     = 4 * time.Second
	liveWarm        = 5 * time.Second // of simulated time, until predictions and labels have arrived
	liveMeasured    = 2 * time.Second
	livePerMessage  = 1024 // events
	liveCommunities = 12   // of the rows where these are large or small
	liveThreshold   = 0.1  // of a standard error: the default of run
)

// liveCase is one row: a network of so many classes and communities.
type liveCase struct {
	name                 string
	classes, communities int
	vertices             int
	most                 float64 // microseconds of one core and edge event
}

// liveGoals are microseconds of one core and edge event, by classes and
// communities.
var liveGoals = []struct {
	communities int
	most        [4]float64
}{
	{12, [4]float64{10, 12, 15, 25}},
	{300, [4]float64{12, 15, 25, 40}},
	{3000, [4]float64{15, 20, 30, 50}},
	{10_000, [4]float64{20, 30, 50, 80}},
}

// liveClasses are the classes of the columns of liveGoals.
var liveClasses = [4]int{2, 5, 10, 20}

// liveMeasures returns a measure for every row live/K/C, for communities of one
// size, and for loading a history.
func liveMeasures() (list []Measure) {
	add := func(c liveCase, what string) {
		list = append(list, Measure{c.name, what, func(ctx context.Context, w *World) ([]Row, error) { return w.live(ctx, c) }})
	}
	for _, goal := range liveGoals {
		for i, k := range liveClasses {
			add(liveCase{
				fmt.Sprintf("live/%d/%d", k, goal.communities), k, goal.communities,
				max(liveVertices, liveMembers*goal.communities), goal.most[i],
			}, fmt.Sprintf("the whole run with %d classes and %d communities", k, goal.communities))
		}
	}
	for _, members := range []int{50, 2500, 100_000} {
		add(liveCase{fmt.Sprintf("members/%d", members), 10, liveCommunities, members * liveCommunities, 0},
			fmt.Sprintf("the whole run with communities of %d members", members))
	}
	return append(list, Measure{"loading", "a history with all predictions and labels in its first seconds", measureLoading})
}

// liveRun feeds a core and a log out from a simulated network, and says what each
// part took.
type liveRun struct {
	network  *simulate.Network
	decoder  *wire.Decoder
	core     *incremental.Core
	stream   *stream
	writer   *sinks.Writer
	made     event.Batch // by the network
	batch    event.Batch // decoded
	messages []wire.Message

	decoding, stepping, publishing time.Duration
	edges, records, steps          int
	published                      map[string]bool // communities, ever
}

// openLive starts a server and a core for a case.
func (w *World) openLive(ctx context.Context, c liveCase, lasts time.Duration) (r *liveRun, err error) {
	r = &liveRun{published: map[string]bool{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close(ctx))
		}
	}()
	s := simulate.DefaultConfig()
	s.Seed, s.Vertices, s.Communities, s.Classes = w.Seed, c.vertices, c.communities, c.classes
	s.Activity, s.LabelShare, s.Duration = liveActivity, liveLabels, lasts
	if r.network, err = simulate.New(s); err != nil {
		return r, err
	}
	if r.decoder, err = wire.NewDecoder(wire.Config{Classes: event.ClassSet{Count: c.classes}}); err != nil {
		return r, err
	}
	if r.core, err = incremental.New(incremental.Config{Classes: c.classes, Emit: incremental.Emit{Threshold: liveThreshold}}); err != nil {
		return r, err
	}
	if r.stream, err = w.openStream(ctx); err != nil {
		return r, err
	}
	names, err := sinks.NewNames("bench")
	if err != nil {
		return r, err
	}
	r.writer, err = sinks.NewWriter(ctx, r.stream.js, sinks.WriterConfig{
		Streams: sinks.StreamsConfig{Names: names, Embedded: true}, Writer: sinks.Identity{Host: "bench", PID: 1, Since: time.Now()}, Config: "bench", Log: "bench",
	})
	return r, err
}

func (r *liveRun) close(ctx context.Context) error {
	var err error
	if r.writer != nil {
		err = r.writer.Close(ctx)
	}
	if r.stream != nil {
		r.stream.close()
	}
	if r.core != nil {
		r.core.Close()
	}
	return err
}

// step takes the next batch of the network through decoder, core and log out. The
// network's own work, and encoding, are not measured.
func (r *liveRun) step(ctx context.Context) error {
	if err := r.network.Next(ctx, &r.made); err != nil {
		return err
	}
	r.encode()
	r.batch.Reset()
	r.batch.First, r.batch.Last = r.made.First, r.made.Last
	r.batch.Time, r.batch.Emit = r.made.Time, r.made.Emit
	begun := processTime()
	for _, m := range r.messages {
		if err := r.decoder.Decode(m, &r.batch); err != nil {
			return err
		}
	}
	decoded := processTime()
	result := r.core.Step(&r.batch)
	stepped := processTime()
	if refused := len(r.batch.Refused) + len(result.Refused); refused > 0 {
		return fmt.Errorf("%d events were refused", refused)
	}
	if r.batch.Emit {
		err := r.writer.Publish(ctx, sinks.Emission{
			Position: uint64(result.Position), Time: int64(result.Time), Estimates: result.Estimates,
		})
		if err != nil {
			return err
		}
	}
	r.decoding += decoded - begun
	r.stepping += stepped - decoded
	r.publishing += processTime() - stepped
	r.edges += len(r.batch.Edges)
	r.records += len(result.Estimates)
	r.steps++
	for i := range result.Estimates {
		r.published[result.Estimates[i].Community] = true
	}
	return nil
}

// encode turns what the network made into messages of livePerMessage events.
func (r *liveRun) encode() {
	r.messages = r.messages[:0]
	b := &r.made
	for kind := range event.Kind(event.Kinds) {
		for from := 0; from < b.Count(kind); from += livePerMessage {
			payload, form := wire.Encode(kind, b, from, min(from+livePerMessage, b.Count(kind)))
			r.messages = append(r.messages, wire.Message{
				Kind: kind, ContentType: form, Payload: payload, Position: b.Last, Received: b.Time,
			})
		}
	}
}

// until steps until so much simulated time has passed.
func (r *liveRun) until(ctx context.Context, elapsed time.Duration) error {
	for r.network.Elapsed() < elapsed {
		if err := r.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// live measures one case: after a warm-up, processor time of the whole process by
// edge event, and what of it each part took.
func (w *World) live(ctx context.Context, c liveCase) (rows []Row, err error) {
	warm, measured := liveWarm, liveMeasured
	if w.Quick {
		warm, measured = 500*time.Millisecond, 200*time.Millisecond
		c.vertices = min(c.vertices, w.Vertices, 3000)
		c.communities = min(c.communities, 30)
	}
	r, err := w.openLive(ctx, c, warm+measured+time.Second)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close(ctx)) }()
	if err := r.until(ctx, warm); err != nil {
		return nil, err
	}
	r.decoding, r.stepping, r.publishing, r.edges, r.records, r.steps = 0, 0, 0, 0, 0, 0
	if err := r.until(ctx, warm+measured); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	row := Row{
		Name: c.name, Value: micros(r.decoding+r.stepping+r.publishing, r.edges), Unit: "us cpu/event",
		Note: fmt.Sprintf("decode %.2f, step %.2f, log out %.2f us an edge event; %d edge events, %d records, %d emissions; %d vertices, %d classes, %d communities; without the reading of the log",
			micros(r.decoding, r.edges), micros(r.stepping, r.edges), micros(r.publishing, r.edges),
			r.edges, r.records, r.steps, c.vertices, c.classes, c.communities),
	}
	if c.most > 0 {
		row = row.atMost(c.most)
		if w.Quick {
			row.Met = nil
		}
	}
	return []Row{row}, nil
}

// measureLoading reads a history that brings nearly all predictions and labels in
// its first seconds, until every community has an estimate and they are over.
func measureLoading(ctx context.Context, w *World) (rows []Row, err error) {
	c := liveCase{"loading", 10, 300, liveVertices, 3}
	lasts := liveLoading
	if w.Quick {
		c.communities, c.vertices, lasts = 12, min(w.Vertices, 2000), time.Second
	}
	r, err := w.openLive(ctx, c, lasts+time.Second)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close(ctx)) }()
	for r.network.Elapsed() < lasts || len(r.published) < c.communities {
		if err := r.step(ctx); err != nil {
			return nil, err
		}
	}
	row := Row{
		Name: c.name, Value: (r.decoding + r.stepping + r.publishing).Seconds(), Unit: "s cpu",
		Note: fmt.Sprintf("%v of simulated time, until all of %d communities have estimates; %d classes, %d vertices, %d edge events, %d records",
			r.network.Elapsed(), c.communities, c.classes, c.vertices, r.edges, r.records),
	}
	if c.most > 0 {
		row = row.atMost(c.most)
		if w.Quick {
			row.Met = nil
		}
	}
	return []Row{row}, nil
}
