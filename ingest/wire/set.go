package wire

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"gqlstream/ingest/event"
)

// set writes the value of a cell into a field of the draft's event, or returns a problem. A null
// is no value, except for a class, which it withdraws.
func (d *Decoder) set(f form, s *fieldSpec, r *draft, c *Cell) (p *event.Problem) {
	long := c.Kind == TextCell && len(c.Text) > numberTextMax &&
		(s.holds == &timeType || s.holds == &ttlType)
	if long || !s.holds.accepts[f].holds(c.Kind) {
		return s.unfit(f, c)
	}
	r.seen |= 1 << s.field
	var word int
	switch v := s.value(d.batch, r.at).(type) {
	case *event.ID:
		*v, p = d.id(f, s, c)
	case *event.Reference:
		v.ID, p = d.id(f, s, c)
		v.Given = p == nil
	case *string:
		*v, p = d.name(f, s, c)
	case *float64:
		p = s.number(f, c, v)
	case *share:
		p = s.number(f, c, &r.share)
	case *event.Time:
		*v, p = d.moment(f, c)
	case *time.Duration:
		*v, p = c.lifetime()
	case *event.Class:
		*v, p = d.class(f, c)
	case nil: // the class of a prediction or a post
		r.class, p = d.class(f, c)
	case *event.Role:
		word, p = s.word(f, c)
		*v = event.Role(word)
	case *event.Op:
		word, p = s.word(f, c)
		*v = event.Op(word)
	case *leaving:
		word, p = s.word(f, c)
		r.leaves = word == 1
	case *bool:
		word, p = s.word(f, c)
		*v = word == 1
	case *uint32:
		*v, p = s.count(f, c)
	case *[]uint32:
		r.probabilities, r.given = c.List, c.Count
		if c.Wrong > 0 && f == arrowForm {
			p = missing(r.kind, "some of its probabilities")
		} else if c.Wrong > 0 {
			p = event.Problemf(event.BadValue, "probability of class %d is not a number", c.Wrong-1)
		}
	case *[]event.Attribute:
		p = d.attributeObject(r, s, f, c)
	case *json.RawMessage:
		*v, p = d.configText(c)
	default:
		panic(fmt.Sprintf("wire: no cell is read into a %T", v))
	}
	return p
}

// count reads a whole number.
func (s *fieldSpec) count(f form, c *Cell) (uint32, *event.Problem) {
	n, ok := c.Whole()
	if !ok || n > math.MaxUint32 {
		return 0, s.unfit(f, c)
	}
	return uint32(n), nil
}

// id reads a vertex id.
func (d *Decoder) id(f form, s *fieldSpec, c *Cell) (event.ID, *event.Problem) {
	switch c.Kind {
	case UintCell:
		return event.NumberID(c.Integer), nil
	case NumberCell:
		if n, ok := c.Whole(); ok {
			return event.NumberID(n), nil
		}
		digits, whole := c.wholeText()
		switch {
		case whole && f >= fileForm:
			return fileID(digits, false)
		case f >= fileForm && math.Abs(c.Number) > event.ExactMax:
			return event.ID{}, rounded(c.String())
		}
		return event.ID{}, s.unfit(f, c)
	}
	if p := d.checkName(f, s.name, c.Text); p != nil {
		return event.ID{}, p
	}
	if f >= fileForm {
		return fileID(c.Text, f == textForm)
	}
	return event.ParseID(c.Text), nil
}

// name reads the name of a community or a version.
func (d *Decoder) name(f form, s *fieldSpec, c *Cell) (string, *event.Problem) {
	text := c.Text
	switch {
	case c.Kind == UintCell && text == "":
		text = strconv.FormatUint(c.Integer, 10)
	case c.Kind == NumberCell && f == fileForm:
		if digits, whole := c.wholeText(); whole {
			text = digits
		} else if text = c.String(); math.Abs(c.Number) > event.ExactMax {
			return "", rounded(text)
		}
	case c.Kind == NumberCell && !areDigits(text):
		return "", s.unfit(f, c)
	case f >= fileForm && s.field == fieldCommunity && isRounded(strings.TrimPrefix(text, "-")):
		return "", rounded(text)
	}
	return text, d.checkName(f, s.name, text)
}

// checkName refuses invalid names of vertices, communities, versions and attributes.
func (d *Decoder) checkName(f form, what, s string) *event.Problem {
	switch {
	case len(s) == 0:
		return event.Problemf(event.BadID, "%s is empty", what)
	case len(s) > event.IDBytesLimit:
		return event.Problemf(event.BadID, "%s %s is longer than %d bytes",
			what, Quote(s), event.IDBytesLimit)
	case !utf8.ValidString(s):
		return event.Problemf(event.BadID, "%s %s is not UTF-8", what, Quote(s))
	case f >= fileForm:
		return checkVisible(what, s)
	}
	return nil
}

// number reads a number into x.
func (s *fieldSpec) number(f form, c *Cell, x *float64) (p *event.Problem) {
	var ok bool
	if *x, ok = c.Float(); !ok {
		p = s.unfit(f, c)
	}
	return p
}

// class reads a class: an index, a name, or null for none. In files -1 also means none, unless a
// class has that name, and an index may have a fraction of zero, which pandas writes for columns
// with nulls. If a class has a negative number as its name, numbers in files are names.
func (d *Decoder) class(f form, c *Cell) (event.Class, *event.Problem) {
	text := c.Text
	switch c.Kind {
	case NullCell:
		return event.NoClass, nil
	case BoolCell:
		return d.boolClass(c)
	case UintCell:
		if f >= fileForm && d.signed {
			return d.namedClass(strconv.FormatUint(c.Integer, 10))
		}
		return d.indexClass(c.Integer)
	case NumberCell:
		text = strconv.FormatFloat(c.Number, 'f', -1, 64)
	}
	if len(
		// no name is longer; a table can repeat a text in every row, and looking it up costs its
		// length
		text) > event.IDBytesLimit {
		return 0, event.Problemf(event.UnknownClass, "class %s is not an index from 0 to %d",
			Quote(text), d.k-1)
	}
	if _, named := d.byName[text]; f >= fileForm && !named {
		text = strings.TrimSuffix(text, ".0")
		if _, named = d.byName[text]; !named && text == "-1" {
			return event.NoClass, nil
		}
		if d.signed {
			return d.namedClass(text)
		}
	}
	return d.parseClass(text)
}

// boolClass returns the class named "true" or "false", in any case, or else class 0 for false and
// class 1 for true.
func (d *Decoder) boolClass(c *Cell) (event.Class, *event.Problem) {
	for k, name := range d.classes.Names {
		if strings.EqualFold(name, c.String()) {
			return event.Class(k), nil
		}
	}
	if len(d.classes.Names) > 0 {
		return 0, d.unknownClass(c.String())
	}
	return d.indexClass(c.Integer)
}

// parseClass returns the class with the name or index s.
func (d *Decoder) parseClass(s string) (event.Class, *event.Problem) {
	if c, ok := d.byName[s]; ok {
		return c, nil
	}
	if id := event.ParseID(s); id.Name == "" && s != "" {
		return d.indexClass(id.Number)
	}
	return 0, d.unknownClass(s)
}

// namedClass returns the class with a name.
func (d *Decoder) namedClass(s string) (event.Class, *event.Problem) {
	if c, ok := d.byName[s]; ok {
		return c, nil
	}
	return 0, d.unknownClass(s)
}

// unknownClass returns the problem of an unknown class name.
func (d *Decoder) unknownClass(s string) *event.Problem {
	if len(d.classes.Names) == 0 {
		return event.Problemf(event.UnknownClass, "class %s is not an index from 0 to %d",
			Quote(s), d.k-1)
	}
	return event.Problemf(event.UnknownClass, "class %s: %s", Quote(s), nearest{s, d.classes.Names})
}

// classesListed bounds the classes that an advice lists.
const classesListed = 8

// indexClass returns the class with an index.
func (d *Decoder) indexClass(v uint64) (event.Class, *event.Problem) {
	if v == uint64(d.k) && d.k <= classesListed {
		names := make([]string, d.k)
		for i := range names {
			names[i] = strconv.Itoa(i + 1)
		}
		return 0, event.Problemf(event.UnknownClass, "class %d, want classes 0 to %d; if they "+
			"count from 1, name them: --classes=%s", v, d.k-1, strings.Join(names, ","))
	}
	if v >= uint64(d.k) {
		return 0, event.Problemf(event.UnknownClass, "class %d, want classes 0 to %d",
			v, d.k-1)
	}
	return event.Class(v), nil
}

// word reads one of the words of a field. If numbers and booleans are accepted, 0 and 1 mean the
// first two.
func (s *fieldSpec) word(f form, c *Cell) (int, *event.Problem) {
	n, whole := uint64(0), false
	if f >= fileForm ||
		c.Kind != TextCell { // in messages text is never a number, and can be long in every row
		n, whole = c.Whole()
	}
	switch {
	case c.Kind == BoolCell:
		return int(c.Integer), nil
	case whole && n <= 1:
		return int(n), nil
	case c.Kind == TextCell && slices.Contains(s.words, c.Text):
		return slices.Index(s.words, c.Text), nil
	case f >= fileForm:
		return 0, s.unfit(f, c)
	case c.Kind != TextCell:
		return 0, event.Problemf(event.BadValue, "%s must be 0 or 1", s.name)
	}
	return 0, event.Problemf(event.BadValue, "%s %s: %s",
		s.name, Quote(c.Text), nearest{c.Text, s.words})
}

// attribute adds an attribute to the draft, or returns a problem.
func (d *Decoder) attribute(r *draft, f form, key string, c *Cell) *event.Problem {
	if len(r.attributes) == event.AttributesPerEventMax {
		return event.Problemf(event.TooLarge, "more than %d attributes",
			event.AttributesPerEventMax)
	}
	v, ok := c.attribute(f)
	r.attributes = append(r.attributes, event.Attribute{Key: key, Value: v})
	if p := d.checkName(f, "attribute name", key); p != nil {
		return p
	} else if !ok {
		return event.Problemf(event.BadValue,
			"attribute %s must be a string, a number, a boolean or null, not %s",
			Quote(key), c.String())
	}
	switch n := len(v.Text); {
	case n > event.AttributeTextBytesMax:
		return event.Problemf(event.TooLarge, "attribute %s has %d bytes, at most %d are allowed",
			Quote(key), n, event.AttributeTextBytesMax)
	case !utf8.ValidString(v.Text):
		return event.Problemf(event.BadValue, "attribute %s is not UTF-8", Quote(key))
	case v.Number-v.Number != 0:
		return event.Problemf(event.NotFinite, "attribute %s is %v", Quote(key), v.Number)
	}
	return nil
}

// ParseAttribute returns the text, number or boolean that text means in a vertices table of CSV:
// text that reads as a JSON number is one. A whole number beyond 2^53 is text.
func ParseAttribute(text string) any {
	switch v, _ := (&Cell{Kind: TextCell, Text: text}).attribute(textForm); v.Kind {
	case event.NumberValue:
		return v.Number
	case event.BoolValue:
		return v.Number != 0
	default:
		return v.Text
	}
}

// attribute reads a cell as an attribute value. Text of an untyped file is a number or a boolean if
// it reads as one in JSON. In files NaN, which pandas writes for missing values, is null.
func (c *Cell) attribute(f form) (event.Value, bool) {
	switch {
	case f != textForm:
	case c.Text == "true":
		return event.Value{Kind: event.BoolValue, Number: 1}, true
	case c.Text == "false":
		return event.Value{Kind: event.BoolValue}, true
	case areDigits(strings.TrimPrefix(c.Text, "-")) && isNumber(c.Text):
		return event.WholeValue(c.Text), true
	case isNumber(c.Text):
		whole, fraction, _ := strings.Cut(c.Text, ".")
		x, err := strconv.ParseFloat(c.Text, 64)
		switch {
		case err != nil || math.Abs(x) <= event.ExactMax:
		case areDigits(strings.TrimPrefix(whole, "-")) && strings.Trim(fraction, "0") == "":
			return event.WholeValue(whole), true
		default: // as a number it would equal others whose digits it has lost
			return event.Value{Kind: event.StringValue, Text: c.Text}, true
		}
		if err == nil {
			return event.Value{Kind: event.NumberValue, Number: x}, true
		}
	}
	switch c.Kind {
	case NullCell:
		return event.Value{}, true
	case UintCell:
		if c.Integer > event.ExactMax {
			return event.WholeValue(strconv.FormatUint(c.Integer, 10)), true
		}
		return event.Value{Kind: event.NumberValue, Number: float64(c.Integer)}, true
	case NumberCell:
		if areDigits(strings.TrimPrefix(c.Text, "-")) {
			return event.WholeValue(c.Text), true
		}
		if f >= fileForm && math.IsNaN(c.Number) {
			return event.Value{}, true
		}
		return event.Value{Kind: event.NumberValue, Number: c.Number}, true
	case BoolCell:
		return event.Value{Kind: event.BoolValue, Number: float64(c.Integer)}, true
	case TimeCell:
		return event.Value{Kind: event.StringValue, Text: c.String()}, true
	case TextCell:
		return event.Value{Kind: event.StringValue, Text: c.Text}, true
	}
	return event.Value{}, false
}
