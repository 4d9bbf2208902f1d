package incremental

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental/classifier"
	"gqlstream/ingest/event"
	"gqlstream/lab/campaign"
	"gqlstream/lab/simulate"
	"gqlstream/quant"
)

// anyConfig draws a random value for each setting that decides the state, the work and the
// records of a core. Thresholds of size are small, so that small networks cross them.
func anyConfig(r *rand.Rand, classes int) Config {
	pick := func(n int) bool { return r.IntN(n) == 0 }
	config := allMethods(classes)
	config.Engine = []string{"", EngineDual, EngineDual, EnginePrimal}[r.IntN(4)]
	if !pick(4) {
		config.Emit.Threshold = []float64{.1, .1, .01, 1}[r.IntN(4)]
		config.Emit.AtLeastEvery = []time.Duration{0, time.Second, 3 * time.Second}[r.IntN(3)]
	}
	if pick(3) {
		config.Estimates = optionsOf(quant.Auto)
	} else if pick(2) {
		methods := []quant.Method{
			quant.Auto, quant.SIS, quant.NACC, quant.Audits, quant.Diff,
			quant.ML,
		}
		config.Estimates = optionsOf(methods[r.IntN(len(methods))], methods[r.IntN(len(methods))])
	}
	config.HalfLife = halfLifeOf(r.Uint64())
	if pick(4) {
		config.Classifier = classifier.Name
	}
	if pick(3) {
		config.Work.Solving = float64((8*classes*classes + solveWork) * (1 + r.IntN(20)))
	}
	if pick(3) {
		config.Work.Sketches = float64(10 + r.IntN(3000))
	}
	if pick(3) {
		config.MembersMin = r.IntN(5)
	}
	if pick(2) {
		window := func() time.Duration {
			return time.Duration(r.IntN(3)) * time.Duration(500+r.IntN(4000)) * time.Millisecond
		}
		config.Windows = graphstore.Windows{
			Edges:       window(),
			Labels:      window(),
			Predictions: window(),
		}
	}
	if pick(3) {
		config.Shards = 1 + r.IntN(5)
	}
	if config.Engine == EngineDual {
		config = sharing(config)
	}
	return config
}

// networkHistory makes the batches of a simulated network.
type networkHistory struct {
	t       *testing.T
	network *simulate.Network
	batch   event.Batch
}

// Next implements history.
func (h *networkHistory) Next() *event.Batch {
	if err := h.network.Next(h.t.Context(), &h.batch); err != nil {
		h.t.Fatal(err)
	}
	return &h.batch
}

// anyNetwork returns a simulated network, lively or nearly quiet, and a configuration that follows
// it.
func anyNetwork(t *testing.T, seed uint64, r *rand.Rand) (*networkHistory, Config) {
	t.Helper()
	s := simulate.DefaultConfig()
	s.Seed, s.Vertices, s.Communities, s.Classes = seed, 200+r.IntN(800), 5+r.IntN(120), 2+r.IntN(5)
	s.Activity, s.LabelShare, s.Duration = []float64{5, 30, 100, 400}[r.IntN(4)],
		[]float64{.01, .05, .2}[r.IntN(3)], time.Minute
	s.LabelRenew, s.PostRate = float64(seed%2), s.Activity/4
	network, err := simulate.New(s)
	if err != nil {
		t.Fatal(err)
	}
	return &networkHistory{t: t, network: network}, anyConfig(r, s.Classes)
}

// For any configuration, a core that is restored again and again while it follows a simulated
// network must publish the bits of a core that never stopped. Random histories are too small and
// too irregular for some cases: degrees that fall and rise again, and communities without any
// change.
func TestRestartsOfNetworksLeaveNoTrace(t *testing.T) {
	first := campaign.Seed(t, 0)
	seeds := []uint64{5000, 6108} // they once differed
	for i := range campaign.Size(t, "GQLSTREAM_RESTARTS", 5) {
		seeds = append(seeds, first+uint64(i))
	}
	for _, seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 97))
		network, config := anyNetwork(t, seed, r)
		every := 5 + r.IntN(20)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			network.t = t
			restarts{batches: 80, every: every}.leaveNoTrace(t, seed, network, config)
		})
	}
}

// For any configuration, workers that divide the shards of a network must together publish the bits
// of a core that never stopped. The division changes at each checkpoint.
func TestWorkersOfNetworksTogetherAreOne(t *testing.T) {
	first := campaign.Seed(t, 0)
	for i := range campaign.Size(t, "GQLSTREAM_RESTARTS", 3) {
		seed := first + uint64(i)
		r := rand.New(rand.NewPCG(seed, 98))
		network, config := anyNetwork(t, seed, r)
		config.Shards = 2 + r.IntN(5)
		every := 5 + r.IntN(20)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			network.t = t
			togetherAreOne(t, seed, r, network, config, 40, every)
		})
	}
}
