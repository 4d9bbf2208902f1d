package incremental

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"gqlstream/quant"
)

// Rounded shares must be multiples of the unit, sum to one, and differ by less than a unit
// from the exact ones. The rounded interval must contain the exact one.
func TestRoundedSharesSumToOne(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		k, unit := 2+r.IntN(6), []float64{0.25, 0.05, 0.01, 0.001}[r.IntN(4)]
		e := quant.Estimate{}
		sum := 0.0
		for range k {
			x := r.ExpFloat64()
			e.Prevalence, sum = append(e.Prevalence, x), sum+x
		}
		for i := range e.Prevalence {
			e.Prevalence[i] /= sum
			e.Low = append(e.Low, e.Prevalence[i]*0.9)
			e.High = append(e.High, min(1, e.Prevalence[i]*1.1))
		}
		was := quant.Estimate{
			Prevalence: append([]float64{}, e.Prevalence...), Low: append([]float64{}, e.Low...),
			High: append([]float64{}, e.High...),
		}
		round(&e, unit)
		sum = 0
		for i, x := range e.Prevalence {
			sum += x
			if math.Abs(x/unit-math.Round(x/unit)) > 1e-6 || math.Abs(x-was.Prevalence[i]) >= unit {
				t.Fatalf("%v became %v, unit %v", was.Prevalence[i], x, unit)
			}
			if e.Low[i] > was.Low[i] || e.High[i] < was.High[i]-1e-12 {
				t.Fatalf(
					"interval %v to %v became %v to %v", was.Low[i], was.High[i], e.Low[i],
					e.High[i],
				)
			}
		}
		if math.Abs(sum-1) > 1e-9 {
			t.Fatalf("shares sum to %v", sum)
		}
	}
}

// Rounding must make every list of figures in a record multiples of the unit. The exceptions are
// the lists in plain, which describe no single share. A list that is added to records must be
// rounded, or be added to plain.
func TestEveryFigureOfARecordIsRounded(t *testing.T) {
	const unit = 0.05
	plain := []string{"NEff", "Influence"}
	e := quant.Estimate{}
	fields := reflect.ValueOf(&e).Elem()
	for i := range fields.NumField() {
		if list, is := fields.Field(i).Interface().([]float64); is && list == nil {
			fields.Field(i).Set(reflect.ValueOf([]float64{0.1234, 0.8766}))
		}
	}
	x := quant.Explanation{
		From: quant.ExplanationEnd{Estimate: e}, To: quant.ExplanationEnd{Estimate: e},
		Causes:   []quant.Cause{{Contribution: []float64{0.0712, -0.0712}}},
		SEChange: []float64{0.0112, 0.0112}, SERevised: []float64{0.0312, 0.0312},
	}
	x.From.Estimate.Prevalence = []float64{0.3, 0.7}
	round(&e, unit)
	whole := func(list []float64) bool {
		return !slices.ContainsFunc(list, func(x float64) bool {
			return math.Abs(x/unit-math.Round(x/unit)) > 1e-9
		})
	}
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Name
		list, is := fields.Field(i).Interface().([]float64)
		if is && !slices.Contains(plain, name) && !whole(list) {
			t.Errorf("%s is %v", name, list)
		}
	}
	RoundExplanation(&x, unit)
	x.Settle()
	for _, list := range [][]float64{
		x.Causes[0].Contribution, x.Change, x.Numerical, x.SEChange, x.SERevised,
	} {
		if !whole(list) {
			t.Errorf("the explanation has %v", list)
		}
	}
}
