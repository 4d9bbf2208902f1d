package alarms

import (
	"maps"
	"math"
	"slices"

	"gqlstream/incremental"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// reader makes records of batches: one with the shares that the core estimates, or with the
// count of predictions alone.
type reader interface {
	step(b *event.Batch) []quant.Estimate // without records where the batch does not emit
	close()
}

// coreReader is the product.
type coreReader struct{ core *incremental.Core }

func (r coreReader) step(b *event.Batch) []quant.Estimate { return r.core.Step(b).Estimates }

func (r coreReader) close() { r.core.Close() }

// counter counts predictions and nothing else: it writes the fields of a record that rules without
// a number read, at a hundredth of the cost of a core. TestCountIsThatOfTheCore holds both
// together.
type counter struct {
	people map[event.ID]*counted
	groups map[string]*group
}

// counted is one member of one community.
type counted struct {
	group   string
	said    float64 // of the first of two classes
	known   bool
	version string
}

// group is one community.
type group struct {
	n, sum           float64 // members with a prediction, and the sum of their predictions
	moved, squares   float64
	changed, emitted bool
}

func newCounter() *counter {
	return &counter{people: map[event.ID]*counted{}, groups: map[string]*group{}}
}

func (c *counter) close() {}

func (c *counter) step(b *event.Batch) []quant.Estimate {
	for i := range b.Members {
		c.member(&b.Members[i])
	}
	for i := range b.Predictions {
		c.predict(&b.Predictions[i])
	}
	if !b.Emit {
		return nil
	}
	var out []quant.Estimate
	for _, name := range slices.Sorted(maps.Keys(c.groups)) {
		if g := c.groups[name]; g.changed && g.n > 0 {
			out = append(out, g.record(name, b.Time))
		}
	}
	return out
}

func (c *counter) person(id event.ID) *counted {
	if c.people[id] == nil {
		c.people[id] = &counted{}
	}
	return c.people[id]
}

func (c *counter) of(community string) *group {
	if c.groups[community] == nil {
		c.groups[community] = &group{}
	}
	return c.groups[community]
}

// member lets somebody join or leave.
func (c *counter) member(m *event.Member) {
	p, g := c.person(m.Vertex), c.of(m.Community)
	if m.Multiplicity > 0 {
		if p.group = m.Community; p.known {
			g.come(p.said, 1)
		}
		return
	}
	if p.known {
		g.come(p.said, -1)
	}
	p.group = ""
}

// predict takes another prediction. One that hardly differs from the one before, or is of another
// model version, moves nothing.
func (c *counter) predict(q *event.Prediction) {
	p, said := c.person(q.Vertex), float64(q.Units[0])/event.One
	g := c.of(p.group)
	switch change := said - p.said; {
	case !p.known:
		g.come(said, 1)
	default:
		g.sum += change
		if g.changed = true; p.version == q.Version && math.Abs(change) >= 0.1 {
			g.moved += change
			g.squares += change * change
		}
	}
	p.known, p.said, p.version = true, said, q.Version
}

// come adds a member with a prediction, or takes one away.
func (g *group) come(said, sign float64) {
	if g.n > 0 {
		beyond := said - g.sum/g.n
		g.moved += sign * beyond
		g.squares += beyond * beyond
	}
	g.n += sign
	g.sum += sign * said
	g.changed = true
}

// record tells how far the count has moved since the record before.
func (g *group) record(name string, now event.Time) quant.Estimate {
	share := g.sum / g.n
	e := quant.Estimate{
		Community: name, Time: now.String(), Method: "auto", Members: g.n,
		Prevalence: []float64{share, 1 - share}, SE: []float64{0, 0},
		Low: []float64{share, 1 - share}, High: []float64{share, 1 - share},
	}
	if g.emitted {
		moved, errors := g.moved/g.n, math.Sqrt(g.squares)/g.n
		e.Counted, e.SECounted = []float64{moved, -moved}, []float64{errors, errors}
	}
	e.Moved, e.SEChange = []float64{0, 0}, []float64{0, 0}
	g.moved, g.squares, g.changed, g.emitted = 0, 0, false, true
	return e
}
