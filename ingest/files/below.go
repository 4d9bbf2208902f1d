package files

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// spreadsheetRows is the number of rows that a spreadsheet can have. Rows after them are not
// examined.
const spreadsheetRows = 1 << 20

// valueKind is the form of a value of a text file.
type valueKind byte

const (
	emptyValue valueKind = iota
	numberValue
	nameValue
)

// kindOfValue tells numbers, also with a decimal comma, from names.
func kindOfValue(value string) valueKind {
	value = wire.TrimText(value)
	if value == "" {
		return emptyValue
	}
	if _, err := strconv.ParseFloat(strings.Replace(value, ",", ".", 1), 64); err == nil {
		return numberValue
	}
	return nameValue
}

// isTotal reports whether a value is the name of a total, perhaps with the total behind a colon.
func isTotal(value string) bool {
	word, _, _ := strings.Cut(strings.ToLower(value), ":")
	return totals[strings.Trim(word, " *")]
}

// rowBelow looks for a row below a table of unknown columns: a row with another number of values
// than all rows before, or with a value that is empty, a number or a name where all rows before
// have something else, or a last row that is called like a total.
type rowBelow struct {
	rows  int
	width int         // number of values of the first row
	kinds []valueKind // of its values
	odd   []int       // by value, the last for the width: rows before the first odd one
	// places and texts of the last rows, oldest first
	places []int64
	texts  []string
}

// see notes a row; values are nil if it cannot be read.
func (b *rowBelow) see(values []string, place int64) {
	if b.rows == 0 {
		b.width = len(values)
		b.odd = make([]int, b.width+1)
		for _, value := range values {
			b.kinds = append(b.kinds, kindOfValue(value))
		}
	}
	if b.odd[b.width] == 0 && len(values) != b.width {
		b.odd[b.width] = b.rows
	}
	for i := range min(len(values), b.width) {
		if b.odd[i] == 0 && kindOfValue(values[i]) != b.kinds[i] {
			b.odd[i] = b.rows
		}
	}
	if b.rows++; len(b.places) == footerRowsMax {
		b.places, b.texts = b.places[1:], b.texts[1:]
	}
	b.places, b.texts = append(b.places, place), append(b.texts, firstValue(values))
}

// firstValue returns the name of a total in a row, or else its first value that is not empty.
func firstValue(values []string) string {
	if i := slices.IndexFunc(values, isTotal); i >= 0 {
		return strings.Clone(wire.TrimText(values[i]))
	}
	for _, value := range values {
		if value = wire.TrimText(value); value != "" {
			return strings.Clone(value)
		}
	}
	return ""
}

// advice says which row may be below the table, or "".
func (b *rowBelow) advice() string {
	for i, text := range b.texts {
		if isTotal(text) {
			return fmt.Sprintf("; line %d is called %q: %s", b.places[i], text, footerAdvice)
		}
	}
	first := b.rows
	for _, before := range b.odd {
		if before >= footerRowsMin && b.rows-before <= footerRowsMax {
			first = min(first, before)
		}
	}
	if first == b.rows {
		return ""
	}
	i := first - (b.rows - len(b.places))
	return fmt.Sprintf("; line %d, which begins with %q, is unlike the %s rows before it: %s",
		b.places[i], b.texts[i], grouped(first), footerAdvice)
}

// adviseBelow reads the rest of the rows and returns advice about one below the table, or "".
func (t *csvTable) adviseBelow() string {
	var below rowBelow
	values, err := t.pending, t.failed
	for below.rows < spreadsheetRows {
		switch {
		case err == io.EOF:
			return below.advice()
		case errors.As(err, new(*event.Problem)):
			values = nil
		case err != nil:
			return ""
		}
		below.see(values, t.place())
		values, err = t.record()
	}
	return ""
}
