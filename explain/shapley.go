package explain

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
)

// values visits every combination of causes and returns the shares of each, by the
// set of causes that are in place, bit by bit. The copy ends with all in place.
func (w *Walk) values(ctx context.Context, causes []cause) ([][]float64, error) {
	n := len(causes)
	order := cheapestFirst(causes)
	values := make([][]float64, 1<<n)
	values[0] = slices.Clone(w.last.Prevalence)
	set := uint(0)
	for i := uint(1); i < 1<<n; i++ {
		// In a Gray code the i-th change is of bit number "trailing zeros of i".
		j := order[bits.TrailingZeros(i)]
		set ^= 1 << j
		if err := w.put(ctx, causes[j].groups, int(set>>j&1), true); err != nil {
			return nil, err
		}
		values[set] = slices.Clone(w.last.Prevalence)
	}
	for j := range causes {
		if set>>j&1 == 0 {
			if err := w.put(ctx, causes[j].groups, after, false); err != nil {
				return nil, err
			}
		}
	}
	return values, w.step(ctx, true)
}

// cheapestFirst orders causes by how dear they are to put in place: a prediction or
// a label concerns all neighbours, an edge moves the kernel.
func cheapestFirst(causes []cause) []int {
	cost := func(j int) (sum int) {
		for _, g := range causes[j].groups {
			for i := range g {
				sum += 1 + 7*btoi(g[i].multiplicity == [2]uint32{})
			}
		}
		return sum
	}
	order := make([]int, len(causes))
	for j := range order {
		order[j] = j
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(cost(i), cost(j)) })
	return order
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
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
