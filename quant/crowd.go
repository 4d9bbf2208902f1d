package quant

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

const (
	// crowdFar is how far, in sum, q(gamma) may be from where all members were read, and likelyFar q(1),
	// which decides no share but by gamma. A Newton step from there is then off by a tenth of modelError at most,
	// and by a fifth (TestCrowdsSayWhatTheirMembersSay). No share may be other by a greater part than crowdGrown.
	crowdFar, likelyFar, crowdGrown = 0.01, 0.02, 0.1
	// evidenceTurned is about by how much the evidence for a selection by class may change with a member
	// that says something else. Where that leaves open more of gamma than gammaOpen, all are read again.
	evidenceTurned, gammaOpen = 2, 0.005
	// crowdTurned bounds how far responsibilities may have moved in sum, as a part of the members.
	crowdTurned = 0.1
)

// Crowd spares an estimate of many members the reading of them. All were read once; since then sums over the
// members are kept of what each says under the factors of then. So the gradient at the shares of then
// is exact, and one Newton step from it finds those of now,
//
//	q(gamma) = q + J⁺ (mean R - q) + dq/dgamma (gamma - gamma of then),
//
// but for an error of second order. Once shares have gone too far all members are read again.
type Crowd struct {
	Read         *CrowdReading
	Mean         [3][]float64 // K: of pi now, and of R under both factors of Read
	All, Squares float64      // sum of the multiplicities now, and of their squares
	Turned       float64      // how far R moved in all since, of members that came or went by 1

	Fresh *CrowdReading // of this estimate, if it read all members
}

// CrowdReading holds what an estimate of auto makes of the members.
type CrowdReading struct {
	Factors [2][]float64 // K: of q(1) and q(gamma)

	gamma            float64
	allowed          float64      // most that edges let gamma be
	evidence         float64      // for a selection by class
	likely, tempered []float64    // K: q(1), q(gamma)
	inverse          [2][]float64 // K x K: J⁺ of both; the first is read where gamma is not 0, or there is a Crowd
	byGamma          []float64    // K: derivative of q(gamma)
	s, a             []float64    // K x K: mean of R R', noise of the classes
	mean             []float64    // K: of the posteriors
	all, squares     float64      // sums of the multiplicities and of their squares
}

// follow returns the reading that the sums of the crowd tell of, nil where they are not near enough to the last one.
func (p *Posterior) follow() *CrowdReading {
	c := p.Crowd
	if !c.tells() {
		return nil
	}
	then, k := c.Read, len(p.Prior)
	r := *then
	r.mean, r.all, r.squares = c.Mean[0], c.All, c.Squares
	r.likely, r.tempered, r.a = make([]float64, k), make([]float64, k), make([]float64, k*k)
	if products(r.likely, r.inverse[0], c.off(1, then.likely)); !moved(r.likely, then.likely, c.Mean[1], likelyFar) {
		return nil
	}
	r.allowed = p.allowed(r.likely)
	r.gamma = p.gamma(r.allowed, byClassOf(r.evidence))
	open := evidenceTurned * evidenceWeight * c.Turned * c.All / c.Squares
	if p.gamma(r.allowed, byClassOf(r.evidence+open))-p.gamma(r.allowed, byClassOf(r.evidence-open)) > gammaOpen || !c.tempered(r.tempered, r.gamma) {
		return nil
	}
	scaleTo(r.a, c.Squares/(c.All*c.All)*then.all*then.all/then.squares, then.a)
	r.moveByGamma(p.Prior)
	return &r
}

// tells reports whether most members still say what they said when they were read.
func (c *Crowd) tells() bool {
	return c != nil && c.Read != nil && c.Turned <= crowdTurned*min(c.All, c.Read.all)
}

// tempered writes q(gamma) to q, and reports whether it is near the q(gamma) of the reading.
func (c *Crowd) tempered(q []float64, gamma float64) bool {
	r := c.Read
	products(q, r.inverse[1], c.off(2, r.tempered))
	axpy(q, gamma-r.gamma, r.byGamma)
	return moved(q, r.tempered, c.Mean[2], crowdFar)
}

// off returns a mean of now less the shares of the reading.
func (c *Crowd) off(mean int, q []float64) []float64 {
	off := slices.Clone(c.Mean[mean])
	axpy(off, -1, q)
	return off
}

// moved turns the change in q into shares by adding the shares of the reading, then, and reports whether they are near these.
// now is the mean responsibility. A share of next to nothing grows by itself once the mean responsibility exceeds it.
func moved(q, then, now []float64, far float64) bool {
	axpy(q, 1, then)
	for i, x := range then {
		switch {
		case q[i] <= 0 || now[i] > (1+crowdGrown)*x:
			return false
		case x >= shareMin && max(math.Abs(now[i]-x), math.Abs(q[i]-x)) > crowdGrown*x:
			return false
		}
	}
	scaleTo(q, 1/sum(q), q)
	return floats.Distance(q, then, 1) <= far
}

// moveByGamma sets the derivative of q(gamma) by gamma, J⁺ (q log(q/pi0) - S log(q/pi0)).
func (r *CrowdReading) moveByGamma(prior []float64) {
	k := len(prior)
	logs, y := make([]float64, k), make([]float64, k)
	for i, x := range r.tempered {
		logs[i] = math.Log(max(x, logarithmMin) / prior[i])
	}
	for i, x := range r.tempered {
		y[i] = x*logs[i] - floats.Dot(r.s[i*k:(i+1)*k], logs)
	}
	r.byGamma = make([]float64, k)
	products(r.byGamma, r.inverse[1], y)
}
