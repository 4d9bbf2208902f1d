package quant

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// Kept is the error that the coefficients of the posterior make in an estimate of auto, as it was last
// computed, which may be for an estimate before this one; see Posterior.Last.
type Kept struct {
	KeptAt        []float64 // K + 3: where: see coefficientNoise
	KeptNoise     []float64 // K x K: covariance
	KeptInfluence []float64 // see Estimate.Influence
	KeptTurned    float64   // members that joined or left since, as in Turnover
}

const (
	// slopeMembersMax bounds the members whose derivatives by the coefficients are
	// computed; of more, every n-th is.
	slopeMembersMax = 256
	// keptFar is how far, in sum, an estimate may be from where its error of the coefficients was
	// computed. It moves standard errors by about a hundredth in 98 of 100.
	keptFar = 0.05
	// keptTurned is the share of the members that may be others than they were then.
	keptTurned = 0.1
)

// keptFor returns the error of the coefficients that the last estimate had, if it still does where the
// members' squared multiplicities have this sum, else nothing.
func (p *Posterior) keptFor(at []float64, squares float64) (kept Kept) {
	if p.Last == nil || p.Last.Posterior != uint64(p.Version) || len(p.Last.KeptAt) != len(at) {
		return Kept{}
	}
	kept = p.Last.Kept
	kept.KeptTurned += p.Turnover.Joined + p.Turnover.Left
	if p.Turnover.Reset || kept.KeptTurned > 2*keptTurned*squares || floats.Distance(at, kept.KeptAt, 1) > keptFar {
		return Kept{}
	}
	return kept
}

// coefficientNoise adds G Cov(theta, b) G' to the covariance of ans, as the last estimate had it if that still does:
// G hangs on q(gamma), on gamma, on the weight of the members' own labels, and on how many
// labels there are around.
func (x *posteriorScratch) coefficientNoise(ans *answer, s *Statistics, weights weighting, gamma float64) {
	p := s.Posterior
	x.at = append(append(x.at[:0], x.tempered...), gamma, x.weight, math.Log(p.Residuals.effective(weights)))
	x.kept = p.keptFor(x.at, x.members.squares)
	if p.Coefficients == nil {
		return
	}
	if x.kept.KeptAt == nil {
		if x.unread {
			x.members.load(p.Prior, p.Members)
			x.members.temper(x.tempered, p.Prior, gamma)
		}
		x.kept = x.errorOf(p, weights, gamma)
	}
	axpy(ans.v, 1, x.kept.KeptNoise)
	ans.influence = append(ans.influence[:0], x.kept.KeptInfluence...)
}

// byCoefficients returns K x (Shared + K) the derivative of q(gamma) by the coefficients. That of a mean over the
// members is that of every n-th of them.
func (x *posteriorScratch) byCoefficients(p *Posterior) []float64 {
	u, k := &x.members, x.members.k
	size := p.Shared + k
	x.slope, x.views = zeroed(x.slope, 2*k*size), resize(x.views, p.Shared*k)
	moved, g := x.slope[:k*size], x.slope[k*size:]
	weight := 0.0
	step := (len(u.m)-1)/slopeMembersMax + 1
	for l := 0; l < len(u.m); l += step {
		p.Views(x.views, u.vertex[l])
		u.respond(u.r, l)
		addSlope(moved, u.m[l], u.r, x.views)
		weight += u.m[l]
	}
	for a := range k {
		for b := range k {
			axpy(g[a*size:(a+1)*size], x.j[a*k+b]/weight, moved[b*size:(b+1)*size])
		}
	}
	return g
}

// errorOf returns the error that the coefficients make in the shares.
func (x *posteriorScratch) errorOf(p *Posterior, weights weighting, gamma float64) Kept {
	g, k := x.byCoefficients(p), x.members.k
	size := len(g) / k
	kept := Kept{KeptAt: slices.Clone(x.at), KeptNoise: make([]float64, k*k), KeptInfluence: x.influence(k, p.Coefficients, g)}
	p.Residuals.slope(g, (gamma-1)*(1-x.weight), weights)
	if p.Own != nil {
		p.Own.slope(g, (gamma-1)*x.weight, constantWeights)
	}
	x.middle = resize(x.middle, size)
	for a := range k {
		products(x.middle, p.Coefficients, g[a*size:(a+1)*size])
		for b := range k {
			kept.KeptNoise[a*k+b] = dot(x.middle, g[b*size:(b+1)*size])
		}
	}
	return kept
}
