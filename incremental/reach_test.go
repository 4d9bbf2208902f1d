package incremental

import (
	"slices"
	"strconv"
	"testing"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// When the last reachable label of a community goes away, a core from the beginning and a
// core that begins now must both count none: the mass that its kernel leaves there is an
// error, not a weight.
func TestLabelsThatAreNoLongerReachedCountAsNone(t *testing.T) {
	for i, engine := range []string{EnginePrimal, EnginePrimal, EngineDual} {
		config := Config{
			Classes: 2, Engine: engine, Communities: []graphstore.Rule{{Name: "left"}},
		}
		config.Estimates = []quant.Options{quant.DefaultOptions()}
		config.Estimates[0].Method = []quant.Method{quant.SISNACC, quant.Auto, quant.Auto}[i]
		warm, cold := newCore(t, config), newCore(t, config)
		defer warm.Close()
		defer cold.Close()
		islands, cut := twoIslands()
		feed(warm, islands, true)
		last := feed(warm, cut, true)
		feed(cold, islands, false)
		first := feed(cold, cut, true)
		for name, records := range map[string][]quant.Estimate{"followed": last, "begun": first} {
			if len(records) != 1 || !slices.Contains(records[0].Flags, quant.FlagUnreachable) {
				t.Errorf(
					"%s, %s: %+v, want one estimate with the flag %s", engine, name, records,
					quant.FlagUnreachable,
				)
			}
		}
		// The coefficients of auto were fitted on the graph before the cut, or on the one after it.
		if i == 0 && len(last) == 1 && len(first) == 1 &&
			!slices.Equal(last[0].Prevalence, first[0].Prevalence) {
			t.Errorf("%s: followed %v, begun %v", engine, last[0].Prevalence, first[0].Prevalence)
		}
	}
}

// feed steps the core through a copy of the batch.
func feed(core *Core, b event.Batch, emit bool) []quant.Estimate {
	b.First, b.Last, b.Emit = core.Position()+1, core.Position()+1, emit
	return core.Step(&b).Estimates
}

// twoIslands returns two rings joined by a bridge, with the labels on the right and the
// community on the left, and the batch that cuts the bridge.
func twoIslands() (islands, cut event.Batch) {
	const n = 40
	id := func(side string, i int) event.ID { return event.ID{Name: side + strconv.Itoa(i%n)} }
	for _, side := range []string{"l", "r"} {
		for i := range n {
			for _, hop := range []int{1, 2, 7} {
				islands.Edges = append(
					islands.Edges,
					event.Edge{Src: id(side, i), Dst: id(side, i+hop), Weight: 1},
				)
			}
			units := islands.Units(2)
			units[0] = event.One / 4 * uint32(1+i%3)
			units[1] = event.One - units[0]
			islands.Predictions = append(
				islands.Predictions,
				event.Prediction{Vertex: id(side, i), Units: units},
			)
			if side == "l" {
				islands.Members = append(
					islands.Members,
					event.Member{Community: "left", Vertex: id(side, i), Multiplicity: 1},
				)
			} else {
				islands.Labels = append(islands.Labels,
					event.Label{Vertex: id(side, i), Class: event.Class(i % 2)})
			}
		}
	}
	islands.Edges = append(islands.Edges, event.Edge{Src: id("l", 0), Dst: id("r", 0), Weight: 1})
	cut.Edges = []event.Edge{{Src: id("l", 0), Dst: id("r", 0), Remove: true}}
	return islands, cut
}
