package incremental

import (
	"bytes"
	"cmp"

	"gqlstream/graphstore"
	"gqlstream/incremental/tally"
	"gqlstream/quant"
)

// The structures that keep kernel masses, by name.
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

// Fields keep the masses of all communities where methods weigh cells. Else they keep those of up to fieldsMax communities,
// and one more for each class; a dual keeps those of more, and takes the place of fields that take more than massesBytesMax,
// if it takes less.
//
// For a handful of communities fields are cheaper and exact in what a dual estimates, how a class lies
// over its labels. A core never goes back: a number that hovers around the bar must not make it pay for a change again and again.
//
// The records of auto read all labels of a field, those beside a dual none. Above fieldLabelsMax that is a
// millisecond a community and emission, more than what its functions cost.
const (
	fieldsMax      = 8
	fieldLabelsMax = 10_000
	massesBytesMax = 1 << 30
	fieldBytes     = 44 // a vertex
)

// reachMin is the mean mass of a community's labels, in mean masses of all vertices, that counts
// as none: hardly a walk ends there.
const reachMin = 0.001

// outgrown reports whether fields must make way for a dual.
func (c *Core) outgrown(view graphstore.View) bool {
	if _, are := c.masses.(*fields); !are || !c.config.mayShare() {
		return false
	}
	if c.config.Engine == EngineDual {
		return true
	}
	vertices, communities := float64(view.Vertices()), view.Communities()
	functions := c.config.Classes
	if c.config.readsPosterior() {
		functions += c.config.Classes // of the residuals' dual
	}
	own := float64(communities) * vertices * fieldBytes
	shared := vertices * (16*float64(functions) + 20)
	if shared > max(own, massesBytesMax) {
		return false
	}
	most := cmp.Or(c.config.fieldsMax, fieldsMax+c.config.Classes)
	return communities > most || own > massesBytesMax || c.tallies.Rows() > fieldLabelsMax && c.config.readsPosterior()
}

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

// engine returns the name of what keeps ppr kernels.
func (c *Core) engine() string {
	if _, shared := c.masses.(*sharedDual); shared {
		return EngineDual
	}
	return EnginePrimal
}
