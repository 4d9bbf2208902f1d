package tally

import (
	"fmt"
	"reflect"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
)

// Check counts everything from nothing and names the first sum that is not equal bit for bit.
// masses reads the kernel of a community as last given to UpdateKernel or RebuildKernel.
func (t *Tallies) Check(view graphstore.View, sums *neighborhood.Sums, masses func(CommunityID) Mass) error {
	twin := New(t.classes, t.keep)
	twin.Rebuild(view, sums)
	err := different("the tallies", []sum{
		{"calibration rows", t.rows.order, twin.rows.order},
		{"labels by class", t.classN, twin.classN},
		{"second moments of the labels", t.outer, twin.outer},
		{"N", t.n, twin.n},
	})
	if err == nil && t.decay != nil && twin.decay != nil {
		err = different("the labels' ages", []sum{
			{"landmark", t.decay.landmark, twin.decay.landmark},
			{"epochs", t.decay.epochs, twin.decay.epochs},
			{"N of squared weights", t.decay.n2, twin.decay.n2},
		})
	}
	for id, c := range t.each {
		if err != nil {
			return err
		}
		twin.RebuildKernel(CommunityID(id), view, sums, masses(CommunityID(id)))
		want := twin.each[id]
		err = different("community "+view.CommunityName(CommunityID(id)), []sum{
			{"members", c.members, want.members},
			{"labelled", c.labelled, want.labelled},
			{"profiled", c.profiled, want.profiled},
			{"squared multiplicities", c.squares, want.squares},
			{"labelled members by class", c.anchored, want.anchored},
			{"members by model version", trimmed(c.versions), trimmed(want.versions)},
			{"second moment of the predictions", c.ownSquare, want.ownSquare},
			{"P", c.p, want.p},
			{"A1", c.a1, want.a1},
			{"A2", c.a2, want.a2},
			{"G2A", c.g2a, want.g2a},
		})
	}
	return err
}

// sum is a sum as it was kept, and as a recount gives it.
type sum struct {
	name      string
	got, want any
}

// different names the first sum of what that is another one in a recount.
func different(what string, sums []sum) error {
	for _, s := range sums {
		if reflect.DeepEqual(s.got, s.want) {
			continue
		}
		if got, want := fmt.Sprint(s.got), fmt.Sprint(s.want); got != want { // one may be nil, the other empty
			return fmt.Errorf("tally: %s: %s: %s, a recount gives %s", what, s.name, got, want)
		}
	}
	return nil
}

// trimmed cuts zeros at the end: a version nobody has any more.
func trimmed(counts []uint64) []uint64 {
	for len(counts) > 0 && counts[len(counts)-1] == 0 {
		counts = counts[:len(counts)-1]
	}
	return counts
}
