package event

// finish appends the event in the record to b, or says why not.
func (d *Decoder) finish(m *Message, b *Batch) *Problem {
	switch m.Kind {
	case KindEdge:
		return d.finishEdge(m, b)
	case KindLabel:
		return d.finishLabel(m, b)
	case KindPrediction:
		return d.finishPrediction(m, b)
	case KindMember:
		return d.finishMember(m, b)
	case KindVertex:
		return d.finishVertex(m, b)
	default:
		return d.finishControl(m, b)
	}
}

// missing is the problem of a field that the event cannot do without.
func missing(kind Kind, name string) *Problem {
	return problemf(MissingField, "%v event without %s", kind, name)
}

func (d *Decoder) finishEdge(m *Message, b *Batch) *Problem {
	r := &d.rec
	switch {
	case !r.has(fieldSrc):
		return missing(m.Kind, "src")
	case !r.has(fieldDst):
		return missing(m.Kind, "dst")
	}
	op, p := parseOp(KindEdge, r.op)
	if p != nil {
		return p
	}
	b.Edges = append(b.Edges, Edge{
		Src: r.source, Dst: r.target, Weight: 1, TTL: r.ttl,
		Time: r.time, Position: m.Position, Remove: op == 1,
	})
	e := &b.Edges[len(b.Edges)-1]
	if r.has(fieldWeight) {
		e.Weight = r.weight
	}
	if p := checkEdge(e); p != nil {
		b.Edges = b.Edges[:len(b.Edges)-1]
		return p
	}
	return nil
}

func (d *Decoder) finishLabel(m *Message, b *Batch) *Problem {
	r := &d.rec
	switch {
	case !r.has(fieldVertex):
		return missing(m.Kind, "vertex")
	case !r.has(fieldClass):
		return missing(m.Kind, "class (null withdraws a label)")
	}
	l := Label{
		Vertex: r.source, Class: r.class, Role: r.role, TTL: r.ttl, Time: r.time, Position: m.Position,
	}
	if l.Class == NoClass {
		l.TTL = 0 // nothing is left that could end
	}
	b.Labels = append(b.Labels, l)
	return nil
}

func (d *Decoder) finishPrediction(m *Message, b *Batch) *Problem {
	r := &d.rec
	classOnly := r.has(fieldClass) && r.class != NoClass
	switch {
	case !r.has(fieldVertex):
		return missing(m.Kind, "vertex")
	case !r.has(fieldProbabilities) && !classOnly:
		return missing(m.Kind, "probabilities or class")
	case r.has(fieldProbabilities) && classOnly:
		return problemf(BadValue, "probabilities and class exclude each other")
	}
	e := Prediction{Vertex: r.source}
	if classOnly {
		e.Units = d.certain(b, r.class)
	} else {
		if r.given != d.k {
			return d.wrongClasses(r.given)
		}
		var p *Problem
		if e, p = d.newPrediction(b, r.source, d.probabilities); p != nil {
			return p
		}
	}
	e.Version, e.TTL, e.Time, e.Position = r.version, r.ttl, r.time, m.Position
	b.Predictions = append(b.Predictions, e)
	return nil
}

func (d *Decoder) finishMember(m *Message, b *Batch) *Problem {
	r := &d.rec
	switch {
	case !r.has(fieldCommunity):
		return missing(m.Kind, "community")
	case !r.has(fieldVertex):
		return missing(m.Kind, "vertex")
	}
	op, p := parseOp(KindMember, r.op)
	if p != nil {
		return p
	}
	count := uint32(1)
	if r.has(fieldMultiplicity) {
		count = r.count
	}
	if op == 1 {
		count = 0
	}
	b.Members = append(b.Members, Member{
		Community: r.name, Vertex: r.source, Multiplicity: count,
		Time: r.time, Position: m.Position,
	})
	return nil
}

func (d *Decoder) finishVertex(m *Message, b *Batch) *Problem {
	r := &d.rec
	switch {
	case !r.has(fieldVertex):
		return missing(m.Kind, "vertex")
	case r.erase && len(r.attributes) > 0:
		return problemf(BadValue, "erase and attributes exclude each other")
	}
	b.Vertices = append(b.Vertices, Vertex{
		Vertex: r.source, Attributes: b.keepAttributes(r.attributes), Erase: r.erase,
		Time: r.time, Position: m.Position,
	})
	return nil
}

func (d *Decoder) finishControl(m *Message, b *Batch) *Problem {
	r := &d.rec
	if !r.has(fieldOp) {
		return missing(m.Kind, "op")
	}
	return appendControl(b, r.op, Control{Config: r.config, Time: r.time, Position: m.Position})
}

// appendControl appends c with the operation that op names.
func appendControl(b *Batch, op string, c Control) *Problem {
	i, p := parseOp(KindControl, op)
	if p != nil {
		return p
	}
	c.Op = Op(i)
	switch {
	case c.Op == Configure && c.Config == nil:
		return missing(KindControl, "config, which configure needs")
	case c.Op != Configure && c.Config != nil:
		return problemf(BadValue, "only configure has a config, not %v", c.Op)
	}
	b.Controls = append(b.Controls, c)
	return nil
}
