package event

import (
	"math"
	"strconv"
)

// originalsPerMessage bounds the bytes of refused rows as JSON, in multiples of
// MessageBytesMax: views and dictionaries can say one long text many times.
const originalsPerMessage = 4

// appendRow appends row i of the record batch at hand as a JSON event. Numbers
// that JSON cannot write are strings, so that reading it again refuses it again.
func (t *table) appendRow(dst []byte, i int) []byte {
	dst = append(dst, '{')
	n := len(dst)
	for j := range t.columns {
		c := &t.columns[j]
		if c.class > 0 || c.field == fieldAttributes || c.null(i) {
			continue
		}
		dst = appendKey(dst, n, fieldName(t.kind, c.field))
		dst = t.appendCell(dst, c, i)
	}
	if len(t.classes) > 0 {
		dst = append(appendKey(dst, n, "probabilities"), '[')
		m := len(dst)
		for _, at := range t.classes {
			if len(dst) > m {
				dst = append(dst, ',')
			}
			dst = t.appendCell(dst, &t.columns[at], i)
		}
		dst = append(dst, ']')
	}
	return append(t.appendRowAttributes(dst, n, i), '}')
}

// appendRowAttributes appends the attributes of row i, if it has any.
func (t *table) appendRowAttributes(dst []byte, n, i int) []byte {
	m := -1
	for j := range t.columns {
		c := &t.columns[j]
		if c.field != fieldAttributes || c.null(i) {
			continue
		}
		if m < 0 {
			dst = append(appendKey(dst, n, "attributes"), '{')
			m = len(dst)
		}
		dst = t.appendCell(appendKey(dst, m, c.name), c, i)
	}
	if m >= 0 {
		dst = append(dst, '}')
	}
	return dst
}

// appendKey appends a key to an object whose members begin at n.
func appendKey(dst []byte, n int, key string) []byte {
	if len(dst) > n {
		dst = append(dst, ',')
	}
	return append(appendString(dst, key), ':')
}

// appendCell appends row i of a column.
func (t *table) appendCell(dst []byte, c *column, i int) []byte {
	switch {
	case c.null(i):
		return append(dst, "null"...)
	case c.list >= 0:
		return appendList(dst, c, i)
	case c.field == fieldConfig:
		if config, p := checkConfig(&Batch{}, c.text(i)); p == nil {
			return append(dst, config...)
		}
		return appendString(dst, c.text(i))
	case c.field == fieldOp && !c.cell.isText() && c.cell != cellNull:
		return t.appendOp(dst, c, i)
	case c.cell.isText():
		return appendString(dst, c.text(i))
	case c.cell == cellBool:
		return strconv.AppendBool(dst, c.bool(i))
	case c.cell.isFloat():
		return appendFloat(dst, floatAt(c.cell, c.data, i))
	case c.cell == cellTime:
		if v, p := c.time(i); p == nil {
			return appendTime(dst, v)
		}
	}
	v, negative := intAt(c.cell, c.data, i)
	if negative {
		dst = append(dst, '-')
	}
	return strconv.AppendUint(dst, v, 10)
}

// appendList appends row i of a column of lists.
func appendList(dst []byte, c *column, i int) []byte {
	dst = append(dst, '[')
	for j := range int(c.list) {
		if j > 0 {
			dst = append(dst, ',')
		}
		at := i*int(c.list) + j
		if c.items != nil && c.items[at/8]>>(at%8)&1 == 0 {
			dst = append(dst, "null"...)
			continue
		}
		dst = appendFloat(dst, floatAt(c.cell, c.data, at))
	}
	return append(dst, ']')
}

// appendOp appends an operation that is a number or a boolean as its word.
func (t *table) appendOp(dst []byte, c *column, i int) []byte {
	var v uint64
	var negative bool
	if c.cell == cellBool {
		if c.bool(i) {
			v = 1
		}
	} else {
		v, negative = intAt(c.cell, c.data, i)
	}
	if words := opWords[t.kind]; !negative && v < uint64(len(words)) {
		return appendString(dst, words[v])
	}
	return strconv.AppendUint(dst, v, 10)
}

// appendFloat appends a number, or a string when JSON has no such number.
func appendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(strconv.AppendFloat(append(dst, '"'), f, 'g', -1, 64), '"')
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}
