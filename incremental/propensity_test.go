package incremental

import (
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
)

func withDensity(c Config) Config {
	c.Density = DensityPPR
	return c
}

// Through random histories with edges, labels, erasures and names that come back,
// the weight of every calibration label must be the ratio of densities that dense
// solves of the graph as it is give, and the tallies those of a recount.
func TestDensityWeightsEqualTheirDefinition(t *testing.T) {
	weights := 0
	for seed := range uint64(150) {
		stream := eventtest.New(seed, eventtest.Config{Weighted: seed%2 == 0, Erase: seed%3 == 0, TTL: seed%5 == 0})
		config := withDensity(allMethods(stream.Config.Classes))
		config.Tolerance = 1e-9
		core := newCore(t, config)
		for i := range 10 {
			batch := stream.Next()
			batch.Emit = batch.Emit || i == 4
			checkedStep(t, seed, i, core, batch)
			if core.warm && core.View().Vertices() > 0 {
				weights += checkWeights(t, seed, i, core)
			}
		}
		core.Close()
	}
	if weights < 10_000 {
		t.Fatalf("only %d weights were compared", weights)
	}
}

// checkWeights compares the weights of all labels in all communities and returns how
// many there were.
func checkWeights(t *testing.T, seed uint64, batch int, c *Core) (compared int) {
	t.Helper()
	view := c.View()
	lu := denseSystem(view, c.config.Alpha)
	solve := func(source map[graphstore.Vertex]float64) *mat.VecDense {
		m := mat.NewVecDense(view.Vertices(), nil)
		for v, x := range source {
			m.SetVec(int(v), c.config.Alpha*x)
		}
		var z mat.VecDense
		if err := lu.SolveVecTo(&z, false, m); err != nil {
			t.Fatalf("seed %d batch %d: dense solve: %v", seed, batch, err)
		}
		return &z
	}
	var labelled [2]map[graphstore.Vertex]float64
	var z [2]*mat.VecDense
	for i := range labelled {
		labelled[i] = map[graphstore.Vertex]float64{}
	}
	for v := range graphstore.Vertex(view.Vertices()) {
		if l := view.Label(v); l.Class != event.NoClass && l.Role == event.Calibrate {
			labelled[halfOf(view, v)-1][v] = 1
		}
	}
	for i := range labelled {
		z[i] = solve(labelled[i])
	}
	floor := math.Exp2(math.Floor(math.Log2(
		float64(len(labelled[0])+len(labelled[1])) / 2 / (view.WeightSum() + float64(view.Vertices())))))
	for id, k := range c.kernels {
		source := map[graphstore.Vertex]float64{}
		c.forUnlabelled(graphstore.Community(id), view, func(v graphstore.Vertex, m float64) { source[v] = m })
		own := solve(source)
		for i := range labelled {
			for v := range labelled[i] {
				want := own.AtVec(int(v)) * floor / (z[1-i].AtVec(int(v)) + floor)
				if got := k.mass(v); math.Abs(got-want) > 1e-6 {
					t.Fatalf("seed %d batch %d: label %d weighs %g in community %d, want %g", seed, batch, v, got, id, want)
				}
				compared++
			}
		}
	}
	return compared
}

// denseSystem factorises D - (1-alpha) A.
func denseSystem(view graphstore.View, alpha float64) *mat.LU {
	n := view.Vertices()
	system := mat.NewDense(n, n, nil)
	for v := range n {
		system.Set(v, v, view.Degree(graphstore.Vertex(v))+1-(1-alpha))
		for i, u := range view.Neighbors(graphstore.Vertex(v)) {
			w := 1.0
			if weights := view.Weights(graphstore.Vertex(v)); weights != nil {
				w = weights[i]
			}
			system.Set(v, int(u), -(1-alpha)*w)
		}
	}
	var lu mat.LU
	lu.Factorize(system)
	return &lu
}

// A core with measured densities, restored anywhere, must go on bit for bit.
func TestRestoredDensityGoesOnBitForBit(t *testing.T) {
	for seed := range uint64(24) {
		stream := eventtest.New(seed, eventtest.Config{Weighted: seed%2 == 0, Erase: true, TTL: true})
		config := withDensity(classified(stream.Config.Classes, []string{"", "enq", "diffusion"}[seed%3]))
		restarts{batches: 24, every: 4}.leaveNoTrace(t, seed, stream, config)
	}
}

// A density that does not go with the rest of the configuration must be refused.
func TestDensityIsValidated(t *testing.T) {
	config := withDensity(allMethods(2))
	if err := config.Validate(); err != nil {
		t.Fatal(err)
	}
	config.Engine = EngineDual
	if err := config.Validate(); err == nil {
		t.Error("ppr with the engine dual")
	}
	config.Engine = ""
	config.Estimates[len(config.Estimates)-1].Preset = "reference"
	if err := config.Validate(); err == nil {
		t.Error("ppr with the preset reference")
	}
	config.Estimates, config.Density = nil, "dense"
	if err := config.Validate(); err == nil {
		t.Error("a density that there is not")
	}
	config.Density = DensityUniform
	if plain := (Config{Classes: 2, Communities: config.Communities, Models: config.Models}); plain.Digest() != config.Digest() {
		t.Error("the default has another digest than nothing")
	}
}
