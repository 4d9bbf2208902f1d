package quant

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"gqlstream/quant/solve"
	"gqlstream/quant/stats"
)

// Difference returns by how much the shares of a exceed those of b, as a record of its own. Its
// prevalences lie between -1 and 1 and sum to zero, with the standard errors and the interval of
// the difference at the confidence of a. With F the influence of the labels that both rest on, the
// variance of a class is V_a + V_b - 2 F_a F_b': the error that they make in both cancels. Other
// common errors (labels next to both, members) would only narrow it further. Records of different
// coefficients share nothing. Position and time are those of the newer record. It returns an error
// where the records are not of one method and kind.
func Difference(a, b *Estimate) (Estimate, error) {
	k := len(a.Prevalence)
	if k == 0 || len(b.Prevalence) != k || len(a.SE) != k || len(b.SE) != k ||
		a.Method != b.Method {
		return Estimate{},
			fmt.Errorf(
				"no difference of %q (%s) and %q (%s): both must have an estimate by "+
					"one method",
				a.Community,
				a.Method,
				b.Community,
				b.Method,
			)
	}
	d := Estimate{
		Pipeline: a.Pipeline, Community: "difference(" + a.Community + ", " + b.Community + ")",
		Method: a.Method, Kernel: a.Kernel,
		Position: a.Position, Time: a.Time, Confidence: a.Confidence, Config: a.Config,
		ModelVersion: a.ModelVersion,
		Members:      min(a.Members, b.Members), NEff: []float64{},
		Flags: append([]string{}, a.Flags...),
	}
	if a.Position < b.Position {
		d.Position, d.Time = b.Position, b.Time
	}
	z := solve.NormalQuantile(cmp.Or(a.Confidence, stats.ConfidenceDefault))
	shared := 0
	if a.Posterior == b.Posterior && a.Posterior > 0 {
		shared = min(len(a.Influence), len(b.Influence)) / k
	}
	for i := range k {
		v := a.SE[i]*a.SE[i] + b.SE[i]*b.SE[i]
		for c := range shared {
			v -= 2 * float64(a.Influence[c*k+i]*b.Influence[c*k+i])
		}
		se := max(math.Sqrt(max(v, 0)), math.Abs(a.SE[i]-b.SE[i]))
		x := a.Prevalence[i] - b.Prevalence[i]
		d.Prevalence, d.SE = append(d.Prevalence, x), append(d.SE, se)
		low, high := -1.0, 1.0
		// beyond these one of the intervals misses, at its own odds
		if len(a.Low) == k && len(b.Low) == k {
			low, high = a.Low[i]-b.High[i], a.High[i]-b.Low[i]
		}
		d.Low, d.High = append(d.Low, max(x-z*se, low)), append(d.High, min(x+z*se, high))
	}
	for _, flag := range b.Flags {
		if !slices.Contains(a.Flags, flag) {
			d.Flags = append(d.Flags, flag)
		}
	}
	return d, nil
}
