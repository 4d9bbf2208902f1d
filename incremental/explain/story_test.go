package explain

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"gqlstream/incremental"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// world is a ring of 40 vertices with chords, in two classes that the classifier
// tells apart fairly well; every third vertex is labelled, half are members.
func world() event.Batch {
	var b event.Batch
	for v := range uint64(40) {
		id := event.NumberID(v)
		b.Edges = append(b.Edges,
			event.Edge{Src: id, Dst: event.NumberID((v + 1) % 40), Weight: 1},
			event.Edge{Src: id, Dst: event.NumberID((v + 7) % 40), Weight: 2})
		class := event.Class(v / 5 % 2)
		if v%3 == 0 {
			b.Labels = append(b.Labels, event.Label{Vertex: id, Class: class})
		}
		b.Predictions = append(
			b.Predictions,
			predicted(v, 0.7-0.4*float64(class)+0.01*float64(v%7), "m1"),
		)
		if v < 20 {
			b.Members = append(b.Members, event.Member{Community: "c", Vertex: id, Multiplicity: 1})
		}
	}
	return b
}

func predicted(v uint64, p float64, version string) event.Prediction {
	first := uint32(p * event.One)
	return event.Prediction{
		Vertex:  event.NumberID(v),
		Units:   []uint32{first, event.One - first},
		Version: version,
	}
}

// stories have the events between the two places, and the one cause that must explain all
// of the change.
var stories = []struct {
	cause  string
	happen func(b *event.Batch)
	detail quant.Detail
}{
	{quant.CauseJoined, func(b *event.Batch) {
		for v := range uint64(6) {
			b.Members = append(
				b.Members,
				event.Member{
					Community:    "c",
					Vertex:       event.NumberID(25 + v),
					Multiplicity: 1 + uint32(v%2),
				},
			)
		}
	}, quant.Detail{What: "predicted right", Count: 4}}, // 25, 26, 28, 29: 27 and 30 are labelled
	{quant.CauseLeft, func(b *event.Batch) {
		for v := range uint64(5) {
			b.Members = append(b.Members, event.Member{Community: "c", Vertex: event.NumberID(v)})
		}
	}, quant.Detail{What: "predicted left", Count: 3}},
	{quant.CausePredictions, func(b *event.Batch) {
		for v := range uint64(8) {
			b.Predictions = append(b.Predictions, predicted(v, 0.9, "m1"))
		}
	}, quant.Detail{What: "of members", Count: 8}},
	{quant.CauseModel, func(b *event.Batch) {
		for v := range uint64(40) {
			b.Predictions = append(b.Predictions, predicted(v, 0.8-0.5*float64(v/5%2), "m2"))
		}
	}, quant.Detail{What: "m1 → m2", Count: 37}}, // of three the new model says the same
	{quant.CauseLabels, func(b *event.Batch) {
		for v := range uint64(9) {
			b.Labels = append(b.Labels, event.Label{Vertex: event.NumberID(v), Class: 0})
		}
	}, quant.Detail{What: "changed", Count: 1}},
	{quant.CauseEdges, func(b *event.Batch) {
		b.Edges = append(b.Edges,
			event.Edge{Src: event.NumberID(0), Dst: event.NumberID(1), Remove: true},
			event.Edge{Src: event.NumberID(2), Dst: event.NumberID(30), Weight: 4},
			event.Edge{Src: event.NumberID(3), Dst: event.NumberID(10), Weight: 8},
			event.Edge{Src: event.NumberID(21), Dst: event.NumberID(35), Weight: 4})
	}, quant.Detail{What: "gone", Count: 1}},
}

// If only one thing happened, it must explain all of the change, for every method.
func TestASingleCauseExplainsAllOfTheChange(t *testing.T) {
	for _, method := range []quant.Method{
		quant.Auto, quant.SISNACC, quant.PACC, quant.ML,
		quant.Diff,
	} {
		for _, story := range stories {
			t.Run(fmt.Sprintf("%s/%s", method, story.cause), func(t *testing.T) {
				var b event.Batch
				story.happen(&b)
				x := tell(t, method, b)
				decided := x.Causes[1:] // the choice of auto: that is no fact
				if x.Causes[0].Kind != story.cause || len(factsOf(x)) != 1 ||
					method != quant.Auto && len(decided) > 0 {
					t.Fatalf("causes %v, want %s alone", kindsOf(x), story.cause)
				}
				moved := 0.0
				for k := range x.Change {
					moved += math.Abs(x.Change[k])
					off := x.Causes[0].Contribution[k] - x.Change[k]
					for _, c := range decided {
						off += c.Contribution[k]
					}
					if math.Abs(off) > 1e-12 {
						t.Errorf(
							"class %d: contribution %v of a change of %v", k,
							x.Causes[0].Contribution[k], x.Change[k],
						)
					}
				}
				if moved < 1e-3 && !(method == quant.PACC && story.cause == quant.CauseEdges) {
					t.Errorf("nothing moved: %v", x.Change)
				}
				if !slices.Contains(x.Causes[0].Details, story.detail) {
					t.Errorf("details %v, want %v among them", x.Causes[0].Details, story.detail)
				}
			})
		}
	}
}

// Everything at once must give every cause its part, and the parts must sum to the
// change.
func TestEverythingAtOnce(t *testing.T) {
	var b event.Batch
	for _, story := range stories {
		if story.cause != quant.CausePredictions {
			story.happen(&b)
		}
	}
	x := tell(t, quant.Auto, b)
	if len(factsOf(x)) != 5 || x.States != 1<<len(x.Causes) ||
		!slices.Contains(kindsOf(x), quant.CauseCoefficients) ||
		x.From.Estimate.ModelVersion != "m1" ||
		x.To.Estimate.ModelVersion != "m2" {
		t.Fatalf(
			"%d causes over %d states from %q to %q, want 5 and coefficients from m1 to m2",
			len(x.Causes), x.States, x.From.Estimate.ModelVersion, x.To.Estimate.ModelVersion,
		)
	}
	for k := range x.Change {
		if math.Abs(x.Numerical[k]) > 1e-9 {
			t.Errorf("class %d: %v is left over", k, x.Numerical[k])
		}
	}
}

// A vertex that appears with its prediction as it joins has joined, and has not had
// its prediction changed; the largest effects must be exact and come first.
func TestNewMembersHaveTheirPrediction(t *testing.T) {
	var b event.Batch
	for v := uint64(100); v < 110; v++ {
		p := 0.6
		if v == 104 {
			p = 0
		}
		b.Members = append(
			b.Members,
			event.Member{Community: "c", Vertex: event.NumberID(v), Multiplicity: 1},
		)
		b.Predictions = append(b.Predictions, predicted(v, p, "m1"))
	}
	x := tell(t, quant.PCC, b)
	if kinds := kindsOf(x); !slices.Equal(kinds, []string{quant.CauseJoined}) {
		t.Fatalf("causes %v, want joined alone", kinds)
	}
	c := x.Causes[0]
	if len(c.Largest) != 3 || c.Largest[0].Vertex != "104" {
		t.Fatalf("largest %+v, want three, 104 first", c.Largest)
	}
	// 104 alone moves the mean prediction of the 23 members without a label from
	// the mean of the other 22 (pcc counts labelled members apart).
	to := x.To.Estimate
	if got, want := c.Largest[0].Effect[0]+c.Largest[0].Effect[1], 0.0; math.Abs(got-want) > 1e-12 {
		t.Errorf("effects on the two shares sum to %v", got)
	}
	n := to.Members
	without := (to.Prevalence[0]*n - 0) / n // its own share of the sum is zero
	if effect := c.Largest[0].Effect[0]; effect >= 0 || without+effect > to.Prevalence[0] {
		t.Errorf("104, predicted right for certain, moves left by %v", effect)
	}
	for v := uint64(110); v <= 100+aloneMax; v++ {
		b.Members = append(
			b.Members,
			event.Member{Community: "c", Vertex: event.NumberID(v), Multiplicity: 1},
		)
	}
	if c := tell(t, quant.PCC, b).Causes[0]; c.Changes != aloneMax+1 || len(c.Largest) > 0 {
		t.Errorf("of %d changes, %d are named", c.Changes, len(c.Largest))
	}
}

// tell explains the world before and after a batch.
func tell(t *testing.T, method quant.Method, b event.Batch) *quant.Explanation {
	t.Helper()
	return tellWith(t, method, b, func(*Options) {})
}

// tellWith is tell with other options.
func tellWith(
	t *testing.T, method quant.Method, b event.Batch, change func(*Options),
) *quant.Explanation {
	t.Helper()
	options := quant.DefaultOptions()
	options.Method = method
	config := incremental.Config{Classes: 2, Estimates: []quant.Options{options}}
	graph := twin(t, config)
	graphOnly(graph, world())
	how := Options{
		Config:    config,
		Community: "c",
		Estimate:  options,
		Classes:   []string{"left", "right"},
		Named:     3,
	}
	change(&how)
	w, err := Begin(context.Background(), graph, Place{Position: 1}, how)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	graphOnly(graph, b)
	x, err := w.To(context.Background(), graph, Place{Position: 2})
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// Of auto, new coefficients and another gamma must have parts of their own: gamma where
// edges make a place of a community, coefficients where labels changed, unless the pipeline
// is known to have fitted none in between.
func TestCoefficientsAndGammaHaveTheirParts(t *testing.T) {
	for _, same := range []bool{false, true} {
		var b event.Batch
		for v := range uint64(20) {
			for u := range v {
				b.Edges = append(
					b.Edges,
					event.Edge{Src: event.NumberID(v), Dst: event.NumberID(u), Weight: 1},
				)
			}
		}
		for v := range uint64(4) {
			b.Labels = append(
				b.Labels,
				event.Label{Vertex: event.NumberID(37 - 5*v), Class: event.Class(v % 2)},
			)
		}
		x := tellWith(t, quant.Auto, b, func(o *Options) { o.SameFit = same })
		kinds := kindsOf(x)
		if !slices.Contains(kinds, quant.CauseGamma) ||
			slices.Contains(kinds, quant.CauseCoefficients) == same {
			t.Fatalf("same fit %v: causes %v", same, kinds)
		}
		if from, to := x.From.Estimate.Gamma, x.To.Estimate.Gamma; !(to < from) {
			t.Errorf("gamma went from %v to %v, and edges came inside", from, to)
		}
		for _, c := range x.Causes {
			if c.Kind != quant.CauseCoefficients && c.Kind != quant.CauseGamma {
				continue
			}
			if floats.Norm(c.Contribution, 1) < 1e-4 || len(c.Details) != 1 || c.Changes != 0 ||
				len(c.Largest) != 0 {
				t.Errorf("same fit %v: %+v", same, c)
			}
		}
		for k := range x.Change {
			if math.Abs(x.Numerical[k]) > 1e-9 {
				t.Errorf("same fit %v, class %d: %v is left over", same, k, x.Numerical[k])
			}
		}
	}
}

// With the published gammas both ends must be read through these; their difference is the cause.
func TestThePublishedGammasAreHeld(t *testing.T) {
	var b event.Batch
	for v := range uint64(6) {
		b.Predictions = append(b.Predictions, predicted(v, 0.9, "m1"))
	}
	published := [2]float64{0.15, 0.4}
	x := tellWith(t, quant.Auto, b, func(o *Options) { o.SameFit, o.Gamma = true, published })
	if x.From.Estimate.Gamma != published[0] || x.To.Estimate.Gamma != published[1] {
		t.Errorf("gamma %v and %v", x.From.Estimate.Gamma, x.To.Estimate.Gamma)
	}
	at := slices.IndexFunc(x.Causes,
		func(c quant.Cause) bool { return c.Kind == quant.CauseGamma })
	if at < 0 || floats.Norm(x.Causes[at].Contribution, 1) < 1e-4 ||
		x.Causes[at].Details[0].What != "members look chosen by opinion: 40 %, before 15 %" {
		t.Errorf("causes %+v", x.Causes)
	}
	if floats.Norm(x.Numerical, 1) > 1e-9 {
		t.Errorf("%v is left over", x.Numerical)
	}
}

// A combination of causes must have the same value in whatever order its causes were
// applied, although posteriors of a pipeline may lag behind small changes near them.
func TestCombinationsOfCausesDoNotDependOnOrder(t *testing.T) {
	options := quant.DefaultOptions()
	config := incremental.Config{Classes: 2, Estimates: []quant.Options{options}}
	graph := twin(t, config)
	graphOnly(graph, world())
	begin := func() *Walk {
		w, err := Begin(
			t.Context(), graph, Place{Position: 1},
			Options{Config: config, Community: "c", Estimate: options},
		)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Close)
		return w
	}
	var b event.Batch
	for v := range uint64(40) { // too few to compute the neighbours again at once
		b.Predictions = append(
			b.Predictions,
			predicted(v, 0.702-0.4*float64(v/5%2)+0.01*float64(v%7), "m1"),
		)
	}
	for _, story := range stories {
		if story.cause != quant.CausePredictions && story.cause != quant.CauseModel {
			story.happen(&b)
		}
	}
	walk, alone := begin(), []*Walk{}
	for range 1 << len(kinds) {
		alone = append(alone, begin())
	}
	was := twin(t, config)
	graphOnly(was, world())
	here := read(was, 0)
	graphOnly(graph, b)
	causes := causesOf(here, read(graph, 0))
	if _, err := walk.arrive(t.Context(), causes); err != nil {
		t.Fatal(err)
	}
	values, err := walk.values(t.Context(), causes)
	if err != nil || len(values) > len(alone) {
		t.Fatal(len(values), err)
	}
	for set := range values {
		w := alone[set]
		w.ends, w.reading = walk.ends, walk.ends[after]
		if _, err := w.arrive(t.Context(), causes); err != nil {
			t.Fatal(err)
		}
		w.core.Hold(walk.ends[after])
		for j := range causes {
			if set>>j&1 == 0 {
				if err := w.put(t.Context(), causes[j].groups, before, false); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := w.step(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		if set > 0 && distance(w.last.Prevalence, values[set]) > 1e-7 {
			t.Errorf("causes %b: %v on the way, %v alone", set, values[set], w.last.Prevalence)
		}
	}
}
