package wire

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"gqlstream/ingest/event"
)

// CellKind names the kind of value that a form gives.
type CellKind uint8

// The kinds of cells.
const (
	AbsentCell CellKind = iota // the event does not have the field
	NullCell                   // null, or empty in CSV
	UintCell
	NumberCell // any number that is not a UintCell
	BoolCell
	TimeCell
	TextCell
	ListCell   // of numbers
	ObjectCell // in JSON
)

// Cell is one value as a form gives it, before a field has looked at it. What it
// points to is valid until the next value of its kind is read.
type Cell struct {
	Kind CellKind
	// of text; of an object its JSON; of a number its digits, where the form has some
	Text    string
	Integer uint64    // of UintCell; of BoolCell 0 or 1; of TimeCell nanoseconds, two's complement
	Number  float64   // of NumberCell
	List    []float64 // of ListCell, at most listMax of them
	Count   int       // of ListCell: how many values it has
	Naive   bool      // of TimeCell: it is the time on a clock whose zone is not known
	Wrong   int       // of ListCell: 1 + the index of the first value that is no number; 0: none
}

// listMax bounds the values of a list that are kept: one more than a list can need.
const listMax = event.ClassesMax + 1

// Append adds a number, or a value that is none, to a ListCell.
func (c *Cell) Append(x float64, number bool) {
	if c.Count++; !number {
		x, c.Wrong = math.NaN(), cmp.Or(c.Wrong, c.Count)
	}
	if len(c.List) < listMax {
		c.List = append(c.List, x)
	}
}

// Missing reports whether the cell holds nothing.
func (c *Cell) Missing() bool { return c.Kind <= NullCell }

// unknown reports whether the cell holds nothing, or the NaN that pandas writes for
// nothing. It is for values that are optional and cannot be NaN.
func (c *Cell) unknown() bool {
	return c.Missing() || c.Kind == NumberCell && math.IsNaN(c.Number)
}

// Whole reads an unsigned integer: also one that is written as a number with a
// fraction of zero, as pandas does to columns with nulls, or as text.
func (c *Cell) Whole() (uint64, bool) {
	x := c.Number
	switch c.Kind {
	case UintCell:
		return c.Integer, true
	case TextCell:
		if v, err := strconv.ParseUint(c.Text, 10, 64); err == nil {
			return v, true
		}
		var err error
		if x, err = strconv.ParseFloat(c.Text, 64); err != nil {
			return 0, false
		}
	case NumberCell:
	default:
		return 0, false
	}
	if x >= 0 && x <= 1<<53 && x == math.Trunc(x) {
		return uint64(x), true
	}
	return 0, false
}

// wholeText returns the digits of a whole number, if the cell is one whose digits are known
// exactly.
func (c *Cell) wholeText() (string, bool) {
	switch {
	case c.Kind == UintCell:
		return strconv.FormatUint(c.Integer, 10), true
	case c.Kind != NumberCell:
		return "", false
	case areDigits(strings.TrimPrefix(c.Text, "-")):
		return c.Text, true
	case math.Abs(c.Number) <= event.ExactMax && c.Number == math.Trunc(c.Number):
		return strconv.FormatInt(int64(c.Number), 10), true
	}
	return "", false
}

// SetInteger makes c a whole number, whose digits are kept if it is negative.
func (c *Cell) SetInteger(x int64) {
	if c.Kind, c.Integer = UintCell, uint64(x); x < 0 {
		c.Kind, c.Integer = NumberCell, 0
		c.Text, c.Number = strconv.FormatInt(x, 10), float64(x)
	}
}

// SetDigits makes c the whole number with these digits, and perhaps a minus sign before them.
func (c *Cell) SetDigits(digits string) { c.number(digits) }

// Float reads a number, if the cell is one or text of one.
func (c *Cell) Float() (float64, bool) {
	switch c.Kind {
	case UintCell:
		return float64(c.Integer), true
	case TextCell:
		x, err := strconv.ParseFloat(c.Text, 64)
		return x, err == nil || math.IsInf(x, 0)
	}
	return c.Number, c.Kind == NumberCell
}

// String renders the value for a message.
func (c *Cell) String() string {
	switch c.Kind {
	case AbsentCell, NullCell:
		return "null"
	case UintCell:
		return strconv.FormatUint(c.Integer, 10)
	case NumberCell:
		if c.Text != "" {
			return c.Text[:min(len(c.Text), detailTextBytesMax)]
		}
		return strconv.FormatFloat(c.Number, 'g', -1, 64)
	case BoolCell:
		return strconv.FormatBool(c.Integer != 0)
	case TimeCell:
		return event.Time(c.Integer).String()
	case ListCell:
		return "a list of " + strconv.Itoa(c.Count) + " numbers"
	}
	return Quote(c.Text).String()
}
