package explain

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"

	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// values visits every combination of causes and returns the shares of each, by the
// set of causes that are in place, bit by bit. The copy begins with all in place, and ends so
// where changes are named.
func (w *Walk) values(ctx context.Context, causes []cause) ([][]float64, error) {
	n := len(causes)
	order := cheapestFirst(causes)
	values := make([][]float64, 1<<n)
	set := uint(1)<<n - 1
	values[set] = slices.Clone(w.last.Prevalence)
	for i := uint(1); n > 0 && i < 1<<n+uint(min(w.named(), 1)); i++ {
		// In a Gray code the i-th change is of bit number "trailing zeros of i". It ends with
		// one bit off where it began, which a last round turns back.
		j := order[min(bits.TrailingZeros(i), n-1)]
		set ^= 1 << j
		if err := w.turn(ctx, &causes[j], int(set>>j&1)); err != nil {
			return nil, err
		}
		if i < 1<<n {
			values[set] = slices.Clone(w.last.Prevalence)
		}
	}
	values[0] = w.from.Estimate.Prevalence // what the copy had there at first, to the last bit
	return values, nil
}

// cheapestFirst orders causes by how dear they are to put in place: gamma concerns no vertex, a
// prediction or a label the neighbours, members and edges move the kernel, and coefficients all posteriors.
func cheapestFirst(causes []cause) []int {
	cost := func(j int) int {
		sum, kernel := 0, 0
		if causes[j].kind == quant.CauseCoefficients {
			return math.MaxInt
		}
		for _, g := range causes[j].groups {
			for i := range g {
				sum++
				if g[i].kind == event.KindMember || g[i].kind == event.KindEdge {
					kernel = 1 << 32
				}
			}
		}
		return sum + kernel
	}
	order := make([]int, len(causes))
	for j := range order {
		order[j] = j
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(cost(i), cost(j)) })
	return order
}

// shapley returns the contribution of each of n causes to values[all] - values[none]:
//
//	phi_j = sum over S without j of |S|! (n-1-|S|)! / n! (v(S + j) - v(S))
func shapley(n int, values [][]float64) [][]float64 {
	share := make([]float64, n) // by |S|
	for s := range share {
		share[s] = 1 / (float64(n) * binomial(n-1, s))
	}
	out := make([][]float64, n)
	for j := range out {
		out[j] = make([]float64, len(values[0]))
		for set, v := range values {
			if set>>j&1 == 1 {
				continue
			}
			with, weight := values[set|1<<j], share[bits.OnesCount(uint(set))]
			for k := range v {
				out[j][k] += weight * (with[k] - v[k])
			}
		}
	}
	return out
}

func binomial(n, k int) float64 {
	b := 1.0
	for i := range k {
		b = b * float64(n-i) / float64(i+1)
	}
	return b
}
