package web

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"gqlstream/quant"
)

// info is what does not change while the server runs.
type info struct {
	Pipeline string     `json:"pipeline"`
	Version  string     `json:"version"`
	Instance string     `json:"instance"`
	Started  time.Time  `json:"started"`
	Classes  []string   `json:"classes"`
	Flags    []flagInfo `json:"flags"`
	Explain  bool       `json:"explain"` // estimates can be explained
}

type flagInfo struct {
	Name    string `json:"name"`
	Meaning string `json:"meaning"`
	Action  string `json:"action"`
}

func (s *Server) serveInfo(w http.ResponseWriter, _ *http.Request, _ url.Values) {
	out := info{
		Pipeline: s.config.Pipeline, Version: s.config.Version, Instance: s.instance,
		Started: s.started.UTC(), Classes: s.config.Classes,
		Explain: s.config.Explain != nil,
	}
	for _, d := range quant.FlagDocs() {
		out.Flags = append(out.Flags, flagInfo{d.Name, d.Meaning, d.Action})
	}
	answer(w, out)
}

// detail is one community with the latest estimate of each method.
type detail struct {
	Name       string           `json:"name"`
	Definition string           `json:"definition,omitempty"` // of a community by rule
	Main       string           `json:"main"`                 // the method that the lists show
	Updated    time.Time        `json:"updated"`
	Estimates  []quant.Estimate `json:"estimates"`
}

func (s *Server) serveCommunity(w http.ResponseWriter, r *http.Request, _ url.Values) {
	s.store.mu.RLock()
	c := s.store.byName[r.PathValue("name")]
	var out detail
	if c != nil {
		main := c.main()
		out = detail{
			Name: c.name, Definition: s.store.definitions[c.name], Main: main.method, Updated: main.latest.received.UTC(),
		}
		for _, ser := range c.series {
			out.Estimates = append(out.Estimates, ser.latest.estimate)
		}
	}
	s.store.mu.RUnlock()
	if c == nil {
		fail(w, http.StatusNotFound, "no such community")
		return
	}
	answer(w, out)
}

const (
	estimatesDefault = 1_000
	estimatesMax     = 10_000
	historyWaitMax   = 20 * time.Second
)

// historyAnswer is a part of a series.
type historyAnswer struct {
	Community string           `json:"community"`
	Method    string           `json:"method"`
	WholeFrom *time.Time       `json:"whole_from"` // null: nothing is left out
	Truncated bool             `json:"truncated"`  // older ones were cut off by the limit
	Estimates []quant.Estimate `json:"estimates"`
}

func (s *Server) serveEstimates(w http.ResponseWriter, r *http.Request, query url.Values) {
	from, err := readTime(query, "from")
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	to, err := readTime(query, "to")
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	limit, err := readInt(query, "limit", estimatesDefault, 1, estimatesMax)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	points, err := readInt(query, "points", 0, 2, estimatesMax)
	if err == nil && points > 0 && query.Has("limit") {
		err = errors.New("points: not together with limit")
	}
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	part, ok := s.memory(r.PathValue("name"), query.Get("method"), from, to)
	if !ok {
		fail(w, http.StatusNotFound, "no such community or method")
		return
	}
	out, err := s.withHistory(r, part, from, to)
	if err != nil {
		s.config.Logger.Warn("web: history", "error", err)
		fail(w, http.StatusServiceUnavailable, "the stored history cannot be read now")
		return
	}
	if n := len(out.Estimates); points > 0 {
		out.Estimates = spread(out.Estimates, points)
	} else if n > limit {
		out.Estimates, out.Truncated = out.Estimates[n-limit:], true
	}
	answer(w, out)
}

// spread keeps at most n estimates, n > 1, evenly spaced, the first and the last
// included.
func spread(list []quant.Estimate, n int) []quant.Estimate {
	if len(list) <= n {
		return list
	}
	out := make([]quant.Estimate, n)
	for i := range out {
		out[i] = list[i*(len(list)-1)/(n-1)]
	}
	return out
}

// memoryPart is what the memory holds of a series in a range of time.
type memoryPart struct {
	community, method string
	records           []*record
	whole             time.Time // from here on nothing is missing
	lossy             bool
}

func (s *Server) memory(name, method string, from, to time.Time) (memoryPart, bool) {
	s.store.mu.RLock()
	defer s.store.mu.RUnlock()
	c := s.store.byName[name]
	if c == nil {
		return memoryPart{}, false
	}
	ser := c.find(method)
	if ser == nil {
		return memoryPart{}, false
	}
	p := memoryPart{community: c.name, method: ser.method, records: ser.between(from, to), lossy: ser.lossy}
	p.whole = ser.history[0].at
	if ser.lossy {
		p.whole = ser.thinned
	}
	return p, true
}

// withHistory puts what Config.History has before the part that memory holds
// whole; without a History the thinned records stand there.
func (s *Server) withHistory(r *http.Request, p memoryPart, from, to time.Time) (historyAnswer, error) {
	out := historyAnswer{Community: p.community, Method: p.method, Estimates: []quant.Estimate{}}
	older := s.config.History != nil && !p.whole.IsZero() && from.Before(p.whole)
	switch {
	case older:
		until := p.whole.Add(-1)
		if !to.IsZero() && to.Before(until) {
			until = to
		}
		ctx, cancel := withTimeout(r, historyWaitMax)
		defer cancel()
		stored, complete, err := s.config.History(ctx, p.community, p.method, from, until)
		if err != nil {
			return out, err
		}
		if !complete {
			whole := p.whole.UTC()
			out.WholeFrom = &whole
		}
		for i := range stored {
			if check(&stored[i], len(s.config.Classes)) == nil {
				out.Estimates = append(out.Estimates, newRecord(&stored[i], nil, time.Time{}).estimate)
			}
		}
		p.records = slices.DeleteFunc(p.records, func(r *record) bool { return r.at.Before(p.whole) })
	case p.lossy && from.Before(p.whole):
		whole := p.whole.UTC()
		out.WholeFrom = &whole
	}
	for _, rec := range p.records {
		out.Estimates = append(out.Estimates, rec.estimate)
	}
	return out, nil
}

// readTime reads a time of the query, RFC 3339 or Unix seconds; zero if absent.
func readTime(query url.Values, name string) (time.Time, error) {
	text := query.Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at, nil
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 0 && seconds < 1e11) {
		return time.Time{}, fmt.Errorf("%s: want RFC 3339 or Unix seconds", name)
	}
	whole := int64(seconds)
	return time.Unix(whole, int64((seconds-float64(whole))*1e9)), nil
}

// readInt reads a number of the query between low and high.
func readInt(query url.Values, name string, absent, low, high int) (int, error) {
	text := query.Get(name)
	if text == "" {
		return absent, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return 0, fmt.Errorf("%s: want an integer from %d to %d", name, low, high)
	}
	return n, nil
}

func (s *Server) serveHealth(w http.ResponseWriter, _ *http.Request, _ url.Values) {
	text(w, http.StatusOK, "ok")
}

func (s *Server) serveReady(w http.ResponseWriter, _ *http.Request, _ url.Values) {
	ready, why := s.ready(time.Now())
	if !ready {
		text(w, http.StatusServiceUnavailable, why)
		return
	}
	text(w, http.StatusOK, why)
}

func text(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(body + "\n"))
}
