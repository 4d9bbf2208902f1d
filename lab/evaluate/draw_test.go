package evaluate

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// Each way to draw must take as many labels, each vertex once, with the classes in the
// proportions that it promises; at random the same vertices as ever: the first ones.
func TestLabelsAreDrawnAsAsked(t *testing.T) {
	store, err := graphstore.New(graphstore.Config{Classes: 2})
	if err != nil {
		t.Fatal(err)
	}
	b := &event.Batch{}
	for v := range 10_000 {
		l := event.Label{Vertex: event.NumberID(uint64(v))}
		if v%5 == 0 {
			l.Class = 1
		}
		b.Labels = append(b.Labels, l)
	}
	store.Apply(b)
	d := &dataset{store: store, view: store.View(), classes: 2}
	for v := range graphstore.Vertex(10_000) {
		d.labelled = append(d.labelled, v)
	}
	for _, c := range []struct {
		draw  string
		share float64 // of class 1; a fifth of the members are of class 1
	}{{drawRandom, .2}, {drawBalanced, .5}, {drawResponse, .2 / 3 / (.8 + .2/3)}} {
		r := rand.New(rand.NewPCG(1, 2))
		shuffled := slices.Clone(d.labelled)
		r.Shuffle(
			len(shuffled),
			func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] },
		)
		calibration, hidden := d.drawLabels(shuffled, Config{Share: .15, LabelDraw: c.draw}, 1, r)
		if c.draw == drawRandom && !slices.Equal(calibration, shuffled[:1500]) {
			t.Errorf("random: not the first ones")
		}
		all := slices.Sorted(slices.Values(slices.Concat(calibration, hidden)))
		if len(calibration) != 1500 || !slices.Equal(all, d.labelled) {
			t.Errorf("%s: %d calibrate, %d in all", c.draw, len(calibration), len(all))
		}
		of := 0
		for _, v := range calibration {
			of += int(d.view.Label(v).Class)
		}
		if got := float64(of) / 1500; math.Abs(got-c.share) > .03 {
			t.Errorf("%s: %.3f are of class 1, want %.3f", c.draw, got, c.share)
		}
	}
}
