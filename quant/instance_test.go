package quant_test

import (
	"math"
	"math/rand/v2"
)

// instance is a random quantification problem with a flaw that real ones have.
type instance struct {
	k, z   int
	flaw   string
	c, p   []float64 // z x k row-major, z
	shares []float64
}

var flaws = []string{
	"none",
	"rank one",
	"duplicated",
	"nearly duplicated",
	"empty",
	"sparse",
	"perfect",
	"tiny cells",
}

// draw returns the instance of a seed.
func draw(seed uint64) instance {
	rng := rand.New(rand.NewPCG(seed, 3))
	k := 2 + rng.IntN(12)
	in := instance{k: k, z: k, flaw: flaws[rng.IntN(len(flaws))]}
	if rng.IntN(3) == 0 {
		in.z = k * k
	}
	in.c, in.shares = make([]float64, in.z*k), dirichlet(rng, k, 1)
	for i := range k {
		column := dirichlet(rng, in.z, 0.5)
		for z, x := range column {
			in.c[z*k+i] = x
		}
	}
	in.spoil(rng)
	in.p = dirichlet(rng, in.z, 0.5)
	if rng.IntN(2) == 0 { // a mixture of the columns, with noise or without
		noise := []float64{0, 0.01, 0.3}[rng.IntN(3)]
		q := dirichlet(rng, k, 0.3)
		for z := range in.p {
			var x float64
			for i := range q {
				x += in.c[z*k+i] * q[i]
			}
			in.p[z] = noise*in.p[z] + (1-noise)*x
		}
		normalise(in.p)
	}
	return in
}

// spoil gives C its flaw.
func (in *instance) spoil(rng *rand.Rand) {
	k := in.k
	a, b := rng.IntN(k), rng.IntN(k)
	for z := range in.z {
		row := in.c[z*k : (z+1)*k]
		switch in.flaw {
		case "rank one":
			for i := range row {
				row[i] = row[0]
			}
		case "duplicated":
			row[a] = row[b]
		case "nearly duplicated":
			row[a] = row[b] * (1 + 1e-7*rng.NormFloat64())
		case "empty":
			if a != b {
				row[a] = 0
			}
		case "sparse":
			for i := range row {
				if rng.IntN(3) > 0 && z != i%in.z {
					row[i] = 0
				}
			}
		case "perfect":
			for i := range row {
				row[i] = 0
			}
			row[z%k] = 1
		case "tiny cells":
			row[a] *= math.Pow(10, -12*rng.Float64())
		}
	}
	for i := range k {
		var total float64
		for z := range in.z {
			total += in.c[z*k+i]
		}
		for z := range in.z {
			if total > 0 {
				in.c[z*k+i] /= total
			}
		}
	}
}

// dirichlet draws a distribution over n cells; a small shape makes it uneven.
func dirichlet(rng *rand.Rand, n int, shape float64) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = math.Pow(rng.Float64(), 1/shape) + 1e-300
	}
	return normalise(x)
}

// normalise divides x by its sum.
func normalise(x []float64) []float64 {
	var total float64
	for _, v := range x {
		total += v
	}
	for i := range x {
		x[i] /= total
	}
	return x
}
