package incremental

import (
	"bytes"

	"gqlstream/graphstore"
	"gqlstream/incremental/tally"
	"gqlstream/quant"
)

// The structures that keep kernel masses, by name. Fields keep those of methods that weigh cells, and of other kernels
// than ppr; for a handful of communities they would often be cheaper, and exact in what a dual estimates, how a class lies
// over its labels, but one structure whatever the number of communities is one thing to know.
const (
	EnginePrimal = "primal" // fields: one for each community
	EngineDual   = "dual"   // one dual for all of them
)

// masses keeps the kernel masses of all communities current and hands out the statistics
// that rest on them. There are two: fields, one for each community, and sharedDual, one
// structure for all of them. Neither knows what a step is beside what it is given, and
// Step does not know which of them it has.
type masses interface {
	// Follow brings the masses to the graph of view, which delta led to. The tallies are
	// at the end of the step already.
	Follow(view graphstore.View, delta *graphstore.Delta)
	// Ready makes current what an emission reads; what follows is valid until Follow.
	Ready(view graphstore.View)
	// Statistics returns the statistics of one community. It may be called for several communities side by side.
	Statistics(id graphstore.Community, view graphstore.View) reading
	// Certificate bounds the error of a tally of the community, A1 over M.
	Certificate(id graphstore.Community) float64
	// State adds all that a restart needs of the masses as sections.
	State(add addSection)
}

// addSection adds a section of the state that write fills, later if that reads a copy.
type addSection func(name string, copied bool, write func(*bytes.Buffer) error)

// reading is the answer of masses about one community.
type reading struct {
	*quant.Statistics
	engine string        // EngineDual, or nothing
	spread *tally.Spread // of a dual: the second moments that it rests on; nil: a bound stands for them
}

// reachMin is the mean mass of a community's labels, in mean masses of all vertices, that counts
// as none: hardly a walk ends there.
const reachMin = 0.001

// fieldBytes are what a field takes of memory for each vertex.
const fieldBytes = 44

// FieldBytes returns about how much memory the fields of communities take, which nothing bounds where methods weigh cells.
func (c *Core) FieldBytes() (bytes int) {
	if f, are := c.masses.(*fields); are {
		for i := range f.each {
			if f.each[i].field != nil {
				bytes += fieldBytes * c.View().Vertices()
			}
		}
	}
	return bytes
}
