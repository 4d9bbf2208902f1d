package evaluate

import (
	"testing"

	"gqlstream/quant"
)

// The parity of a vertex tells two of four classes from the two others, and the classifier is weak.
// An estimate that reads it must be better than one that may not.
func TestAttributesLowerTheError(t *testing.T) {
	w := &world{seed: 21, n: 1600, k: 4, islands: 1200, accuracy: 0.3}
	c := w.config(quant.Auto)
	c.Protocols, c.Share = []string{pps, bfs}, 0.2
	without := run(t, c, w.load())
	c.Core.Evidence.Attributes = []string{"parity"}
	with := run(t, c, w.load())
	for i, row := range with.Rows {
		if other := without.Rows[i]; !(row.AE < 0.8*other.AE) || row.Coverage < 0.8 {
			t.Errorf("%s: error %.3f, without attributes %.3f; coverage %.2f",
				row.Protocol, row.AE, other.AE, row.Coverage)
		}
	}
}
