package adjusted

import (
	"slices"

	"gonum.org/v1/gonum/floats"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

const (
	// fitFloor bounds the likelihood weights 1/(Cq) of the variances.
	fitFloor = 1e-6
)

// variances fills the variances and the centre of ans from the solution q for the
// confusion m and the profile p of the members. Delta method:
// with D = I for least squares, 1/(Cq) for likelihood,
//
//	G = C'DC + e I,  A = G^-1 - G^-1 11' G^-1 / (1' G^-1 1),  H = A C'D,
//	V = diag H (S_p + sum_i q_i^2 S_ci) H'.
//
// S_p = (diag Cq - sum_i q_i c_i c_i')/n_U keeps to the share of these very members, and
// S_ci = f_i sum (w/W_i)^2 (phi - c_i)(phi - c_i)' over the labels of class i; see labelSpreads.
func (r Solve) variances(ans *solution, s *stats.Statistics, m *confusion, q []float64) {
	k, p, sample, fit := m.K, s.Cells(r.Kind).P, s.Sample(), make([]float64, m.Z)
	m.Mix(fit, q)
	var weights []float64
	if r.Likelihood {
		weights = make([]float64, m.Z)
		for z, x := range fit {
			weights[z] = 1 / max(x, fitFloor)
		}
	}
	h, hc, pull := m.sensitivity(weights)
	hp, hfit := make([]float64, k), make([]float64, k)
	solve.Products(hp, h, p)
	solve.Products(hfit, h, fit)
	for a, i := range m.class {
		ans.Free[i] = q[a] + hp[a] - hfit[a]
	}
	for a, i := range m.class {
		member := 0.0
		for z, x := range h[a*m.Z : (a+1)*m.Z] {
			member += fit[z] * x * x
		}
		for b, share := range q {
			member -= share * solve.Square(hc[b*k+a])
		}
		ans.Member[i] = max(member, 0)
		ans.V[i] = ans.Member[i] / sample
	}
	each := m.labelSpreads(h, hc, true)
	for a, i := range m.class {
		factor := stats.SmallSample(m.nEff[a]) / solve.Square(m.mass[a])
		for b, j := range m.class {
			ans.Spreads[i*ans.K+j] = max(factor*each[a*k+b], 0)
		}
		parts := ans.Parts[i*ans.K : (i+1)*ans.K]
		solve.ScaleTo(parts, solve.Square(q[a]), ans.Spreads[i*ans.K:(i+1)*ans.K])
		solve.Axpy(ans.V, 1, parts)
	}
	ans.Exact = r.Hard || m.rows != nil
	ans.addUnseen(m, p, s.LabelShares())
	ans.addUnidentified(m, pull)
}

// sensitivity returns H, k x z, H c_i in row i of a k x k matrix, and e A, k x k: the part of the
// answer that the regularization decides, because the profiles of the classes do not differ there.
func (m *confusion) sensitivity(weights []float64) (h, hc, pull []float64) {
	k := m.K
	g, ridge := m.Ridged(weights)
	inverse, ones := solve.InvertOnSimplex(g, k)
	h, hc = make([]float64, k*m.Z), make([]float64, k*k)
	for a := range k {
		row := h[a*m.Z : (a+1)*m.Z]
		solve.Combine(row, inverse[a*k:(a+1)*k], m.C)
		for z, x := range weights {
			row[z] *= x
		}
	}
	// HC = A (G - e I) = I - u 1'/(1'u) - e A with u = G^-1 1.
	total := solve.Sum(ones)
	for i := range k {
		for a := range k {
			hc[i*k+a] = solve.Delta(a, i) - ones[a]/total - ridge*inverse[a*k+i]
		}
	}
	solve.ScaleTo(inverse, ridge, inverse)
	return h, hc, inverse
}

const (
	// unseenFactor bounds the share of a cell among the members, in multiples of its largest
	// share in a class; the rest counts as unseen. In a mixture of the classes it is no
	// larger than in one of them, but for noise.
	unseenFactor = 100
	// unseenSpread is the variance of unknown shares around those of the labels,
	// as a share of pi (1 - pi): that of a Dirichlet distribution with one observation.
	unseenSpread = 1. / 2
	// unseenHigh is the share of unseen profiles that is flagged: as of members without
	// a prediction.
	unseenHigh = 0.2
)

// unseen returns the share of the members' profiles that is in cells without calibration labels of
// any class, or with hardly any.
func (m *confusion) unseen(p []float64) (share float64) {
	for z, x := range p {
		most := 0.0
		for a := range m.K {
			most = max(most, m.C[a*m.Z+z])
		}
		share += max(0, x-unseenFactor*most)
	}
	return share
}

// addUnseen adds the error by unseen profiles, which the labels do not show, to the variances of
// ans. These profiles say nothing of the classes. The answer takes the shares of the other members
// for them, and the true shares could be any others. Without this term a likelihood would be sure
// of its start if every member were equally unlikely in all classes.
func (ans *solution) addUnseen(m *confusion, p, shares []float64) {
	ans.unseen = m.unseen(p)
	if ans.unseen == 0 {
		return
	}
	var total float64
	for _, i := range m.class {
		total += shares[i]
	}
	scale := unseenSpread * ans.unseen * ans.unseen
	for _, i := range m.class {
		share := shares[i] / total
		ans.V[i] += scale * share * (1 - share)
	}
}

// addUnidentified adds the variance of shares that the profiles cannot tell apart. Row a of E =
// e A says how far each class would move the share of class a if its own share were not known,
// so the share has at most the standard deviation
//
//	WorstDeviation (max_b E_ab - min_b E_ab).
//
// E vanishes where the classes have different profiles. Where all have the same one the deviation
// is WorstDeviation, as where nothing is known. Without this term the variance would be zero
// there: profiles that do not react to the shares do not spread them either.
func (ans *solution) addUnidentified(m *confusion, pull []float64) {
	for a, i := range m.class {
		row := pull[a*m.K : (a+1)*m.K]
		ans.V[i] += solve.Square(stats.WorstDeviation * (slices.Max(row) - slices.Min(row)))
	}
}

// labelSpreads returns by supported class a, in row a, the sums over its labels of
//
//	w^2 (H phi - centre_a)^2,   or of w in place of w^2,
//
// for the k rows of H and the rows of centres. Where no rows
// say phi phi', it is bounded by diag phi: exact for hard cells and never too small for soft ones.
func (m *confusion) labelSpreads(h, centres []float64, squared bool) (each []float64) {
	k := len(h) / m.Z
	each = make([]float64, m.K*k)
	if m.rows != nil {
		y, phi := make([]float64, k), make([]float64, m.Z)
		m.rows(func(row stats.Row) {
			a, supported := slices.BinarySearch(m.class, row.Class)
			if !supported {
				return
			}
			solve.Products(y, h, profileOf(&row, phi))
			solve.Axpy(y, -1, centres[a*k:(a+1)*k])
			weight := m.weights.Of(&row)
			if squared {
				weight *= weight
			}
			for b, x := range y {
				each[a*k+b] += weight * x * x
			}
		})
		return each
	}
	left, second := make([]float64, m.Z), make([]float64, m.Z)
	for a := range m.class {
		if squared {
			copy(second, m.second(a))
		} else {
			solve.ScaleTo(second, m.mass[a], m.Column(a))
		}
		mass, centre := solve.Sum(second), centres[a*k:(a+1)*k] // the cells of a profile sum to one
		for b, x := range centre {
			row := h[b*m.Z : (b+1)*m.Z]
			floats.MulTo(left, second, row)
			each[a*k+b] = floats.Dot(left, row) - 2*x*solve.Sum(left) + mass*x*x
		}
	}
	return each
}

// profileOf returns the profile of the label over the cells of phi: on K cells its own prediction,
// on K^2 the outer product with the neighbours' mean, which it writes to phi.
func profileOf(r *stats.Row, phi []float64) []float64 {
	if len(phi) == len(r.Own) {
		return r.Own
	}
	for j, x := range r.Own {
		floats.ScaleTo(phi[j*len(r.Neighbors):][:len(r.Neighbors)], x, r.Neighbors)
	}
	return phi
}
