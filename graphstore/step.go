package graphstore

import (
	"cmp"
	"iter"
	"time"

	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// absent marks an assertion that no event of the batch makes: the subject does not exist any more,
// because it has expired or was erased.
const absent = ^uint32(0)

// step is shared by the parts of a store while they apply one batch. Each part collects the
// assertions of the batch, event by event. Its apply sorts them, keeps the last one of each key,
// writes the differences into its content, and lists them in the delta.
type step struct {
	batch   *event.Batch
	now     event.Time // log time
	endsBy  event.Time // assertions end by it; it is below now while log time stands still
	delta   Delta
	refused []event.Refusal

	overLimitPosts []uint32 // posts of the batch whose edges did not fit

	originals []byte  // backing of Refusal.Original
	scratch   []entry // the other buffer of sortEntries
}

// reset empties the step for a batch.
func (p *step) reset(b *event.Batch) {
	p.batch, p.now = b, max(p.now, b.Time)
	if b.SetsClock() {
		p.now = b.Time
	}
	p.endsBy = cmp.Or(b.EndsBy, p.now)
	d := &p.delta
	*d = Delta{
		Position:    b.Last,
		Time:        p.now,
		Erased:      emptied(d.Erased),
		Reused:      emptied(d.Reused),
		Edges:       emptied(d.Edges),
		Endpoints:   emptied(d.Endpoints),
		Labels:      emptied(d.Labels),
		Audits:      emptied(d.Audits),
		Predictions: emptied(d.Predictions),
		Evidence:    emptied(d.Evidence),
		Members:     emptied(d.Members),
		Attributes:  emptied(d.Attributes),
	}
	clear(p.refused)
	p.overLimitPosts = p.overLimitPosts[:0]
	p.refused, p.originals, p.scratch = emptied(p.refused), emptied(p.originals), emptied(p.scratch)
}

// scratchMax bounds the scratch memory, in elements, that stays allocated between batches. A batch
// that needed more, such as one with millions of memberships, must not hold its memory for ever.
const scratchMax = 1 << 20

// emptied returns the memory of a slice for the next batch.
func emptied[T any](s []T) []T {
	if cap(s) > scratchMax {
		return nil
	}
	return s[:0]
}

// ownTime returns the time t of an event: the log time if t is zero or later than the log.
func (p *step) ownTime(t event.Time) event.Time {
	if t == 0 || t > p.now {
		return p.now
	}
	return t
}

// endOf returns the end of an assertion made at time t. While log time stands still, one without a
// time of its own has that of the log, and holds from the broker's clock on. In a log of event
// times, an assertion without a time may come before any time is known: no window ends it then.
func (p *step) endOf(t event.Time, ttl, window time.Duration) event.Time {
	if t == 0 && p.now == 0 && p.endsBy == 0 {
		window = 0
	}
	if t == 0 || t == p.now {
		t = p.endsBy
	}
	return endOf(t, ttl, window)
}

// sorted sorts assertions by key. Assertions with one key stay in their order.
func (p *step) sorted(asserted []entry) []entry {
	asserted, p.scratch = sortEntries(asserted, p.scratch)
	return asserted
}

// runs visits sorted entries, key by key.
func runs(sorted []entry) iter.Seq[[]entry] {
	return func(yield func([]entry) bool) {
		for from, i := 0, 1; i <= len(sorted); i++ {
			if i < len(sorted) && sorted[i].key == sorted[from].key {
				continue
			}
			if !yield(sorted[from:i]) {
				return
			}
			from = i
		}
	}
}

// lastOfEach sorts assertions by key and keeps the last one of each key.
func (p *step) lastOfEach(asserted []entry) []entry {
	asserted = p.sorted(asserted)
	kept := asserted[:0]
	for i, e := range asserted {
		if i+1 == len(asserted) || asserted[i+1].key != e.key {
			kept = append(kept, e)
		}
	}
	return kept
}

// refuse lists event i of a kind as refused. Its original is valid until the next batch.
func (p *step) refuse(kind event.Kind, i int, reason event.Reason, detail string) {
	at := len(p.originals)
	p.originals = wire.AppendJSON(p.originals, p.batch, kind, i)
	position, index, _ := p.batch.At(kind, i)
	p.refused = append(p.refused, event.Refusal{
		Position: *position,
		Index:    int(*index),
		Kind:     kind,
		Reason:   reason,
		Detail:   detail,
		Original: p.originals[at:len(p.originals):len(p.originals)],
	})
}

// RefusalOf returns the refusal of event i of a kind in a batch.
func RefusalOf(
	b *event.Batch, kind event.Kind, i int, reason event.Reason, detail string,
) event.Refusal {
	p := step{batch: b}
	p.refuse(kind, i, reason, detail)
	return p.refused[0]
}
