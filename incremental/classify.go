package incremental

import (
	"fmt"
	"iter"

	"gqlstream/graphstore"
	"gqlstream/incremental/classifier"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/neighborhood"
)

// hearings visits what vertices hear from neighbours beside their predictions.
type hearings = iter.Seq[neighborhood.Hearing]

// classify lets the built-in classifier of a warm core follow a step, and counts the
// predictions that it changes as a second change of the same step. Enq follows every step;
// what Diffusion predicts is read at emissions only.
func (c *Core) classify(view graphstore.View, delta *graphstore.Delta, emit bool) {
	switch {
	case c.enq != nil:
		list := c.enq.Update(view, delta)
		c.derive(view, list, c.enq.Heard(view, delta))
	case c.walks != nil:
		c.walks.Update(view, delta)
		if emit {
			c.derive(view, c.walks.Derive(view))
		}
	}
}

// startClassifier lets the configured classifier predict a graph that it sees for the
// first time. The core is still cold.
func (c *Core) startClassifier(view graphstore.View) {
	switch c.config.Classifier {
	case classifier.EnqName:
		c.enq = classifier.NewEnq(c.config.Classes)
		c.derive(view, c.enq.Recount(view), c.enq.HeardByAll(view))
	case classifier.DiffusionName:
		c.walks = classifier.NewDiffusion(c.config.Classes)
		c.walks.Solve(view)
		c.derive(view, c.walks.Derive(view))
	}
}

// derive puts predictions into the store and counts what that changes. The masses need
// not know: they follow sources and edges only.
func (c *Core) derive(view graphstore.View, list []graphstore.Derived, heard ...hearings) {
	c.count(view, c.store.Derive(list, c.config.Classifier), heard...)
}

// heard returns the predictions that Enq passes to labelled neighbours; without Enq none.
func (c *Core) heard(view graphstore.View) []hearings {
	if c.enq == nil {
		return nil
	}
	return []hearings{c.enq.HeardByAll(view)}
}

// restoreClassifier counts Enq anew, which gives the same bits, or restores the field of Diffusion.
func (c *Core) restoreClassifier(view graphstore.View, sections map[string][]byte) error {
	switch c.config.Classifier {
	case classifier.EnqName:
		c.enq = classifier.NewEnq(c.config.Classes)
		if list := c.enq.Recount(view); len(list) > 0 {
			return fmt.Errorf("the prediction of vertex %d is not that of its labelled neighbours", list[0].V)
		}
	case classifier.DiffusionName:
		parts, err := readRows[diffusion.DualState](sections, classifierSection)
		if err != nil {
			return err
		}
		c.walks, err = classifier.Restore(c.config.Classes, view, parts)
		return err
	}
	return nil
}
