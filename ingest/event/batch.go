package event

import "unsafe"

// Units returns a fresh slice of k units for a Prediction of this batch, all
// zero. It is owned by the batch and valid until the next Reset.
func (b *Batch) Units(k int) []uint32 {
	n := len(b.units)
	if n+k > cap(b.units) { // slices handed out before keep the old array
		b.units = make([]uint32, 0, max(2*cap(b.units), k, 1024))
		n = 0
	}
	b.units = b.units[:n+k]
	units := b.units[n : n+k : n+k]
	clear(units)
	return units
}

// keep copies s into the batch's own memory.
func (b *Batch) keep(s []byte) string {
	n := len(b.text)
	if n+len(s) > cap(b.text) {
		b.text = make([]byte, 0, max(2*cap(b.text), len(s), 4096))
		n = 0
	}
	b.text = append(b.text, s...)
	return alias(b.text[n:])
}

// keepAttributes copies a into the batch's own memory; none is nil.
func (b *Batch) keepAttributes(a []Attribute) []Attribute {
	if len(a) == 0 {
		return nil
	}
	n := len(b.attributes)
	if n+len(a) > cap(b.attributes) {
		b.attributes = make([]Attribute, 0, max(2*cap(b.attributes), len(a), 256))
		n = 0
	}
	b.attributes = append(b.attributes, a...)
	return b.attributes[n : n+len(a) : n+len(a)]
}

// alias returns b as a string that shares its memory.
func alias(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// mark is a place in a batch to fall back to.
type mark struct {
	edges, labels, predictions, members, vertices, controls, refused int
	late                                                             [Kinds]int
}

func (b *Batch) mark() mark {
	return mark{
		len(b.Edges), len(b.Labels), len(b.Predictions), len(b.Members),
		len(b.Vertices), len(b.Controls), len(b.Refused), b.Late,
	}
}

// rollback takes out everything that was appended since m. The backing memory of
// what is taken out stays with the batch until the next Reset.
func (b *Batch) rollback(m mark) {
	b.Edges = cut(b.Edges, m.edges)
	b.Labels = cut(b.Labels, m.labels)
	b.Predictions = cut(b.Predictions, m.predictions)
	b.Members = cut(b.Members, m.members)
	b.Vertices = cut(b.Vertices, m.vertices)
	b.Controls = cut(b.Controls, m.controls)
	b.Refused = cut(b.Refused, m.refused)
	b.Late = m.late
}

// cut returns s[:n] and clears the rest, which may hold pointers.
func cut[T any](s []T, n int) []T {
	clear(s[n:])
	return s[:n]
}
