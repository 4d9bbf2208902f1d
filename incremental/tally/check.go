package tally

import (
	"fmt"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
)

// Check counts everything from nothing and names the first sum that is not equal
// bit for bit. masses reads the kernel of a community as last given to
// UpdateKernel or RebuildKernel.
func (t *Tallies) Check(view graphstore.View, sums *neighborhood.Sums, masses func(CommunityID) Mass) error {
	twin := New(t.classes, t.keep)
	twin.Rebuild(view, sums)
	if !slices.Equal(t.rows.order, twin.rows.order) {
		return fmt.Errorf("tally: calibration rows %v, a recount gives %v", t.rows.order, twin.rows.order)
	}
	if !slices.Equal(t.classN, twin.classN) {
		return fmt.Errorf("tally: labels by class %v, a recount gives %v", t.classN, twin.classN)
	}
	if !slices.Equal(t.outer, twin.outer) {
		return fmt.Errorf("tally: second moments of the labels %v, a recount gives %v", t.outer, twin.outer)
	}
	if err := t.decay.equal(twin.decay); err != nil {
		return err
	}
	for kind := range t.n {
		if !slices.Equal(t.n[kind], twin.n[kind]) {
			return fmt.Errorf("tally: N of family %d is %v, a recount gives %v", kind, t.n[kind], twin.n[kind])
		}
	}
	for id, c := range t.each {
		twin.RebuildKernel(CommunityID(id), view, sums, masses(CommunityID(id)))
		if err := c.equal(twin.each[id]); err != nil {
			return fmt.Errorf("tally: community %s: %w", view.CommunityName(CommunityID(id)), err)
		}
	}
	return nil
}

// equal names the first difference between two communities.
func (c *community) equal(want *community) error {
	if c.members != want.members || c.labelled != want.labelled || c.profiled != want.profiled {
		return fmt.Errorf("members, labelled, profiled are %d, %d, %d, a recount gives %d, %d, %d",
			c.members, c.labelled, c.profiled, want.members, want.labelled, want.profiled)
	}
	if c.squares != want.squares {
		return fmt.Errorf("squared multiplicities sum to %v, a recount gives %v", c.squared(), want.squared())
	}
	if !slices.Equal(c.anchored, want.anchored) {
		return fmt.Errorf("labelled members by class %v, a recount gives %v", c.anchored, want.anchored)
	}
	if !slices.Equal(trimmed(c.versions), trimmed(want.versions)) {
		return fmt.Errorf("members by model version %v, a recount gives %v", c.versions, want.versions)
	}
	for _, pair := range c.matrices(want) {
		if !slices.Equal(pair.got, pair.want) {
			return fmt.Errorf("%s is %v, a recount gives %v", pair.name, pair.got, pair.want)
		}
	}
	return nil
}

// equal names the first difference between what two tallies know of the labels' ages.
func (d *decay) equal(want *decay) error {
	if d == nil || want == nil {
		return nil
	}
	if d.landmark != want.landmark || !slices.Equal(d.epochs, want.epochs) {
		return fmt.Errorf("tally: landmark %d of epochs %v, a recount gives %d of %v", d.landmark, d.epochs, want.landmark, want.epochs)
	}
	for kind := range d.n2 {
		if !slices.Equal(d.n2[kind], want.n2[kind]) {
			return fmt.Errorf("tally: N of squared weights of family %d is %v, a recount gives %v", kind, d.n2[kind], want.n2[kind])
		}
	}
	return nil
}

type pairOfSums struct {
	name      string
	got, want []Sum
}

func (c *community) matrices(want *community) []pairOfSums {
	pairs := []pairOfSums{
		{"second moment of the predictions", c.ownSquare, want.ownSquare},
	}
	for kind := range c.p {
		pairs = append(pairs,
			pairOfSums{fmt.Sprintf("P of family %d", kind), c.p[kind], want.p[kind]},
			pairOfSums{fmt.Sprintf("A1 of family %d", kind), c.a1[kind], want.a1[kind]},
			pairOfSums{fmt.Sprintf("A2 of family %d", kind), c.a2[kind], want.a2[kind]},
			pairOfSums{fmt.Sprintf("G2A of family %d", kind), c.g2a[kind], want.g2a[kind]})
	}
	return pairs
}

// trimmed cuts zeros at the end: a version nobody has any more.
func trimmed(counts []uint64) []uint64 {
	for len(counts) > 0 && counts[len(counts)-1] == 0 {
		counts = counts[:len(counts)-1]
	}
	return counts
}
