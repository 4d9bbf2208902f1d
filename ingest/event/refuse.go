package event

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is why one event, or a value of it, is refused.
type Problem struct {
	Reason Reason
	format string
	args   []any
}

// Error returns the reason and the detail.
func (p *Problem) Error() string { return string(p.Reason) + ": " + p.Detail() }

// Detail says what is wrong. What it quotes must still be there.
func (p *Problem) Detail() string { return fmt.Sprintf(p.format, p.args...) }

// Problemf returns a problem with a detail, which is only formatted when it is read: most
// refusals of a message with many are only counted.
func Problemf(r Reason, format string, args ...any) *Problem {
	return &Problem{r, format, args}
}

// namesMax bounds how many names an advice lists.
const namesMax = 16

// Nearest returns the advice to give when name is none of known: the one it
// looks like, or those that there are.
func Nearest(name string, known []string) string {
	best, distance := "", 3
	for _, k := range known {
		if d := editDistance(name, k); d < distance && d < len(k) {
			best, distance = k, d
		}
	}
	if best != "" {
		return fmt.Sprintf("did you mean %q?", best)
	}
	if more := len(known) - namesMax; more > 0 {
		known = append(slices.Clone(known[:namesMax]), fmt.Sprintf("and %d more", more))
	}
	return "known are " + cmp.Or(strings.Join(known, ", "), "none")
}

// editDistance returns the number of single-byte edits from a to b, or more than
// the length of b when a is too long to be a slip of the pen.
func editDistance(a, b string) int {
	if len(a) > 2*len(b)+2 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
