package graphstore

import (
	"sort"

	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// fromErasure marks an assertion that is not in the batch: an erasure or an
// expiry, which sets its subject to nothing.
const fromErasure = ^uint32(0)

// step is shared by the parts of a store while they apply one batch. Each part is told what the
// batch asserts, event by event; its apply then sorts the assertions, lets the last about each key
// stand, writes what differs from what it holds, and lists the difference in the delta.
type step struct {
	batch   *event.Batch
	now     event.Time // log time
	delta   Delta
	refused []event.Refusal

	originals []byte  // backing of Refusal.Original
	before    []int   // how many events were refused before each refusal of the batch, once anybody asks
	scratch   []entry // the other buffer of sortEntries
}

// begin empties the step for a batch.
func (p *step) begin(b *event.Batch) {
	p.batch, p.now = b, max(p.now, b.Time)
	d := &p.delta
	*d = Delta{
		Position: b.Last, Time: p.now,
		Erased: emptied(d.Erased), Reused: emptied(d.Reused),
		Edges: emptied(d.Edges), Degrees: emptied(d.Degrees), Labels: emptied(d.Labels), Audits: emptied(d.Audits),
		Predictions: emptied(d.Predictions), Members: emptied(d.Members),
	}
	clear(p.refused)
	p.refused, p.originals, p.scratch, p.before = emptied(p.refused), emptied(p.originals), emptied(p.scratch), emptied(p.before)
}

// scratchMax bounds the elements of scratch memory that are kept from one batch to the next. A batch that needed
// more, such as one that brings millions of memberships at once, must not hold its memory for ever.
const scratchMax = 1 << 20

// emptied returns the memory of a slice for the next batch.
func emptied[T any](s []T) []T {
	if cap(s) > scratchMax {
		return nil
	}
	return s[:0]
}

// standing sorts assertions by key and keeps the last about each key.
func (p *step) standing(asserted []entry) []entry {
	asserted, p.scratch = sortEntries(asserted, p.scratch)
	kept := asserted[:0]
	for i, e := range asserted {
		if i+1 == len(asserted) || asserted[i+1].key != e.key {
			kept = append(kept, e)
		}
	}
	return kept
}

// refuse lists event i of a kind as not applied. Its original lasts until the next batch.
func (p *step) refuse(kind event.Kind, i int, reason event.Reason, detail string) {
	at := len(p.originals)
	p.originals = wire.AppendJSON(p.originals, p.batch, kind, i)
	p.refused = append(p.refused, event.Refusal{
		Position: p.positionOf(kind, i), Index: p.indexInMessage(kind, i),
		Kind: kind, Reason: reason, Detail: detail, Original: p.originals[at:len(p.originals):len(p.originals)],
	})
}

// RefusalOf returns the refusal of event i of a kind in a batch.
func RefusalOf(b *event.Batch, kind event.Kind, i int, reason event.Reason, detail string) event.Refusal {
	p := step{batch: b}
	p.refuse(kind, i, reason, detail)
	return p.refused[0]
}

func (p *step) positionOf(kind event.Kind, i int) event.Position {
	at, _ := p.batch.Stamp(kind, i)
	return at
}

// indexInMessage returns which event of its message event i is: its rank among
// the events of that message in the batch, with room for those that did not make
// it into the batch. Positions do not decrease, nor does the index within a message.
func (p *step) indexInMessage(kind event.Kind, i int) int {
	at, list := p.positionOf(kind, i), p.batch.Refused
	if len(p.before) == 0 {
		p.before = append(p.before, 0)
		for _, r := range list {
			p.before = append(p.before, p.before[len(p.before)-1]+1+r.More)
		}
	}
	first := sort.Search(len(list), func(j int) bool { return list[j].Position >= at })
	end := sort.Search(len(list), func(j int) bool { return list[j].Position > at })
	before := p.before[first : end+1]
	rank := i - sort.Search(i, func(j int) bool { return p.positionOf(kind, j) >= at })
	return rank + before[refusedAhead(rank, end-first, func(j int) int { return list[first+j].Index - (before[j] - before[0]) })] - before[0]
}

// refusedAhead returns how many of n refusals of a message lie before the event that is in
// the batch and has a rank there. soundBefore returns how many such events refusal j has before it.
func refusedAhead(rank, n int, soundBefore func(j int) int) int {
	return sort.Search(n, func(j int) bool { return soundBefore(j) > rank })
}
