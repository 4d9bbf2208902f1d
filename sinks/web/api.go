package web

import (
	"context"
	"net/http"
	"slices"
	"time"

	"gqlstream/ingest"
	"gqlstream/quant"
	"gqlstream/sinks"
	"gqlstream/sinks/alerts"
)

// info holds the part of the answers that does not change while the server runs.
type info struct {
	Pipeline string         `json:"pipeline"`
	Version  string         `json:"version"`
	Instance string         `json:"instance"`
	Started  time.Time      `json:"started"`
	Classes  []string       `json:"classes"`
	Display  alerts.Display `json:"display"`
	Flags    []flagInfo     `json:"flags"`
	Quiet    float64        `json:"quiet_seconds"`
	Public   []string       `json:"public"`   // communities with a chart that anybody may embed
	Answers  bool           `json:"answers"`  // the page takes labels
	Silences bool           `json:"silences"` // the page takes silences and acknowledgements
	State    string         `json:"state"`    // directory, for commands that the page shows
	NATS     string         `json:"nats"`     // address of the server, for such commands
}

func askInfo(_ context.Context, s *Server, _ *params) (any, error) {
	out := info{
		Pipeline: s.config.Pipeline, Version: s.config.Version, Instance: s.instance,
		Started: s.started.UTC(), Classes: s.config.Classes,
		Display: s.config.Display, Flags: flagInfos(),
		Quiet: s.config.Quiet.Seconds(), NATS: s.config.NATS,
		Public: s.config.Public, Answers: s.config.Publish != nil,
		Silences: s.config.Note != nil, State: s.config.State,
	}
	return out, nil
}

// detail is one community with the latest estimate of each method.
type detail struct {
	Name       string           `json:"name"`
	Definition string           `json:"definition,omitempty"` // of a community by rule
	LooksLike  string           `json:"looks_like,omitempty"` // another name that looks the same
	Main       string           `json:"main"`                 // the method that the lists show
	Updated    time.Time        `json:"updated"`
	Estimates  []quant.Estimate `json:"estimates"`
}

func (d detail) list() []quant.Estimate { return d.Estimates }

func askCommunity(_ context.Context, s *Server, q *params) (any, error) {
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	c := s.store.byName[q.query.Get("community")]
	if c == nil {
		return nil, refuse(http.StatusNotFound, "no such community")
	}
	main := c.main()
	out := detail{
		Name:       c.name,
		Definition: s.store.definitions[c.name],
		LooksLike:  s.store.looksLike(c),
		Main:       main.method,
		Updated:    main.latest.received.UTC(),
	}
	for _, ser := range c.series {
		out.Estimates = append(out.Estimates, ser.latest.estimate)
	}
	return out, nil
}

const namesMax = 64 // communities that a question may name

// changedAnswer holds the newest records that came after a position.
type changedAnswer struct {
	Instance  string            `json:"instance"` // as info has it
	Position  uint64            `json:"position"` // to ask after the next time
	Estimates []*quant.Estimate `json:"estimates"`
}

// positionMax bounds positions in questions: the largest integer that all clients of JSON read.
const positionMax = 1<<53 - 1

// askChanged answers with the records after a position: the newest one of each community and
// method.
func askChanged(_ context.Context, s *Server, q *params) (any, error) {
	names := slices.Compact(slices.Sorted(slices.Values(q.query["community"])))
	after := q.number("after", 0, 0, positionMax)
	if len(q.query["community"]) > namesMax {
		q.bad("community: name up to %d, or none for all", namesMax)
	}
	if q.err != nil {
		return nil, q.err
	}
	list, position := s.store.changed(names, uint64(after))
	out := changedAnswer{
		Instance:  s.instance,
		Position:  position,
		Estimates: make([]*quant.Estimate, len(list)),
	}
	for i, r := range list {
		out.Estimates[i] = &r.estimate
	}
	return out, nil
}

const (
	estimatesDefault = 1_000
	estimatesMax     = 10_000
)

// historyAnswer is a part of the records of a community by a method.
type historyAnswer struct {
	Community string           `json:"community"`
	Method    string           `json:"method"`
	Truncated bool             `json:"truncated"` // there are older ones
	Estimates []quant.Estimate `json:"estimates"`
}

func (a historyAnswer) list() []quant.Estimate { return a.Estimates }

func askEstimates(ctx context.Context, s *Server, q *params) (any, error) {
	from, to := q.time("from"), q.time("to")
	limit := q.limit(estimatesDefault, 1, estimatesMax)
	latest, err := s.latest(q, q.query.Get("community"))
	if err != nil {
		return nil, err
	}
	return s.records(ctx, latest, from, to, limit)
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

// latest returns the latest record of a community by the method that a question names.
func (s *Server) latest(q *params, name string) (*quant.Estimate, error) {
	if q.err != nil {
		return nil, q.err
	}
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	if c := s.store.byName[name]; c != nil {
		if found := c.find(q.query.Get("method")); found != nil {
			return &found.latest.estimate, nil
		}
	}
	return nil, refuse(http.StatusNotFound, "no such community or method: %s", name)
}

// records returns the newest that were published of the community and method of an estimate in
// [from, to].
func (s *Server) records(
	ctx context.Context, of *quant.Estimate, from, to time.Time, most int,
) (historyAnswer, error) {
	out := historyAnswer{Community: of.Community, Method: of.Method, Estimates: []quant.Estimate{}}
	stored, whole, err := s.config.Records(
		ctx,
		sinks.RecordsQuery{
			Community: of.Community,
			Method:    of.Method,
			From:      from,
			To:        to,
			Most:      most,
		},
	)
	out.Truncated = !whole
	for i := range stored {
		if fits(&stored[i], len(s.config.Classes)) {
			out.Estimates = append(out.Estimates, newRecord(stored[i], time.Time{}).estimate)
		}
	}
	return out, err
}

const (
	quarantineDefault = 20
	quarantineMax     = 100
)

// QuarantineEntry is an entry of the quarantine with the beginning of its original, where that is
// text.
type QuarantineEntry struct {
	ingest.QuarantineEntry
	Original string `json:"original"`
}

func askQuarantine(ctx context.Context, s *Server, q *params) (any, error) {
	limit := q.number("limit", quarantineDefault, 1, quarantineMax)
	if q.err != nil {
		return nil, q.err
	}
	entries, err := s.config.Quarantine(ctx, q.query.Get("reason"), limit)
	return map[string]any{"entries": append([]QuarantineEntry{}, entries...)}, err
}
