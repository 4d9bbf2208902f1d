package event

import (
	"errors"
	"fmt"
	"time"

	"github.com/apache/arrow/go/v17/arrow"
)

func (e *arrowEncoder) edges(events []Edge) {
	e.ops(func(i int) bool { return events[i].Remove })
	e.ids("src", func(i int) ID { return events[i].Src })
	e.ids("dst", func(i int) ID { return events[i].Dst })
	weighted := false
	for i := range events {
		weighted = weighted || !events[i].Remove && events[i].Weight != 1
	}
	if weighted {
		e.floats("weight", func(i int) float64 { return events[i].Weight })
	}
	e.times(func(i int) Time { return events[i].Time })
	e.lifetimes(func(i int) time.Duration {
		if events[i].Remove {
			return 0
		}
		return events[i].TTL
	})
}

// lifetimes adds the column of times to live, if any event has one: as text,
// because seconds in a float64 do not hold every duration.
func (e *arrowEncoder) lifetimes(ttl func(i int) time.Duration) {
	e.optionalTexts("ttl", func(i int) string {
		if d := ttl(i); d != 0 {
			return d.String()
		}
		return ""
	})
}

func (e *arrowEncoder) labels(events []Label) {
	e.ids("vertex", func(i int) ID { return events[i].Vertex })
	classes := make([]int32, e.rows)
	for i := range classes {
		classes[i] = int32(max(events[i].Class, 0))
	}
	e.add("class", arrow.PrimitiveTypes.Int32, 0, nil, arrow.Int32Traits.CastToBytes(classes))
	e.nullable(e.validity(func(i int) bool { return events[i].Class != NoClass }))
	e.optionalTexts("role", func(i int) string {
		if events[i].Role == Calibrate {
			return ""
		}
		return events[i].Role.String()
	})
	e.times(func(i int) Time { return events[i].Time })
	e.lifetimes(func(i int) time.Duration {
		if events[i].Class == NoClass {
			return 0
		}
		return events[i].TTL
	})
}

func (e *arrowEncoder) predictions(events []Prediction) error {
	e.ids("vertex", func(i int) ID { return events[i].Vertex })
	k := 0
	if len(events) > 0 {
		k = len(events[0].Units)
	}
	for i := range events {
		if n := len(events[i].Units); n != k {
			return fmt.Errorf("predictions with %d and with %d classes", k, n)
		}
	}
	for k := range k {
		e.floats(fmt.Sprintf("p%d", k), func(i int) float64 {
			return float64(events[i].Units[k]) / One
		})
	}
	e.optionalTexts("version", func(i int) string { return events[i].Version })
	e.times(func(i int) Time { return events[i].Time })
	e.lifetimes(func(i int) time.Duration { return events[i].TTL })
	return nil
}

func (e *arrowEncoder) members(events []Member) {
	e.ops(func(i int) bool { return events[i].Multiplicity == 0 })
	e.texts("community", func(i int) string { return events[i].Community })
	e.ids("vertex", func(i int) ID { return events[i].Vertex })
	counts := make([]uint32, e.rows)
	given := false
	for i := range counts {
		counts[i] = events[i].Multiplicity
		given = given || counts[i] > 1
	}
	if given {
		values := arrow.Uint32Traits.CastToBytes(counts)
		e.add("multiplicity", arrow.PrimitiveTypes.Uint32, 0, nil, values)
	}
	e.times(func(i int) Time { return events[i].Time })
}

func (e *arrowEncoder) controls(events []Control) {
	e.texts("op", func(i int) string { return events[i].Op.String() })
	e.optionalTexts("config", func(i int) string { return string(events[i].Config) })
	e.times(func(i int) Time { return events[i].Time })
}

// errNotTable is the error of attributes that a table cannot say.
var errNotTable = errors.New("a table cannot say it, send JSON")

func (e *arrowEncoder) vertices(events []Vertex) error {
	e.ids("vertex", func(i int) ID { return events[i].Vertex })
	keys, values, err := transpose(events)
	if err != nil {
		return err
	}
	for j, key := range keys {
		e.attributes(key, values[j])
	}
	erased := false
	for i := range events {
		erased = erased || events[i].Erase
	}
	if erased {
		e.bools("erase", func(i int) bool { return events[i].Erase })
	}
	e.times(func(i int) Time { return events[i].Time })
	return nil
}

// transpose returns the names of the attributes in order of first mention, and
// for each the values by event, NullValue where there is none.
func transpose(events []Vertex) (keys []string, values [][]Value, err error) {
	index := map[string]int{}
	for i := range events {
		for _, a := range events[i].Attributes {
			j, ok := index[a.Key]
			if !ok {
				if isVertexColumn(a.Key) {
					return nil, nil, fmt.Errorf("attribute %q, a field: %w", a.Key, errNotTable)
				}
				j = len(keys)
				index[a.Key] = j
				keys = append(keys, a.Key)
				values = append(values, make([]Value, len(events)))
			}
			if a.Value.Kind == NullValue {
				return nil, nil, fmt.Errorf("attribute %q is null: %w", a.Key, errNotTable)
			}
			values[j][i] = a.Value
		}
	}
	if len(keys) > AttributesPerEventMax {
		return nil, nil, fmt.Errorf("%d attributes: %w", len(keys), errNotTable)
	}
	for j, key := range keys {
		kind := NullValue
		for _, v := range values[j] {
			if v.Kind != NullValue && kind != NullValue && v.Kind != kind {
				return nil, nil, fmt.Errorf("attribute %q has two types: %w", key, errNotTable)
			}
			kind = max(kind, v.Kind)
		}
	}
	return keys, values, nil
}

// isVertexColumn reports whether a column of that name is not an attribute.
func isVertexColumn(name string) bool {
	at := findField(KindVertex, name, 0)
	return at >= 0 && fields[KindVertex][at].field != fieldAttributes
}

// attributes adds the column of one attribute, whose values have one type.
func (e *arrowEncoder) attributes(key string, values []Value) {
	kind := NullValue
	for _, v := range values {
		kind = max(kind, v.Kind)
	}
	switch kind {
	case StringValue:
		e.texts(key, func(i int) string { return values[i].Text })
	case NumberValue:
		e.floats(key, func(i int) float64 { return values[i].Number })
	case BoolValue:
		e.bools(key, func(i int) bool { return values[i].Number != 0 })
	}
	e.nullable(e.validity(func(i int) bool { return values[i].Kind != NullValue }))
}
