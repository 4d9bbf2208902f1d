package alerts

import (
	"fmt"
	"testing"

	"gqlstream/quant"
)

// BenchmarkActive lists firing alerts: a share of 100,000.
func BenchmarkActive(b *testing.B) {
	for _, firing := range []int{0, 1000, 100_000} {
		b.Run(fmt.Sprintf("firing=%d", firing), func(b *testing.B) {
			rule := Rule{
				Name:        "r",
				Communities: []string{"*"},
				Classes:     []string{"left"},
				When:        Condition{Quantity: Point, Above: true, Value: 0.5},
			}
			e, err := New(
				Config{
					Classes: []string{"left", "right"},
					Methods: []string{"auto"},
					Rules:   []Rule{rule},
				},
			)
			if err != nil {
				b.Fatal(err)
			}
			var list []quant.Estimate
			for i := range 100_000 {
				p := 0.4
				if i < firing {
					p = 0.6
				}
				list = append(list, quant.Estimate{
					Community: fmt.Sprintf(
						"c%06d",
						i,
					), Method: "auto", Prevalence: []float64{p, 1 - p},
					Low: []float64{p, p}, High: []float64{p, p}, SE: []float64{0.1, 0.1},
				})
			}
			e.Evaluate(Moment{Position: 1, Time: 1}, list)
			for b.Loop() {
				if len(e.Active()) != firing {
					b.Fatal("wrong")
				}
			}
		})
	}
}
