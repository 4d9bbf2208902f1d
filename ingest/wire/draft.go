package wire

import (
	"math"

	"gqlstream/ingest/event"
)

// draft is one event of a batch while it is read. The event has the defaults and the values read
// so far; refusing the draft removes its event from the batch.
type draft struct {
	kind    event.Kind
	at      int            // index of the event in its kind
	seen    uint32         // fields that were given, and not null unless null is a value
	problem *event.Problem // the first one

	leaves        bool        // the operation of a member
	share         float64     // sampling probability pi
	class         event.Class // of a prediction or a post
	probabilities []float64
	given         int // number of probabilities
	attributes    []event.Attribute
}

// has reports whether a field was given.
func (r *draft) has(f field) bool { return r.seen&(1<<f) != 0 }

// refuse keeps the first problem of the event.
func (r *draft) refuse(p *event.Problem) {
	if r.problem == nil {
		r.problem = p
	}
}

// storeCell stores the value of a cell in the draft. A null is ignored, except for a class,
// which it withdraws.
func (d *Decoder) storeCell(f form, s *fieldSpec, r *draft, c *Cell) {
	if c.Kind != NullCell || s.holds.accepts[f].holds(NullCell) {
		r.refuse(d.set(f, s, r, c))
	}
}

// appendEvent appends an event with default values to the batch, and returns its draft.
func (d *Decoder) appendEvent(kind event.Kind) *draft {
	b, r := d.batch, &d.draft
	*r = draft{kind: kind, at: b.Count(kind), attributes: r.attributes[:0]}
	b.Extend(kind)
	switch kind {
	case event.KindEdge:
		b.Edges[r.at].Weight = 1
	case event.KindPost:
		b.Posts[r.at].Weight = 1
	case event.KindMember:
		b.Members[r.at].Multiplicity = 1
	}
	return r
}

// missing returns the problem of an event that lacks a required field.
func missing(kind event.Kind, name string) *event.Problem {
	return event.Problemf(event.MissingField, "%v event without %s", kind, name)
}

// finish completes the event of the draft, which has an index in its message, or returns the
// problem that refuses it. An event without a time gets that of its message. A late event is
// counted, and refused if the policy of its kind says so and it has no other problem.
func (d *Decoder) finish(m *Message, r *draft, index int) *event.Problem {
	if r.problem != nil {
		return r.problem
	}
	position, indexed, at := d.batch.At(m.Kind, r.at)
	*position, *indexed = m.Position, uint32(index)
	if *at == 0 {
		*at = m.Received
	}
	if m.TimeMax != 0 && *at > m.TimeMax {
		return event.Problemf(event.Ahead,
			"its time, %v, is later than %v, which late.ahead allows for its message",
			*at, m.TimeMax)
	}
	late := *at != m.Received &&
		m.Late.IsLate(m.Kind, *at, m.Now) // a time from the message is not the event's own
	if p := d.complete(r); p != nil || !late {
		return p
	}
	return m.Late.Problem(d.batch, m.Kind, *at, m.Now)
}

// complete brings the event of the draft into canonical form, or returns its problem.
func (d *Decoder) complete(r *draft) *event.Problem {
	b := d.batch
	if p := r.lacks(); p != nil {
		return p
	}
	switch r.kind {
	case event.KindEdge:
		return checkEdge(&b.Edges[r.at])
	case event.KindLabel:
		return r.completeLabel(&b.Labels[r.at])
	case event.KindPrediction:
		return d.completeUnits(r, &b.Predictions[r.at].Units)
	case event.KindPost:
		e := &b.Posts[r.at]
		var p *event.Problem
		if e.Weight, p = checkWeight(e.Weight); p != nil {
			return p
		}
		return d.completeUnits(r, &e.Units)
	case event.KindMember:
		if r.leaves {
			b.Members[r.at].Multiplicity = 0
		}
	case event.KindVertex:
		e := &b.Vertices[r.at]
		if e.Erase && len(r.attributes) > 0 {
			return event.Problemf(event.BadValue, "erase and attributes exclude each other")
		}
		e.Attributes = b.KeepAttributes(r.attributes)
	case event.KindControl:
		switch op := b.Controls[r.at].Op; {
		case op == event.Configure && !r.has(fieldConfig):
			return missing(r.kind, "config, which configure needs")
		case op != event.Configure && r.has(fieldConfig):
			return event.Problemf(event.BadValue, "only configure has a config, not %v", op)
		case op == event.Note && !r.has(fieldText):
			return missing(r.kind, "text, which note needs")
		case op == event.SetClock && b.Controls[r.at].Time == 0:
			return missing(r.kind, "time, which clock needs where step.time is event")
		case op != event.Note && r.has(fieldText):
			return event.Problemf(event.BadValue, "only note has a text, not %v", op)
		}
	}
	return nil
}

// lacks returns the problem of an event without a required field.
func (r *draft) lacks() *event.Problem {
	for i := range fields[r.kind] {
		switch s := &fields[r.kind][i]; {
		case !s.required || r.has(s.field):
		case s.field == fieldClass:
			return missing(r.kind, "class (null withdraws a label)")
		default:
			return missing(r.kind, s.name)
		}
	}
	return nil
}

// completeLabel sets the sampling probability of an audit label, which no other label may have, and
// clears the fields that a withdrawal does not use.
func (r *draft) completeLabel(l *event.Label) *event.Problem {
	units := math.Round(r.share * event.One)
	switch audit := l.Role == event.Audit; {
	case !audit && r.has(fieldPi):
		return event.Problemf(event.BadValue, "only the role audit has pi, not %v", l.Role)
	case !audit:
	case l.Class == event.NoClass: // a row of gqlstream ask that has not been filled in
		return missing(event.KindLabel, "class, which audit needs")
	case !r.has(fieldPi):
		return missing(event.KindLabel,
			"pi, the probability of having been drawn, which audit needs")
	case r.share-r.share != 0:
		return event.Problemf(event.NotFinite, "pi is %v", r.share)
	case !(units >= event.PiMin && units <= event.One):
		return event.Problemf(event.BadValue, "pi %v must be at least 2^-20 and at most 1", r.share)
	default:
		l.Pi = uint32(units)
	}
	if l.Class == event.NoClass {
		l.TTL = 0 // no label is left to end
	}
	return nil
}

// completeUnits computes units from the probabilities or the class of a prediction or a post.
func (d *Decoder) completeUnits(r *draft, units *[]uint32) *event.Problem {
	certain := r.has(fieldClass) && r.class != event.NoClass
	switch {
	case !r.has(fieldProbabilities) && !certain:
		return missing(r.kind, "probabilities or class")
	case r.has(fieldProbabilities) && certain:
		return event.Problemf(event.BadValue, "probabilities and class exclude each other")
	case !certain && r.given != d.k:
		return event.Problemf(event.WrongClasses, "%d probabilities for %d classes", r.given, d.k)
	}
	*units = d.batch.Units(d.k)
	if certain {
		(*units)[r.class] = event.One
		return nil
	}
	return event.Quantise(*units, r.probabilities[:d.k])
}

// checkEdge brings e into canonical form (weight rounded to its grain; no weight or time to live on
// a removal) or returns its problem. Its ids have been checked.
func checkEdge(e *event.Edge) *event.Problem {
	if e.Src.Number == e.Dst.Number && e.Src.Name == e.Dst.Name {
		return event.Problemf(event.SelfLoop, "edge from %s to itself", Quote(e.Src.String()))
	}
	if e.Remove {
		e.Weight, e.TTL = 0, 0
		return nil
	}
	w, p := checkWeight(e.Weight)
	if p == nil {
		e.Weight = w
	}
	return p
}

// checkWeight returns the weight of an edge, rounded to its grain, or its problem.
func checkWeight(x float64) (float64, *event.Problem) {
	if x-x != 0 {
		return x, event.Problemf(event.NotFinite, "weight is %v", x)
	}
	w := event.RoundWeight(x)
	if !(w > 0 && w <= event.WeightMax) {
		return x, event.Problemf(
			event.BadWeight, "weight %v must be at least 2^-21 and at most 2^24", x)
	}
	return w, nil
}
