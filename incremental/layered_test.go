package incremental

import (
	"math"
	"testing"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/ingest/event/eventtest"
)

// A kernel of a fixed number of steps must follow every batch of a random history
// after its first estimate: within the certificate that it publishes of the kernel
// walked from nothing, with tallies that are bit-equal to a recount.
func TestLayeredKernelsFollow(t *testing.T) {
	followed := 0
	for seed := range uint64(120) {
		stream := eventtest.New(seed, eventtest.Config{Weighted: seed%2 == 0, Erase: seed%3 == 0, TTL: seed%5 == 0})
		config := withRules(seed, allMethods(stream.Config.Classes))
		config.Kernel = []string{diffusion.Truncated, diffusion.Lazy}[seed%2]
		core := newCore(t, config)
		for i := range 12 {
			checkedStep(t, seed, i, core, stream.Next())
			followed += checkLayered(t, seed, i, core)
		}
		core.Close()
	}
	if followed < 1000 {
		t.Errorf("only %d kernels were followed", followed)
	}
}

// checkLayered compares the masses of the communities that are followed with a walk,
// and returns how many there are.
func checkLayered(t *testing.T, seed uint64, batch int, c *Core) (followed int) {
	t.Helper()
	view := c.View()
	for id, k := range c.kernels {
		if k.field == nil {
			continue
		}
		followed++
		source, total := make([]float64, view.Vertices()), 0.0
		for _, s := range c.sources(graphstore.Community(id), view) {
			source[s.V] = s.Change
			total += s.Change
		}
		want, _, err := diffusion.Kernel(view, c.config.Kernel, source, c.config.kernelParams())
		if err != nil {
			t.Fatal(err)
		}
		apart := 0.0
		for v, x := range want {
			apart += math.Abs(x - k.field.Mass(graphstore.Vertex(v)))
		}
		if bound := k.bound(); apart > (bound+1e-13)*total || bound > c.config.Tolerance*1.02 {
			t.Fatalf("seed %d batch %d community %d: error %v, certificate %v of at most %v",
				seed, batch, id, apart/total, bound, c.config.Tolerance)
		}
	}
	return followed
}
