package web

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"
	"time"

	"gqlstream/quant"
)

// info holds the part of the answers that does not change while the server runs.
type info struct {
	Pipeline   string     `json:"pipeline"`
	Version    string     `json:"version"`
	Instance   string     `json:"instance"`
	Started    time.Time  `json:"started"`
	Classes    []string   `json:"classes"`
	Flags      []flagInfo `json:"flags"`
	Explain    bool       `json:"explain"`    // estimates can be explained
	Quarantine bool       `json:"quarantine"` // entries are shown
	Quiet      float64    `json:"quiet_seconds"`
	NATS       string     `json:"nats"` // address of the server, for commands that the page shows
}

type flagInfo struct {
	Name    string `json:"name"`
	Meaning string `json:"meaning"`
	Action  string `json:"action"`
}

func askInfo(_ context.Context, v *view, _ *asked) (any, error) {
	out := info{
		Pipeline: v.config.Pipeline, Version: v.config.Version, Instance: v.instance,
		Started: v.started.UTC(), Classes: v.config.Classes,
		Explain: v.config.Explain != nil, Quarantine: v.config.Quarantine != nil, Quiet: v.config.Quiet.Seconds(), NATS: v.config.NATS,
	}
	for _, d := range quant.FlagDocs() {
		out.Flags = append(out.Flags, flagInfo{d.Name, d.Meaning, d.Action})
	}
	return out, nil
}

// detail is one community with the latest estimate of each method.
type detail struct {
	Name       string           `json:"name"`
	Definition string           `json:"definition,omitempty"` // of a community by rule
	Main       string           `json:"main"`                 // the method that the lists show
	Updated    time.Time        `json:"updated"`
	Estimates  []quant.Estimate `json:"estimates"`
}

func (d detail) list() []quant.Estimate { return d.Estimates }

func askCommunity(_ context.Context, v *view, q *asked) (any, error) {
	q.word("format", formats...)
	v.store.mu.RLock()
	defer v.store.mu.RUnlock()
	c := v.store.byName[q.name]
	if c == nil {
		return nil, refuse(http.StatusNotFound, "no such community")
	}
	main := c.main()
	out := detail{Name: c.name, Definition: v.store.definitions[c.name], Main: main.method, Updated: main.latest.received.UTC()}
	for _, ser := range c.series {
		out.Estimates = append(out.Estimates, ser.latest.estimate)
	}
	return out, nil
}

const (
	estimatesDefault = 1_000
	estimatesMax     = 10_000
)

// historyAnswer is a part of a series.
type historyAnswer struct {
	Community string           `json:"community"`
	Method    string           `json:"method"`
	WholeFrom *time.Time       `json:"whole_from"` // null: nothing is left out
	Truncated bool             `json:"truncated"`  // older ones were cut off by the limit
	Estimates []quant.Estimate `json:"estimates"`
}

func (a historyAnswer) list() []quant.Estimate { return a.Estimates }

func askEstimates(ctx context.Context, v *view, q *asked) (any, error) {
	from, to := q.time("from"), q.time("to")
	limit := q.limit(estimatesDefault, 1, estimatesMax)
	points := q.number("points", 0, 2, estimatesMax)
	q.word("format", formats...)
	part, err := v.asked(q, from, to)
	if err != nil {
		return nil, err
	}
	if n := len(part.records); points == 0 && limit < n && part.records[n-limit].at.After(part.whole) {
		from = part.whole // memory has all that is asked for
	}
	out, err := v.withHistory(ctx, part, from, to, math.MaxInt)
	if err != nil {
		return nil, err
	}
	if points > 0 && !q.query.Has("limit") {
		limit = limitAll
	}
	if n := len(out.Estimates); n > limit {
		out.Estimates, out.Truncated = out.Estimates[n-limit:], true
	}
	if points > 0 {
		out.Estimates = spread(out.Estimates, points)
	}
	return out, nil
}

// spread keeps at most n estimates, n > 1, evenly spaced, the first and the last included.
func spread[T any](list []T, n int) []T {
	if len(list) <= n {
		return list
	}
	out := make([]T, n)
	for i := range out {
		out[i] = list[i*(len(list)-1)/(n-1)]
	}
	return out
}

// memoryPart holds the records in memory of a series in a range of time.
type memoryPart struct {
	community, method string
	records           []*record
	confidence        float64   // of the latest record
	since, whole      time.Time // it reaches back to here; from here on nothing is missing
}

// asked returns the records in memory of the community and method that a question names.
func (v *view) asked(q *asked, from, to time.Time) (memoryPart, error) {
	if q.err != nil {
		return memoryPart{}, q.err
	}
	if part, ok := v.memory(q.name, q.query.Get("method"), from, to); ok {
		return part, nil
	}
	return memoryPart{}, refuse(http.StatusNotFound, "no such community or method")
}

func (v *view) memory(name, method string, from, to time.Time) (memoryPart, bool) {
	v.store.mu.RLock()
	defer v.store.mu.RUnlock()
	c := v.store.byName[name]
	if c == nil || c.find(method) == nil {
		return memoryPart{}, false
	}
	ser := c.find(method)
	p := memoryPart{community: c.name, method: ser.method, records: ser.between(from, to), since: ser.since, whole: ser.whole.UTC()}
	p.confidence = cmp.Or(ser.latest.estimate.Confidence, quant.DefaultOptions().Confidence)
	return p, true
}

// behind returns records that were read of the log out, and behind them those of memory that are newer.
func (p *memoryPart) behind(older []*record) []*record {
	last := uint64(0)
	if n := len(older); n > 0 {
		last = older[n-1].estimate.Position
	}
	return slices.Concat(older, slices.DeleteFunc(slices.Clone(p.records), func(r *record) bool {
		return r.at.Before(p.whole) && r.estimate.Position <= last
	}))
}

// withHistory puts what Config.History has before the part that memory holds whole, unless
// memory has enough records, thinned, of all that is asked for. Without a History the
// thinned records stand there.
func (v *view) withHistory(ctx context.Context, p memoryPart, from, to time.Time, enough int) (historyAnswer, error) {
	out := historyAnswer{Community: p.community, Method: p.method, Estimates: []quant.Estimate{}}
	reaches := !p.since.After(from)
	older := v.config.History != nil && from.Before(p.whole) && !(reaches && len(p.records) >= enough)
	switch {
	case older:
		until := p.whole.Add(-1)
		if !to.IsZero() && to.Before(until) {
			until = to
		}
		stored, complete, err := v.config.History(ctx, p.community, p.method, from, until)
		if err != nil {
			return out, err
		}
		if !complete {
			out.WholeFrom = &p.whole
		}
		list := make([]*record, 0, len(stored))
		for i := range stored {
			if check(&stored[i], len(v.config.Classes)) == nil {
				list = append(list, newRecord(&stored[i], nil, time.Time{}))
			}
		}
		if !reaches && (to.IsZero() || !to.Before(p.whole)) {
			v.store.remember(p, list, from, complete)
		}
		p.records = p.behind(list)
	case from.Before(p.whole):
		out.WholeFrom = &p.whole
	}
	for _, rec := range p.records {
		out.Estimates = append(out.Estimates, rec.estimate)
	}
	return out, nil
}

const (
	quarantineDefault = 20
	quarantineMax     = 100
)

// QuarantineEntry is a message, or an event of one, that was refused.
type QuarantineEntry struct {
	Entry    uint64    `json:"entry"` // its number, as commands take it
	Time     time.Time `json:"time"`  // when it was refused
	Kind     string    `json:"kind"`
	Reason   string    `json:"reason"`
	Detail   string    `json:"detail"`
	Position uint64    `json:"position"` // in the log
	Index    int       `json:"index"`    // of the event in its message; -1: all of it
	Retried  bool      `json:"retried"`
	Bytes    int       `json:"bytes"`    // of the original
	Original string    `json:"original"` // its beginning, where it is text
}

func askQuarantine(ctx context.Context, v *view, q *asked) (any, error) {
	limit := q.number("limit", quarantineDefault, 1, quarantineMax)
	switch {
	case q.err != nil:
		return nil, q.err
	case v.config.Quarantine == nil:
		return nil, refuse(http.StatusNotFound, "this server does not show the quarantine")
	}
	entries, err := v.config.Quarantine(ctx, q.query.Get("reason"), limit)
	return map[string]any{"entries": append([]QuarantineEntry{}, entries...)}, err
}
