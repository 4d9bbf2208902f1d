package wire

import (
	"encoding/json"
	"fmt"
	"time"

	"gqlstream/ingest/event"
)

// get sets c to the value of a field at v, or leaves it absent if the event has the default.
func (s *fieldSpec) get(v any, c *Cell) {
	switch v := v.(type) {
	case *event.ID:
		c.setID(*v, true)
	case *event.Reference:
		c.setID(v.ID, v.Given)
	case *string:
		c.setText(TextCell, *v)
	case *float64:
		if *v != 0 && *v != 1 {
			c.Kind, c.Number = NumberCell, *v
		}
	case *share:
		if *v != 0 {
			c.Kind, c.Number = NumberCell, float64(*v)/event.One
		}
	case *event.Time:
		if *v != 0 {
			c.Kind, c.Integer = TimeCell, uint64(*v)
		}
	case *time.Duration: // as text, because a float64 of seconds cannot hold every duration
		if *v != 0 {
			c.setText(TextCell, v.String())
		}
	case *event.Class:
		if c.Kind = NullCell; *v != event.NoClass {
			c.Kind, c.Integer = UintCell, uint64(*v)
		}
	case *event.Role:
		if *v != 0 {
			c.setText(TextCell, v.String())
		}
	case *event.Op:
		c.setText(TextCell, v.String())
	case *leaving:
		if *v == 0 {
			c.setText(TextCell, s.words[1])
		}
	case *bool:
		if *v && s.holds == &flagType {
			c.Kind, c.Integer = BoolCell, 1
		} else if *v {
			c.setText(TextCell, s.words[1])
		}
	case *uint32:
		if *v > 1 {
			c.Kind, c.Integer = UintCell, uint64(*v)
		}
	case *[]uint32:
		c.setList(*v)
	case *[]event.Attribute:
		c.setText(ObjectCell, attributesText(*v))
	case *json.RawMessage:
		c.setText(ObjectCell, alias(*v))
	case nil: // the class of a prediction or a post: its probabilities are written
	default:
		panic(fmt.Sprintf("wire: a %T is in no cell", v))
	}
}

// setList sets c to a list of probabilities in units.
func (c *Cell) setList(list []uint32) {
	c.Kind, c.List = ListCell, make([]float64, len(list))
	for k, units := range list {
		c.List[k] = float64(units) / event.One
	}
}

// setID sets c to a vertex id, if there is one.
func (c *Cell) setID(id event.ID, given bool) {
	if c.setText(TextCell, id.Name); given && id.Name == "" {
		c.Kind, c.Integer = UintCell, id.Number
	}
}

// setText sets c to a text, or to an object by its JSON, unless it is empty.
func (c *Cell) setText(kind CellKind, s string) {
	if s != "" {
		c.Kind, c.Text = kind, s
	}
}

// Copy appends event i of a kind in src to dst, with a copy of the text in it.
func Copy(dst *event.Batch, src *event.Batch, kind event.Kind, i int) {
	dst.Copy(kind, src, i)
	copyLists(dst, kind, dst.Count(kind)-1)
}

// copyLists copies the texts and lists of event i of a kind into the batch's memory.
func copyLists(b *event.Batch, kind event.Kind, i int) {
	for _, s := range fields[kind] {
		switch v := s.value(b, i).(type) {
		case *event.ID:
			v.Name = b.Keep(v.Name)
		case *event.Reference:
			v.ID.Name = b.Keep(v.ID.Name)
		case *string:
			*v = b.Keep(*v)
		case *[]uint32:
			units := b.Units(len(*v))
			copy(units, *v)
			*v = units
		case *[]event.Attribute:
			*v = b.KeepAttributes(*v)
			for j := range *v {
				a := &(*v)[j]
				a.Key, a.Value.Text = b.Keep(a.Key), b.Keep(a.Value.Text)
			}
		case *json.RawMessage:
			if *v != nil {
				*v = bytesOf(b.Keep(alias(*v)))
			}
		}
	}
}
