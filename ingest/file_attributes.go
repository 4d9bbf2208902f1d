package ingest

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"unicode/utf8"

	"gqlstream/ingest/event"
)

func (d *rowDecoder) vertex(row *fileRow, t event.Time, b *event.Batch) (slot int, p *event.Problem) {
	v := event.Vertex{Time: t}
	if v.Vertex, p = d.id(&row.cells[vertexSlot]); p != nil {
		return vertexSlot, p
	}
	if v.Erase, p = row.cells[vertexEraseSlot].flag("false", "true"); p != nil {
		return vertexEraseSlot, p
	}
	var found [event.AttributesPerEventMax]event.Attribute
	attributes := found[:0]
	if c := &row.cells[vertexAttributesSlot]; !c.missing() {
		if attributes, p = d.object(attributes, c); p != nil {
			return vertexAttributesSlot, p
		}
	}
	for i := d.columns.base(); i < len(row.cells) && !v.Erase; i++ {
		c := &row.cells[i]
		if c.kind == absentCell {
			continue
		}
		value, p := d.attribute(c)
		if p == nil {
			attributes, p = addAttribute(attributes, d.columns.ours(d.columns.names[i]), value)
		}
		if p != nil {
			return i, p
		}
	}
	v.Vertex.Name = keepText(&d.text, v.Vertex.Name)
	if len(attributes) > 0 {
		v.Attributes = d.attributes.take(len(attributes))
		copy(v.Attributes, attributes)
	}
	b.Vertices = append(b.Vertices, v)
	return noSlot, nil
}

// addAttribute adds a key, which lives as long as the file is read.
func addAttribute(to []event.Attribute, key string, value event.Value) ([]event.Attribute, *event.Problem) {
	if !soundName(key) {
		return to, &event.Problem{Reason: event.BadID, Detail: "its name must be 1 to 256 bytes of UTF-8"}
	}
	if len(to) == event.AttributesPerEventMax {
		return to, &event.Problem{
			Reason: event.TooLarge,
			Detail: "more than " + strconv.Itoa(event.AttributesPerEventMax) + " attributes",
		}
	}
	return append(to, event.Attribute{Key: key, Value: value}), nil
}

// attribute reads the value of an attribute. A text cell of CSV holds a number
// or a boolean when it reads as one in JSON, else text.
func (d *rowDecoder) attribute(c *cell) (v event.Value, p *event.Problem) {
	if c.unknown() {
		return event.Value{}, nil
	}
	switch c.kind {
	case uintCell:
		return event.Value{Kind: event.NumberValue, Number: float64(c.integer)}, nil
	case numberCell:
		if math.IsInf(c.number, 0) {
			return v, c.wants(event.NotFinite, "a finite number")
		}
		return event.Value{Kind: event.NumberValue, Number: c.number}, nil
	case boolCell:
		return event.Value{Kind: event.BoolValue, Number: float64(c.integer)}, nil
	case timeCell:
		return event.Value{Kind: event.StringValue, Text: event.Time(c.integer).String()}, nil
	case textCell:
		if d.columns.untyped {
			if v, ok := typedText(c.text); ok {
				return v, nil
			}
		}
		if len(c.text) > event.AttributeTextBytesMax {
			return v, c.wants(event.TooLarge, "at most "+strconv.Itoa(event.AttributeTextBytesMax)+" bytes")
		}
		if !utf8.ValidString(c.text) {
			return v, c.wants(event.BadValue, "UTF-8")
		}
		return event.Value{Kind: event.StringValue, Text: keepText(&d.text, c.text)}, nil
	}
	return v, c.wants(event.BadValue, "text, a number or a boolean")
}

// typedText reads the text of a CSV cell as a JSON number or boolean.
func typedText(s string) (event.Value, bool) {
	switch {
	case s == "true":
		return event.Value{Kind: event.BoolValue, Number: 1}, true
	case s == "false":
		return event.Value{Kind: event.BoolValue}, true
	case s[0] != '-' && s[0]-'0' > 9:
		return event.Value{}, false
	}
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || !json.Valid([]byte(s)) {
		return event.Value{}, false
	}
	return event.Value{Kind: event.NumberValue, Number: x}, true
}

// object reads the attributes of a JSON object, in its order.
func (d *rowDecoder) object(to []event.Attribute, c *cell) ([]event.Attribute, *event.Problem) {
	if c.kind != objectCell && (c.kind != textCell || !json.Valid([]byte(c.text))) {
		return to, c.wants(event.BadValue, "a JSON object of attributes")
	}
	dec := json.NewDecoder(bytes.NewReader([]byte(c.text)))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return to, c.wants(event.BadValue, "a JSON object of attributes")
	}
	for dec.More() {
		key, _ := dec.Token() // the text is valid
		var x any
		if err := dec.Decode(&x); err != nil {
			return to, c.wants(event.BadValue, "finite numbers")
		}
		var value event.Value
		switch x := x.(type) {
		case nil:
		case string:
			value = event.Value{Kind: event.StringValue, Text: x}
		case float64:
			value = event.Value{Kind: event.NumberValue, Number: x}
		case bool:
			value = event.Value{Kind: event.BoolValue}
			if x {
				value.Number = 1
			}
		default:
			return to, c.wants(event.BadValue, "text, numbers and booleans in it")
		}
		if len(value.Text) > event.AttributeTextBytesMax {
			return to, c.wants(event.TooLarge, "at most "+strconv.Itoa(event.AttributeTextBytesMax)+" bytes")
		}
		var p *event.Problem
		if to, p = addAttribute(to, key.(string), value); p != nil {
			return to, p
		}
	}
	return to, nil
}
