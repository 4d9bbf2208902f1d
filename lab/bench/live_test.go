package bench

import (
	"testing"
	"time"

	"gqlstream/incremental"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
	"gqlstream/lab/simulate"
	"gqlstream/sinks"
)

// The whole live run is measured on simulated networks that keep changing: from
// encoded messages to estimates that the broker has stored.
const (
	liveVertices   = 30_000 // and liveMembers for each community, if those are more
	liveMembers    = 20
	liveActivity   = 3000 // edges made or dropped a simulated second
	liveLabels     = 0.05 // share of the vertices
	liveLoading    = 4 * time.Second
	liveWarm       = 20 * time.Second // of log time, until predictions and labels have arrived
	liveMeasured   = 10 * time.Second
	livePerMessage = 1024        // events
	liveThreshold  = 0.1         // of a standard error: the default of run
	liveEmitEvery  = time.Second // the default of run
)

// The rows Live/K/C.
var (
	liveClasses     = []int{2, 5, 10, 20}
	liveCommunities = []int{12, 300, 3000, 10_000}
)

// liveCase is a network of so many classes and communities, with an emission every so often.
type liveCase struct {
	classes, communities, vertices int
	emitEvery                      time.Duration
}

// liveRow returns the case of a row Live/K/C.
func liveRow(classes, communities int) liveCase {
	return liveCase{
		classes, communities, max(liveVertices, liveMembers*communities), liveEmitEvery,
	}
}

// membersRow returns the case of 12 communities of one size.
func membersRow(members int) liveCase {
	return liveCase{10, 12, 12 * members, liveEmitEvery}
}

// liveRun feeds a core and an output log from a simulated network, and reports the time of each
// part.
type liveRun struct {
	network *simulate.Network
	decoder *wire.Decoder
	core    *incremental.Core
	writer  *sinks.Writer
	made    event.Batch // by the network
	batch   event.Batch // decoded

	emitEvery time.Duration
	messages  []wire.Message

	decoding, stepping, publishing time.Duration
	edges, records                 int
	published                      map[string]bool // communities, ever

	waiting []event.Time // of batches with changes that wait for an emission
	delays  []float64    // seconds from each batch to the records of its changes
}

// openLive starts a server and a core for a case, until the measurement ends.
func openLive(tb testing.TB, c liveCase, lasts time.Duration) *liveRun {
	tb.Helper()
	r, err := &liveRun{published: map[string]bool{}, emitEvery: c.emitEvery}, error(nil)
	s := simulate.DefaultConfig()
	s.Seed, s.Vertices, s.Communities, s.Classes = seed, c.vertices, c.communities, c.classes
	s.Activity, s.LabelShare, s.Duration = liveActivity, liveLabels, lasts
	s.PostRate = liveActivity / 8
	r.network, err = simulate.New(s)
	check(tb, err)
	r.decoder, err = wire.NewDecoder(event.ClassSet{Count: c.classes})
	check(tb, err)
	r.core, err = incremental.New(
		incremental.Config{Classes: c.classes, Emit: incremental.Emit{Threshold: liveThreshold}},
	)
	check(tb, err)
	tb.Cleanup(r.core.Close)
	js, _ := openStream(tb)
	names, err := sinks.NewNames("bench")
	check(tb, err)
	r.writer, err = sinks.NewWriter(tb.Context(), js, sinks.WriterConfig{
		Streams: sinks.StreamsConfig{
			Names:    names,
			Embedded: true,
		}, Writer: sinks.Identity{Host: "bench", PID: 1, Since: time.Now()}, Config: "bench",
		Log: "bench",
	})
	check(tb, err)
	return r
}

// step takes the next batch of the network through decoder, core and output log. The
// network's own work, and encoding, are not measured.
func (r *liveRun) step(tb testing.TB) {
	tb.Helper()
	check(tb, r.network.Next(tb.Context(), &r.made))
	r.encode()
	last := r.batch.Time
	r.batch.Reset()
	r.batch.First, r.batch.Last = r.made.First, r.made.Last
	r.batch.Time = r.made.Time
	every := event.Time(r.emitEvery)
	r.batch.Emit = r.made.Emit && r.made.Time/every > last/every
	begun, started := processTime(), time.Now()
	for _, m := range r.messages {
		check(tb, r.decoder.Decode(m, &r.batch))
	}
	decoded := processTime()
	result := r.core.Step(&r.batch)
	stepped := processTime()
	if refused := len(r.batch.Refused) + len(result.Refused); refused > 0 {
		tb.Fatalf("%d events were refused", refused)
	}
	if r.batch.Emit {
		e := sinks.Emission{
			Position:  uint64(result.Position),
			Time:      int64(result.Time),
			Estimates: result.Estimates,
		}
		if r.writer.Admit(&e) {
			check(tb, r.writer.Store(tb.Context(), e))
		}
	}
	r.delay(&result, time.Since(started))
	r.decoding += decoded - begun
	r.stepping += stepped - decoded
	r.publishing += processTime() - stepped
	r.edges += len(r.batch.Edges)
	r.records += len(result.Estimates)
	for i := range result.Estimates {
		r.published[result.Estimates[i].Community] = true
	}
}

// delay notes how long the changes of a batch wait until their records are stored: in log time for
// an emission that solves their community, and on the wall for that emission, which took so long.
func (r *liveRun) delay(result *incremental.Result, took time.Duration) {
	r.waiting = append(r.waiting, r.batch.Time)
	if !r.batch.Emit || result.Behind {
		return
	}
	for _, at := range r.waiting {
		r.delays = append(r.delays, (time.Duration(r.batch.Time-at) + took).Seconds())
	}
	r.waiting = r.waiting[:0]
}

// encode turns the events of the network into messages of livePerMessage events.
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
func (r *liveRun) until(tb testing.TB, elapsed time.Duration) {
	tb.Helper()
	for r.network.Elapsed() < elapsed {
		r.step(tb)
	}
}

// spent returns the processor time of all parts.
func (r *liveRun) spent() time.Duration { return r.decoding + r.stepping + r.publishing }

// measure runs one case after a warm-up and returns the processor time of the whole process
// by edge event, and the time of each part. Reading the log is not included.
func (c liveCase) measure(tb testing.TB, s size) map[string]float64 {
	warm, measured := liveWarm, liveMeasured
	if s.tiny {
		warm, measured = 500*time.Millisecond, 2*time.Second
		c.vertices, c.communities = min(c.vertices, s.vertices), min(c.communities, 30)
		c.emitEvery = 100 * time.Millisecond
	}
	r := openLive(tb, c, warm+measured+time.Second)
	r.until(tb, warm)
	r.decoding, r.stepping, r.publishing, r.edges, r.records = 0, 0, 0, 0, 0
	r.delays = r.delays[:0]
	r.until(tb, warm+measured)
	check(tb, r.writer.Close(tb.Context()))
	if r.records == 0 || len(r.delays) == 0 {
		tb.Fatalf("%d records of %d batches: the run is still warming up", r.records, len(r.delays))
	}
	return map[string]float64{
		"us-cpu/edge": micros(r.spent(), r.edges), "us-decode/edge": micros(r.decoding, r.edges),
		"us-step/edge": micros(
			r.stepping,
			r.edges,
		), "us-logout/edge": micros(r.publishing, r.edges),
		"edges": float64(r.edges), "records": float64(r.records),
		"s-published-p50": quantile(r.delays, 0.5), "s-published-p99": quantile(r.delays, 0.99),
	}
}

// measureLoading reads a history that brings nearly all predictions and labels in
// its first seconds, until every community has an estimate and they are over.
func measureLoading(tb testing.TB, s size) map[string]float64 {
	c, lasts := liveCase{10, 300, liveVertices, liveEmitEvery}, liveLoading
	if s.tiny {
		c.communities, c.vertices, lasts = 12, s.vertices, time.Second
	}
	r := openLive(tb, c, lasts+time.Second)
	for r.network.Elapsed() < lasts || len(r.published) < c.communities {
		r.step(tb)
	}
	check(tb, r.writer.Close(tb.Context()))
	return map[string]float64{
		"s-cpu":   r.spent().Seconds(),
		"edges":   float64(r.edges),
		"records": float64(r.records),
	}
}
