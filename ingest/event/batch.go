package event

import (
	"slices"
	"strings"
	"unsafe"
)

// allocate returns n more elements of a memory block. If the block is full it allocates another
// one; pieces handed out earlier stay valid.
func allocate[T any](memory *[]T, n, least int) []T {
	at := len(*memory)
	if at+n > cap(*memory) {
		*memory, at = make([]T, 0, max(2*cap(*memory), n, least)), 0
	}
	*memory = (*memory)[:at+n]
	return (*memory)[at : at+n : at+n]
}

// Units returns a fresh slice of k units for a Prediction or a Post of this batch, all
// zero. It is owned by the batch and valid until the next Reset.
func (b *Batch) Units(k int) []uint32 {
	units := allocate(&b.units, k, 1024)
	clear(units)
	return units
}

// Keep copies s into the batch's own memory and returns the copy, which is valid
// until the next Reset.
func (b *Batch) Keep(s string) string {
	if s == "" {
		return ""
	}
	text := allocate(&b.text, len(s), 4096)
	copy(text, s)
	return unsafe.String(unsafe.SliceData(text), len(text))
}

// KeepAttributes copies a into the batch's own memory and returns the copy, which
// is nil without attributes and valid until the next Reset.
func (b *Batch) KeepAttributes(a []Attribute) []Attribute {
	if len(a) == 0 {
		return nil
	}
	kept := allocate(&b.attributes, len(a), 256)
	copy(kept, a)
	return kept
}

// list holds the events of one kind.
type list[T any] []T

// events is a list of events of any kind.
type events interface {
	count() int
	extend()
	copyFrom(other events, i int)
	cut(n int)
}

func (l *list[T]) count() int                   { return len(*l) }
func (l *list[T]) extend()                      { *l = append(*l, *new(T)) }
func (l *list[T]) copyFrom(other events, i int) { *l = append(*l, (*other.(*list[T]))[i]) }

// cut also clears the removed events, because they may hold pointers.
func (l *list[T]) cut(n int) {
	clear((*l)[n:])
	*l = (*l)[:n]
}

// of returns the events of a kind. It panics on a kind that has no list.
func (b *Batch) of(k Kind) events {
	switch k {
	case KindEdge:
		return (*list[Edge])(&b.Edges)
	case KindLabel:
		return (*list[Label])(&b.Labels)
	case KindPrediction:
		return (*list[Prediction])(&b.Predictions)
	case KindPost:
		return (*list[Post])(&b.Posts)
	case KindMember:
		return (*list[Member])(&b.Members)
	case KindVertex:
		return (*list[Vertex])(&b.Vertices)
	case KindControl:
		return (*list[Control])(&b.Controls)
	}
	panic("event: a batch has no list of " + k.String() + " events")
}

// Count returns the number of events of a kind in the batch.
func (b *Batch) Count(k Kind) int {
	switch k {
	case KindEdge: // of most files: without the call through an interface
		return len(b.Edges)
	default:
		return b.of(k).count()
	}
}

// Extend appends an empty event of a kind.
func (b *Batch) Extend(k Kind) { b.of(k).extend() }

// Copy appends event i of a kind in other; both then share the event's memory.
func (b *Batch) Copy(k Kind, other *Batch, i int) { b.of(k).copyFrom(other.of(k), i) }

// Truncate removes the events of a kind from the nth on.
func (b *Batch) Truncate(k Kind, n int) { b.of(k).cut(n) }

// At returns the fields for the position, the index and the time of event i of a kind.
func (b *Batch) At(k Kind, i int) (*Position, *uint32, *Time) {
	switch k {
	case KindEdge:
		return &b.Edges[i].Position, &b.Edges[i].Index, &b.Edges[i].Time
	case KindLabel:
		return &b.Labels[i].Position, &b.Labels[i].Index, &b.Labels[i].Time
	case KindPrediction:
		return &b.Predictions[i].Position, &b.Predictions[i].Index, &b.Predictions[i].Time
	case KindPost:
		return &b.Posts[i].Position, &b.Posts[i].Index, &b.Posts[i].Time
	case KindMember:
		return &b.Members[i].Position, &b.Members[i].Index, &b.Members[i].Time
	case KindVertex:
		return &b.Vertices[i].Position, &b.Vertices[i].Index, &b.Vertices[i].Time
	case KindControl:
		return &b.Controls[i].Position, &b.Controls[i].Index, &b.Controls[i].Time
	}
	panic("event: a batch has no list of " + k.String() + " events")
}

// Stamp returns the position and the time of event i of a kind.
func (b *Batch) Stamp(k Kind, i int) (Position, Time) {
	position, _, at := b.At(k, i)
	return *position, *at
}

// Counts counts the contents of a batch: the events of each kind, the refusals, and the late events
// of each kind.
type Counts struct {
	Count   [Kinds]int
	Refused int
	Late    [Kinds]int
}

// Counts returns the present counts of the batch.
func (b *Batch) Counts() Counts {
	m := Counts{Refused: len(b.Refused), Late: b.Late}
	for k := range m.Count {
		m.Count[k] = b.Count(Kind(k))
	}
	return m
}

// Rollback removes everything appended since m. The backing memory of the removed events stays with
// the batch until the next Reset.
func (b *Batch) Rollback(m Counts) {
	for k, n := range m.Count {
		b.Truncate(Kind(k), n)
	}
	(*list[Refusal])(&b.Refused).cut(m.Refused)
	b.Late = m.Late
}

// SetsClock reports whether the batch, which then holds nothing else, sets log time to its own.
func (b *Batch) SetsClock() bool {
	return slices.ContainsFunc(b.Controls, func(c Control) bool { return c.Op == SetClock })
}

// Notes returns the texts of the notes, which stay valid after a Reset.
func (b *Batch) Notes() (texts []string) {
	for i := range b.Controls {
		if b.Controls[i].Op == Note {
			texts = append(texts, strings.Clone(b.Controls[i].Text))
		}
	}
	return texts
}
