package ingest

import "gqlstream/ingest/event"

// mark remembers how far a batch was filled, so that what one message put into it
// can be summed up for the cutter, or taken out again.
type mark struct {
	edges, labels, predictions, members, vertices, controls, refused int
	late                                                             [event.Kinds]int
}

func markOf(b *event.Batch) mark {
	return mark{
		edges: len(b.Edges), labels: len(b.Labels), predictions: len(b.Predictions),
		members: len(b.Members), vertices: len(b.Vertices), controls: len(b.Controls),
		refused: len(b.Refused), late: b.Late,
	}
}

// rollback takes everything out of b that was added since the mark.
func (m mark) rollback(b *event.Batch) {
	b.Edges = truncate(b.Edges, m.edges)
	b.Labels = truncate(b.Labels, m.labels)
	b.Predictions = truncate(b.Predictions, m.predictions)
	b.Members = truncate(b.Members, m.members)
	b.Vertices = truncate(b.Vertices, m.vertices)
	b.Controls = truncate(b.Controls, m.controls)
	b.Refused = truncate(b.Refused, m.refused)
	b.Late = m.late
}

func truncate[T any](s []T, n int) []T {
	clear(s[n:])
	return s[:n]
}

// unit sums up what was added to b since the mark. Its Time is the largest event
// time; in received mode the caller sets it to the message's time instead.
func (m mark) unit(b *event.Batch, mode TimeMode) unit {
	var u unit
	now := markOf(b)
	u.Events = now.edges - m.edges + now.labels - m.labels + now.predictions - m.predictions +
		now.members - m.members + now.vertices - m.vertices + now.controls - m.controls +
		now.refused - m.refused
	for _, v := range b.Vertices[m.vertices:] {
		u.Alone = u.Alone || v.Erase
	}
	for _, c := range b.Controls[m.controls:] {
		u.Flush = u.Flush || c.Op == event.Flush
		u.Checkpoint = u.Checkpoint || c.Op == event.Checkpoint
		u.Configure = u.Configure || c.Op == event.Configure
	}
	if mode == EventTime {
		u.Time = m.latest(b)
	}
	return u
}

// latest returns the largest event time since the mark, or 0 without any.
func (m mark) latest(b *event.Batch) event.Time {
	var t event.Time
	see := func(x event.Time) {
		if x != 0 && (t == 0 || x > t) {
			t = x
		}
	}
	for i := range b.Edges[m.edges:] {
		see(b.Edges[m.edges+i].Time)
	}
	for i := range b.Labels[m.labels:] {
		see(b.Labels[m.labels+i].Time)
	}
	for i := range b.Predictions[m.predictions:] {
		see(b.Predictions[m.predictions+i].Time)
	}
	for i := range b.Members[m.members:] {
		see(b.Members[m.members+i].Time)
	}
	for i := range b.Vertices[m.vertices:] {
		see(b.Vertices[m.vertices+i].Time)
	}
	for i := range b.Controls[m.controls:] {
		see(b.Controls[m.controls+i].Time)
	}
	return t
}

// holdsMoreThanTicks reports whether something that can change an estimate was
// added to b since the mark.
func (m mark) holdsMoreThanTicks(b *event.Batch) bool {
	now := markOf(b)
	for _, c := range b.Controls[m.controls:] {
		if c.Op != event.Tick {
			return true
		}
	}
	now.controls, now.refused, now.late = m.controls, m.refused, m.late
	return now != m
}
