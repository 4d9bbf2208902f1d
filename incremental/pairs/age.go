package pairs

import (
	"time"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// ageSteps is the number of steps of age in a half-life. The ages of labels are read again once in
// each step.
const ageSteps = 8

// roots are 2^(-i/8) in units of 2^-16.
var roots = [ageSteps]uint64{65536, 60097, 55109, 50535, 46341, 42495, 38968, 35734}

// LetAge has labels lose half of their freshness in each half-life, from now, a time of the log,
// on. It is called before the first Update.
func (p *Pairs) LetAge(halfLife time.Duration, now event.Time) {
	if p.halfLife = halfLife; halfLife > 0 {
		p.present, p.at = map[Vertex]uint32{}, p.step(now)
	}
}

// step returns the beginning of the step of age at a time.
func (p *Pairs) step(now event.Time) event.Time {
	return now - now%max(1, event.Time(p.halfLife/ageSteps))
}

// At returns the time as of which labels have their age: 0 where they do not age.
func (p *Pairs) At() event.Time { return p.at }

// Age has the next Update give labels the age that they have at a time, and reports whether that is
// another one.
func (p *Pairs) Age(now event.Time) bool {
	if p.present == nil || p.step(now) == p.at {
		return false
	}
	p.at = p.step(now)
	for v := range p.present {
		p.touched = append(p.touched, v)
	}
	return true
}

// setPresent notes how fresh the label of v is, with its age.
func (p *Pairs) setPresent(view graphstore.View, v Vertex) {
	if p.present == nil {
		return
	}
	if view.Label(v).Class == event.NoClass {
		delete(p.present, v)
		return
	}
	units := uint64(Whole)
	if pair := p.frozen[v]; pair != nil {
		units = uint64(pair.Fresh)
	}
	asserted := view.LabelTime(v)
	if asserted >= p.at {
		p.present[v] = uint32(units)
		return
	}
	age, half := uint64(p.at)-uint64(asserted), uint64(p.halfLife)
	whole, rest := min(age/half, 63), age%half
	part := min(rest/max(1, half/ageSteps), ageSteps-1)
	p.present[v] = uint32(units * roots[part] >> 16 >> whole)
}
