package incremental

import (
	"fmt"
	"math"
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// Moved and revised must sum to the change since the record before, bit for bit but for rounding,
// in random histories of every method; and where only labels come, nothing has moved.
func TestRecordsDivideTheirChange(t *testing.T) {
	divided, revised := 0, 0
	for seed := range uint64(12) {
		stream, classes := historyOf(seed)
		config := allMethods(classes)
		config.Emit = Emit{Threshold: 0.01, AtLeastEvery: time.Second}
		core := newCore(t, config)
		type key struct{ community, method string }
		last := map[key]quant.Estimate{}
		for range 25 {
			for _, e := range core.Step(stream.Next()).Estimates {
				if e.Suppressed {
					continue
				}
				at := key{e.Community, e.Method}
				if before, known := last[at]; known && len(e.Moved) > 0 {
					divided++
					for i, q := range e.Prevalence {
						change := q - before.Prevalence[i]
						if off := math.Abs(e.Moved[i] + e.Revised[i] - change); off > 1e-12 {
							t.Fatalf("seed %d: %v class %d: moved %v and revised %v, changed by %v",
								seed, at, i, e.Moved[i], e.Revised[i], change)
						}
						if e.Revised[i] != 0 {
							revised++
						}
					}
				}
				last[at] = e
			}
		}
		core.Close()
	}
	if divided < 100 || revised == 0 {
		t.Errorf("%d records divided their change, %d shares were revised", divided, revised)
	}
}

// settle lets a core read twelve steps of a town, which it returns.
func settle(core *Core) *town {
	log := newTown(7, 2, 600, 6)
	core.Step(log.start())
	for range 11 {
		core.Step(log.step())
	}
	return log
}

// Members who change their predictions must move a community. A hundred labels at once,
// from which auto learns that predictions are useless, must revise it: they move it only as
// far as the posteriors of neighbours of a label change.
func TestLabelsReviseAndPredictionsMove(t *testing.T) {
	core := newCore(t, Config{Classes: 2, Emit: Emit{Threshold: 0.01, AtLeastEvery: time.Second}})
	defer core.Close()
	log := settle(core)
	view, at := core.View(), log.next
	largest := func(b *event.Batch) (moved, revised float64) {
		b.First, b.Last, b.Time, b.Emit, b.EmitAll = at, at, core.time+2e9, true, true
		at++
		for _, e := range core.Step(b).Estimates {
			for i := range e.Moved {
				moved = max(moved, math.Abs(e.Moved[i]))
				revised = max(revised, math.Abs(e.Revised[i]))
			}
		}
		return moved, revised
	}
	news, lessons := &event.Batch{}, &event.Batch{}
	for v := range graphstore.Vertex(500) {
		switch label := view.Label(v).Class; {
		case label == event.NoClass && v%5 == 0:
			lessons.Labels = append(lessons.Labels,
				event.Label{Vertex: view.ID(v), Class: event.Class(v / 5 % 2)})
		case label == event.NoClass && v < 300:
			news.Predictions = append(news.Predictions, event.Prediction{
				Vertex: view.ID(v), Version: view.Versions()[view.Version(v)],
				Units: []uint32{event.One / 20, event.One - event.One/20},
			})
		}
	}
	if moved, _ := largest(news); moved < 0.05 {
		t.Errorf("most people say something else, and no share moved by more than %v", moved)
	}
	if moved, revised := largest(lessons); moved > revised/3 || revised < 0.05 {
		t.Errorf("labels moved a share by %v and revised one by %v", moved, revised)
	}
}

// People change their minds all over the graph, and the labels, from before the change, do
// not. When coefficients are fitted again, the shares of the labels are corrected for this.
// The correction follows the graph, so it is movement, also in the community of each
// vertex.
func TestCorrectionThatFollowsTheGraphMoves(t *testing.T) {
	everyone := graphstore.Rule{Name: "everyone", Kind: graphstore.Everyone}
	core := newCore(t, Config{
		Classes: 2, Communities: []graphstore.Rule{everyone},
		Emit: Emit{Threshold: 0.01, AtLeastEvery: time.Second},
	})
	defer core.Close()
	log := newTown(11, 2, 3000, 2)
	for i := range 4 {
		b := log.step
		if i == 0 {
			b = log.start
		}
		core.Step(b())
	}
	view, at, moved, revised, epochs := core.View(), log.next, 0.0, 0.0, 0
	say := func(list ...event.Prediction) {
		b := &event.Batch{
			First:       at,
			Last:        at,
			Time:        core.time + 60e9,
			Emit:        true,
			Predictions: list,
		}
		at++
		began := core.Coefficients().Version
		for _, e := range core.Step(b).Estimates {
			if e.Community == "everyone" && len(e.Moved) > 0 {
				moved, revised = moved+e.Moved[1], revised+e.Revised[1]
			}
		}
		epochs += int(core.Coefficients().Version - began)
	}
	for range 65 { // older changes are read, with coefficients of their own
		say()
	}
	moved, revised, epochs = 0, 0, 0
	var news []event.Prediction
	for v := range graphstore.Vertex(view.Vertices()) {
		units := view.Prediction(v)
		if units != nil && units[0] > units[1] && v%3 > 0 {
			news = append(news, event.Prediction{
				Vertex: view.ID(v), Version: view.Versions()[view.Version(v)],
				Units: []uint32{units[1], units[0]},
			})
		}
	}
	for i := range 50 {
		say(news[i*len(news)/50 : (i+1)*len(news)/50]...)
	}
	for range 30 {
		say()
	}
	t.Logf("moved %.3f, revised %.3f in %d epochs", moved, revised, epochs)
	if moved < 0.08 || math.Abs(revised) > moved/2 || epochs == 0 {
		t.Errorf("two thirds of one side changed their minds: moved %.3f, revised %.3f, %d epochs",
			moved, revised, epochs)
	}
}

// A label of a vertex with many neighbours changes how all of these are read, and moves none of
// them.
func TestLabelOfAHubMovesNobody(t *testing.T) {
	core := newCore(t, Config{Classes: 2, Emit: Emit{Threshold: 0.001, AtLeastEvery: time.Second}})
	defer core.Close()
	const n, hubs = 400, 4
	b := &event.Batch{First: 1, Last: 1, Time: 1e9, Emit: true}
	id := func(v int) event.ID { return event.NumberID(uint64(v)) }
	for v := range n {
		units := []uint32{event.One / 4, event.One - event.One/4}
		if v%2 == 0 {
			units[0], units[1] = units[1], units[0]
		}
		b.Predictions = append(b.Predictions, event.Prediction{Vertex: id(v), Units: units})
		b.Members = append(b.Members, event.Member{Community: "c", Vertex: id(v), Multiplicity: 1})
		b.Edges = append(b.Edges, event.Edge{Src: id(v), Dst: id((v + 2) % n), Weight: 1})
		if v >= hubs {
			b.Edges = append(b.Edges, event.Edge{Src: id(v), Dst: id(v % hubs), Weight: 1})
		}
		if v%8 < 2 && v >= hubs {
			b.Labels = append(b.Labels, event.Label{Vertex: id(v), Class: event.Class(v % 2)})
		}
	}
	core.Step(b)
	next := func(label int, class event.Class) quant.Estimate {
		b = &event.Batch{First: b.Last + 1, Last: b.Last + 1, Time: b.Time + 2e9, Emit: true}
		b.Labels = append(b.Labels, event.Label{Vertex: id(label), Class: class})
		list := core.Step(b).Estimates
		if len(list) != 1 {
			t.Fatalf("%d records", len(list))
		}
		return list[0]
	}
	next(11, 1)
	epoch := core.Coefficients().Version
	if e := next(2, 1); core.Coefficients().Version != epoch || math.Abs(e.Moved[0]) > 0.002 ||
		math.Abs(e.Revised[0]) < 0.002 {
		t.Errorf("moved %v, revised %v", e.Moved, e.Revised)
	}
}

// Members who join with predictions of one class move a community at once, and nobody has yet to
// say the same: the estimate is not behind. Members who change to it are followed by others, so the
// interval reaches further in that direction.
func TestMembersWhoJoinLeaveNothingBehind(t *testing.T) {
	type change func(view graphstore.View, b event.Batch) event.Batch
	lag := func(b change) (moved, behind float64, e quant.Estimate) {
		emit := Emit{Threshold: 0.01, AtLeastEvery: time.Second}
		core := newCore(t, Config{Classes: 2, Emit: emit})
		defer core.Close()
		log := settle(core)
		at := event.Batch{
			First: log.next, Last: log.next, Time: core.time + 2e9, Emit: true, EmitAll: true,
		}
		next := b(core.View(), at)
		for _, e = range core.Step(&next).Estimates {
			for i := range e.Moved {
				if moved = max(moved, math.Abs(e.Moved[i])); len(e.SELag) > 0 {
					behind = max(behind, e.SELag[i])
				}
			}
		}
		return moved, behind, e
	}
	units := []uint32{event.One / 20, event.One - event.One/20}
	joined, behind, _ := lag(func(view graphstore.View, b event.Batch) event.Batch {
		name := view.CommunityName(0)
		for i := range 400 {
			id := event.ID{Name: fmt.Sprintf("bot-%d", i)}
			b.Predictions = append(b.Predictions, event.Prediction{
				Vertex: id, Version: view.Versions()[view.Version(0)], Units: units,
			})
			b.Members = append(b.Members,
				event.Member{Community: name, Vertex: id, Multiplicity: 1})
		}
		return b
	})
	if joined < 0.05 || behind > joined {
		t.Errorf("bots moved a share by %v, and it is behind by %v", joined, behind)
	}
	people := func(n graphstore.Vertex) change {
		return func(view graphstore.View, b event.Batch) event.Batch {
			for v := range n {
				if view.Label(v).Class == event.NoClass {
					b.Predictions = append(b.Predictions, event.Prediction{
						Vertex: view.ID(v), Version: view.Versions()[view.Version(v)], Units: units,
					})
				}
			}
			return b
		}
	}
	changed, behindOthers, _ := lag(people(300))
	if changed < 0.05 || behindOthers < changed {
		t.Errorf("people moved a share by %v, and it is behind by %v", changed, behindOthers)
	}
	_, _, e := lag(people(20))
	for i, moved := range e.Moved {
		up, down := e.High[i]-e.Prevalence[i], e.Prevalence[i]-e.Low[i]
		if (moved > 0) != (up > down) {
			t.Errorf("class %d moved by %v and is between -%v and +%v", i, moved, down, up)
		}
	}
	t.Logf("bots move by %.3f and leave %.3f behind, people %.3f and %.3f",
		joined, behind, changed, behindOthers)
}
