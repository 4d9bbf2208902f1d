package ingest

import (
	"math"
	"strconv"
	"time"
	"unicode/utf8"
	"unsafe"

	"gqlstream/ingest/event"
)

// cellKind is how a file gives a value.
type cellKind uint8

const (
	absentCell cellKind = iota // the row does not have the column
	nullCell                   // null, or empty in CSV
	textCell
	uintCell
	numberCell
	boolCell   // integer is 0 or 1
	timeCell   // integer is nanoseconds since the epoch, two's complement
	listCell   // of numbers
	objectCell // text is the JSON
)

// cell is one value of a row. Its text and list are valid until the next row.
type cell struct {
	kind    cellKind
	text    string // also the literal of a JSON number
	integer uint64
	number  float64
	list    []float64
}

// fileRow is one row of a table, its cells by slot (see columns).
type fileRow struct {
	cells []cell
	list  []float64 // backing of listCells
}

// reset makes every cell absent and makes room for n of them.
func (r *fileRow) reset(n int) {
	if cap(r.cells) < n {
		r.cells = make([]cell, n, 2*n)
	}
	r.cells = r.cells[:n]
	clear(r.cells)
	r.list = r.list[:0]
}

// unknown reports whether the cell holds nothing, or the NaN that pandas writes
// for nothing. It is for values that are optional and cannot be NaN.
func (c *cell) unknown() bool {
	return c.missing() || (c.kind == numberCell && math.IsNaN(c.number))
}

// missing reports whether the cell holds nothing.
func (c *cell) missing() bool { return c.kind <= nullCell }

// String renders the value for a message.
func (c *cell) String() string {
	switch c.kind {
	case absentCell, nullCell:
		return "null"
	case uintCell:
		return strconv.FormatUint(c.integer, 10)
	case numberCell:
		return strconv.FormatFloat(c.number, 'g', -1, 64)
	case boolCell:
		return strconv.FormatBool(c.integer != 0)
	case timeCell:
		return event.Time(c.integer).String()
	case listCell:
		return "a list of " + strconv.Itoa(len(c.list)) + " numbers"
	case textCell:
		return shortQuote(c.text)
	}
	return shortQuote(c.text)
}

// shortQuote quotes s for a message, cut to a readable length.
func shortQuote(s string) string {
	const bytesMax = 64
	if len(s) > bytesMax {
		return strconv.Quote(s[:bytesMax]) + "..."
	}
	return strconv.Quote(s)
}

// wants is the problem of a cell that holds something else than is wanted.
func (c *cell) wants(reason event.Reason, want string) *event.Problem {
	if c.missing() {
		return &event.Problem{Reason: event.MissingField, Detail: "missing, want " + want}
	}
	return &event.Problem{Reason: reason, Detail: c.String() + ": want " + want}
}

// float reads a number.
func (c *cell) float() (float64, *event.Problem) {
	switch c.kind {
	case numberCell:
		return c.number, nil
	case uintCell:
		return float64(c.integer), nil
	case textCell:
		if x, err := strconv.ParseFloat(c.text, 64); err == nil || math.IsInf(x, 0) {
			return x, nil
		}
	}
	return 0, c.wants(event.BadValue, "a number")
}

// whole reads an unsigned integer: also one that a table holds as floating
// point, as pandas does to columns with nulls.
func (c *cell) whole() (uint64, bool) {
	switch c.kind {
	case uintCell:
		return c.integer, true
	case numberCell:
		if x := c.number; x >= 0 && x <= 1<<53 && x == math.Trunc(x) {
			return uint64(x), true
		}
	case textCell:
		if x, err := strconv.ParseUint(c.text, 10, 64); err == nil {
			return x, true
		}
		if x, err := strconv.ParseFloat(c.text, 64); err == nil && x >= 0 && x <= 1<<53 && x == math.Trunc(x) {
			return uint64(x), true
		}
	}
	return 0, false
}

// when reads a time; a missing one is zero.
func (c *cell) when() (event.Time, *event.Problem) {
	const want = "RFC 3339 or Unix seconds, between 1823 and 2116"
	if c.unknown() {
		return 0, nil
	}
	switch c.kind {
	case timeCell:
		if t := event.Time(c.integer); t >= -event.TimeMax && t <= event.TimeMax {
			return t, nil
		}
	case uintCell:
		if c.integer <= uint64(event.TimeMax)/1e9 {
			return event.Time(c.integer * 1e9), nil
		}
	case numberCell, textCell:
		if c.kind == numberCell && c.text == "" {
			if x := math.Round(c.number * 1e9); math.Abs(x) <= float64(event.TimeMax) {
				return event.Time(x), nil
			}
			break
		}
		t, err := event.ParseTime(c.text)
		return t, asProblem(err)
	}
	return 0, c.wants(event.BadTime, want)
}

// ttl reads a time to live; a missing one is zero.
func (c *cell) ttl() (time.Duration, *event.Problem) {
	text := c.text
	switch {
	case c.unknown():
		return 0, nil
	case c.kind == uintCell, c.kind == numberCell && text == "":
		text = c.String()
	case c.kind != textCell && c.kind != numberCell:
		return 0, c.wants(event.BadValue, `seconds or a duration like "36h"`)
	}
	d, err := event.ParseTTL(text)
	return d, asProblem(err)
}

// flag reads one of two words, or the numbers 0 and 1, or a boolean; a missing
// one is false.
func (c *cell) flag(no, yes string) (bool, *event.Problem) {
	switch c.kind {
	case absentCell, nullCell:
		return false, nil
	case boolCell:
		return c.integer != 0, nil
	case uintCell, numberCell:
		if n, ok := c.whole(); ok && n <= 1 {
			return n == 1, nil
		}
	case textCell:
		switch c.text {
		case no, "0":
			return false, nil
		case yes, "1":
			return true, nil
		}
	}
	return false, c.wants(event.BadValue, no+" or "+yes)
}

// name reads the name of a community or a model version. It aliases the row.
func (c *cell) name(what string) (string, *event.Problem) {
	text := c.text
	if c.kind == uintCell || c.kind == numberCell {
		text = c.String()
	} else if c.kind != textCell {
		return "", c.wants(event.BadID, what)
	}
	if !soundName(text) {
		return "", c.wants(event.BadID, what+" of 1 to 256 bytes of UTF-8")
	}
	return text, nil
}

// soundName reports whether s may name something.
func soundName(s string) bool {
	return len(s) > 0 && len(s) <= event.IDBytesLimit && utf8.ValidString(s)
}

// asProblem returns what the event package found wrong.
func asProblem(err error) *event.Problem {
	if err == nil {
		return nil
	}
	if p, ok := err.(*event.Problem); ok {
		return p
	}
	return &event.Problem{Reason: event.BadValue, Detail: err.Error()}
}

// aliasString returns b as a string that shares its memory.
func aliasString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// arena hands out memory from large blocks that are never reused: what it has
// handed out stays as it is for as long as anybody holds it.
type arena[T any] struct{ block []T }

// take returns n zero elements.
func (a *arena[T]) take(n int) []T {
	if len(a.block)+n > cap(a.block) {
		a.block = make([]T, 0, max(n, 1<<16/int(unsafe.Sizeof(*new(T)))))
	}
	at := len(a.block)
	a.block = a.block[:at+n]
	return a.block[at : at+n : at+n]
}

// keepText copies s into an arena.
func keepText(a *arena[byte], s string) string {
	if s == "" {
		return ""
	}
	p := a.take(len(s))
	copy(p, s)
	return aliasString(p)
}
