package web

import (
	"cmp"
	"regexp"
	"strings"
)

// compareNames orders names as people do: digits by their number, upper and lower
// case alike. Names that are alike so are in byte order.
func compareNames(a, b *community) int {
	return cmp.Or(strings.Compare(a.natural, b.natural), strings.Compare(a.name, b.name))
}

var numbers = regexp.MustCompile("[0-9]+")

// naturalKey returns a text whose byte order is the natural order of lower-case names:
// before the digits of a number, without zeros in front, it says how many they are.
func naturalKey(folded string) string {
	return numbers.ReplaceAllStringFunc(folded, func(n string) string {
		n = strings.TrimLeft(n, "0")
		return "0" + string(rune(len(n))) + n
	})
}
