package event

import (
	"bytes"
	"time"
)

// record is one JSON event while it is read.
type record struct {
	seen       uint32 // fields that were given and not null
	twice      uint32 // fields that were given, null or not
	problem    *Problem
	source     ID // of an edge, or the vertex
	target     ID
	op         string
	name       string // of a community
	version    string
	weight     float64
	given      int    // probabilities
	count      uint32 // multiplicity
	class      Class
	role       Role
	erase      bool
	ttl        time.Duration
	time       Time
	config     []byte
	attributes []Attribute
}

// has reports whether a field was given and not null.
func (r *record) has(f field) bool { return r.seen&(1<<f) != 0 }

// refuse keeps the first problem of the event.
func (r *record) refuse(p *Problem) {
	if r.problem == nil {
		r.problem = p
	}
}

// decodeJSON reads one event or an array of events. A sniffed message may also
// turn out to be one event a line.
func (d *Decoder) decodeJSON(m *Message, b *Batch, sniffed bool) *Problem {
	if p := checkText(m.Payload); p != nil {
		return p
	}
	d.scan = scanner{buf: m.Payload, batch: b}
	s, at := &d.scan, b.mark()
	if s.peek() == '[' {
		d.jsonArray(m, b)
	} else if d.jsonEvent(m, b, 1) {
		if s.peek(); s.pos < len(s.buf) && sniffed {
			b.rollback(at)
			return d.jsonLines(m, b)
		}
	}
	if s.problem == nil {
		if s.peek(); s.pos < len(s.buf) {
			s.fail("text after the end of the message")
		}
	}
	return s.problem
}

// jsonArray reads an array of events.
func (d *Decoder) jsonArray(m *Message, b *Batch) bool {
	s := &d.scan
	s.pos++
	if s.peek() == ']' {
		s.pos++
		return true
	}
	for {
		if s.event == d.eventsMax(m.Kind) {
			return d.tooMany(m.Kind)
		}
		if !d.jsonEvent(m, b, 2) {
			return false
		}
		s.event++
		if more, ok := s.next(']'); !more {
			return ok
		}
	}
}

// decodeNDJSON reads one event a line. Blank lines are not events.
func (d *Decoder) decodeNDJSON(m *Message, b *Batch) *Problem {
	if p := checkText(m.Payload); p != nil {
		return p
	}
	d.scan = scanner{batch: b}
	return d.jsonLines(m, b)
}

// jsonLines reads one event a line from the payload of m, from its start. The
// events of b are as they were before the message.
func (d *Decoder) jsonLines(m *Message, b *Batch) *Problem {
	s := &d.scan
	for rest, at := m.Payload, 0; len(rest) > 0; {
		line := rest
		if end := bytes.IndexByte(rest, '\n'); end >= 0 {
			line = rest[:end+1]
		}
		rest = rest[len(line):]
		s.buf, s.pos, s.base = line, 0, at
		at += len(line)
		if s.peek(); s.pos == len(line) {
			continue
		}
		if s.event == d.eventsMax(m.Kind) {
			d.tooMany(m.Kind)
		} else if d.jsonEvent(m, b, 1) {
			if s.peek(); s.pos < len(line) {
				s.fail("text after the event on its line")
			}
		}
		if s.problem != nil {
			break
		}
		s.event++
	}
	return s.problem
}

// tooMany fails because the message holds more events than are allowed.
func (d *Decoder) tooMany(kind Kind) bool {
	d.scan.problem = problemf(TooLarge, "event %d, byte %d: more than %d events in a message",
		d.scan.event, d.scan.base+d.scan.pos, d.eventsMax(kind))
	return false
}

// jsonEvent reads one event, which makes depth lists, and appends it to b or
// refuses it. It returns false on text that is not JSON.
func (d *Decoder) jsonEvent(m *Message, b *Batch, depth int) bool {
	s, r := &d.scan, &d.rec
	if s.peek() != '{' {
		return s.unexpected("the object of an event")
	}
	start := s.pos
	s.pos++
	*r = record{attributes: r.attributes[:0]}
	if s.peek() == '}' {
		s.pos++
	} else if !d.jsonMembers(m.Kind, depth) {
		return false
	}
	if r.problem == nil {
		if r.time == 0 {
			r.time = m.Received
		}
		r.problem = d.finishInTime(m, b)
	}
	if r.problem != nil {
		b.refuse(m, s.event, r.problem, s.buf[start:s.pos])
	}
	return true
}

// finishInTime does finish, but for an event that comes too late, if it is sound.
func (d *Decoder) finishInTime(m *Message, b *Batch) *Problem {
	if !m.isLate(d.rec.time) {
		return d.finish(m, b)
	}
	at := b.mark()
	if p := d.finish(m, b); p != nil {
		return p
	}
	if m.Late.Refuses(m.Kind) {
		b.rollback(at)
	}
	return b.late(m, d.rec.time)
}

// jsonMembers reads the members of an event's object into the record.
func (d *Decoder) jsonMembers(kind Kind, depth int) bool {
	s, r := &d.scan, &d.rec
	for at := 0; ; {
		key, ok := s.str()
		if !ok || !s.expect(':') {
			return false
		}
		var t token
		if i := findField(kind, key, at); i < 0 {
			r.refuse(problemf(UnknownField, "%v events have no field %s: %s",
				kind, quote(key), Nearest(key, fieldNames(kind))))
			ok = s.value(&t, depth)
		} else {
			spec := &fields[kind][i]
			if r.twice&(1<<spec.field) != 0 {
				return s.fail("field %q given twice", spec.name)
			}
			r.twice |= 1 << spec.field
			ok = d.jsonField(spec.field, &t, depth)
			at = i + 1
		}
		if !ok {
			return false
		}
		if more, ok := s.next('}'); !more {
			return ok
		}
	}
}

// jsonField reads the value of a field into the record.
func (d *Decoder) jsonField(f field, t *token, depth int) bool {
	s, r := &d.scan, &d.rec
	c := s.peek()
	start := s.pos
	switch {
	case f == fieldProbabilities && c == '[':
		r.seen |= 1 << f
		return d.jsonProbabilities(depth)
	case f == fieldAttributes && c == '{':
		r.seen |= 1 << f
		return d.jsonAttributes(depth)
	}
	if !s.value(t, depth) {
		return false
	}
	if t.kind == 'n' && f != fieldClass {
		return true // the same as not given
	}
	r.seen |= 1 << f
	if f == fieldConfig && t.kind == '{' {
		r.config = s.buf[start:s.pos]
		return true
	}
	if p := d.setField(f, t); p != nil {
		r.refuse(p)
	}
	return true
}

// jsonProbabilities reads the array at hand into d.probabilities, at most one
// more than there are classes; d.rec.given says how many there were.
func (d *Decoder) jsonProbabilities(depth int) bool {
	s, r := &d.scan, &d.rec
	if !s.enter(depth + 1) {
		return false
	}
	d.probabilities = d.probabilities[:0]
	r.given = 0
	if s.peek() == ']' {
		s.pos++
		return true
	}
	for {
		var t token
		if !s.value(&t, depth+1) {
			return false
		}
		if t.kind != '0' {
			r.refuse(problemf(BadValue, "probability of class %d is not a number", r.given))
		} else if len(d.probabilities) < d.k {
			d.probabilities = append(d.probabilities, t.num.float())
		}
		r.given++
		if more, ok := s.next(']'); !more {
			return ok
		}
	}
}

// jsonAttributes reads the object at hand into the record.
func (d *Decoder) jsonAttributes(depth int) bool {
	s, r := &d.scan, &d.rec
	if !s.enter(depth + 1) {
		return false
	}
	if s.peek() == '}' {
		s.pos++
		return true
	}
	for {
		key, ok := s.str()
		if !ok || !s.expect(':') {
			return false
		}
		for i := range r.attributes {
			if r.attributes[i].Key == key {
				return s.fail("attribute %s given twice", quote(key))
			}
		}
		var t token
		if !s.value(&t, depth+1) {
			return false
		}
		if len(r.attributes) == AttributesPerEventMax {
			r.refuse(problemf(TooLarge, "more than %d attributes", AttributesPerEventMax))
		} else {
			v, p := tokenAttribute(key, &t)
			if p == nil {
				p = d.checkAttribute(key, v)
			}
			if p != nil {
				r.refuse(p)
			}
			r.attributes = append(r.attributes, Attribute{Key: key, Value: v})
		}
		if more, ok := s.next('}'); !more {
			return ok
		}
	}
}
