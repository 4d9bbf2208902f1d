package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"gqlstream/quant"
)

const (
	solveClasses = 10
	solveLabels  = 1000
	solveMembers = 1000
)

// measureSolve times whole estimates with the workspace reused: solution, interval
// and flags.
func measureSolve(ctx context.Context, w *World) ([]Row, error) {
	defer lockThread()()
	s := drawStatistics(rand.New(rand.NewPCG(w.Seed, 10)))
	rounds, calls := w.pick(101, 21), 20
	var rows []Row
	for _, method := range []quant.Method{quant.NACC, quant.SISNACC, quant.Auto} {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		o := quant.DefaultOptions()
		o.Method = method
		var solver quant.Solver
		var e quant.Estimate
		watch, spent := newStopwatch(), []float64(nil)
		for range rounds {
			watch.start()
			for range calls {
				if err := solver.Estimate(&e, s, o); err != nil {
					return nil, err
				}
			}
			watch.stop()
			spent = append(spent, micros(watch.take(), calls))
		}
		row := Row{
			Name: "solve/" + string(method), Value: median(spent), Unit: "us cpu",
			Reference: "QuaPy: SLSQP, milliseconds, no interval",
			Note:      fmt.Sprintf("K = %d, %d cells, %d labels; diagonal variances", solveClasses, solveClasses*solveClasses, solveLabels),
		}
		if method == quant.NACC {
			row.Name = "solve"
			row = row.atMost(200)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// drawStatistics makes the statistics of vertices with a classifier that is right
// about three times in four and neighbours that are mostly of their class.
func drawStatistics(rng *rand.Rand) *quant.Statistics {
	const k = solveClasses
	cells := func(z int) *quant.Cells {
		return &quant.Cells{Z: z, P: make([]float64, z), N: make([]float64, z*k), A1: make([]float64, z*k), A2: make([]float64, z*k)}
	}
	s := &quant.Statistics{
		K: k, Members: solveMembers, Profiled: solveMembers, Squares: solveMembers, KernelSum: solveMembers,
		Anchored: make([]float64, k), ClassN: make([]float64, k), ClassA1: make([]float64, k), ClassA2: make([]float64, k),
		Soft: cells(k), SoftPair: cells(k * k),
	}
	var last []float64
	visit := func(class int, add func(c *quant.Cells, z int, phi float64)) {
		own, neighbors := guess(rng, class), make([]float64, k)
		for range 3 {
			of := class
			if rng.Float64() < 0.2 {
				of = rng.IntN(k)
			}
			for j, x := range guess(rng, of) {
				neighbors[j] += x / 3
			}
		}
		last = own
		for j, x := range own {
			add(s.Soft, j, x)
			for l, y := range neighbors {
				add(s.SoftPair, j*k+l, x*y)
			}
		}
	}
	residuals, members := quant.NewResiduals(k, 0), [][]float64(nil)
	for range solveMembers {
		visit(min(rng.IntN(k), rng.IntN(k)), func(c *quant.Cells, z int, phi float64) { c.P[z] += phi / solveMembers })
		members = append(members, last)
	}
	for i := range solveLabels {
		class, a := i%k, rng.ExpFloat64()
		s.ClassN[class]++
		s.ClassA1[class] += a
		s.ClassA2[class] += a * a
		visit(class, func(c *quant.Cells, z int, phi float64) {
			c.N[z*k+class] += phi
			c.A1[z*k+class] += a * phi
			c.A2[z*k+class] += a * a * phi
		})
		residuals.Add(class, a, 1, last)
	}
	s.Posterior = drawnPosterior(residuals, members)
	return s
}

// drawnPosterior makes the posterior of a community of these members, a quarter of
// whose edges are expected if it were drawn at random within its classes.
func drawnPosterior(residuals *quant.Residuals, members [][]float64) *quant.Posterior {
	const k = solveClasses
	p := &quant.Posterior{
		Version: 1, Prior: make([]float64, k), LabelGate: 1, Residuals: residuals, Within: make([]float64, k*k*k),
		Inside: solveMembers, Distinct: solveMembers, Vertices: 100 * solveMembers,
		Expected: func(distinct float64, _ []float64) float64 { return distinct / 4 },
		Members: func(visit func(uint32, float64, []float64)) {
			for v, pi := range members {
				visit(uint32(v), 1, pi)
			}
		},
		Predicted: func(v uint32) int { return slices.Index(members[v], slices.Max(members[v])) },
	}
	for i := range p.Prior {
		p.Prior[i] = 1. / k
		p.Mass, p.Tops = append(p.Mass, p.Vertices/k), append(p.Tops, p.Vertices/k)
	}
	return p
}

// guess is a prediction around the true class.
func guess(rng *rand.Rand, truth int) []float64 {
	p, total := make([]float64, solveClasses), 0.0
	for j := range p {
		p[j] = rng.ExpFloat64() / solveClasses
		if j == truth && rng.Float64() < .75 {
			p[j]++
		}
		total += p[j]
	}
	for j := range p {
		p[j] /= total
	}
	return p
}
