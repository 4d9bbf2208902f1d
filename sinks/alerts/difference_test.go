package alerts

import (
	"math"
	"strings"
	"testing"

	"gqlstream/quant"
)

// A rule about a difference must fire when the difference of the newest records is beyond
// its value with the error of the difference, whichever of the two came last. A rule about
// every community must not match the difference.
func TestDifferencesFire(t *testing.T) {
	s := begin(t,
		rule(t, "difference(a, b) > 0.1", func(r *Rule) { r.Name = "apart" }),
		rule(t, "low difference(a, b) > 0.1", func(r *Rule) { r.Name = "surely apart" }),
		rule(t, "point < 0.2", func(r *Rule) { r.Name = "every community" }),
	)
	a, b := record("a", 0.5, 0.03, 0.01), record("b", 0.45, 0.04, 0.01)
	s.want(1, []quant.Estimate{a, b})
	s.want(2, one(record("b", 0.35, 0.04, 0.01)), "apart difference(a, b) left firing")
	low := 0.15 - 1.6449*math.Hypot(0.03, 0.04)
	if got := s.all[0]; math.Abs(got.Point-0.15) > 1e-12 || math.Abs(got.Low-low) > 1e-4 ||
		!strings.Contains(got.Reason, "the rule asks for above +10.0 points") {
		t.Errorf(
			"fired with %v [%v, %v]: %s; want 0.15, from %v", got.Point, got.Low, got.High,
			got.Reason, low,
		)
	}
	s.want(3, one(record("a", 0.6, 0.03, 0.01)), "surely apart difference(a, b) left firing")
	s.want(
		4,
		one(quant.Estimate{Community: "b", Suppressed: true}),
	) // nothing is told of it, nothing ends
	s.want(
		5, one(record("b", 0.6, 0.04, 0.01)), "apart difference(a, b) left resolved",
		"surely apart difference(a, b) left resolved",
	)
	if bad := config(rule(t, "low difference(a, b) > 2",
		func(r *Rule) { r.Communities = []string{"*"} })).Validate(); bad == nil ||
		!strings.Contains(bad.Error(), "between -1 and 1") ||
		!strings.Contains(bad.Error(), "remove \"*\"") {
		t.Errorf("refused with %v", bad)
	}
}
