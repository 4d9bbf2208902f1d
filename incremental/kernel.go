package incremental

import (
	"runtime"
	"sync"
	"sync/atomic"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// follower keeps the masses of one source current: a diffusion.Field, or a
// diffusion.Layered for the kernels of a fixed number of steps.
type follower interface {
	Update(view graphstore.View, delta *graphstore.Delta, sources []diffusion.SourceChange)
	Solve(view graphstore.View, sources []diffusion.SourceChange, certificate float64) float64
	Mass(v graphstore.Vertex) float64
	Touched() []graphstore.Vertex
	Certificate() float64
	State() diffusion.State
	Work() diffusion.Work
}

// kernel keeps the kernel masses of one community: as a field that follows every
// step when the kernel is ppr, or truncated or lazy and has been read before, else
// recomputed when it is read. With a dual, which serves all communities, it keeps none.
type kernel struct {
	field       follower
	values      []float64 // of the other kernels
	certificate float64
	stale       bool        // values no longer belong to the graph
	density     *propensity // nil: labels are a uniform sample

	published []*quant.Snapshot // of the last estimate, by its place in the configuration
	version   uint32            // model version of the last estimates
}

func (k *kernel) mass(v graphstore.Vertex) float64 {
	a := 0.0
	switch {
	case k.field != nil:
		a = max(k.field.Mass(v), 0)
	case int(v) < len(k.values):
		a = k.values[v]
	}
	if k.density != nil {
		return k.density.weight(v, a)
	}
	return a
}

// diffuse brings every kernel, and the tallies that depend on it, to the graph of
// view. The tallies have been updated for the same delta. If it reports that new
// communities are too many for fields, they have no kernel yet, and a dual must take over.
func (c *Core) diffuse(view graphstore.View, delta *graphstore.Delta) (crowded bool) {
	crowded = c.dual == nil && c.planned() && c.crowded(view)
	if !crowded {
		c.addKernels(view)
	}
	if c.dual != nil {
		return false // it follows when the predictions of the step are known
	}
	var moved []graphstore.Vertex
	all := false
	if c.density != nil {
		all = c.density.update(view, delta)
		moved = c.density.touched
	}
	c.forCommunities(func(id graphstore.Community, _ int) {
		k := c.kernels[id]
		if k.field == nil && !c.layered() {
			k.stale = true // and its tallies: both are rebuilt when read
			return
		}
		if k.field == nil {
			k.field, k.values = c.newLayered(), nil
			k.field.Solve(view, c.sources(id, view), c.config.Tolerance)
		} else {
			k.field.Update(view, delta, c.tallies.Sources(id))
		}
		if all {
			c.tallies.RebuildKernel(id, view, c.sums, k.mass)
		} else {
			c.tallies.UpdateKernel(id, view, c.sums, k.mass, k.field.Touched(), moved)
		}
	})
	return crowded
}

// addKernels makes room for new communities.
func (c *Core) addKernels(view graphstore.View) {
	for len(c.kernels) < view.Communities() {
		c.kernels = append(c.kernels, c.newKernel())
	}
}

func (c *Core) newKernel() *kernel {
	switch {
	case c.config.Kernel != diffusion.PPR:
		return &kernel{stale: true, density: c.density}
	case c.dual != nil:
		return &kernel{}
	}
	field, err := diffusion.NewField(c.config.diffusion())
	if err != nil {
		panic(err) // the configuration was validated
	}
	return &kernel{field: field, density: c.density}
}

// layered reports whether the kernel is one that a diffusion.Layered keeps. That takes
// much memory, so it begins with the first step after an estimate: a run that
// estimates once never pays for it.
func (c *Core) layered() bool {
	return c.config.Kernel == diffusion.Truncated || c.config.Kernel == diffusion.Lazy
}

func (c *Core) newLayered() *diffusion.Layered {
	layered, err := diffusion.NewLayered(c.config.layered())
	if err != nil {
		panic(err) // the configuration was validated
	}
	return layered
}

// warmUp makes a cold core warm, and stale kernels current.
func (c *Core) warmUp(view graphstore.View) {
	cold := !c.warm
	if cold {
		c.tallies.Rebuild(view, c.sums)
		c.kernels = c.kernels[:0]
		if c.config.Density == DensityPPR {
			c.density = newPropensity(c.config.diffusion())
			c.density.solve(view, c.config.Tolerance)
		}
		for range view.Communities() {
			c.kernels = append(c.kernels, c.newKernel())
		}
		c.warm = true
		if c.coldDual(view) {
			c.startDual(view)
		}
	} else if c.planned() {
		c.plan(view)
	}
	if c.dual != nil {
		c.readyDual(view, cold)
	} else {
		c.readyKernels(view, cold)
	}
	if cold {
		c.planner = plan{}
		c.planner.Pushed, c.planner.Passes = c.work()
	}
}

// readyKernels solves for the kernels of a core that was cold, and evaluates those that
// are not maintained.
func (c *Core) readyKernels(view graphstore.View, cold bool) {
	c.forCommunities(func(id graphstore.Community, _ int) {
		k := c.kernels[id]
		switch {
		case k.field == nil && k.stale:
			c.recompute(id, view)
		case cold:
			k.field.Solve(view, c.tallies.Sources(id), c.config.Tolerance)
		default:
			return
		}
		c.tallies.RebuildKernel(id, view, c.sums, k.mass)
	})
}

// recompute evaluates a kernel that is not maintained.
func (c *Core) recompute(id graphstore.Community, view graphstore.View) {
	k := c.kernels[id]
	source := make([]float64, view.Vertices())
	c.forUnlabelled(id, view, func(v graphstore.Vertex, m float64) { source[v] = m })
	var err error
	k.values, k.certificate, err = diffusion.Kernel(view, c.config.Kernel, source, c.config.kernelParams())
	if err != nil {
		panic(err) // the configuration was validated
	}
	k.stale = false
}

// forUnlabelled visits the sources of a community's kernel, by vertex.
func (c *Core) forUnlabelled(id graphstore.Community, view graphstore.View, visit func(graphstore.Vertex, float64)) {
	c.tallies.ForMembers(id, view, func(v graphstore.Vertex, multiplicity uint32) {
		if view.Label(v).Class == event.NoClass {
			visit(v, float64(multiplicity))
		}
	})
}

// forCommunities calls f once for every community, on as many goroutines as there
// are processors; worker numbers the goroutine. Each call may touch only what
// belongs to its community.
func (c *Core) forCommunities(f func(id graphstore.Community, worker int)) {
	c.share(len(c.kernels), func(i, worker int) { f(graphstore.Community(i), worker) })
}

// share calls f once for every number below n, on as many goroutines as there are
// processors.
func (c *Core) share(n int, f func(i, worker int)) {
	workers := min(runtime.GOMAXPROCS(0), n)
	if workers <= 1 {
		for i := range n {
			f(i, 0)
		}
		return
	}
	var next atomic.Int64
	var wait sync.WaitGroup
	for worker := range workers {
		wait.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				f(int(i), worker)
			}
		})
	}
	wait.Wait()
}
