package explain

import (
	"cmp"
	"slices"

	"gonum.org/v1/gonum/floats"

	"gqlstream/quant"
)

// HideFew removes changes of fewer people than the privacy floor from an explanation. Causes with
// fewer changes are combined, with the smallest other causes if they are still too few. A cause
// with a detail of fewer changes loses its details. A floor of 1 hides nothing.
//
// If few people made all the changes, the explanation still has their effect: it is the difference
// of two published records.
func HideFew(x *quant.Explanation, floor int) {
	if floor <= 1 {
		return
	}
	smallest := slices.Clone(x.Causes)
	smallest = slices.DeleteFunc(smallest, func(c quant.Cause) bool { return c.Changes == 0 })
	slices.SortStableFunc(smallest, func(a, b quant.Cause) int {
		return cmp.Compare(a.Changes, b.Changes)
	})
	few := quant.Cause{Kind: quant.CauseFew, Details: []quant.Detail{}}
	for _, c := range smallest {
		if c.Changes >= floor && (few.Changes == 0 || few.Changes >= floor) {
			break
		}
		if few.Contribution == nil {
			few.Contribution = make([]float64, len(c.Contribution))
		}
		floats.Add(few.Contribution, c.Contribution)
		few.Changes += c.Changes
		same := func(o quant.Cause) bool { return o.Kind == c.Kind }
		x.Causes = slices.DeleteFunc(x.Causes, same)
	}
	for i := range x.Causes {
		c := &x.Causes[i]
		small := func(d quant.Detail) bool { return d.Count < floor }
		if c.Changes > 0 && slices.ContainsFunc(c.Details, small) {
			c.Details = []quant.Detail{}
		}
		c.Largest = nil
	}
	if few.Changes > 0 {
		if few.Changes < floor {
			few.Changes = 0
		}
		x.Causes = append(x.Causes, few)
	}
}
