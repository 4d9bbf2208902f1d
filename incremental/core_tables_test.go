package incremental

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/lab/campaign"
	"gqlstream/quant"
	"gqlstream/quant/stats"
)

// coreTables returns the sections that every later release reads.
func coreTables(state []Section) map[string][]byte {
	tables := map[string][]byte{}
	for _, s := range state {
		name := strings.TrimSuffix(s.Name, tableSuffix)
		if slices.Contains(graphstore.Tables(), graphstore.Table(name)) ||
			slices.Contains([]string{coreSection, pairsSection, scoredSection}, s.Name) {
			tables[s.Name] = s.Data
		}
	}
	return tables
}

// Cores that begin with the core tables of different checkpoints emit nothing before a
// recompute event. From then on their state and records must equal, bit for bit, those of a
// core that never stopped, under every configuration.
func TestCoreTablesAreEnough(t *testing.T) {
	first := campaign.Seed(t, 0)
	seeds := []uint64{12} // it once differed
	for i := range campaign.Size(t, "GQLSTREAM_RESTARTS", 2) {
		seeds = append(seeds, first+uint64(i))
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			coreTablesAreEnough(t, seed)
		})
	}
}

func coreTablesAreEnough(t *testing.T, seed uint64) {
	const batches = 60
	r := rand.New(rand.NewPCG(seed, 99))
	network, config := anyNetwork(t, seed, r)
	saves := []int{5 + r.IntN(10), 15 + r.IntN(10)}
	recompute := 26 + r.IntN(15)
	cores := []*Core{newCore(t, config)}
	for i := range batches {
		batch := network.Next()
		batch.Checkpoint = slices.Contains(saves, i) || i == recompute+10
		batch.Controls = nil
		if i == recompute {
			batch.Controls = []event.Control{{Op: event.Recompute}}
		}
		var want []quant.Estimate
		for j, core := range cores {
			result := core.Step(batch)
			switch got := result.Estimates; {
			case len(result.Refused) > 0:
				t.Fatalf("batch %d: core %d refuses %v", i, j, result.Refused)
			case j == 0:
				want = slices.Clone(got)
			case i <= recompute && len(got) > 0:
				t.Fatalf("batch %d: core %d emits before the recompute event", i, j)
			case i > recompute:
				sameEstimates(t, fmt.Sprintf("batch %d, core %d", i, j), got, want)
			}
		}
		if i >= recompute && (batch.Checkpoint || i == recompute || i == batches-1) {
			for _, core := range cores[1:] {
				sameState(t, seed, saved(t, seed, cores[0]), saved(t, seed, core))
			}
		}
		if slices.Contains(saves, i) {
			next, err := RestoreTables(config, coreTables(saved(t, seed, cores[0])), false)
			if err != nil {
				t.Fatal(err)
			}
			cores = append(cores, next)
		}
	}
	for _, core := range cores {
		core.Close()
	}
}

// sameEstimates compares records bit for bit.
func sameEstimates(t *testing.T, where string, got, want []quant.Estimate) {
	t.Helper()
	if reflect.DeepEqual(got, want) {
		return
	}
	if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); g != w {
		t.Fatalf("%s: estimates differ\n%s\n%s", where, g, w)
	}
}

// Under another configuration its communities must be estimated, and a setting that needs
// data outside the core tables must be refused.
func TestCoreTablesUnderAnotherConfiguration(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	network, config := anyNetwork(t, 4, r)
	config.Estimates, config.Kernel, config.Classifier = optionsOf(quant.Auto), "", ""
	core := newCore(t, config)
	defer core.Close()
	for i := range 20 {
		batch := network.Next()
		batch.Checkpoint = i == 19
		core.Step(batch)
	}
	other := config
	other.MembersMin, other.Estimates = 3, optionsOf(quant.Auto, quant.PACC)
	other.Communities = []graphstore.Rule{{Name: "whole", Kind: graphstore.Everyone}}
	other.SelectedBy = map[string]stats.Selection{"whole": stats.ByAttribute}
	again, err := RestoreTables(other, coreTables(saved(t, 4, core)), true)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	seen := map[string]int{}
	for i := range 10 {
		batch := network.Next()
		batch.Emit, batch.EmitAll = true, true
		if i == 0 {
			batch.Controls = []event.Control{{Op: event.Recompute}}
		}
		for _, e := range again.Step(batch).Estimates {
			seen[e.Community]++
		}
	}
	if seen["whole"] < 2 || len(seen) < 2 {
		t.Errorf("estimates of %v; want those of the new community and of the others", seen)
	}
	if again.SelectedBy()["whole"] != stats.ByAttribute {
		t.Errorf("selected by %v", again.SelectedBy())
	}
	other.Classes++
	if _, err := RestoreTables(other, coreTables(saved(t, 4, core)), true); err == nil {
		t.Error("the tables of another number of classes were read")
	}
}
