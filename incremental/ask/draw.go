package ask

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/cespare/xxhash/v2"

	"gqlstream/ingest/event"
)

// cell is the candidates that lie in the same strata of the same groups.
type cell struct {
	members []*candidate
	before  int     // how many of them were audited before
	pi      float64 // sum
}

// draw draws by the present strata and includes the vertices with an audit label. From a cell with
// N members, a audited and n wanted, it draws n - a of the others, so the probability of each
// member is n/N, or a/N if a is larger.
func (p *plan) draw(a *Answer) {
	at := float64(p.hash("", 0)>>11) * 0x1p-53
	for _, c := range p.cells() {
		left := c.pi - float64(c.before)
		open := 0.0
		for _, one := range c.members {
			if one.before.Class == event.NoClass {
				open += one.pi
			}
		}
		for _, one := range c.members {
			pi := one.pi
			if left < 0 { // more were audited than are wanted
				pi = min(1, pi*float64(c.before)/c.pi)
			}
			if one.before.Class == event.NoClass {
				if left <= 0 || open <= 0 {
					continue
				}
				from := math.Floor(at)
				at += min(1, one.pi*left/open)
				if math.Floor(at) == from {
					continue
				}
				a.Fresh++
			}
			a.Drawn = append(a.Drawn, p.drawn(one, pi))
		}
	}
	slices.SortFunc(a.Drawn, func(a, b Drawn) int { // numbers before names
		return cmp.Or(cmp.Compare(a.ID.Name, b.ID.Name), cmp.Compare(a.ID.Number, b.ID.Number))
	})
}

func (p *plan) drawn(c *candidate, pi float64) Drawn {
	units := min(max(math.Round(pi*event.One), event.PiMin), event.One)
	id := p.view.ID(c.vertex)
	d := Drawn{ID: id, Vertex: id.String(), Role: event.Audit.String(), Pi: units / event.One}
	if c.before.Class != event.NoClass {
		name := p.names.Name(c.before.Class)
		d.Label = &name
	}
	for _, in := range c.in {
		d.Communities = append(d.Communities, p.groups[in.group].name)
	}
	return d
}

// cells returns the cells in order, and their members in a random one.
func (p *plan) cells() []cell {
	for _, c := range p.candidates {
		c.key = p.hash(p.view.ID(c.vertex).String(), 1)
	}
	strata := func(a, b *place) int {
		return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.stratum, b.stratum))
	}
	together := func(a, b *candidate) int { return slices.CompareFunc(a.in, b.in, strata) }
	order := slices.Clone(p.candidates)
	slices.SortStableFunc(
		order,
		func(a, b *candidate) int { return cmp.Or(together(a, b), cmp.Compare(a.key, b.key)) },
	)
	var cells []cell
	for n, one := range order {
		if n == 0 || together(order[n-1], one) != 0 {
			cells = append(cells, cell{})
		}
		c := &cells[len(cells)-1]
		c.members = append(c.members, one)
		c.pi += one.pi
		if one.before.Class != event.NoClass {
			c.before++
		}
	}
	return cells
}

// hash returns the number that the seed and the position give a text.
func (p *plan) hash(text string, salt byte) uint64 {
	data := append([]byte{salt}, text...)
	data = binary.LittleEndian.AppendUint64(data, p.question.Seed)
	data = binary.LittleEndian.AppendUint64(data, uint64(p.question.Position))
	return xxhash.Sum64(data)
}
