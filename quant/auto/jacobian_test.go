package auto

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The inverse of J = I - gamma (diag q - S) D⁻¹ is one, and that where two of many classes cannot
// be told apart is bounded by the smallest eigenvalue that counts.
func TestJacobianIsInverted(t *testing.T) {
	for seed := range uint64(20) {
		random, k := rand.New(rand.NewPCG(seed, 5)), []int{2, 5, 20, 100}[seed%4]
		for _, gamma := range []float64{0, 0.5, 0.9, 1} {
			q, s := responsibilities(random, k, false)
			inverse := inverseJacobian(q, s, gamma)
			for a := range k {
				for b := range k {
					product, want := 0.0, 0.0
					for c := range k {
						product += jacobian(q, s, gamma, a, c) * inverse[c*k+b]
					}
					if a == b {
						want = 1
					}
					if math.Abs(product-want) > 1e-8 {
						t.Fatalf(
							"seed %d, %d classes, gamma %v: J times its inverse has %v at %d, %d",
							seed, k, gamma, product, a, b,
						)
					}
				}
			}
		}
		q, s := responsibilities(random, k, true)
		for at, x := range inverseJacobian(q, s, 1) {
			if most := 100 * math.Sqrt(q[at/k]/q[at%k]); !(math.Abs(x) <= most*(1+1e-9)) {
				t.Fatalf(
					"seed %d, %d classes: alike classes have %v at %d, more than %v", seed, k, x,
					at, most,
				)
			}
		}
	}
}

// jacobian returns an entry of J where no share is small.
func jacobian(q, s []float64, gamma float64, a, b int) float64 {
	if a == b {
		return 1 - gamma*(q[a]-s[a*len(q)+b])/q[b]
	}
	return gamma * s[a*len(q)+b] / q[b]
}

// responsibilities returns the mean of R and of R R' over members that are nearly sure of one class
// each; alike gives the first two classes equal probabilities in every member.
func responsibilities(random *rand.Rand, k int, alike bool) (q, s []float64) {
	q, s = make([]float64, k), make([]float64, k*k)
	members := 20 * k
	for l := range members {
		r, all := make([]float64, k), 0.0
		for i := range r {
			r[i] = random.Float64() / float64(k)
		}
		if r[l%k] += 2; alike {
			r[0] = (r[0] + r[1]) / 2
			r[1] = r[0]
		}
		for _, x := range r {
			all += x
		}
		for i, x := range r {
			q[i] += x / all / float64(members)
			for j, y := range r {
				s[i*k+j] += x * y / all / all / float64(members)
			}
		}
	}
	return q, s
}

// The inverse for many classes, two of them alike, must stay cheap: a singular value decomposition
// took a second at K = 100.
func BenchmarkInverseJacobian(b *testing.B) {
	q, s := responsibilities(rand.New(rand.NewPCG(1, 5)), 100, true)
	for b.Loop() {
		inverseJacobian(q, s, 1)
	}
}
