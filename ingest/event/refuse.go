package event

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is the reason for refusing one event, or a value of it.
type Problem struct {
	Reason Reason
	format string
	args   []any
}

// Error returns the reason and the detail.
func (p *Problem) Error() string { return string(p.Reason) + ": " + p.Detail() }

// Detail describes the problem. The values that it quotes must still be valid.
func (p *Problem) Detail() string { return fmt.Sprintf(p.format, p.args...) }

// Problemf returns a problem with a detail that is formatted only when it is read: a message with
// many refusals only counts most of them.
func Problemf(r Reason, format string, args ...any) *Problem {
	return &Problem{r, format, args}
}

// namesMax bounds how many names an advice lists.
const namesMax = 32

// Nearest returns advice for a name that is not among known: the most similar known name, or a list
// of them.
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

// editDistance returns the number of single-byte edits from a to b, or more than the length of b if
// a is too long to be a typing error.
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
