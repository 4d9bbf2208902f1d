package web

import (
	"slices"
	"testing"

	"gqlstream/quant"
)

// A flag that says that the number was wrong is graver than one that stands on most communities
// while their intervals hold the truth, and lists show it first.
func TestFlagsAreInOrderOfGravity(t *testing.T) {
	at := func(name string) int {
		return slices.IndexFunc(readersFlags, func(f readersFlag) bool { return f.name == name })
	}
	order := map[Severity]int{wrong: 0, weak: 1, information: 2}
	if !slices.IsSortedFunc(readersFlags, func(a, b readersFlag) int {
		return order[a.severity] - order[b.severity]
	}) {
		t.Error("a flag stands above a graver one")
	}
	for name, want := range map[string]Severity{
		quant.FlagAssumption: wrong, quant.FlagThin: weak, quant.FlagShift: information,
		quant.FlagNewPosterior: information,
	} {
		if got := readersFlags[at(name)].severity; got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}
