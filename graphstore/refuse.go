package graphstore

import "gqlstream/ingest/event"

// refuse notes that event i of a kind was not applied.
func (s *Store) refuse(b *event.Batch, kind event.Kind, i int, reason event.Reason, detail string) {
	s.work.refused = append(s.work.refused, event.Refusal{
		Position: position(b, kind, i), Index: indexInMessage(b, kind, i),
		Kind: kind, Reason: reason, Detail: detail, Original: s.original(b, kind, i),
	})
}

// original returns event i of a kind as JSON, in memory that lasts until the next
// Apply.
func (s *Store) original(b *event.Batch, kind event.Kind, i int) []byte {
	text := s.work.originals
	at := len(text)
	switch kind {
	case event.KindEdge:
		text = b.Edges[i].AppendJSON(text)
	case event.KindLabel:
		text = b.Labels[i].AppendJSON(text)
	case event.KindPrediction:
		text = b.Predictions[i].AppendJSON(text)
	case event.KindMember:
		text = b.Members[i].AppendJSON(text)
	case event.KindVertex:
		text = b.Vertices[i].AppendJSON(text)
	}
	s.work.originals = text
	return text[at:len(text):len(text)]
}

// position returns the position of event i of a kind.
func position(b *event.Batch, kind event.Kind, i int) event.Position {
	switch kind {
	case event.KindEdge:
		return b.Edges[i].Position
	case event.KindLabel:
		return b.Labels[i].Position
	case event.KindPrediction:
		return b.Predictions[i].Position
	case event.KindMember:
		return b.Members[i].Position
	}
	return b.Vertices[i].Position
}

// indexInMessage returns which event of its message event i is: its rank among
// the events of that message in the batch, with room for those that did not make
// it into the batch.
func indexInMessage(b *event.Batch, kind event.Kind, i int) int {
	at := position(b, kind, i)
	index := 0
	for j := i - 1; j >= 0 && position(b, kind, j) == at; j-- {
		index++
	}
	for j := range b.Refused { // in order of index
		if r := &b.Refused[j]; r.Position == at && r.Kind == kind && r.Index >= 0 && r.Index <= index {
			index++
		}
	}
	return index
}
