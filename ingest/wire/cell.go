package wire

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"gqlstream/ingest/event"
)

// CellKind is the kind of a value in a wire form or a file.
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

// Cell is one value as a form gives it, before it is interpreted as a field. Referenced memory is
// valid until the next value of its kind is read.
type Cell struct {
	Kind CellKind
	// the text; the JSON of an object; the digits of a number, if the form has digits
	Text    string
	Integer uint64    // of UintCell; of BoolCell 0 or 1; of TimeCell nanoseconds, two's complement
	Number  float64   // of NumberCell
	List    []float64 // of ListCell, at most listMax of them
	Count   int       // of ListCell: how many values it has
	Naive   bool      // of TimeCell: a time without a zone
	Wrong   int       // of ListCell: 1 + the index of the first value that is not a number; 0: none
}

// listMax bounds the stored values of a list: one more than a valid list can have.
const listMax = event.ClassesMax + 1

// Append adds a number, or a value that is not a number, to a ListCell.
func (c *Cell) Append(x float64, number bool) {
	if c.Count++; !number {
		x, c.Wrong = math.NaN(), cmp.Or(c.Wrong, c.Count)
	}
	if len(c.List) < listMax {
		c.List = append(c.List, x)
	}
}

// Missing reports whether the cell is absent or null.
func (c *Cell) Missing() bool { return c.Kind <= NullCell }

// unknown reports whether the cell is missing, or NaN, which pandas writes for missing values. It
// is for optional values that cannot be NaN.
func (c *Cell) unknown() bool {
	return c.Missing() || c.Kind == NumberCell && math.IsNaN(c.Number)
}

// Whole reads an unsigned integer. It also accepts a number with a fraction of zero, which pandas
// writes for columns with nulls, and text.
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

// wholeText returns the digits of a whole number if they are known exactly.
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

// SetInteger sets c to a whole number. A negative one keeps its digits.
func (c *Cell) SetInteger(x int64) {
	if c.Kind, c.Integer = UintCell, uint64(x); x < 0 {
		c.Kind, c.Integer = NumberCell, 0
		c.Text, c.Number = strconv.FormatInt(x, 10), float64(x)
	}
}

// SetDigits sets c to the whole number with these digits, and perhaps a minus sign.
func (c *Cell) SetDigits(digits string) { c.number(digits) }

// Float reads a number, or text that is a number.
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
