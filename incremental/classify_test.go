package incremental

import (
	"cmp"
	"maps"
	"slices"
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental/classifier"
	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
)

// classified is allMethods with the built-in classifier.
func classified(classes int) Config {
	config := allMethods(classes)
	config.Classifier = classifier.Name
	return config
}

// After every batch of a random history with labels, edges, erasures and outside
// predictions that come and go, sums and tallies must be bit-equal to a recount, and
// the classifier must leave outside predictions alone.
func TestDerivedPredictionsEqualRecount(t *testing.T) {
	for seed := range uint64(150) {
		stream := eventtest.New(seed, eventtest.Config{
			Weighted: seed%2 == 0, Erase: seed%3 == 0, TTL: seed%5 == 0,
		})
		config := classified(stream.Config.Classes)
		config.Windows = windowsOf(seed / 2)
		core := newCore(t, config)
		outside := map[event.ID]says{}
		for i := range 14 {
			batch := stream.Next()
			checkedStep(t, seed, i, core, batch)
			note(outside, batch, config.Windows.Predictions)
			checkOutside(t, seed, i, core, outside)
		}
		core.Close()
	}
}

// says is a prediction that an event asserted, and when it ends; 0 is never.
type says struct {
	units []uint32
	end   event.Time
}

// note keeps the predictions of events until they expire.
func note(outside map[event.ID]says, b *event.Batch, window time.Duration) {
	for _, v := range b.Vertices {
		if v.Erase {
			delete(outside, v.Vertex)
		}
	}
	for _, p := range b.Predictions {
		e := says{units: p.Units}
		if ttl := cmp.Or(p.TTL, window); ttl != 0 {
			e.end = p.Time + event.Time(ttl)
		}
		outside[p.Vertex] = e
	}
	maps.DeleteFunc(outside, func(_ event.ID, e says) bool { return e.end != 0 && e.end <= b.Time })
}

// checkOutside holds that the predictions that events asserted, and no others, are
// not the classifier's.
func checkOutside(t *testing.T, seed uint64, batch int, c *Core, outside map[event.ID]says) {
	t.Helper()
	view := c.View()
	own, made := view.DerivedVersion(c.config.Classifier)
	for v := range graphstore.Vertex(view.Vertices()) {
		want, asserted := outside[view.ID(v)]
		asserted = asserted && !view.Erased(v)
		held := view.Prediction(v)
		derived := held != nil && made && view.Version(v) == own
		if asserted != (held != nil && !derived) || asserted && !slices.Equal(want.units, held) {
			t.Fatalf("seed %d batch %d %s: vertex %d has %v (derived: %t), events say %v",
				seed, batch, c.config.Classifier, v, held, derived, want.units)
		}
	}
}

// A core restored from a checkpoint must go on with the same predictions and
// estimates, bit for bit, as one that never stopped.
func TestRestoredClassifierGoesOnBitForBit(t *testing.T) {
	for seed := range uint64(30) {
		stream := eventtest.New(
			seed,
			eventtest.Config{Weighted: seed%3 == 0, Erase: true, TTL: true},
		)
		config := classified(stream.Config.Classes)
		config.Windows = windowsOf(seed / 2)
		restarts{batches: 30, every: 3}.leaveNoTrace(t, seed, stream, config)
	}
}

func samePredictions(t *testing.T, seed uint64, a, b *Core) {
	t.Helper()
	for v := range graphstore.Vertex(a.View().Vertices()) {
		if x, y := a.View().Prediction(v), b.View().Prediction(v); !slices.Equal(x, y) {
			t.Fatalf("seed %d: vertex %d is predicted %v and %v", seed, v, x, y)
		}
	}
}

// The same batches must give the same estimates bit for bit with a classifier, on
// one processor and on several.
func TestClassifiersDoNotDependOnProcessors(t *testing.T) {
	for seed := range uint64(10) {
		sameOnProcessors(t, seed, 15, func(c *Config) { c.Classifier = classifier.Name })
	}
}

// A core that followed every step and one that saw everything before its first
// emission must hold the same predictions within the lag and the error of the fields.
func TestWarmClassifierEqualsCold(t *testing.T) {
	for seed := range uint64(100) {
		stream := eventtest.New(seed, eventtest.Config{Weighted: true, Erase: true})
		config := classified(stream.Config.Classes)
		warm := newCore(t, config)
		cold := newCore(t, config)
		for i := range 15 {
			batch := stream.Next()
			last := i == 14
			batch.Emit = batch.Emit || last
			warm.Step(batch)
			batch.Emit = last
			cold.Step(batch)
		}
		closePredictions(t, seed, warm, cold)
		warm.Close()
		cold.Close()
	}
}

// closePredictions allows for the lag, which the warm core may be behind by, and for
// the error of a share in both fields.
func closePredictions(t *testing.T, seed uint64, warm, cold *Core) {
	t.Helper()
	allowed := classifier.Lag + 4*float64(warm.config.Classes)*classifier.Tolerance/classifier.Prior
	for v := range graphstore.Vertex(warm.View().Vertices()) {
		a, b := warm.View().Prediction(v), cold.View().Prediction(v)
		if a == nil || b == nil {
			continue // at the reach
		}
		for k := range a {
			if off := (float64(a[k]) - float64(b[k])) / event.One; max(off, -off) > allowed {
				t.Fatalf("seed %d: vertex %d is predicted %v, anew %v", seed, v, a, b)
			}
		}
	}
}

// Nobody may publish under the version of the built-in classifier.
func TestReservedVersionsAreRefused(t *testing.T) {
	core, err := New(classified(2))
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	b := &event.Batch{First: 1, Last: 1, Emit: true, Predictions: []event.Prediction{{
		Vertex: event.NumberID(
			1,
		), Units: []uint32{event.One, 0}, Version: graphstore.DerivedPrefix + classifier.Name,
		Position: 1,
	}}}
	if got := core.Step(b).Refused; len(got) != 1 || got[0].Reason != event.BadValue {
		t.Fatalf("refused %v", got)
	}
}
