package tally

import (
	"gqlstream/ingest/event"
	"gqlstream/quant/stats"
)

// Two weights are summed over the members with an audit label (stats.Audit explains them),
//
//	w = m / pi   and   c = m² (1 - pi) / pi²,
//
// m the multiplicity and pi the probability of having been drawn: each alone, by class, and times
// every p_j of the prediction, and c also times p_j of the class and times every p_j². A member
// without a prediction has p = 0.

// Scales of the sums. They keep the largest sensible weights below the bound of a term.
const (
	weightScale  = 0x1p-16 // of w, which stays exact to 2^-64
	squaredScale = 0x1p-24 // of w² and c
)

// countAudit adds (sign 1) or takes back (sign -1) an audited member: to the sum of w², then those
// of stats.AuditSums with w and with c, then those of c times y_i p_i and p_i².
func (c *community) countAudit(s *state, multiplicity float64, sign int) {
	k := len(c.anchored)
	if c.audit == nil {
		c.audit = make([]Sum, 3+6*k)
	}
	pi := float64(s.audit.Pi) / event.One
	w := multiplicity / pi
	noise := float64(w*w*squaredScale) * (1 - pi)
	c.audited += uint64(sign) // two's complement: -1 subtracts
	put := func(at int, x float64) { c.audit[at].Add(x, sign) }
	put(0, float64(w*w*squaredScale))
	class, products := int(s.audit.Class), 3+4*k
	for i, weight := range []float64{w * weightScale, noise} {
		at := 1 + i*(1+2*k)
		put(at, weight)
		put(at+1+class, weight)
		for j, unit := range s.profile.own {
			put(at+1+k+j, float64(weight*(float64(unit)/event.One)))
		}
	}
	for i, unit := range s.profile.own {
		p := float64(noise * (float64(unit) / event.One))
		if i == class {
			put(products+i, p)
		}
		put(products+k+i, float64(p*(float64(unit)/event.One)))
	}
}

// audits returns the sums over the audited members, nil where there are none.
func (c *community) audits() *stats.Audit {
	k, from := len(c.anchored), 0
	if c.audited == 0 {
		return nil
	}
	read := func(n int, scale float64) []float64 {
		out := floats(c.audit[from : from+n])
		multiply(1/scale, out) // a power of two
		from += n
		return out
	}
	moments := func(scale float64) stats.AuditSums {
		return stats.AuditSums{Sum: read(1, scale)[0], Y: read(k, scale), P: read(k, scale)}
	}
	return &stats.Audit{
		Labels: int(c.audited), SquaredW: read(1, squaredScale)[0], Weights: moments(weightScale),
		Noise:   moments(squaredScale),
		NoiseYP: read(k, squaredScale), NoisePP: read(k, squaredScale),
	}
}
