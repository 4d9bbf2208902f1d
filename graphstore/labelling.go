package graphstore

import (
	"maps"
	"slices"

	"gqlstream/ingest/event"
)

// noVersion marks a vertex without a prediction in the version column.
const noVersion = ^uint32(0)

// noLabel and noAudit are the values of most vertices, which have no labels.
var (
	noLabel = Label{Class: event.NoClass}
	noAudit = Audit{Class: event.NoClass}
)

// labelling holds labels, predictions and model versions. They are one part because the progress of
// a roll-out is counted over labels and predictions, see models. A batch is applied in two phases:
// expire and the assert functions collect assertions, and the apply functions carry out the last
// one of each vertex.
type labelling struct {
	config  *Config
	classes column[int32]      // n: true class, or -1
	roles   column[uint8]      // n
	times   column[event.Time] // n: own time of the label, see LabelTime
	audits  map[Vertex]Audit   // audit labels: few, and not in the columns

	units    column[uint32]  // n x K
	version  column[uint32]  // n: model version of the prediction, or noVersion
	evidence evidenceColumns // n: the evidence behind the prediction
	versions names
	models   models
	mean     mean // of the posts of one author in a batch

	labelEnds, predictionEnds ends // by vertex; never those of Derive

	labels, predictions, pending []entry  // asserted in the batch
	before                       []uint32 // backing of PredictionChange.Before
}

// newLabelling returns empty columns. config belongs to the store.
func newLabelling(config *Config) labelling {
	return labelling{
		config: config, audits: map[Vertex]Audit{}, versions: names{index: map[string]uint32{}},
		models: models{active: noVersion, incoming: noVersion},
	}
}

// resetBatch empties the per-batch state and ends a roll-out that has been silent.
func (l *labelling) resetBatch(now event.Time) {
	l.labels, l.predictions = emptied(l.labels), emptied(l.predictions)
	l.pending = emptied(l.pending)
	l.before = emptied(l.before)
	l.lapse(now)
}

// setClock makes log time the time of all labels and predictions that are later.
func (l *labelling) setClock(now event.Time) {
	for v, at := range l.times.data {
		l.times.data[v] = min(at, now)
	}
	l.evidence.setClock(now, &l.config.Evidence)
	l.models.evidence.setClock(now, &l.config.Evidence)
	l.models.seen = min(l.models.seen, now)
}

// grow extends the columns to n vertices; only the last one is new.
func (l *labelling) grow(n int) {
	l.classes.append(int32(event.NoClass))
	l.roles.resize(n)
	l.times.resize(n)
	l.units.resize(n * l.config.Classes)
	l.version.append(noVersion)
	l.evidence.resize(n)
	if l.models.incoming != noVersion {
		l.models.pending.resize(n * l.config.Classes)
		l.models.evidence.resize(n)
	}
}

// forget asserts that v has neither label nor prediction.
func (l *labelling) forget(v Vertex) {
	nothing := entry{uint64(v), absent}
	l.labels = append(l.labels, nothing)
	l.predictions = append(l.predictions, nothing)
	l.pending = append(l.pending, nothing)
}

// Label returns the true class of v, if it is known.
func (l *labelling) Label(v Vertex) Label {
	return Label{Class: event.Class(l.classes.data[v]), Role: event.Role(l.roles.data[v])}
}

// LabelTime returns the own time of the last assertion of v's label, or its log time if the event
// gave no time or a later one; 0 without a label.
func (l *labelling) LabelTime(v Vertex) event.Time { return l.times.data[v] }

// refuseLabel returns the reason to refuse a label event, empty if it is valid.
func (l *labelling) refuseLabel(e *event.Label) (event.Reason, string) {
	switch {
	case e.Class < event.NoClass || int(e.Class) >= l.config.Classes:
		return event.UnknownClass, ""
	case e.Role > event.Audit:
		return event.BadValue, "role"
	case e.Role == event.Audit && e.Class != event.NoClass &&
		(e.Pi < event.PiMin || e.Pi > event.One):
		return event.BadValue, "pi"
	}
	return "", ""
}

// expire asserts the absence of labels and predictions that end now. It runs before the assertions
// of the batch, which may postpone an end: the last assertion of a key counts.
func (l *labelling) expire(now event.Time) {
	l.labels = l.labelEnds.due(now, l.labels)
	l.predictions = l.predictionEnds.due(now, l.predictions)
	l.pending = l.models.waiting.due(now, l.pending)
}

// assertLabel records that label event at, which is valid, is about v.
func (l *labelling) assertLabel(v Vertex, at int) {
	l.labels = append(l.labels, entry{uint64(v), uint32(at)})
}

// applyLabels applies the last label assertion of each vertex, and lists the changes.
func (l *labelling) applyLabels(p *step) {
	l.labels = p.lastOfEach(l.labels)
	for _, e := range l.labels {
		after := noLabel
		drawn := noAudit
		at := event.Time(0)
		end := forever
		if e.at != absent {
			after, drawn, at, end = l.labelOf(&p.batch.Labels[e.at], p)
		}
		l.setLabel(p, Vertex(e.key), after, at)
		l.setAudit(p, Vertex(e.key), drawn)
		l.labelEnds.set(e.key, end)
	}
}

// labelOf returns the label that an event asserts, its time and its end. A time is never later than
// the log. A vertex has one label: an audit label replaces another label.
func (l *labelling) labelOf(
	e *event.Label,
	p *step,
) (label Label, drawn Audit, at, end event.Time) {
	end = p.endOf(e.Time, e.TTL, l.config.Windows.Labels)
	if e.Class == event.NoClass || end <= p.endsBy { // withdrawn, or ended already
		return noLabel, noAudit, 0, forever
	}
	if e.Role == event.Audit {
		return noLabel, Audit{Class: e.Class, Pi: e.Pi}, 0, end
	}
	if at = e.Time; at == 0 || at > p.now {
		at = p.now
	}
	return Label{Class: e.Class, Role: e.Role}, noAudit, at, end
}

// setLabel replaces the label of v and lists the change, if there is one.
func (l *labelling) setLabel(p *step, v Vertex, after Label, at event.Time) {
	before, was := l.Label(v), l.LabelTime(v)
	if before == after && was == at {
		return
	}
	l.count(v, -1)
	l.classes.data[v] = int32(after.Class)
	l.roles.data[v] = uint8(after.Role)
	l.times.data[v] = at
	l.count(v, 1)
	p.delta.Labels = append(p.delta.Labels,
		LabelChange{V: v, Before: before, After: after, TimeBefore: was})
}

// Audit returns the audit label of v.
func (l *labelling) Audit(v Vertex) Audit {
	if a, ok := l.audits[v]; ok {
		return a
	}
	return noAudit
}

// Audits returns the vertices with an audit label, sorted.
func (l *labelling) Audits() []Vertex { return slices.Sorted(maps.Keys(l.audits)) }

// setAudit replaces the audit label of v and lists the change, if there is one.
func (l *labelling) setAudit(p *step, v Vertex, after Audit) {
	before := l.Audit(v)
	if before == after {
		return
	}
	if after == noAudit {
		delete(l.audits, v)
	} else {
		l.audits[v] = after
	}
	p.delta.Audits = append(p.delta.Audits, AuditChange{V: v, Before: before, After: after})
}
