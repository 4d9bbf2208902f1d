package graphstore

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"gqlstream/ingest/event"
)

const (
	testSwitchAt   = 0.6
	testLapseAfter = 60 * time.Nanosecond // of the histories' log time
)

// modelVersions is the twin's state of the model versions, by their place in the
// order of first mention.
type modelVersions struct {
	active, incoming int // -1 for none
	seen             event.Time
	waiting          map[event.ID]string
	ends             map[event.ID]event.Time

	switched, lapsed, overtaken, late int // how often
}

func newModelVersions() modelVersions {
	return modelVersions{
		active: -1, incoming: -1, waiting: map[event.ID]string{}, ends: map[event.ID]event.Time{},
	}
}

func (m *modelVersions) forget(id event.ID) {
	delete(m.waiting, id)
	delete(m.ends, id)
}

// drop ends a roll-out.
func (m *modelVersions) drop() {
	m.incoming = -1
	clear(m.waiting)
	clear(m.ends)
}

func (m *modelVersions) add(o modelVersions) {
	m.switched, m.lapsed = m.switched+o.switched, m.lapsed+o.lapsed
	m.overtaken, m.late = m.overtaken+o.overtaken, m.late+o.late
}

// enough checks that the histories had everything that can happen.
func (m *modelVersions) enough(t *testing.T) {
	t.Helper()
	if min(m.switched, m.lapsed, m.overtaken, m.late) < 20 {
		t.Errorf("%d switches, %d lapses, %d overtaken and %d late: too few to test them",
			m.switched, m.lapsed, m.overtaken, m.late)
	}
}

// predict applies the predictions of a batch one by one.
func (m *model) predict(b *event.Batch) {
	v := &m.models
	if v.incoming >= 0 && m.time-v.seen >= event.Time(testLapseAfter) {
		v.drop()
		v.lapsed++
	}
	came := false
	for _, p := range b.Predictions {
		if p.Units == nil {
			delete(m.predictions, p.Vertex)
			delete(m.endings, p.Vertex)
			v.forget(p.Vertex)
			continue
		}
		came = m.predictOne(p) || came
	}
	m.endPredictions()
	if came {
		v.seen = m.time
		if m.coverage().Coverage() >= testSwitchAt {
			m.switchTo()
		}
	}
}

// predictOne applies one prediction and reports whether it was the incoming version's.
func (m *model) predictOne(p event.Prediction) bool {
	v := &m.models
	version := slices.Index(m.versions, p.Version)
	if version < 0 {
		version = len(m.versions)
		m.versions = append(m.versions, string([]byte(p.Version)))
	}
	if v.active < 0 {
		v.active = version
	}
	switch {
	case version == v.active:
		m.mention(p.Vertex)
		m.predictions[cloneID(p.Vertex)] = modelPrediction{unitsKey(p.Units), m.versions[version]}
		delete(m.endings, p.Vertex)
		m.ends(m.endings, p.Vertex, p.Time, p.TTL, m.windows.Predictions)
		return false
	case version < v.incoming:
		v.late++
		return false
	case version > v.incoming:
		if v.incoming >= 0 {
			v.overtaken++
		}
		v.drop()
		v.incoming = version
	}
	m.mention(p.Vertex)
	v.waiting[cloneID(p.Vertex)] = unitsKey(p.Units)
	delete(v.ends, p.Vertex)
	m.ends(v.ends, p.Vertex, p.Time, p.TTL, m.windows.Predictions)
	return true
}

// endPredictions removes the predictions of either version that have expired.
func (m *model) endPredictions() {
	for id, end := range m.endings {
		if end <= m.time {
			delete(m.predictions, id)
			delete(m.endings, id)
		}
	}
	for id, end := range m.models.ends {
		if end <= m.time {
			m.models.forget(id)
		}
	}
}

func (m *model) coverage() (r RollOut) {
	for id := range m.predictions {
		_, covered := m.models.waiting[id]
		label, labelled := m.labels[id]
		r.Vertices++
		if covered {
			r.VerticesCovered++
		}
		if labelled && label.Role == event.Calibrate {
			r.Labels++
			if covered {
				r.LabelsCovered++
			}
		}
	}
	if m.models.incoming >= 0 {
		r.Version = uint32(m.models.incoming)
	}
	return r
}

func (m *model) switchTo() {
	clear(m.predictions)
	for id, units := range m.models.waiting {
		m.predictions[id] = modelPrediction{units, m.versions[m.models.incoming]}
	}
	m.endings = maps.Clone(m.models.ends)
	m.models.active = m.models.incoming
	m.models.drop()
	m.models.switched++
}

// compareModels compares the versions of a view with the twin.
func compareModels(w View, m *model) error {
	active, known := w.ActiveVersion()
	if known != (m.models.active >= 0) || known && int(active) != m.models.active {
		return fmt.Errorf("active is %d (%t), want %d", active, known, m.models.active)
	}
	counts, rolling := w.RollOut()
	if rolling != (m.models.incoming >= 0) || rolling && counts != m.coverage() {
		return fmt.Errorf("rolling out %+v (%t), want %+v", counts, rolling, m.coverage())
	}
	for v := range Vertex(w.Vertices()) {
		if got := unitsKey(w.s.labelling.waiting(v)); got != m.models.waiting[m.order[v]] {
			return fmt.Errorf(
				"vertex %d waits with %q, want %q", v, got, m.models.waiting[m.order[v]],
			)
		}
	}
	return nil
}

// roll is a batch of predictions of one version for vertices from up to but not to.
func roll(version string, from, to uint64, now time.Duration) *event.Batch {
	b := &event.Batch{Time: event.Time(now)}
	for i := from; i < to; i++ {
		b.Predictions = append(b.Predictions, event.Prediction{
			Vertex: event.NumberID(i), Units: []uint32{event.One, 0, 0}, Version: version,
		})
	}
	return b
}

// A scripted roll-out: the state of the versions after each batch.
func TestModelVersionsAreSwitchedAtOnce(t *testing.T) {
	s := newTestStore(t, Config{})
	labels := &event.Batch{}
	for i := range uint64(10) {
		labels.Labels = append(labels.Labels, event.Label{Vertex: event.NumberID(i), Class: 1})
	}
	s.Apply(labels)
	hour := time.Hour
	for i, step := range []struct {
		batch            *event.Batch
		active, incoming string // names; "-" for none
		predicted        int
		changed          int
		refused          int
	}{
		{roll("one", 0, 100, hour), "one", "-", 100, 100, 0},
		// nine of ten vertices would do
		{roll("two", 0, 89, hour), "one", "two", 100, 0, 0},
		// the old one goes on meanwhile
		{roll("one", 3, 4, hour), "one", "two", 100, 0, 0},
		// all at once, and ten are gone
		{roll("two", 98, 99, hour), "two", "-", 90, 100, 0},
		{roll("one", 0, 5, hour), "two", "one", 90, 0, 0},            // strays, or the way back
		{roll("three", 0, 9, 2*hour), "two", "three", 90, 0, 0},      // a later one takes over
		{roll("one", 0, 50, 3*hour), "two", "three", 90, 0, 50},      // an older prediction is late
		{roll("two", 0, 0, 26*hour), "two", "-", 90, 0, 0},           // and three has lapsed
		{roll("one", 0, 80, 27*hour), "two", "one", 90, 0, 0},        // the way back is open again
		{roll("one", 80, 100, 28*hour), "one", "-", 100, 100, 0},     // nothing else is between
		{roll("three", 90, 100, 29*hour), "one", "three", 100, 0, 0}, // no label is covered
	} {
		delta, refused := s.Apply(step.batch)
		w := s.View()
		name := func(version uint32, known bool) string {
			if !known {
				return "-"
			}
			return w.Versions()[version]
		}
		counts, rolling := w.RollOut()
		active, incoming := name(w.ActiveVersion()), name(counts.Version, rolling)
		predicted := 0
		for v := range Vertex(w.Vertices()) {
			if w.Prediction(v) != nil {
				predicted++
			}
		}
		if active != step.active || incoming != step.incoming || predicted != step.predicted ||
			len(delta.Predictions) != step.changed || len(refused) != step.refused {
			t.Fatalf(
				"step %d: %s beside %s, %d predicted, %d changed, %d refused; want %+v", i, active,
				incoming, predicted, len(delta.Predictions), len(refused), step,
			)
		}
		if err := s.Check(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
}

// Without a roll-out the versions cost nothing.
func TestModelVersionsCostNothingAtRest(t *testing.T) {
	s := newTestStore(t, Config{})
	s.Apply(roll("one", 0, 1000, 1))
	s.Apply(roll("two", 0, 500, 1))
	if got := s.labelling.models.pending.bytes(); got < 4*3*1000 {
		t.Fatalf("%d bytes during a roll-out", got)
	}
	s.Apply(roll("two", 500, 1000, 1))
	if s.labelling.models.pending.data != nil || s.labelling.models.pending.buf != nil {
		t.Fatal("memory of a roll-out that is over")
	}
}
