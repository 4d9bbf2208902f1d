package graphstore

import "gqlstream/ingest/event"

// valueRows collects attribute values: a kind, a text for strings, and a number
// for numbers and truth values.
type valueRows struct {
	kinds   []uint8
	texts   texts
	numbers []float64
	numeric validity
}

func (r *valueRows) append(value event.Value) {
	r.kinds = append(r.kinds, uint8(value.Kind))
	r.texts.append(value.Text, value.Kind == event.StringValue)
	r.numbers = append(r.numbers, value.Number)
	r.numeric.append(value.Kind == event.NumberValue || value.Kind == event.BoolValue)
}

func (r *valueRows) vectors() []vector {
	return []vector{
		vectorOf("kind", r.kinds), r.texts.vector("text"), vectorOf("number", r.numbers).with(r.numeric),
	}
}

// attributeRows visits attributes by key, then vertex: in that order a load gives
// keys and values the numbers that Vacuum gives them.
func (s *Store) attributeRows(visit func([]vector) error) error {
	var vertices []uint32
	var keys texts
	var values valueRows
	flush := func() error {
		rows := append([]vector{vectorOf("vertex", vertices), keys.vector("key")}, values.vectors()...)
		vertices, keys, values = nil, texts{}, valueRows{}
		return visit(rows)
	}
	for column, key := range s.attributes.keys {
		for v, x := range s.attributes.columns[column].data {
			if x == 0 {
				continue
			}
			vertices = append(vertices, uint32(v))
			keys.append(key, true)
			values.append(s.attributes.values[x-1])
			if len(vertices) == chunkRowsMax || len(keys.bytes)+len(values.texts.bytes) >= chunkBytesMax {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}

// communityTable collects definitions of communities.
type communityTable struct {
	first             int
	names, keys       texts
	values            valueRows
	expressions       texts
	roots             texts
	rules             []uint8
	configured        []uint8
	retired           []uint8
	hops, membersMost []uint32
}

func (t *communityTable) append(c *community) {
	r := &c.rule
	t.names.append(r.Name, true)
	t.rules = append(t.rules, uint8(r.Kind))
	t.configured = append(t.configured, bit(c.configured))
	t.retired = append(t.retired, bit(c.retired))
	t.keys.append(r.Key, r.Kind == ByAttribute)
	t.values.append(r.Value)
	t.expressions.append(r.Expression, r.Kind == ByExpression)
	t.roots.append(r.Root, r.Kind == Ego)
	t.hops = append(t.hops, uint32(r.Hops))
	t.membersMost = append(t.membersMost, uint32(r.MembersMax))
}

func (t *communityTable) vectors() []vector {
	columns := []vector{
		vectorOf("community", sequence(t.first, t.first+len(t.rules))), t.names.vector("name"),
		vectorOf("rule", t.rules), vectorOf("configured", t.configured), vectorOf("retired", t.retired),
		t.keys.vector("key"),
	}
	return append(append(columns, t.values.vectors()...), t.expressions.vector("expression"),
		t.roots.vector("root"), vectorOf("hops", t.hops), vectorOf("members_max", t.membersMost))
}

// bytes returns how much text the rows have.
func (t *communityTable) bytes() int {
	return len(t.names.bytes) + len(t.keys.bytes) + len(t.values.texts.bytes) +
		len(t.expressions.bytes) + len(t.roots.bytes)
}

func (s *Store) communityRows(visit func([]vector) error) error {
	list := s.members.communities
	var t communityTable
	for i := range list {
		t.append(&list[i])
		if len(t.rules) == chunkRowsMax || t.bytes() >= chunkBytesMax {
			if err := visit(t.vectors()); err != nil {
				return err
			}
			t = communityTable{first: i + 1}
		}
	}
	return visit(t.vectors())
}

func bit(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}

// memberRows visits memberships by community, then vertex.
func (s *Store) memberRows(visit func([]vector) error) error {
	var communities []uint32
	var vertices []Vertex
	var multiplicities []uint32
	flush := func() error {
		rows := []vector{
			vectorOf("community", communities), vectorOf("vertex", vertices),
			vectorOf("multiplicity", multiplicities),
		}
		communities, vertices, multiplicities = nil, nil, nil
		return visit(rows)
	}
	for i := range s.members.communities {
		c := &s.members.communities[i]
		for from := 0; from < len(c.vertices); {
			n := min(len(c.vertices)-from, chunkRowsMax-len(vertices))
			for range n {
				communities = append(communities, uint32(i))
			}
			vertices = append(vertices, c.vertices[from:from+n]...)
			multiplicities = append(multiplicities, c.multiplicities[from:from+n]...)
			from += n
			if len(vertices) == chunkRowsMax {
				if err := flush(); err != nil {
					return err
				}
			}
		}
	}
	return flush()
}
