package incremental

import (
	"cmp"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
)

// handover is the change from fields to a dual. It takes a solve for every function, which are seconds
// on a large graph with many classes, so an emission solves for some of them if somebody waits for the
// next one. Until the last function is there the fields go on for the communities that they know, and
// those that are new wait for their first estimate. A checkpoint ends it, so that it is no state.
type handover struct {
	from     *fields
	shared   *sharedDual
	residual *diffusion.Dual // nil if no estimate reads posteriors
	held     int             // functions of residual that it holds
	credit   int             // work that it may do now; below zero it rests
}

const (
	// handoverWork is what an emission earns for a handover, in vertices and neighbours visited for
	// handoverFunctions: some hundredths of a second. What a solve takes beyond it the next emissions
	// do without, up to handoverRest of them, so that they catch up.
	handoverWork = 1 << 21
	handoverRest = 4
	// handoverFunctions are solved for at once, two blocks side by side.
	handoverFunctions = 8
)

// newHandover begins one with duals that hold no function.
func newHandover(c *Core, view graphstore.View) *handover {
	h := &handover{from: c.masses.(*fields), shared: &sharedDual{core: c, measured: measured{Reach: 1}}}
	h.shared.dual = c.newDual(c.config.Classes, h.shared.tolerance(view))
	if c.posteriors != nil {
		h.residual = c.newDual(c.config.Classes, h.shared.residualTolerance(view))
	}
	return h
}

// serves reports whether there are masses of a community.
func (h *handover) serves(id graphstore.Community) bool {
	return h == nil || int(id) < len(h.from.each)
}

// follow brings what is held to the graph of view, which delta led to, before the fields do. It returns the
// handover, or nil if the next emission has to begin again.
func (h *handover) follow(view graphstore.View, delta *graphstore.Delta) *handover {
	if h == nil {
		return nil
	}
	halvings := h.shared.core.tallies.Halvings()
	if halvings < 0 {
		return nil
	}
	h.shared.Follow(view, delta)
	if h.residual != nil {
		h.residual.Halve(halvings)
		h.residual.Follow(view, delta, nil)
	}
	return h
}

// advance solves for functions that are not held yet, as many as an emission can bear, or all. It returns the
// handover, or nil once all are held and the dual has the place of the fields.
func (h *handover) advance(view graphstore.View, all bool) *handover {
	if h == nil {
		return nil
	}
	c := h.shared.core
	earned := cmp.Or(c.config.handoverWork, handoverWork)
	for h.credit += earned; !h.complete(); h.credit = max(h.credit-h.solve(c, view), -handoverRest*earned) {
		if !all && h.credit <= 0 {
			return h
		}
	}
	h.shared.takeOver(view)
	if h.residual != nil {
		c.posteriors.takeResidual(h.residual, view)
	}
	return nil
}

func (h *handover) complete() bool {
	return h.shared.held == h.shared.dual.Functions() && (h.residual == nil || h.held == h.residual.Functions())
}

// solve solves for the next functions and returns its work.
func (h *handover) solve(c *Core, view graphstore.View) int {
	if d := h.shared; d.held < d.dual.Functions() {
		first, end := d.held, min(d.held+handoverFunctions, d.dual.Functions())
		d.held = end
		return d.dual.Extend(view, between(first, end, c.tallies.AppendAll(nil, view)), first, end, d.dual.Tolerance()/dualStartShare)
	}
	p, first, end := c.posteriors, h.held, min(h.held+handoverFunctions, h.residual.Functions())
	h.held = end
	return h.residual.Extend(view, between(first, end, p.changes(h.residual, view, p.state.Labels())), first, end, h.residual.Tolerance()/dualStartShare)
}

// between keeps the changes of functions from first to end.
func between(first, end int, changes []diffusion.ValueChange) []diffusion.ValueChange {
	return slices.DeleteFunc(changes, func(c diffusion.ValueChange) bool { return c.Function < first || c.Function >= end })
}
