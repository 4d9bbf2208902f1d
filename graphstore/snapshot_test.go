package graphstore

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/array"

	"gqlstream/ingest/event"
)

// dump is every byte of a store that can decide anything.
func dump(s *Store) map[string]any {
	d := map[string]any{
		"time": s.step.now, "position": s.step.delta.Position,
		"ids": s.ids.list, "free": s.ids.free,
		"heavy": s.edges.heavy, "weight sum": s.edges.weightSum, "edges": s.edges.edges,
		"hubs":    s.edges.hubs,
		"classes": s.labelling.classes.data, "roles": s.labelling.roles.data,
		"times": s.labelling.times.data, "units": s.labelling.units.data,
		"version":          s.labelling.version.data,
		"evidence":         dumpEvidence(&s.labelling.evidence),
		"waiting evidence": dumpEvidence(&s.labelling.models.evidence),
		"versions":         s.labelling.versions, "keys": s.View().AttributeKeys(),
		"by name":      s.members.byName,
		"by attribute": s.members.byAttribute, "total": s.members.total,
		"edges end":       s.edges.ends.sorted(),
		"labels end":      s.labelling.labelEnds.sorted(),
		"predictions end": s.labelling.predictionEnds.sorted(),
		"waiting end":     s.labelling.models.waiting.sorted(), "active": s.labelling.models.active,
		"incoming": s.labelling.models.incoming,
		"seen":     s.labelling.models.seen, "counts": s.labelling.models.counts,
		"pending":      s.labelling.models.pending.data,
		"rules by key": s.members.rules.byKey, "rules of all": s.members.rules.matchNone,
		"egos": s.members.egos, "ego members": s.members.egoMembers,
	}
	for i := range s.members.communities {
		c := &s.members.communities[i]
		text := fmt.Sprint(c.rule, c.configured, c.sum, c.vertices, c.multiplicities)
		if e := c.ego; e != nil {
			text += fmt.Sprint(e.root, e.vertex, e.known, e.radius, e.distances)
		}
		d[fmt.Sprint("community ", i)] = text
	}
	for v, list := range s.members.of {
		d[fmt.Sprint("memberships ", v)] = slices.Clone(list)
	}
	for v := range s.edges.runs {
		r := &s.edges.runs[v]
		d[fmt.Sprint("vertex ", v)] = fmt.Sprint(
			r.degree, r.hub, r.changed, s.edges.Neighbors(Vertex(v)), s.edges.Weights(Vertex(v)),
		)
	}
	for key, column := range s.attributes {
		d["attribute "+key] = *column
	}
	return d
}

// dumpEvidence returns the values of the columns.
func dumpEvidence(c *evidenceColumns) string {
	return fmt.Sprint(c.weights.data, c.epochs.data, c.times.data, c.changed.data)
}

// differ names the first part in which two stores differ. Empty and nil are the same.
func differ(a, b *Store) string {
	da, db := dump(a), dump(b)
	if len(da) != len(db) {
		return "number of attributes"
	}
	for part, x := range da {
		y := db[part]
		vx, vy := reflect.ValueOf(x), reflect.ValueOf(y)
		if vx.Kind() == reflect.Slice && vx.Len() == 0 && vy.Len() == 0 {
			continue
		}
		if !reflect.DeepEqual(x, y) {
			return fmt.Sprintf("%s: %.300v and %.300v", part, x, y)
		}
	}
	return ""
}

func save(t testing.TB, s *Store) map[Table][]byte {
	t.Helper()
	files := map[Table][]byte{}
	for _, section := range s.Sections() {
		file, err := section.Encode()
		if err != nil {
			t.Fatalf("section %s: %v", section.Table, err)
		}
		files[section.Table] = file
	}
	return files
}

func load(t testing.TB, config Config, files map[Table][]byte) *Store {
	t.Helper()
	s, err := Load(config, func(t Table) ([]byte, error) { return files[t], nil })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A store loaded in the middle of a history must hold the same bytes as the one
// that was saved, and keep doing so, delta by delta, through the rest of it.
func TestLoadedStoreGoesOnIdentically(t *testing.T) {
	for seed := range uint64(12) {
		config := Config{
			Classes: testClasses, Communities: allRules, hubDegree: []int{4, 32, 0}[seed%3],
			Windows:  testWindows[seed%3],
			SwitchAt: testSwitchAt, LapseAfter: testLapseAfter,
		}
		s := newTestStore(t, config)
		h := newHistory(seed, []int{6, 60, 400}[seed%3], seed%2 == 0)
		var b event.Batch
		for range 20 {
			h.batch(&b, 1+h.rng.IntN(300))
			s.Apply(&b)
		}
		files := save(t, s)
		twin := load(t, config, files)
		if part := differ(s, twin); part != "" {
			t.Fatalf("seed %d: loaded store differs in %s", seed, part)
		}
		for i := range 20 {
			h.batch(&b, 1+h.rng.IntN(300))
			d1, r1 := s.Apply(&b)
			d2, r2 := twin.Apply(&b)
			if fmt.Sprint(r1) != fmt.Sprint(r2) || fmt.Sprint(*d1) != fmt.Sprint(*d2) {
				t.Fatalf(
					"seed %d batch %d: deltas differ:\n%v %v\n%v %v", seed, i, *d1, r1, *d2, r2,
				)
			}
			for v := range Vertex(s.View().Vertices()) {
				if !slices.Equal(s.View().Neighbors(v), twin.View().Neighbors(v)) {
					t.Fatalf(
						"seed %d batch %d: neighbours of %d stand in another order", seed, i, v,
					)
				}
			}
			if err := twin.Check(); err != nil {
				t.Fatalf("seed %d batch %d: %v", seed, i, err)
			}
		}
		again, other := save(t, s), save(t, twin)
		if part := differ(s, twin); part != "" {
			t.Fatalf("seed %d: stores differ in the end in %s", seed, part)
		}
		for table, file := range again {
			if !bytes.Equal(file, other[table]) {
				t.Fatalf("seed %d: files of table %s differ", seed, table)
			}
		}
	}
}

// The tables of vertices and adjacency are written while the run goes on. Batches that are applied
// meanwhile must not appear in them.
func TestLargeTablesAreWrittenDuringTheRun(t *testing.T) {
	for seed := range uint64(6) {
		s := newTestStore(
			t,
			Config{
				Classes:     testClasses,
				Communities: allRules,
				hubDegree:   4,
				Windows:     testWindows[seed%3],
			},
		)
		h := newHistory(seed, 400, seed%2 == 0)
		var b event.Batch
		advance := func() {
			for range 20 {
				h.batch(&b, 1+h.rng.IntN(300))
				s.Apply(&b)
			}
		}
		advance()
		want := save(t, s)
		var writing sync.WaitGroup
		for _, section := range s.Sections() {
			if section.Table != verticesTable && section.Table != adjacencyTable {
				continue
			}
			writing.Go(func() {
				if file, err := section.Encode(); err != nil ||
					!bytes.Equal(file, want[section.Table]) {
					t.Errorf("seed %d: table %s is another one, %v", seed, section.Table, err)
				}
			})
		}
		advance()
		s.Compact()
		writing.Wait()
	}
}

// Batches that are split, and edges within them that are permuted, must leave the
// same bytes after a compaction.
func TestSplitAndPermutedBatchesLeaveTheSameBytes(t *testing.T) {
	for seed := range uint64(12) {
		config := Config{
			Communities: allRules, hubDegree: []int{4, 16, 0}[seed%3],
			SwitchAt: testSwitchAt, LapseAfter: testLapseAfter,
		}
		whole, split := newTestStore(t, config), newTestStore(t, config)
		h := newHistory(seed, []int{6, 60, 300}[seed%3], seed%2 == 0)
		var b event.Batch
		mention(h, whole, split)
		for range 25 {
			h.batch(&b, 1+h.rng.IntN(200))
			whole.Apply(&b)
			applySplit(h, split, &b)
		}
		whole.Compact()
		split.Compact()
		if part := differ(whole, split); part != "" {
			t.Fatalf("seed %d: %s", seed, part)
		}
	}
}

// mention gives every vertex, community and version its index.
func mention(h *history, stores ...*Store) {
	var b event.Batch
	for n := 1; n <= h.vertices; n++ {
		id := event.NumberID(uint64(n))
		if n%2 == 1 {
			id = event.ParseID(fmt.Sprintf("vertex-%d", n))
		}
		b.Vertices = append(b.Vertices, event.Vertex{Vertex: id})
	}
	for _, name := range []string{"late", "later"} {
		b.Members = append(
			b.Members,
			event.Member{Community: name, Vertex: event.NumberID(2), Multiplicity: 1},
		)
	}
	for _, version := range []string{"", "v1", "v2"} {
		b.Predictions = append(b.Predictions, event.Prediction{
			Vertex: event.NumberID(2), Units: []uint32{event.One, 0, 0}, Version: version,
		})
	}
	for _, s := range stores {
		s.Apply(&b)
	}
}

// applySplit applies each kind of the batch alone, the edges in two halves; the first half
// is permuted if no pair repeats. Erasures stay whole.
func applySplit(h *history, s *Store, b *event.Batch) {
	if len(b.Vertices) > 0 && b.Vertices[0].Erase {
		s.Apply(b)
		return
	}
	part := func() event.Batch { return event.Batch{First: b.First, Last: b.Last, Time: b.Time} }
	vertices, labels, predictions, members := part(), part(), part(), part()
	vertices.Vertices, labels.Labels = b.Vertices, b.Labels
	predictions.Predictions, members.Members = b.Predictions, b.Members
	s.Apply(&vertices)
	half, rest := part(), part()
	half.Edges, rest.Edges = slices.Clone(b.Edges[:len(b.Edges)/2]), b.Edges[len(b.Edges)/2:]
	seen := map[edgeID]bool{}
	for _, e := range half.Edges {
		seen[edgeOf(e.Src, e.Dst)] = true
	}
	if len(seen) == len(half.Edges) && !hasErased(s) {
		h.rng.Shuffle(
			len(half.Edges),
			func(i, j int) { half.Edges[i], half.Edges[j] = half.Edges[j], half.Edges[i] },
		)
	}
	s.Apply(&half)
	s.Apply(&rest)
	s.Apply(&labels)
	s.Apply(&predictions)
	s.Apply(&members)
}

func hasErased(s *Store) bool { return len(s.ids.free) > 0 }

// The records of vertices and neighbours must say the same as the view.
func TestRecordsAgreeWithTheView(t *testing.T) {
	s := newTestStore(t, Config{Communities: allRules})
	h := newHistory(3, 50, true)
	var b event.Batch
	for range 20 {
		h.batch(&b, 200)
		s.Apply(&b)
	}
	records := s.View().Records(verticesTable)
	edges := s.View().Records(adjacencyTable)
	if len(records) != 1 || len(edges) != 1 {
		t.Fatalf("%d and %d records, want 1", len(records), len(edges))
	}
	ids := records[0].Column(1).(*array.String)
	lists := edges[0].Column(1).(*array.List)
	neighbors := lists.ListValues().(*array.Uint32)
	w := s.View()
	for v := range Vertex(w.Vertices()) {
		if id := w.ID(v).String(); !w.Erased(v) && ids.Value(int(v)) != id {
			t.Fatalf("vertex %d is %q in the record, want %q", v, ids.Value(int(v)), id)
		}
		from, to := lists.ValueOffsets(int(v))
		for i, u := range w.Neighbors(v) {
			if neighbors.Value(int(from)+i) != uint32(u) || int(to-from) != len(w.Neighbors(v)) {
				t.Fatalf("vertex %d has other neighbours in the record", v)
			}
		}
	}
	for _, table := range Tables() {
		for _, r := range s.View().Records(table) {
			r.Release()
		}
	}
	records[0].Release()
	edges[0].Release()
}

// The name of an erased vertex and its attributes must be in no byte of the
// store nor of its snapshot, even before a compaction.
func TestErasureLeavesNoTrace(t *testing.T) {
	const name, secret = "maria-the-secret-name", "her-secret-town"
	s := newTestStore(t, Config{Communities: testRules})
	id := event.ParseID(name)
	var b event.Batch
	b.Vertices = []event.Vertex{{Vertex: id, Attributes: []event.Attribute{
		{Key: "town", Value: event.Value{Kind: event.StringValue, Text: secret}},
		{Key: "language", Value: event.Value{Kind: event.StringValue, Text: "de"}},
	}}}
	for i := range uint64(20) {
		b.Edges = append(b.Edges, event.Edge{Src: id, Dst: event.NumberID(i), Weight: 1, TTL: 1000})
	}
	b.Labels = []event.Label{{Vertex: id, Class: 1}}
	b.Members = []event.Member{{Community: "listed", Vertex: id, Multiplicity: 3}}
	s.Apply(&b)
	delta, _ := s.Apply(&event.Batch{Vertices: []event.Vertex{{Vertex: id, Erase: true}}})
	if len(delta.Edges) != 20 || len(delta.Endpoints) != 21 || len(delta.Labels) != 1 ||
		len(delta.Members) != 4 {
		t.Fatalf("delta of the erasure is %+v", delta)
	}
	w := s.View()
	if _, found := w.Lookup(id); found || !w.Erased(0) || w.Vertices() != 21 {
		t.Fatalf("the vertex is still there: %t, %t, %d vertices", found, w.Erased(0), w.Vertices())
	}
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprint(s.ids, dump(s)); strings.Contains(text, name) ||
		strings.Contains(text, secret) {
		t.Fatal("the store still holds the name or the town")
	}
	for table, file := range save(t, s) {
		if bytes.Contains(file, []byte(name)) || bytes.Contains(file, []byte(secret)) {
			t.Fatalf("table %s still holds the name or the town", table)
		}
	}
	s.Apply(&event.Batch{Labels: []event.Label{{Vertex: event.ParseID("new"), Class: 0}}})
	if v, _ := s.View().Lookup(event.ParseID("new")); v != 0 {
		t.Fatalf("the next vertex got index %d, want the erased one's 0", v)
	}
}

// After a compaction the snapshot must not depend on the order in which attributes came and
// vertices and edges went.
func TestCompactionForgetsTheOrderOfEvents(t *testing.T) {
	const n = 40
	mentioned := event.Batch{}
	var attributes, erasures, removals []event.Batch
	for i := range uint64(n) {
		mentioned.Vertices = append(mentioned.Vertices, event.Vertex{Vertex: number(i)})
		mentioned.Edges = append(
			mentioned.Edges,
			link(i, (i*i+1)%n, float64(1+i%2)),
			link(i, n+i%3, 1),
		)
		attributes = append(
			attributes,
			event.Batch{Vertices: []event.Vertex{{Vertex: number(i), Attributes: []event.Attribute{
				{
					Key:   fmt.Sprint("key", i%5),
					Value: event.Value{Kind: event.NumberValue, Number: float64(i % 7)},
				},
				{Key: "name", Value: event.Value{Kind: event.StringValue, Text: fmt.Sprint(i)}},
			}}}},
		)
		switch i % 3 {
		case 0:
			erasures = append(
				erasures,
				event.Batch{Vertices: []event.Vertex{{Vertex: number(i), Erase: true}}},
			)
		case 1:
			removals = append(
				removals,
				event.Batch{
					Edges: []event.Edge{{Src: number(i), Dst: number(n + i%3), Remove: true}},
				},
			)
		}
	}
	apply := func(s *Store, reverse bool) {
		for _, part := range [][]event.Batch{{mentioned}, attributes, removals, erasures} {
			part = slices.Clone(part)
			if reverse {
				slices.Reverse(part)
			}
			for i := range part {
				s.Apply(&part[i])
			}
		}
		s.Compact()
	}
	forth, back := newTestStore(t, Config{hubDegree: 8}), newTestStore(t, Config{hubDegree: 8})
	apply(forth, false)
	apply(back, true)
	if part := differ(forth, back); part != "" {
		t.Fatal(part)
	}
	if err := back.Check(); err != nil {
		t.Fatal(err)
	}
}
