package quant

import "math"

const (
	// summaryMembersMin is how many members a community must have for its posteriors to be
	// summarised: of fewer, each is read in every round.
	summaryMembersMin = 2000
	// summaryLevels is how many levels the square root of a probability has where two
	// posteriors are alike, those whose probabilities all have the same levels: fewer, by a
	// quarter each time, until summaryGroupsMax groups suffice.
	summaryLevels    = 32
	summaryGroupsMax = 1024
	// summaryErrorMax is the largest error of a share that a summary may bring, as far as
	// its bound knows; where it may bring more, every member is read.
	summaryErrorMax = 1e-3
)

// summary is what groups of members with like posteriors have lost by being read as their
// mean.
type summary struct {
	place  map[uint64]int
	spread []float64 // groups x K: sum of m pi², then the standard deviation of pi
	least  []float64 // groups x K: the smallest pi
}

// summarise is load for a community with many members: every entry is a group of members.
// The sum of a function of the posteriors over them is right to second order in the
// distances of the members from the means of their groups; see bound.
func (u *members) summarise(p *Posterior) {
	for levels := float64(summaryLevels); !u.group(p, levels); {
		levels = max(0.75*levels, 1)
	}
	k, s := u.k, &u.summary
	for l, m := range u.m {
		for i := range k {
			at := l*k + i
			mean := u.pi[at] / m
			u.pi[at] = mean
			s.spread[at] = math.Sqrt(max(s.spread[at]/m-mean*mean, 0))
		}
	}
}

// group sums the members of each group. It reports false when there are too many groups.
func (u *members) group(p *Posterior, levels float64) bool {
	k, s := u.k, &u.summary
	u.reset()
	if s.place == nil {
		s.place = make(map[uint64]int, summaryGroupsMax)
	}
	clear(s.place)
	s.spread, s.least = s.spread[:0], s.least[:0]
	tooMany := false
	p.Members(func(vertex uint32, m float64, pi []float64) {
		if tooMany {
			return
		}
		key := uint64(14695981039346656037) // FNV-1a: that two keys meet widens a group, no more
		for _, x := range pi {
			key = (key ^ uint64(levels*math.Sqrt(x))) * 1099511628211
		}
		l, known := s.place[key]
		if !known {
			l = len(u.m)
			if tooMany = tooMany || l == summaryGroupsMax && levels > 1; tooMany {
				return
			}
			s.place[key] = l
			u.vertex, u.m, u.m2 = append(u.vertex, vertex), append(u.m, 0), append(u.m2, 0)
			u.pi, s.least = append(u.pi, pi...), append(s.least, pi...)
			clear(u.pi[l*k:])
			s.spread = append(s.spread, u.pi[l*k:]...)
		}
		u.m[l] += m
		u.m2[l] += m * m
		u.all += m
		u.squares += m * m
		axpy(u.mean, m, pi)
		axpy(u.pi[l*k:(l+1)*k], m, pi)
		spread, least := s.spread[l*k:(l+1)*k], s.least[l*k:(l+1)*k]
		for i, x := range pi {
			spread[i] += m * x * x
			least[i] = min(least[i], x)
		}
	})
	return !tooMany
}

// bound writes to dst by how much each entry of the mean of R is off at most because of
// the summary: 0 without one. With factors f, D = f'pi and s = f'h, a member at the distance
// h from the mean of its group has
//
//	R_i(pi + h) - R_i(pi) = (f_i h_i - R_i s)/D - (f_i h_i - R_i s) s/(D (D + s)),
//
// of which the first term has the mean 0 over the group, and the second by Cauchy and
// Schwarz at most (f_i sd_i + R_i S) S/(D min(D + s)), S = sum of f sd.
func (u *members) bound(dst []float64) {
	clear(dst)
	k, s := u.k, &u.summary
	for l := 0; l*k < len(s.least); l++ {
		pi, spread, least := u.pi[l*k:(l+1)*k], s.spread[l*k:(l+1)*k], s.least[l*k:(l+1)*k]
		d, away, lowest := dot(u.factor, pi), dot(u.factor, spread), dot(u.factor, least)
		if !(away > 0) {
			continue
		}
		for i, f := range u.factor {
			dst[i] += u.m[l] / u.all * (f*spread[i] + f*pi[i]/d*away) * away / (d * lowest)
		}
	}
}

// lost writes to dst by how much each share q at the factors of u is off at most because of
// the summary, to first order, and returns the largest: j takes an error of the mean of R to
// that of the shares.
func (u *members) lost(dst, j []float64) (most float64) {
	u.bound(u.next)
	for a := range dst {
		dst[a] = 0
		for b, y := range u.next {
			dst[a] += math.Abs(j[a*u.k+b]) * y
		}
		most = max(most, dst[a])
	}
	return most
}
