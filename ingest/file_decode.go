package ingest

import (
	"math"
	"strconv"
	"strings"

	"gqlstream/ingest/event"
)

// noSlot blames no column in particular.
const noSlot = -1

// row appends the event that a row holds and returns its time, or returns the
// slot to blame and the problem.
func (d *rowDecoder) row(row *fileRow, b *event.Batch) (event.Time, int, *event.Problem) {
	t, p := row.cells[timeSlot].when()
	if p != nil {
		return 0, timeSlot, p
	}
	slot := noSlot
	switch d.columns.kind {
	case event.KindEdge:
		slot, p = d.edge(row, t, b)
	case event.KindLabel:
		slot, p = d.label(row, t, b)
	case event.KindPrediction:
		slot, p = d.prediction(row, t, b)
	case event.KindMember:
		slot, p = d.member(row, t, b)
	case event.KindVertex:
		slot, p = d.vertex(row, t, b)
	}
	return t, slot, p
}

func (d *rowDecoder) edge(row *fileRow, t event.Time, b *event.Batch) (slot int, p *event.Problem) {
	e := event.Edge{Weight: 1, Time: t, Remove: d.remove}
	if e.Src, p = d.id(&row.cells[edgeSrcSlot]); p != nil {
		return edgeSrcSlot, p
	}
	if e.Dst, p = d.id(&row.cells[edgeDstSlot]); p != nil {
		return edgeDstSlot, p
	}
	if c := &row.cells[edgeOpSlot]; !d.remove {
		if e.Remove, p = c.flag("add", "remove"); p != nil {
			return edgeOpSlot, p
		}
	}
	if c := &row.cells[edgeWeightSlot]; !e.Remove && !c.missing() {
		if e.Weight, p = c.float(); p != nil {
			return edgeWeightSlot, p
		}
	}
	if e.TTL, p = row.cells[edgeTTLSlot].ttl(); p != nil {
		return edgeTTLSlot, p
	}
	if err := d.decoder.CheckEdge(&e); err != nil {
		return noSlot, asProblem(err)
	}
	e.Src.Name, e.Dst.Name = keepText(&d.text, e.Src.Name), keepText(&d.text, e.Dst.Name)
	b.Edges = append(b.Edges, e)
	return noSlot, nil
}

func (d *rowDecoder) label(row *fileRow, t event.Time, b *event.Batch) (slot int, p *event.Problem) {
	l := event.Label{Time: t}
	if l.Vertex, p = d.id(&row.cells[vertexSlot]); p != nil {
		return vertexSlot, p
	}
	if l.Class, p = d.class(&row.cells[labelClassSlot], true); p != nil {
		return labelClassSlot, p
	}
	train, p := row.cells[labelRoleSlot].flag("calibrate", "train")
	if p != nil {
		return labelRoleSlot, p
	}
	if train {
		l.Role = event.Train
	}
	if l.TTL, p = row.cells[labelTTLSlot].ttl(); p != nil {
		return labelTTLSlot, p
	}
	if l.Class == event.NoClass {
		l.TTL = 0
	}
	l.Vertex.Name = keepText(&d.text, l.Vertex.Name)
	b.Labels = append(b.Labels, l)
	return noSlot, nil
}

func (d *rowDecoder) prediction(row *fileRow, t event.Time, b *event.Batch) (slot int, p *event.Problem) {
	vertex, p := d.id(&row.cells[vertexSlot])
	if p != nil {
		return vertexSlot, p
	}
	version := d.version
	if c := &row.cells[predictionVersionSlot]; !c.missing() {
		if version, p = c.name("a model version"); p != nil {
			return predictionVersionSlot, p
		}
	}
	if slot, p = d.probabilities(row); p != nil {
		return slot, p
	}
	prediction, err := d.decoder.NewPrediction(b, vertex, d.p)
	if err != nil {
		return noSlot, asProblem(err)
	}
	if prediction.TTL, p = row.cells[predictionTTLSlot].ttl(); p != nil {
		return predictionTTLSlot, p
	}
	prediction.Vertex.Name = keepText(&d.text, vertex.Name)
	prediction.Version, prediction.Time = keepText(&d.text, version), t
	b.Predictions = append(b.Predictions, prediction)
	return noSlot, nil
}

// probabilities reads them into d.p: from p0, p1, ... if any of them is there,
// else from the list, else from the class.
func (d *rowDecoder) probabilities(row *fileRow) (int, *event.Problem) {
	d.p = d.p[:0]
	base, given := d.columns.base(), false
	for i := base; i < len(row.cells) && !given; i++ {
		given = !row.cells[i].missing()
	}
	switch {
	case given:
		for i := base; i < len(row.cells); i++ {
			x, p := row.cells[i].float()
			if p != nil {
				return i, p
			}
			d.p = append(d.p, x)
		}
	case row.cells[predictionListSlot].kind == listCell:
		d.p = append(d.p, row.cells[predictionListSlot].list...)
	case !row.cells[predictionListSlot].missing():
		return predictionListSlot, row.cells[predictionListSlot].wants(event.BadValue, "a list of numbers")
	default:
		class, p := d.class(&row.cells[predictionClassSlot], false)
		if p != nil {
			return predictionClassSlot, p
		}
		d.p = append(d.p, make([]float64, d.classes)...)
		d.p[class] = 1
	}
	return noSlot, nil
}

func (d *rowDecoder) member(row *fileRow, t event.Time, b *event.Batch) (slot int, p *event.Problem) {
	m := event.Member{Multiplicity: 1, Time: t}
	if m.Community, p = row.cells[memberCommunitySlot].name("a community"); p != nil {
		return memberCommunitySlot, p
	}
	if m.Vertex, p = d.id(&row.cells[vertexSlot]); p != nil {
		return vertexSlot, p
	}
	if c := &row.cells[memberMultiplicitySlot]; !c.missing() {
		n, ok := c.whole()
		if !ok || n > math.MaxUint32 {
			return memberMultiplicitySlot, c.wants(event.BadValue, "a whole number from 0 to 2^32-1")
		}
		m.Multiplicity = uint32(n)
	}
	leave, p := row.cells[memberOpSlot].flag("join", "leave")
	if p != nil {
		return memberOpSlot, p
	}
	if leave {
		m.Multiplicity = 0
	}
	m.Community, m.Vertex.Name = keepText(&d.text, m.Community), keepText(&d.text, m.Vertex.Name)
	b.Members = append(b.Members, m)
	return noSlot, nil
}

// id reads a vertex id, which aliases the row.
func (d *rowDecoder) id(c *cell) (event.ID, *event.Problem) {
	switch c.kind {
	case textCell:
		id, err := d.decoder.ParseVertex(c.text)
		return id, asProblem(err)
	case uintCell:
		return event.NumberID(c.integer), nil
	case numberCell:
		if n, ok := c.whole(); ok {
			return event.NumberID(n), nil
		}
	}
	return event.ID{}, c.wants(event.BadID, "text or a whole number")
}

// class reads a class. Where a missing class makes sense, null and -1 are it.
func (d *rowDecoder) class(c *cell, orNone bool) (event.Class, *event.Problem) {
	text := c.text
	switch {
	case c.kind == absentCell, c.unknown() && !orNone:
		return 0, c.wants(event.MissingField, "a class")
	case c.unknown():
		return event.NoClass, nil
	case c.kind == uintCell, c.kind == numberCell:
		if n, ok := c.whole(); ok && n < uint64(d.classes) {
			return event.Class(n), nil
		}
		text = strconv.FormatFloat(c.number, 'f', -1, 64)
		if c.kind == uintCell {
			text = c.String()
		}
	case c.kind != textCell:
		return 0, c.wants(event.BadValue, "a class")
	}
	class, err := d.decoder.ParseClass(text)
	if err == nil {
		return class, nil
	}
	whole, float := strings.CutSuffix(text, ".0") // an integer column with nulls, by pandas
	if whole == "-1" && orNone {
		return event.NoClass, nil
	}
	if float {
		if class, err := d.decoder.ParseClass(whole); err == nil {
			return class, nil
		}
	}
	return 0, asProblem(err)
}
