package incremental

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
)

// planLog makes batches on a graph of constant size: edges, and members of the
// first so many of its communities.
type planLog struct {
	rand     *rand.Rand
	next     event.Position
	vertices int
}

func newPlanLog(seed uint64) *planLog {
	return &planLog{rand: rand.New(rand.NewPCG(seed, 41)), next: 1, vertices: 2000}
}

func (l *planLog) id() event.ID { return event.NumberID(uint64(l.rand.IntN(l.vertices))) }

func (l *planLog) batch(edges, joins, communities int) *event.Batch {
	b := &event.Batch{First: l.next, Last: l.next, Time: event.Time(l.next) * 1e8, Emit: true}
	for range edges {
		b.Edges = append(b.Edges, event.Edge{Src: l.id(), Dst: l.id(), Weight: 1, Remove: l.rand.IntN(2) == 0, Position: l.next})
	}
	for i := range joins {
		b.Members = append(b.Members, event.Member{
			Community: fmt.Sprint("c", i%communities), Vertex: l.id(), Multiplicity: 1, Position: l.next,
		})
	}
	if l.next == 1 {
		for v := range l.vertices {
			p := l.rand.Uint32N(event.One)
			id := event.NumberID(uint64(v))
			b.Predictions = append(b.Predictions, event.Prediction{Vertex: id, Units: []uint32{p, event.One - p}, Version: "m"})
			if v%10 == 0 {
				b.Labels = append(b.Labels, event.Label{Vertex: id, Class: event.Class(v / 10 % 2)})
			}
		}
	}
	l.next++
	return b
}

// The planner must take a dual when there are many communities, a field when there is
// one that every refresh would solve for anyway, and not go back and forth.
func TestPlannerChoosesByCost(t *testing.T) {
	for _, test := range []struct {
		communities, members int
		earned               float64
		want                 string
	}{{1, 1000, 0, EnginePrimal}, {60, 10, 1000, EngineDual}} {
		core, err := New(Config{Classes: 2, changeMin: 1, refreshEarned: test.earned})
		if err != nil {
			t.Fatal(err)
		}
		log, changes, engine := newPlanLog(1), 0, ""
		core.Step(log.batch(10000, test.members*test.communities, test.communities))
		for range 60 {
			now := core.Step(log.batch(20, 0, 0)).Engine
			if engine != "" && now != engine {
				changes++
			}
			engine = now
		}
		if engine != test.want || changes > 1 {
			t.Errorf("%d communities: engine %s after %d changes, want %s: %+v", test.communities, engine, changes, test.want, core.planner)
		}
		core.Close()
	}
}

// Whatever the planner changes and when, estimates must be those of the present graph,
// the same on any number of processors, and a restored core must go on with the same bits.
func TestChangesOfEngineLeaveNoTrace(t *testing.T) {
	changes := uint64(0)
	for seed := range uint64(40) {
		stream := eventtest.New(seed, eventtest.Config{Weighted: seed%2 == 0, Erase: true, TTL: true})
		config := dualConfig(seed, stream.Config.Classes)
		config.Engine, config.changeMin = EngineAuto, 1
		if seed%3 == 0 {
			config.changeMin, config.stallMax = 1e9, 1 // a single new community is a crowd
		}
		core := newCore(t, config)
		for i := range 20 {
			batch := stream.Next()
			batch.Checkpoint = i%4 == 3
			if i%3 == 2 && core.warm && batch.Emit {
				core.change(core.View()) // also back, which takes longer by itself
			}
			result := checkedStep(t, seed, i, core, batch)
			checkKernels(t, seed, i, core)
			if !result.Vacuumed {
				continue
			}
			twin := restored(t, seed, core, config)
			before := runtime.GOMAXPROCS(1)
			for range 2 {
				next := stream.Next()
				a := core.Step(next)
				runtime.GOMAXPROCS(4)
				b := twin.Step(next)
				runtime.GOMAXPROCS(before)
				if diff := cmp.Diff(a.Estimates, b.Estimates); diff != "" || a.Engine != b.Engine {
					t.Fatalf("seed %d batch %d: %s without (-) and %s with a restart (+):\n%s", seed, i, a.Engine, b.Engine, diff)
				}
			}
			core.Close()
			core = twin
		}
		changes += core.planner.Changes
		core.Close()
	}
	if changes < 20 {
		t.Errorf("only %d changes of engine in 40 histories", changes)
	}
}
