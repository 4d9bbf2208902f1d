package graphstore

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"unsafe"

	"gqlstream/ingest/event"
)

func aliasOf(buffer *[]byte, s string) string {
	if s == "" {
		return ""
	}
	at := len(*buffer)
	if at+len(s) > cap(*buffer) {
		return s // the buffer must not move
	}
	*buffer = append(*buffer, s...)
	return unsafe.String(&(*buffer)[at], len(s))
}

func newTestStore(t testing.TB, config Config) *Store {
	t.Helper()
	if config.Classes == 0 {
		config.Classes = testClasses
	}
	s, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// After every batch of a long random history the Delta must be exactly the net
// difference between two states of a map-based twin, the View must show the
// twin's state, and Check must find nothing.
func TestApplyAgreesWithMapTwin(t *testing.T) {
	var models modelVersions
	defer func() { models.enough(t) }()
	for seed := range uint64(24) {
		vertices := []int{6, 40, 300}[seed%3]
		windows := testWindows[seed/3%3]
		s := newTestStore(t, Config{
			Communities: allRules, hubDegree: []int{4, 8, 32, 0}[seed%4], Windows: windows,
			SwitchAt: testSwitchAt, LapseAfter: testLapseAfter,
		})
		h, twin := newHistory(seed, vertices, seed%2 == 0), newModel(allRules)
		twin.windows = windows
		var b event.Batch
		for i := range 60 {
			h.scribble()
			h.batch(&b, 1+h.rng.IntN(200))
			before := twin.clone()
			twin.apply(&b)
			delta, _ := s.Apply(&b)
			if err := compareDelta(s.View(), delta, before, twin); err != nil {
				t.Fatalf("seed %d batch %d: delta: %v", seed, i, err)
			}
			h.scribble()
			if err := compareView(s.View(), twin); err != nil {
				t.Fatalf("seed %d batch %d: view: %v", seed, i, err)
			}
			if err := compareModels(s.View(), twin); err != nil {
				t.Fatalf("seed %d batch %d: models: %v", seed, i, err)
			}
			if err := s.Check(); err != nil {
				t.Fatalf("seed %d batch %d: check: %v", seed, i, err)
			}
			if h.rng.IntN(15) == 0 {
				s.Compact()
				if err := compareView(s.View(), twin); err != nil {
					t.Fatalf("seed %d batch %d: view after compaction: %v", seed, i, err)
				}
			}
		}
		models.add(twin.models)
	}
}

// compareDelta checks a delta against the difference of two twins.
func compareDelta(w View, d *Delta, before, after *model) error {
	name := func(v Vertex) event.ID {
		if int(v) < len(before.order) && before.order[v] != (event.ID{}) {
			return before.order[v]
		}
		return after.order[v]
	}
	if int(d.FirstVertex) != len(before.order) || int(d.FirstCommunity) != len(before.communities) {
		return fmt.Errorf("first vertex %d and community %d, want %d and %d",
			d.FirstVertex, d.FirstCommunity, len(before.order), len(before.communities))
	}
	var erased, reused []Vertex
	for v, id := range before.order {
		switch now := after.order[v]; {
		case id != (event.ID{}) && now == (event.ID{}):
			erased = append(erased, Vertex(v))
		case id == (event.ID{}) && now != (event.ID{}):
			reused = append(reused, Vertex(v))
		}
	}
	if !slices.Equal(d.Erased, erased) || !slices.Equal(d.Reused, reused) {
		return fmt.Errorf(
			"erased %v and reused %v, want %v and %v", d.Erased, d.Reused, erased, reused,
		)
	}
	return firstError(
		compareEdgeChanges(d, name, before, after), compareEnds(d),
		compareLabelChanges(w, d, name, before, after),
		comparePredictionChanges(w, d, name, before, after),
		compareMemberChanges(w, d, name, before, after),
	)
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// difference returns the keys with different values, with both values.
func difference[K, V comparable](before, after map[K]V) map[K][2]V {
	diff := map[K][2]V{}
	for k, v := range before {
		if after[k] != v {
			diff[k] = [2]V{v, after[k]}
		}
	}
	for k, v := range after {
		if old, ok := before[k]; !ok && old != v {
			diff[k] = [2]V{old, v}
		}
	}
	return diff
}

func sameDifference[K, V comparable](what string, got, want map[K][2]V) error {
	if !maps.Equal(got, want) {
		return fmt.Errorf("%s: got %v, want %v", what, got, want)
	}
	return nil
}

func compareEdgeChanges(d *Delta, name func(Vertex) event.ID, before, after *model) error {
	got, old, now := map[edgeID][2]float64{}, map[edgeID]float64{}, map[edgeID]float64{}
	for i, e := range d.Edges {
		if e.U >= e.V || i > 0 && compareEdges(d.Edges[i-1], e) >= 0 {
			return fmt.Errorf("edge %d of %v is out of order", i, d.Edges)
		}
		got[edgeOf(name(e.U), name(e.V))] = [2]float64{e.Before, e.After}
	}
	for k, e := range before.edges {
		old[k] = e.weight
	}
	for k, e := range after.edges {
		now[k] = e.weight
	}
	return sameDifference("edges", got, difference(old, now))
}

func compareEnds(d *Delta) error {
	var ends []Vertex
	for _, e := range d.Edges {
		ends = append(ends, e.U, e.V)
	}
	slices.Sort(ends)
	if want := slices.Compact(ends); !slices.Equal(d.Endpoints, want) {
		return fmt.Errorf("ends %v, want %v", d.Endpoints, want)
	}
	return nil
}

func compareLabelChanges(w View, d *Delta, name func(Vertex) event.ID, before, after *model) error {
	got := map[event.ID][2]timedLabel{}
	for i, l := range d.Labels {
		if i > 0 && d.Labels[i-1].V >= l.V {
			return fmt.Errorf("labels are out of order: %v", d.Labels)
		}
		was, is := timedLabel{l.Before, l.TimeBefore}, timedLabel{l.After, w.LabelTime(l.V)}
		got[name(l.V)] = [2]timedLabel{was, is}
	}
	none := timedLabel{Label: Label{Class: event.NoClass}}
	old, now := maps.Clone(before.labels), maps.Clone(after.labels)
	for id := range old {
		if _, ok := now[id]; !ok {
			now[id] = none
		}
	}
	for id := range now {
		if _, ok := old[id]; !ok {
			old[id] = none
		}
	}
	return cmp.Or(
		sameDifference("labels", got, difference(old, now)),
		compareAuditChanges(d, name, before, after),
	)
}

func compareAuditChanges(d *Delta, name func(Vertex) event.ID, before, after *model) error {
	got, want := map[event.ID][2]Audit{}, map[event.ID][2]Audit{}
	for i, a := range d.Audits {
		if i > 0 && d.Audits[i-1].V >= a.V {
			return fmt.Errorf("audit labels are out of order: %v", d.Audits)
		}
		got[name(a.V)] = [2]Audit{a.Before, a.After}
	}
	for _, audits := range []map[event.ID]Audit{before.audits, after.audits} {
		for id := range audits {
			was, is := noAudit, noAudit
			if a, ok := before.audits[id]; ok {
				was = a
			}
			if a, ok := after.audits[id]; ok {
				is = a
			}
			if was != is {
				want[id] = [2]Audit{was, is}
			}
		}
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("audit labels changed by %v, want %v", got, want)
	}
	return nil
}

func comparePredictionChanges(
	w View, d *Delta, name func(Vertex) event.ID, before, after *model,
) error {
	got := map[event.ID][2]modelPrediction{}
	of := func(units []uint32, version uint32) modelPrediction {
		if units == nil {
			return modelPrediction{}
		}
		return modelPrediction{unitsKey(units), w.Versions()[version]}
	}
	for i, p := range d.Predictions {
		if i > 0 && d.Predictions[i-1].V >= p.V {
			return fmt.Errorf("predictions are out of order")
		}
		got[name(p.V)] = [2]modelPrediction{
			of(p.Before, p.VersionBefore),
			of(p.After, w.Version(p.V)),
		}
	}
	return sameDifference("predictions", got, difference(before.predictions, after.predictions))
}

func compareMemberChanges(
	w View, d *Delta, name func(Vertex) event.ID, before, after *model,
) error {
	got := map[memberID][2]uint32{}
	for i, m := range d.Members {
		if i > 0 &&
			pair(uint32(d.Members[i-1].Community), uint32(d.Members[i-1].V)) >= pair(
				uint32(m.Community),
				uint32(m.V),
			) {
			return fmt.Errorf("members are out of order: %v", d.Members)
		}
		got[memberID{w.CommunityName(m.Community), name(m.V)}] = [2]uint32{m.Before, m.After}
	}
	return sameDifference("members", got, difference(before.members, after.members))
}

// compareView checks every answer of a view against the twin.
func compareView(w View, m *model) error {
	if w.Vertices() != len(m.order) || w.Edges() != len(m.edges) ||
		!slices.Equal(w.Versions(), m.versions) {
		return fmt.Errorf(
			"%d vertices, %d edges, versions %q; want %d, %d, %q", w.Vertices(), w.Edges(),
			w.Versions(), len(m.order), len(m.edges), m.versions,
		)
	}
	total, present := 0.0, 0
	neighbors, _ := m.degrees()
	for v := range Vertex(w.Vertices()) {
		id := m.order[v]
		total += w.Degree(v)
		if !w.Erased(v) {
			present++
		}
		if w.ID(v) != id || w.Erased(v) != (id == event.ID{}) && id != (event.ID{}) {
			return fmt.Errorf("vertex %d is %v, want %v", v, w.ID(v), id)
		}
		if found, ok := w.Lookup(id); !w.Erased(v) && (!ok || found != v) {
			return fmt.Errorf("lookup of %v is %d, %t, want %d", id, found, ok, v)
		}
		if err := firstError(compareRun(w, m, v, neighbors), compareColumns(w, m, v),
			compareMemberOf(w, m, v)); err != nil {
			return fmt.Errorf("vertex %d (%v): %w", v, id, err)
		}
	}
	if total != w.WeightSum() || present != w.Present() {
		return fmt.Errorf(
			"weight sum %v, %d present, want %v, %d", w.WeightSum(), w.Present(), total, present,
		)
	}
	return compareCommunities(w, m)
}

func compareRun(w View, m *model, v Vertex, neighbors map[event.ID]int) error {
	sum := 0.0
	weights := w.Weights(v)
	seen := map[Vertex]bool{}
	for i, u := range w.Neighbors(v) {
		weight := 1.0
		if weights != nil {
			weight = weights[i]
		}
		if want := m.edges[edgeOf(m.order[v], m.order[u])].weight; weight != want || seen[u] {
			return fmt.Errorf(
				"edge to %d weighs %v, want %v; seen before: %t", u, weight, want, seen[u],
			)
		}
		seen[u] = true
		sum += weight
	}
	count := 0
	if !w.Erased(v) {
		count = neighbors[m.order[v]]
	}
	if len(seen) != count || sum != w.Degree(v) {
		return fmt.Errorf(
			"%d neighbours of degree %v, want %d and %v", len(seen), w.Degree(v), count, sum,
		)
	}
	return nil
}

func compareColumns(w View, m *model, v Vertex) error {
	id := m.order[v]
	label, ok := m.labels[id]
	if !ok || w.Erased(v) {
		label = timedLabel{Label: Label{Class: event.NoClass}}
	}
	if got := (timedLabel{w.Label(v), w.LabelTime(v)}); got != label {
		return fmt.Errorf("label %v, want %v", got, label)
	}
	audit, ok := m.audits[id]
	if !ok || w.Erased(v) {
		audit = noAudit
	}
	if got := w.Audit(v); got != audit || slices.Contains(w.Audits(), v) != (audit != noAudit) {
		return fmt.Errorf("audit label %v, want %v", got, audit)
	}
	prediction := m.predictions[id]
	if w.Erased(v) {
		prediction = modelPrediction{}
	}
	if got := w.Prediction(v); unitsKey(got) != prediction.units ||
		got != nil && w.Versions()[w.Version(v)] != prediction.version {
		return fmt.Errorf("prediction %v, want %v", got, prediction)
	}
	for _, key := range []string{"language", "age", "none"} {
		want := m.attributes[id][key]
		if w.Erased(v) {
			want = event.Value{}
		}
		if got := w.Attribute(v, key); got != want {
			return fmt.Errorf("attribute %q is %v, want %v", key, got, want)
		}
	}
	return nil
}

func compareMemberOf(w View, m *model, v Vertex) error {
	want := map[memberID]uint32{}
	for _, name := range m.communities {
		key := memberID{name, m.order[v]}
		if multiplicity, ok := m.members[key]; ok && !w.Erased(v) {
			want[key] = multiplicity
		}
	}
	got := map[memberID]uint32{}
	for i, membership := range w.MemberOf(v) {
		if i > 0 && w.MemberOf(v)[i-1].Community >= membership.Community {
			return fmt.Errorf("memberships are out of order: %v", w.MemberOf(v))
		}
		got[memberID{w.CommunityName(membership.Community), m.order[v]}] = membership.Multiplicity
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("memberships %v, want %v", got, want)
	}
	return nil
}

func compareCommunities(w View, m *model) error {
	if w.Communities() != len(m.communities) {
		return fmt.Errorf("%d communities, want %d", w.Communities(), len(m.communities))
	}
	for c := range Community(w.Communities()) {
		sum, count := uint64(0), 0
		for key, multiplicity := range m.members {
			if key.community == m.communities[c] {
				sum += uint64(multiplicity)
				count++
			}
		}
		list, multiplicities := w.Members(c)
		held := uint64(0)
		w.ForMembers(c, func(_ Vertex, multiplicity uint32) { held += uint64(multiplicity) })
		if w.CommunityName(c) != m.communities[c] || held != sum || len(list) != count {
			return fmt.Errorf(
				"community %q has %d members of sum %d, want %q, %d, %d", w.CommunityName(c),
				len(list), held, m.communities[c], count, sum,
			)
		}
		for i, v := range list {
			if i > 0 && list[i-1] >= v ||
				m.members[memberID{m.communities[c], m.order[v]}] != multiplicities[i] {
				return fmt.Errorf(
					"community %q: member %d of %v is wrong", m.communities[c], i, list,
				)
			}
		}
	}
	return nil
}
