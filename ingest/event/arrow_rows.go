package event

import "slices"

// arrowRows appends the rows of the record batch at hand to b.
func (d *Decoder) arrowRows(m *Message, b *Batch, rows int) *Problem {
	t, x := &d.table, &d.rows
	step := chunkRows
	if m.Kind == KindPrediction {
		step = max(1, min(step, 1<<16/d.k)) // bounds the probabilities of a chunk
	}
	for first := 0; first < rows; first += step {
		x.begin(t, first, min(step, rows-first))
		x.readTimes(m.Received)
		switch m.Kind {
		case KindEdge:
			d.arrowEdges(m, b)
		case KindLabel:
			d.arrowLabels(m, b)
		case KindPrediction:
			d.arrowPredictions(m, b)
		case KindMember:
			d.arrowMembers(m, b)
		case KindVertex:
			d.arrowVertices(m, b)
		default:
			d.arrowControls(m, b)
		}
		if p := d.refuseRows(m, b); p != nil {
			return p
		}
	}
	return nil
}

// refuseRows refuses the rows of the chunk that have a problem.
func (d *Decoder) refuseRows(m *Message, b *Batch) *Problem {
	x, t := &d.rows, &d.table
	if x.refused == 0 {
		return nil
	}
	bytesMax := originalsPerMessage * d.config.MessageBytesMax
	for i, p := range x.problems[:x.n] {
		if p == nil {
			continue
		}
		index := t.before + x.first + i
		original := t.appendRow(nil, x.first+i)
		if t.originals += len(original); t.originals > bytesMax {
			return problemf(TooLarge, "row %d: the refused rows take too much room", index)
		}
		b.refuse(m, index, p, original)
	}
	return nil
}

func (d *Decoder) arrowEdges(m *Message, b *Batch) {
	t, x := &d.table, &d.rows
	d.ids(t.column(fieldSrc), "src", &x.source)
	d.ids(t.column(fieldDst), "dst", &x.target)
	if c := t.column(fieldWeight); present(x, c, &x.weights, 1) {
		x.floats(c, &x.weights)
	}
	x.readOps()
	x.readLifetimes()
	n := len(b.Edges)
	all := slices.Grow(b.Edges, x.n)[:n+x.n]
	for i := range x.n {
		if x.problems[i] != nil {
			continue
		}
		e := &all[n]
		e.Src, e.Dst, e.Weight, e.TTL = x.source[i], x.target[i], x.weights[i], x.lifetimes[i]
		e.Time, e.Position, e.Remove = x.times[i], m.Position, x.second[i]
		p := checkEdge(e)
		if p == nil {
			p = b.late(m, e.Time)
		}
		if p != nil {
			x.refuse(i, p)
			continue
		}
		n++
	}
	b.Edges = cut(all, n)
}

func (d *Decoder) arrowLabels(m *Message, b *Batch) {
	t, x := &d.table, &d.rows
	d.ids(t.column(fieldVertex), "vertex", &x.source)
	d.readClasses()
	x.readTexts(fieldRole)
	x.readLifetimes()
	for i := range x.n {
		role := Calibrate
		if s := x.texts[i]; s != "" && x.problems[i] == nil {
			var p *Problem
			if role, p = parseRole(s); p != nil {
				x.refuse(i, p)
			}
		}
		if x.problems[i] == nil {
			if p := b.late(m, x.times[i]); p != nil {
				x.refuse(i, p)
				continue
			}
			l := Label{
				Vertex: x.source[i], Class: x.classes[i], Role: role, TTL: x.lifetimes[i],
				Time: x.times[i], Position: m.Position,
			}
			if l.Class == NoClass {
				l.TTL = 0 // nothing is left that could end
			}
			b.Labels = append(b.Labels, l)
		}
	}
}

func (d *Decoder) arrowPredictions(m *Message, b *Batch) {
	t, x := &d.table, &d.rows
	d.ids(t.column(fieldVertex), "vertex", &x.source)
	d.readClasses()
	d.readNames(b, t.column(fieldVersion), "version")
	d.readProbabilities()
	x.readLifetimes()
	for i := range x.n {
		if x.problems[i] != nil {
			continue
		}
		given := d.givenProbabilities(x.first + i)
		e := Prediction{Vertex: x.source[i]}
		var p *Problem
		switch certain := x.classes[i] != NoClass; {
		case given > 0 && certain:
			p = problemf(BadValue, "probabilities and class exclude each other")
		case given == d.k:
			e, p = d.newPrediction(b, x.source[i], x.probabilities[i*d.k:(i+1)*d.k])
		case given > 0:
			p = missing(m.Kind, "some of its probabilities")
		case certain:
			e.Units = d.certain(b, x.classes[i])
		default:
			p = missing(m.Kind, "probabilities or class")
		}
		if p == nil {
			p = b.late(m, x.times[i])
		}
		if p != nil {
			x.refuse(i, p)
			continue
		}
		e.Version, e.TTL, e.Time, e.Position = x.names[i], x.lifetimes[i], x.times[i], m.Position
		b.Predictions = append(b.Predictions, e)
	}
}

// readProbabilities reads the probabilities of the rows; null is left as it is.
func (d *Decoder) readProbabilities() {
	t, x := &d.table, &d.rows
	if need := x.n * d.k; cap(x.probabilities) < need {
		x.probabilities = make([]float64, need)
	} else {
		x.probabilities = x.probabilities[:need]
	}
	if c := t.column(fieldProbabilities); c != nil {
		for j := range x.probabilities {
			x.probabilities[j] = floatAt(c.cell, c.data, x.first*d.k+j)
		}
	}
	for k, at := range t.classes {
		if c := &t.columns[at]; c.cell != cellNull {
			for i := range x.n {
				x.probabilities[i*d.k+k] = floatAt(c.cell, c.data, x.first+i)
			}
		}
	}
}

// givenProbabilities returns how many probabilities of a row are not null.
func (d *Decoder) givenProbabilities(row int) int {
	t := &d.table
	given := 0
	if c := t.column(fieldProbabilities); c != nil && !c.null(row) {
		given = d.k
		for j := range d.k {
			if at := row*d.k + j; c.items != nil && c.items[at/8]>>(at%8)&1 == 0 {
				given--
			}
		}
	}
	for _, at := range t.classes {
		if !t.columns[at].null(row) {
			given++
		}
	}
	return given
}

func (d *Decoder) arrowMembers(m *Message, b *Batch) {
	t, x := &d.table, &d.rows
	community := t.column(fieldCommunity)
	x.required(community, "community")
	d.ids(t.column(fieldVertex), "vertex", &x.source)
	d.readNames(b, community, "community")
	x.readOps()
	x.readCounts()
	for i := range x.n {
		if x.problems[i] != nil {
			continue
		}
		if p := b.late(m, x.times[i]); p != nil {
			x.refuse(i, p)
			continue
		}
		if x.second[i] {
			x.counts[i] = 0
		}
		b.Members = append(b.Members, Member{
			Community: x.names[i], Vertex: x.source[i], Multiplicity: x.counts[i],
			Time: x.times[i], Position: m.Position,
		})
	}
}

func (d *Decoder) arrowVertices(m *Message, b *Batch) {
	t, x := &d.table, &d.rows
	d.ids(t.column(fieldVertex), "vertex", &x.source)
	erase := t.column(fieldErase)
	for i := range x.n {
		if x.problems[i] != nil {
			continue
		}
		row := x.first + i
		e := Vertex{Vertex: x.source[i], Time: x.times[i], Position: m.Position}
		e.Erase = erase != nil && !erase.null(row) && erase.bool(row)
		attributes, p := d.rowAttributes(row)
		if p == nil && e.Erase && len(attributes) > 0 {
			p = problemf(BadValue, "erase and attributes exclude each other")
		}
		if p != nil {
			x.refuse(i, p)
			continue
		}
		e.Attributes = b.keepAttributes(attributes)
		b.Vertices = append(b.Vertices, e)
	}
}

// rowAttributes returns the attributes of a row in scratch memory. A null is not
// an attribute: a table cannot take one away.
func (d *Decoder) rowAttributes(row int) ([]Attribute, *Problem) {
	d.rec.attributes = d.rec.attributes[:0]
	for i := range d.table.columns {
		c := &d.table.columns[i]
		if c.field != fieldAttributes || c.null(row) {
			continue
		}
		if len(d.rec.attributes) == AttributesPerEventMax {
			return nil, problemf(TooLarge, "more than %d attributes", AttributesPerEventMax)
		}
		v := c.value(row)
		if p := d.checkAttribute(c.name, v); p != nil {
			return nil, p
		}
		d.rec.attributes = append(d.rec.attributes, Attribute{Key: c.name, Value: v})
	}
	return d.rec.attributes, nil
}

// value returns row i of an attribute column, which is not null.
func (c *column) value(i int) Value {
	switch {
	case c.cell.isText():
		return Value{Kind: StringValue, Text: c.text(i)}
	case c.cell == cellBool:
		v := Value{Kind: BoolValue}
		if c.bool(i) {
			v.Number = 1
		}
		return v
	}
	return Value{Kind: NumberValue, Number: floatAt(c.cell, c.data, i)}
}

func (d *Decoder) arrowControls(m *Message, b *Batch) {
	t, x := &d.table, &d.rows
	op := t.column(fieldOp)
	x.required(op, "op")
	x.readTexts(fieldConfig)
	for i := range x.n {
		if x.problems[i] != nil {
			continue
		}
		c := Control{Time: x.times[i], Position: m.Position}
		var p *Problem
		if s := x.texts[i]; s != "" {
			c.Config, p = checkConfig(b, s)
		}
		if p == nil {
			p = appendControl(b, op.text(x.first+i), c)
		}
		if p != nil {
			x.refuse(i, p)
		}
	}
}

// checkConfig reads the configuration in a column of text: one JSON object.
func checkConfig(b *Batch, text string) ([]byte, *Problem) {
	s := scanner{buf: []byte(text), batch: b}
	if s.peek() != '{' {
		return nil, problemf(BadValue, "config must be a JSON object")
	}
	start := s.pos
	ok := s.skipObject(2) // as deep as in a JSON event
	end := s.pos
	if s.peek(); ok && s.pos < len(s.buf) {
		s.fail("text after the end of the object")
	}
	if s.problem != nil {
		return nil, problemf(BadValue, "config: %s", s.problem.Detail)
	}
	return s.buf[start:end], nil
}
