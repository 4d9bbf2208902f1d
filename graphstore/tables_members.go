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

func (s *Store) communityRows(visit func([]vector) error) error {
	list := s.members.communities
	first := 0
	var names, keys texts
	var values valueRows
	var rules, configured, retired []uint8
	flush := func(end int) error {
		rows := append([]vector{
			vectorOf("community", sequence(first, end)), names.vector("name"), vectorOf("rule", rules),
			vectorOf("configured", configured), vectorOf("retired", retired), keys.vector("key"),
		}, values.vectors()...)
		first, names, keys, values, rules, configured, retired = end, texts{}, texts{}, valueRows{}, nil, nil, nil
		return visit(rows)
	}
	for i := range list {
		c := &list[i]
		names.append(c.rule.Name, true)
		rules = append(rules, uint8(c.rule.Kind))
		configured = append(configured, bit(c.configured))
		retired = append(retired, bit(c.retired))
		keys.append(c.rule.Key, c.rule.Kind == ByAttribute)
		values.append(c.rule.Value)
		text := len(names.bytes) + len(keys.bytes) + len(values.texts.bytes)
		if i+1-first == chunkRowsMax || text >= chunkBytesMax {
			if err := flush(i + 1); err != nil {
				return err
			}
		}
	}
	return flush(len(list))
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
