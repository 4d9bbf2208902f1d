package event

import (
	"math"
	"unicode/utf8"
)

// setField sets a field of the record from its value, which is not null unless
// the field is a class.
func (d *Decoder) setField(f field, t *token) (p *Problem) {
	r := &d.rec
	switch f {
	case fieldSrc, fieldVertex:
		r.source, p = d.tokenID(t)
	case fieldDst:
		r.target, p = d.tokenID(t)
	case fieldTime:
		r.time, p = tokenTime(t)
	case fieldWeight:
		if t.kind != '0' {
			return badType("weight", "a number", t)
		}
		r.weight = t.num.float()
	case fieldOp:
		r.op, p = tokenText("op", t)
	case fieldTTL:
		switch t.kind {
		case '0':
			r.ttl, p = numberTTL(&t.num)
		case '"':
			r.ttl, p = parseTTL(t.text)
		default:
			p = badType("ttl", "a number of seconds or a duration", t)
		}
	case fieldClass:
		r.class, p = d.tokenClass(t)
	case fieldRole:
		p = d.setRole(t)
	case fieldVersion:
		r.version, p = d.tokenName("version", t)
	case fieldCommunity:
		r.name, p = d.tokenName("community", t)
	case fieldMultiplicity:
		r.count, p = tokenCount(t)
	case fieldErase:
		r.erase = t.kind == 't'
		if t.kind != 't' && t.kind != 'f' {
			p = badType("erase", "true or false", t)
		}
	case fieldProbabilities:
		p = badType("probabilities", "an array of numbers", t)
	case fieldAttributes:
		p = badType("attributes", "an object", t)
	case fieldConfig:
		p = badType("config", "an object", t)
	}
	return p
}

// badType is the problem of a value of the wrong JSON type.
func badType(name, wanted string, t *token) *Problem {
	return problemf(BadValue, "%s must be %s, not %s", name, wanted, t.typeName())
}

// typeName returns the JSON type of a value.
func (t *token) typeName() string {
	switch t.kind {
	case '"':
		return "a string"
	case '0':
		return "the number " + t.num.text[:min(len(t.num.text), detailTextBytesMax)]
	case 't', 'f':
		return "a boolean"
	case 'n':
		return "null"
	case '{':
		return "an object"
	}
	return "an array"
}

// tokenID reads a vertex id: a string or an unsigned integer.
func (d *Decoder) tokenID(t *token) (ID, *Problem) {
	switch t.kind {
	case '0':
		if v, ok := t.num.uint(); ok {
			return NumberID(v), nil
		}
	case '"':
		if n := len(t.text); n == 0 || n > d.config.IDBytesMax {
			return ID{}, d.checkName("vertex id", t.text)
		}
		return ParseID(t.text), nil // the message is UTF-8
	}
	return ID{}, problemf(BadID, "vertex id must be a string or an unsigned 64-bit integer, not %s",
		t.typeName())
}

// tokenName reads a name: a string, or an unsigned integer for its digits.
func (d *Decoder) tokenName(what string, t *token) (string, *Problem) {
	switch t.kind {
	case '"':
		return t.text, d.checkName(what, t.text)
	case '0':
		if t.num.integer && !t.num.negative {
			return t.num.text, d.checkName(what, t.num.text)
		}
	}
	return "", problemf(BadID, "%s must be a string or an unsigned integer, not %s",
		what, t.typeName())
}

// tokenText reads a word, which is not empty.
func tokenText(name string, t *token) (string, *Problem) {
	if t.kind != '"' {
		return "", badType(name, "a string", t)
	}
	if t.text == "" {
		return "", problemf(BadValue, "%s is empty", name)
	}
	return t.text, nil
}

// tokenTime reads a time.
func tokenTime(t *token) (Time, *Problem) {
	switch t.kind {
	case '0':
		return numberTime(&t.num)
	case '"':
		return parseTime(t.text)
	}
	return 0, problemf(BadTime, "time must be RFC 3339 or Unix seconds, not %s", t.typeName())
}

// tokenClass reads a class: an index, a name, or null for none.
func (d *Decoder) tokenClass(t *token) (Class, *Problem) {
	switch t.kind {
	case 'n':
		return NoClass, nil
	case '"':
		return d.parseClass(t.text)
	case '0':
		if v, ok := t.num.uint(); ok {
			return d.indexClass(v)
		}
		return 0, problemf(UnknownClass, "class must be an index from 0 to %d or a name, not %s",
			d.k-1, t.typeName())
	}
	return 0, badType("class", "an index, a name or null", t)
}

// setRole sets the role of the record.
func (d *Decoder) setRole(t *token) *Problem {
	s, p := tokenText("role", t)
	if p != nil {
		return p
	}
	d.rec.role, p = parseRole(s)
	return p
}

// parseRole reads a role.
func parseRole(s string) (Role, *Problem) {
	i, ok := word(roleWords, s)
	if !ok {
		return 0, problemf(BadValue, "role %s: %s", quote(s), Nearest(s, roleWords))
	}
	return Role(i), nil
}

// parseOp reads an operation of a kind; "", which is not given, is the first.
func parseOp(kind Kind, s string) (int, *Problem) {
	i, ok := word(opWords[kind], s)
	if !ok && s != "" {
		return 0, problemf(BadValue, "op %s: %s", quote(s), Nearest(s, opWords[kind]))
	}
	return i, nil
}

// tokenCount reads a multiplicity.
func tokenCount(t *token) (uint32, *Problem) {
	if t.kind != '0' {
		return 0, badType("multiplicity", "an integer", t)
	}
	f := t.num.float()
	if f != math.Trunc(f) || f < 0 || f > math.MaxUint32 {
		return 0, problemf(BadValue, "multiplicity %s must be an integer from 0 to %d",
			quote(t.num.text), uint32(math.MaxUint32))
	}
	return uint32(f), nil
}

// tokenAttribute reads the value of an attribute.
func tokenAttribute(key string, t *token) (Value, *Problem) {
	switch t.kind {
	case '"':
		return Value{Kind: StringValue, Text: t.text}, nil
	case '0':
		return Value{Kind: NumberValue, Number: t.num.float()}, nil
	case 't':
		return Value{Kind: BoolValue, Number: 1}, nil
	case 'f':
		return Value{Kind: BoolValue}, nil
	case 'n':
		return Value{}, nil
	}
	return Value{}, badType("attribute "+quote(key), "a string, a number, a boolean or null", t)
}

// checkAttribute refuses attributes that are out of bounds.
func (d *Decoder) checkAttribute(key string, v Value) *Problem {
	if p := d.checkName("attribute name", key); p != nil {
		return p
	}
	if n := len(v.Text); n > AttributeTextBytesMax {
		return problemf(TooLarge, "attribute %s has %d bytes, at most %d are allowed",
			quote(key), n, AttributeTextBytesMax)
	}
	if !utf8.ValidString(v.Text) {
		return problemf(BadValue, "attribute %s is not UTF-8", quote(key))
	}
	if math.IsNaN(v.Number) || math.IsInf(v.Number, 0) {
		return problemf(NotFinite, "attribute %s is %v", quote(key), v.Number)
	}
	return nil
}
