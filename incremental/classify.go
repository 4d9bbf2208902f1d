package incremental

import (
	"fmt"
	"iter"

	"gqlstream/graphstore"
	"gqlstream/incremental/classifier"
	"gqlstream/incremental/neighborhood"
)

// classify lets the configured classifier follow a step and puts the predictions
// that it changes into the store, as a second change of the same step. Like the
// rest of a cold core it waits for the first emission.
func (c *Core) classify(view graphstore.View, delta *graphstore.Delta, emit bool) {
	if !c.warm && !emit {
		return
	}
	switch c.config.Classifier {
	case classifier.EnqName:
		if c.warm {
			list := c.enq.Update(view, delta)
			c.derive(view, list, c.enq.Heard(view, delta))
			return
		}
		c.enq = classifier.NewEnq(c.config.Classes)
		c.derive(view, c.enq.Recount(view), c.enq.HeardByAll(view))
	case classifier.DiffusionName:
		if c.warm {
			c.walks.Update(view, delta)
		} else {
			c.walks = classifier.NewDiffusion(c.config.Classes)
			c.walks.Solve(view)
		}
		if emit {
			c.derive(view, c.walks.Derive(view))
		}
	}
}

// derive changes predictions in the store, and all that follows them. The kernels
// do not: they know sources and edges only.
func (c *Core) derive(view graphstore.View, list []graphstore.Derived, heard ...iter.Seq[neighborhood.Hearing]) {
	delta := c.store.Derive(list, c.config.Classifier)
	votes := c.sums.Update(view, delta, heard...)
	if !c.warm {
		return
	}
	c.tallies.Update(view, delta, c.sums, votes)
	if c.dual != nil {
		return // it follows at the end of the step
	}
	c.forCommunities(func(id graphstore.Community, _ int) {
		if k := c.kernels[id]; k.field != nil {
			c.tallies.UpdateKernel(id, view, c.sums, k.mass)
		}
	})
}

// heard returns what the sums hold beside the graph: nothing without Enq.
func (c *Core) heard(view graphstore.View) []iter.Seq[neighborhood.Hearing] {
	if c.enq == nil {
		return nil
	}
	return []iter.Seq[neighborhood.Hearing]{c.enq.HeardByAll(view)}
}

// restoreClassifier counts Enq anew, which gives the same bits, or restores the
// field of Diffusion.
func (c *Core) restoreClassifier(view graphstore.View, sections map[string][]byte) error {
	switch c.config.Classifier {
	case classifier.EnqName:
		c.enq = classifier.NewEnq(c.config.Classes)
		if list := c.enq.Recount(view); len(list) > 0 {
			return fmt.Errorf("the prediction of vertex %d is not that of its labelled neighbours", list[0].V)
		}
	case classifier.DiffusionName:
		data, err := readParts(sections, classifierSection)
		if err != nil {
			return err
		}
		c.walks, err = classifier.Restore(c.config.Classes, view, data)
		return err
	}
	return nil
}
