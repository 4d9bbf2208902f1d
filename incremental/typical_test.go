package incremental

import (
	"errors"
	"io"
	"slices"
	"testing"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/lab/simulate"
	"gqlstream/quant"
)

// Labels of a random sample are typical of the graph, also after opinions have moved:
// labelled people move like others.
func TestMovementDoesNotMakeLabelsUntypical(t *testing.T) {
	config := simulate.DefaultConfig()
	config.Seed, config.Vertices, config.Duration = 3, 6000, 3*config.JumpEvery
	network, err := simulate.New(config)
	if err != nil {
		t.Fatal(err)
	}
	core := newCore(t, Config{
		Classes: 2, Estimates: []quant.Options{quant.DefaultOptions()},
		Communities: []graphstore.Rule{{Name: "everyone", Kind: graphstore.Everyone}},
	})
	defer core.Close()
	flagged, records := 0, 0
	var batch event.Batch
	for {
		err := network.Next(t.Context(), &batch)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		late := network.Elapsed() > config.JumpEvery
		for _, e := range core.Step(&batch).Estimates {
			if late && e.Community == "everyone" {
				records++
				if slices.Contains(e.Flags, quant.FlagAtypical) {
					flagged++
				}
			}
		}
	}
	if records < 100 || flagged > records/20 {
		t.Errorf("%d of %d records say that the labels are not typical", flagged, records)
	}
}
