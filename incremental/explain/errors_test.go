package explain

import (
	"math"
	"testing"

	"gqlstream/incremental"
	"gqlstream/ingest/event/eventtest"
	"gqlstream/quant"
)

// The errors of both parts must equal those of the record at the second place, if the
// record before it is at the first place. A member who came and went in between counts in
// the error of the record alone, since an undone change is no cause. The walk changes the
// labels and the predictions of one member one after the other, and can count that member
// twice.
func TestErrorsAreThoseOfTheRecords(t *testing.T) {
	same, all := 0, 0
	for seed := range uint64(120) {
		options := quant.DefaultOptions()
		options.Method = quant.Methods()[int(seed)%len(quant.Methods())]
		stream := eventtest.New(seed, eventtest.Config{Weighted: seed%2 == 0})
		config := incremental.Config{
			Classes: stream.Config.Classes, Communities: rules[:1],
			Estimates: []quant.Options{options},
		}
		x, _ := explainRandom(t, seed, stream, config)
		if x.Community != "all" || options.Method == quant.Auto {
			continue // auto is explained with coefficients of its own
		}
		record := secondRecord(t, seed, config)
		for k := range record.SEChange {
			for _, se := range [][2]float64{
				{x.SEChange[k], record.SEChange[k]}, {x.SERevised[k], record.SERevised[k]},
			} {
				all++
				switch off := se[0] - se[1]; {
				case math.Abs(off) <= 1e-4:
					same++
				case se[0] > 1.5*se[1]:
					t.Errorf("seed %d, %s, class %d: explained %v, published %v", seed,
						options.Method, k, se[0], se[1])
				}
			}
		}
	}
	if all < 100 || same < all*9/10 {
		t.Errorf("%d of %d errors are the same", same, all)
	}
}

// secondRecord is the record of everyone at the end of the history of explainRandom, when the one
// before stands at its beginning.
func secondRecord(t *testing.T, seed uint64, config incremental.Config) (last quant.Estimate) {
	t.Helper()
	core := twin(t, config)
	stream := eventtest.New(seed, eventtest.Config{Weighted: seed%2 == 0})
	from, to := 4+int(seed%4), 9+int(seed%3)
	for i := range to {
		b := *stream.Next()
		b.Emit = i == from-1 || i == to-1
		b.EmitAll = b.Emit
		for _, e := range core.Step(&b).Estimates {
			if e.Community == "all" {
				last = e
			}
		}
	}
	return last
}
