package web

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"gqlstream/internal/tables"
	"gqlstream/quant"
)

// readQuery parses the query and refuses parameters that the route does not have.
func readQuery(w http.ResponseWriter, r *http.Request, params []string) (url.Values, bool) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		fail(w, http.StatusBadRequest, "the query is not well formed")
		return nil, false
	}
	for name, values := range query {
		if !slices.Contains(params, name) {
			fail(w, http.StatusBadRequest, "unknown parameter "+strconv.Quote(name))
			return nil, false
		}
		if len(values) > 1 && name != "community" {
			fail(w, http.StatusBadRequest, "parameter "+name+" is given more than once")
			return nil, false
		}
	}
	return query, true
}

// answer writes a value as JSON.
func answer(w http.ResponseWriter, code int, value any) {
	data, err := json.Marshal(value)
	if err != nil {
		http.Error(w, "internal error", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(data, '\n'))
}

const retryAfter = 5 // seconds, for a client that found no room

// fail writes a refusal. Another try may not meet that of a server that is busy.
func fail(w http.ResponseWriter, code int, message string) {
	if code == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	}
	answer(w, code, map[string]string{"error": message})
}

// params reads the parameters of a question through either door, and keeps the first mistake in
// them.
type params struct {
	query url.Values
	err   *Refusal
}

func (p *params) bad(format string, args ...any) {
	if p.err == nil {
		p.err = refuse(http.StatusBadRequest, format, args...)
	}
}

// contradict refuses parameters of which each is right, but not all together. The code is 409: a
// schema of parameters cannot say this, and a request that fits the schema is not malformed.
func (p *params) contradict(format string, args ...any) {
	if p.err == nil {
		p.err = refuse(http.StatusConflict, format, args...)
	}
}

// word reads one of the choices; the first is that of an absent parameter.
func (p *params) word(name string, choices ...string) string {
	if !p.query.Has(name) {
		return choices[0]
	}
	text := p.query.Get(name)
	if !slices.Contains(choices, text) {
		p.bad("%s: want one of %s", name, strings.Join(choices, ", "))
	}
	return text
}

// number reads an integer between low and high.
func (p *params) number(name string, absent, low, high int) int {
	if !p.query.Has(name) {
		return absent
	}
	n, err := strconv.Atoi(p.query.Get(name))
	if err != nil || n < low || n > high {
		p.bad("%s: want an integer from %d to %d", name, low, high)
	}
	return n
}

// limit reads a number as well, or the word that asks for all there is.
func (p *params) limit(absent, low, high int) int {
	if p.query.Get("limit") == "all" {
		return limitAll
	}
	return p.number("limit", absent, low, high)
}

// time reads RFC 3339 or Unix seconds; zero if absent.
func (p *params) time(name string) time.Time {
	if !p.query.Has(name) {
		return time.Time{}
	}
	text := p.query.Get(name)
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds >= 0 && seconds < 1e11) {
		p.bad("%s: want RFC 3339 or Unix seconds", name)
		return time.Time{}
	}
	whole := int64(seconds)
	return time.Unix(whole, int64((seconds-float64(whole))*1e9))
}

// question answers a request. It reads the parameters first; a Refusal names the client's
// mistake.
type question func(ctx context.Context, s *Server, q *params) (any, error)

// questionWaitMax bounds the time of an answer; an explanation, which reads the log, has more.
const questionWaitMax = 20 * time.Second

// Refusal is an error that the client can mend, such as an unknown community.
type Refusal struct {
	Code    int // of HTTP
	Message string
}

func (r *Refusal) Error() string { return r.Message }

func refuse(code int, format string, args ...any) *Refusal {
	return &Refusal{code, fmt.Sprintf(format, args...)}
}

// busy is a refusal that another try may not meet.
func busy(message string) *Refusal { return &Refusal{http.StatusServiceUnavailable, message} }

// ask answers a question within a time, or says with a Refusal why not.
func (s *Server) ask(ctx context.Context, rt *route, query url.Values) (any, *Refusal) {
	ctx, cancel := context.WithTimeout(ctx, max(rt.wait, questionWaitMax))
	defer cancel()
	q := &params{query: query}
	q.word("format", "json", "csv") // which only HTTP has
	value, err := rt.ask(ctx, s, q)
	var refusal *Refusal
	switch {
	case q.err != nil:
		return nil, q.err
	case err == nil:
		return value, nil
	case errors.As(err, &refusal):
		return nil, refusal
	case ctx.Err() != nil:
		return nil, busy("no answer in time; ask for less, for example a shorter span")
	}
	s.config.Logger.Warn("a question could not be answered", "question", rt.name, "error", err)
	return nil, busy("stored records cannot be read now")
}

// serveQuestion is the door of HTTP.
func (s *Server) serveQuestion(
	w http.ResponseWriter, r *http.Request, rt *route, query url.Values,
) {
	// The server's own limit on the time to write is shorter than an explanation.
	_ = http.NewResponseController(w).
		SetWriteDeadline(time.Now().Add(max(rt.wait, questionWaitMax) + writeWaitMax))
	if name := r.PathValue("name"); name != "" {
		query.Set("community", name)
	}
	value, refusal := s.ask(r.Context(), rt, query)
	switch table, is := value.(table); {
	case refusal != nil:
		fail(w, refusal.Code, refusal.Message)
	case is && query.Get("format") == "csv":
		writeCSV(w, s.config.Classes, table)
	default:
		answer(w, http.StatusOK, value)
	}
}

var csvHead = []string{
	"time", "community", "class", "share", "low", "high", "method", "moved", "revised",
}

// table is an answer that is a list of estimates, or of roll-ups in their form; lists of
// shares have an item for each class, or none.
type table interface{ list() []quant.Estimate }

// writeCSV writes a line for each class of each estimate.
func writeCSV(w http.ResponseWriter, classes []string, t table) {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8; header=present")
	out := csv.NewWriter(w)
	_ = out.Write(csvHead)
	for _, e := range t.list() {
		for k := range e.Prevalence {
			_ = out.Write(
				[]string{
					e.Time,
					tables.Cell(e.Community),
					tables.Cell(classes[k]),
					at(e.Prevalence, k),
					at(e.Low, k),
					at(e.High, k),
					e.Method,
					at(e.Moved, k),
					at(e.Revised, k),
				},
			)
		}
	}
	out.Flush() // an error means that the client has gone
}

// at returns item k as text; "" where an estimate has no interval.
func at(list []float64, k int) string {
	if k >= len(list) {
		return ""
	}
	return strconv.FormatFloat(list[k], 'g', -1, 64)
}

// inTurn makes one answer at a time if answers need a graph of their own, and lets few requests
// wait. It ends with the server as well.
func (s *Server) inTurn(
	ctx context.Context,
	answer func(context.Context) (any, error),
) (any, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	select {
	case s.waiting <- struct{}{}:
		defer func() { <-s.waiting }()
	default:
		return nil, busy("the server is busy with other explanations; try again")
	}
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
		return answer(ctx)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
