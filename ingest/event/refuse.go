package event

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrMalformed is what the error of a message that was refused whole matches.
// No event of the message is in the batch; the batch's last Refusal holds it.
var ErrMalformed = errors.New("event: message refused")

// ErrUnknownVersion is what the error of a message in a schema version that this
// package does not read matches. The batch is as before. The pipeline must stop:
// to go on without the message would be a wrong history.
var ErrUnknownVersion = errors.New("event: unknown schema version")

// Problem is why one event, or a value of it, is refused.
type Problem struct {
	Reason Reason
	Detail string
}

// Error returns the reason and the detail.
func (p *Problem) Error() string { return string(p.Reason) + ": " + p.Detail }

// problemf returns a problem with a formatted detail.
func problemf(r Reason, format string, args ...any) *Problem {
	return &Problem{Reason: r, Detail: fmt.Sprintf(format, args...)}
}

// asError returns p as an error that is nil when p is.
func asError(p *Problem) error {
	if p == nil {
		return nil
	}
	return p
}

// MessageError is the error of a message that was refused whole. It matches
// ErrMalformed, whatever its Reason.
type MessageError struct{ Refusal Refusal }

// Error names the message, the reason and the detail.
func (e *MessageError) Error() string {
	r := e.Refusal
	return fmt.Sprintf("event: message at position %d (%v) refused: %s: %s",
		r.Position, r.Kind, r.Reason, r.Detail)
}

// Is reports whether target is ErrMalformed.
func (e *MessageError) Is(target error) bool { return target == ErrMalformed }

// versionError is the error of a message in an unknown schema version.
type versionError struct {
	position Position
	version  string
}

func (e *versionError) Error() string {
	return fmt.Sprintf("event: message at position %d has schema version %s, this program reads "+
		"version %s: continue with a release of gqlstream that reads version %s",
		e.position, e.version, schemaVersion, e.version)
}

func (e *versionError) Is(target error) bool { return target == ErrUnknownVersion }

// checkVersion returns what is wrong with a schema version, which is a positive
// integer; absent is version 1.
func checkVersion(version string, position Position) (*Problem, error) {
	if version == "" || version == schemaVersion {
		return nil, nil
	}
	n, err := strconv.ParseUint(version, 10, 31)
	if err != nil || n == 0 || version[0] == '0' || version[0] == '+' {
		p := problemf(Malformed, "schema version %s is not a positive integer", quote(version))
		return p, nil
	}
	return nil, &versionError{position: position, version: version}
}

// quote returns input as it may stand in a detail: quoted and not long.
func quote[T string | []byte](input T) string {
	s := input[:min(len(input), detailTextBytesMax)]
	q := strconv.Quote(string(s))
	if len(input) > len(s) {
		return q + fmt.Sprintf("... (%d bytes)", len(input))
	}
	return q
}

// Nearest returns the advice to give when name is none of known: the one it
// looks like, or all of them.
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
	return "known are " + strings.Join(known, ", ")
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
