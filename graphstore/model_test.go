package graphstore

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"gqlstream/ingest/event"
)

// model is the store's twin: maps from identities, one event at a time, in the
// order that Apply documents.
type model struct {
	windows     Windows
	edges       map[edgeID]modelEdge
	labels      map[event.ID]timedLabel
	audits      map[event.ID]Audit
	labelEnds   map[event.ID]event.Time // of labels and predictions that end
	endings     map[event.ID]event.Time
	predictions map[event.ID]modelPrediction
	attributes  map[event.ID]map[string]event.Value
	members     map[memberID]uint32
	rules       []Rule
	order       []event.ID // by vertex index; the zero ID when erased
	index       map[event.ID]Vertex
	free        []Vertex
	communities []string
	versions    []string
	models      modelVersions
	time        event.Time
}

// timedLabel is a label and when it was last asserted.
type timedLabel struct {
	Label
	at event.Time
}

type edgeID struct{ a, b event.ID }

type modelEdge struct {
	weight float64
	end    event.Time
}

type modelPrediction struct {
	units   string // the units, comparable
	version string
}

type memberID struct {
	community string
	vertex    event.ID
}

func newModel(rules []Rule) *model {
	m := &model{
		labelEnds: map[event.ID]event.Time{}, endings: map[event.ID]event.Time{},
		edges: map[edgeID]modelEdge{}, labels: map[event.ID]timedLabel{},
		audits:      map[event.ID]Audit{},
		predictions: map[event.ID]modelPrediction{},
		attributes:  map[event.ID]map[string]event.Value{},
		members:     map[memberID]uint32{}, rules: rules, index: map[event.ID]Vertex{},
		models: newModelVersions(),
	}
	for _, r := range rules {
		m.communities = append(m.communities, r.Name)
	}
	return m
}

func (m *model) clone() *model {
	c := *m
	c.edges, c.labels = maps.Clone(m.edges), maps.Clone(m.labels)
	c.audits = maps.Clone(m.audits)
	c.labelEnds, c.endings = maps.Clone(m.labelEnds), maps.Clone(m.endings)
	c.predictions, c.members = maps.Clone(m.predictions), maps.Clone(m.members)
	c.models.waiting, c.models.ends = maps.Clone(m.models.waiting), maps.Clone(m.models.ends)
	c.order, c.communities, c.versions = slices.Clone(m.order), slices.Clone(
		m.communities,
	), slices.Clone(m.versions)
	return &c
}

func compareIDs(a, b event.ID) int {
	return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Number, b.Number))
}

func edgeOf(a, b event.ID) edgeID {
	if compareIDs(a, b) > 0 {
		a, b = b, a
	}
	return edgeID{a, b}
}

func cloneID(id event.ID) event.ID {
	return event.ID{Name: string([]byte(id.Name)), Number: id.Number}
}

func (m *model) mention(id event.ID) {
	if _, known := m.index[id]; known {
		return
	}
	id = cloneID(id)
	if len(m.free) > 0 {
		slices.Sort(m.free)
		m.order[m.free[0]], m.index[id] = id, m.free[0]
		m.free = m.free[1:]
		return
	}
	m.index[id] = Vertex(len(m.order))
	m.order = append(m.order, id)
}

func (m *model) known(id event.ID) bool { _, ok := m.index[id]; return ok }

func (m *model) apply(b *event.Batch) {
	m.time = max(m.time, b.Time)
	var freed []Vertex
	for _, e := range b.Vertices {
		if e.Erase {
			if m.known(e.Vertex) {
				freed = append(freed, m.erase(e.Vertex))
			}
			continue
		}
		m.mention(e.Vertex)
		for _, a := range e.Attributes {
			m.setAttribute(cloneID(e.Vertex), string([]byte(a.Key)), a.Value)
		}
	}
	for _, e := range b.Edges {
		m.assertEdge(e)
	}
	for _, l := range b.Labels {
		delete(m.labels, l.Vertex)
		delete(m.audits, l.Vertex)
		delete(m.labelEnds, l.Vertex)
		if l.Class == event.NoClass {
			continue
		}
		m.mention(l.Vertex)
		m.ends(m.labelEnds, l.Vertex, l.Time, l.TTL, m.windows.Labels)
		if l.Role == event.Audit {
			m.audits[cloneID(l.Vertex)] = Audit{l.Class, l.Pi}
			continue
		}
		label := timedLabel{Label: Label{Class: l.Class, Role: l.Role}, at: cmp.Or(l.Time, m.time)}
		m.labels[cloneID(l.Vertex)] = label
	}
	for id, end := range m.labelEnds {
		if end <= m.time {
			delete(m.labels, id)
			delete(m.audits, id)
			delete(m.labelEnds, id)
		}
	}
	m.predict(b)
	for _, e := range b.Members {
		m.assertMember(e)
	}
	for key, e := range m.edges {
		if e.end != 0 && e.end <= m.time {
			delete(m.edges, key)
		}
	}
	m.free = append(m.free, freed...)
	m.applyRules()
}

// ends notes when an assertion about a vertex ends, if it does.
func (m *model) ends(
	at map[event.ID]event.Time, id event.ID, from event.Time, ttl, window time.Duration,
) {
	if ttl == 0 {
		ttl = window
	}
	if ttl != 0 {
		at[cloneID(id)] = from + event.Time(ttl)
	}
}

func (m *model) assertEdge(e event.Edge) {
	if e.Src == e.Dst {
		return
	}
	key := edgeOf(cloneID(e.Src), cloneID(e.Dst))
	if e.Remove {
		delete(m.edges, key)
		return
	}
	m.mention(e.Src)
	m.mention(e.Dst)
	edge := modelEdge{weight: e.Weight}
	if e.TTL > 0 {
		edge.end = e.Time + event.Time(e.TTL)
	} else if m.windows.Edges > 0 {
		edge.end = e.Time + event.Time(m.windows.Edges)
	}
	m.edges[key] = edge
}

func (m *model) assertMember(e event.Member) {
	for _, r := range m.rules {
		if r.Name == e.Community && r.Kind != Explicit {
			return
		}
	}
	key := memberID{string([]byte(e.Community)), cloneID(e.Vertex)}
	if e.Multiplicity == 0 {
		delete(m.members, key)
		return
	}
	m.mention(e.Vertex)
	if !slices.Contains(m.communities, e.Community) {
		m.communities = append(m.communities, key.community)
	}
	m.members[key] = e.Multiplicity
}

func (m *model) setAttribute(id event.ID, key string, value event.Value) {
	if m.attributes[id] == nil {
		m.attributes[id] = map[string]event.Value{}
	}
	value.Text = string([]byte(value.Text))
	m.attributes[id][key] = value
	if value.Kind == event.NullValue {
		delete(m.attributes[id], key)
	}
	for _, r := range m.rules {
		if r.Kind != ByAttribute || r.Key != key {
			continue
		}
		delete(m.members, memberID{r.Name, id})
		if value == r.Value {
			m.members[memberID{r.Name, id}] = 1
		}
	}
}

func (m *model) erase(id event.ID) Vertex {
	maps.DeleteFunc(m.edges, func(k edgeID, _ modelEdge) bool { return k.a == id || k.b == id })
	maps.DeleteFunc(m.members, func(k memberID, _ uint32) bool { return k.vertex == id })
	delete(m.audits, id)
	delete(m.labels, id)
	delete(m.labelEnds, id)
	delete(m.predictions, id)
	delete(m.endings, id)
	m.models.forget(id)
	delete(m.attributes, id)
	v := m.index[id]
	delete(m.index, id)
	m.order[v] = event.ID{}
	return v
}

// degrees returns the number of neighbours of every vertex and the sums of their
// edge weights.
func (m *model) degrees() (neighbors map[event.ID]int, sums map[event.ID]float64) {
	neighbors, sums = map[event.ID]int{}, map[event.ID]float64{}
	for key, e := range m.edges {
		for _, id := range []event.ID{key.a, key.b} {
			neighbors[id]++
			sums[id] += e.weight
		}
	}
	return neighbors, sums
}

func unitsKey(units []uint32) string {
	key := make([]byte, 0, 4*len(units))
	for _, u := range units {
		key = append(key, byte(u), byte(u>>8), byte(u>>16), byte(u>>24))
	}
	return string(key)
}
