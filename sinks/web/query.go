package web

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
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

// fail writes a refusal.
func fail(w http.ResponseWriter, code int, message string) {
	answer(w, code, map[string]string{"error": message})
}

// failBusy writes a refusal that another try may not meet.
func failBusy(w http.ResponseWriter, message string) {
	w.Header().Set("Retry-After", strconv.Itoa(retryAfter))
	fail(w, http.StatusServiceUnavailable, message)
}

// params reads the parameters of a query, and keeps the first mistake in them.
type params struct {
	query url.Values
	err   *Refusal
}

func (p *params) bad(format string, args ...any) {
	if p.err == nil {
		p.err = refuse(http.StatusBadRequest, format, args...)
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
