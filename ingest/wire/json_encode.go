package wire

import (
	"math"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"gqlstream/ingest/event"
)

// AppendJSON appends event i of a kind in b as one JSON object, without a line end,
// and returns the extended slice. Fields at their defaults are left out, times are
// RFC 3339 in UTC. Decoding the object gives the event back.
func AppendJSON(dst []byte, b *event.Batch, kind event.Kind, i int) []byte {
	dst = append(dst, '{')
	n := len(dst)
	for j := range fields[kind] {
		s := &fields[kind][j]
		var c Cell
		if s.get(s.value(b, i), &c); c.Kind != AbsentCell {
			dst = appendCell(appendKey(dst, n, s.name), &c)
		}
	}
	return append(dst, '}')
}

// attributesText returns attributes as a JSON object, or "" if there are none.
func attributesText(attributes []event.Attribute) string {
	if len(attributes) == 0 {
		return ""
	}
	dst := []byte{'{'}
	for _, a := range attributes {
		c := valueCell(a.Value)
		dst = appendCell(appendKey(dst, 1, a.Key), &c)
	}
	return alias(append(dst, '}'))
}

// valueCell returns the cell of an attribute's value.
func valueCell(v event.Value) Cell {
	switch v.Kind {
	case event.StringValue:
		return Cell{Kind: TextCell, Text: v.Text}
	case event.NumberValue:
		return Cell{Kind: NumberCell, Number: v.Number}
	case event.BoolValue:
		return Cell{Kind: BoolCell, Integer: uint64(v.Number)}
	}
	return Cell{Kind: NullCell}
}

// appendKey appends a key to an object whose members begin at index n.
func appendKey(dst []byte, n int, key string) []byte {
	if len(dst) > n {
		dst = append(dst, ',')
	}
	return append(appendString(dst, key), ':')
}

// appendCell appends a value. Integers that a JSON reader may round, as browsers do, become
// strings, which name the same vertex.
func appendCell(dst []byte, c *Cell) []byte {
	switch c.Kind {
	case TextCell:
		return appendString(dst, c.Text)
	case UintCell:
		if c.Integer < 1<<53 {
			return strconv.AppendUint(dst, c.Integer, 10)
		}
		return append(strconv.AppendUint(append(dst, '"'), c.Integer, 10), '"')
	case NumberCell:
		return appendFloat(dst, c.Number)
	case BoolCell:
		return strconv.AppendBool(dst, c.Integer != 0)
	case TimeCell:
		at := time.Unix(0, int64(c.Integer)).UTC()
		return append(at.AppendFormat(append(dst, '"'), time.RFC3339Nano), '"')
	case ListCell:
		dst = append(dst, '[')
		for i, x := range c.List {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendFloat(dst, x)
		}
		return append(dst, ']')
	case ObjectCell:
		return append(dst, c.Text...)
	}
	return append(dst, "null"...)
}

// appendFloat appends a number, or a string if JSON cannot express the number.
func appendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(strconv.AppendFloat(append(dst, '"'), f, 'g', -1, 64), '"')
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}

// appendString appends a JSON string. Invalid UTF-8 becomes U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst, _ = jsontext.AppendQuote(dst, s) // the error is about invalid UTF-8
	return dst
}
