package web

import (
	"cmp"
	"context"
	"math"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"gqlstream/quant"
)

const (
	searchBytesMax = 256
	pageDefault    = 100
	pageMax        = 10_000
	pageLarge      = 1_000 // a page with more rows needs a place
	largePagesMax  = 2     // that are made at a time
	trendMax       = 60
	day            = 24 * time.Hour
	orderKeepMax   = 250 * time.Millisecond // an order may be this old
	ordersMax      = 64                     // orders kept at a time
	flagAny        = "any"
	limitAll       = 1 << 30
)

// sortKeys name the columns that a list can be sorted by; the first is the default.
var sortKeys = []string{
	"name",
	"members",
	"share",
	"width",
	"coverage",
	"certificate",
	"flags",
	"updated",
	"change",
	"movement",
}

// listOrder selects the communities of a list, and their order.
type listOrder struct {
	search, flag, method, sort string
	descending, gone           bool
	class                      int
}

// listQuery is a request for a page of communities.
type listQuery struct {
	listOrder
	offset, limit, trend int
}

func readListQuery(s *Server, p *params) (q listQuery) {
	query := p.query
	q.search, q.flag, q.method = strings.ToLower(query.Get(
		"q")), query.Get("flag"), query.Get("method")
	if len(q.search) > searchBytesMax {
		p.bad("q: at most %d bytes", searchBytesMax)
	}
	q.sort, q.descending = p.word("sort", sortKeys...), p.word("order", "asc", "desc") == "desc"
	if q.class = p.number("class", 0, 0, limitAll); p.err == nil &&
		q.class >= len(s.config.Classes) {
		p.err = refuse(http.StatusNotFound, "no class %d", q.class)
	}
	q.gone = p.word("gone", "hide", "show") == "show"
	q.offset, q.limit = p.number("offset", 0, 0, limitAll), p.limit(pageDefault, 0, pageMax)
	q.trend = p.number("trend", 0, 0, trendMax)
	return q
}

// listAnswer is a page of communities.
type listAnswer struct {
	Total       int       `json:"total"`   // communities there are
	Matched     int       `json:"matched"` // rows that match the search and the method
	Offset      int       `json:"offset"`
	Position    uint64    `json:"position"`
	Now         time.Time `json:"now"` // the server's clock, also that of Updated
	Communities []listRow `json:"communities"`
}

// listRow is one community in a page.
type listRow struct {
	Name     string         `json:"name"`
	Looks    string         `json:"looks_like,omitempty"` // another name that looks the same
	Methods  []string       `json:"methods"`
	Updated  time.Time      `json:"updated"`           // wall clock of the newest record
	Evident  *time.Time     `json:"evident,omitempty"` // log time since which it says the same
	Estimate quant.Estimate `json:"estimate"`
	Plain    []float64      `json:"plain,omitempty"`  // pcc's shares, if published
	Trend    []float64      `json:"trend,omitempty"`  // of the class, oldest first
	Change   *float64       `json:"change,omitempty"` // of the class since the time below
	Moved    *float64       `json:"moved,omitempty"`  // the part of Change that is news
	MovedSE  *float64       `json:"moved_se,omitempty"`
	// log time of the record a day before, or of the oldest kept
	Since *time.Time `json:"since,omitempty"`
}

func (a listAnswer) list() (all []quant.Estimate) {
	for i := range a.Communities {
		all = append(all, a.Communities[i].Estimate)
	}
	return all
}

func askList(_ context.Context, s *Server, asked *params) (any, error) {
	q := readListQuery(s, asked)
	if asked.err != nil {
		return nil, asked.err
	}
	if q.limit > pageLarge {
		select {
		case s.pages <- struct{}{}:
			defer func() { <-s.pages }()
		default:
			return nil, busy("the server is busy with other large pages; try again")
		}
	}
	return s.store.page(s.orders.get(s.store, q.listOrder), q), nil
}

// page reads the rows of one page.
func (s *store) page(order []*community, q listQuery) listAnswer {
	start := min(q.offset, len(order))
	end := min(start+q.limit, len(order))
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := listAnswer{
		Total:       len(s.order),
		Matched:     len(order),
		Offset:      q.offset,
		Position:    s.position,
		Now:         time.Now().UTC(),
		Communities: make([]listRow, 0, end-start),
	}
	for _, c := range order[start:end] {
		ser := c.find(q.method)
		row := listRow{
			Name:     c.name,
			Looks:    s.looksLike(c),
			Methods:  c.methods(),
			Updated:  ser.latest.received.UTC(),
			Estimate: ser.latest.estimate,
		}
		if plain := c.find(string(quant.PCC)); plain != nil && !plain.latest.estimate.Suppressed {
			row.Plain = plain.latest.estimate.Prevalence
		}
		if !row.Estimate.Suppressed {
			row.Trend = ser.trend(q.class, q.trend)
		}
		if !ser.evident.IsZero() {
			row.Evident = new(ser.evident.UTC())
		}
		if m, ok := ser.dayChange(q.class); ok && !row.Estimate.Suppressed {
			row.Change, row.Moved, row.Since = &m.Change, &m.Moved, new(m.Since.UTC())
			if m.Error > 0 {
				row.MovedSE = &m.Error
			}
		}
		out.Communities = append(out.Communities, row)
	}
	return out
}

// orderCache keeps the order of the communities for each search and sort for a
// moment, so that many pages that look at the same list cost one sort.
type orderCache struct {
	mu      sync.Mutex
	entries map[listOrder]orderEntry
}

type orderEntry struct {
	order []*community
	at    time.Time
}

func (o *orderCache) get(s *store, key listOrder) []*community {
	o.mu.Lock()
	defer o.mu.Unlock()
	e, ok := o.entries[key]
	if !ok || time.Since(e.at) > orderKeepMax {
		if o.entries == nil || len(o.entries) >= ordersMax {
			o.entries = map[listOrder]orderEntry{}
		}
		e = orderEntry{s.ordered(key), time.Now()}
		o.entries[key] = e
	}
	return e.order
}

// rank is a community with the value that it is sorted by.
type rank struct {
	community *community
	value     float64
	missing   bool // no value to sort by: last in both directions
}

// ordered returns the communities that match, sorted. Ties are in order of name.
func (s *store) ordered(q listOrder) []*community {
	s.mu.RLock()
	ranks := make([]rank, 0, len(s.order))
	for _, c := range s.order {
		if q.search != "" && !strings.Contains(c.folded, q.search) || !q.gone && s.isGone(c) {
			continue
		}
		if ser := c.find(q.method); ser != nil && ser.latest.flagged(q.flag) {
			value, ok := ser.sortValue(q)
			ranks = append(ranks, rank{c, value, !ok})
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(ranks, func(a, b rank) int {
		if a.missing != b.missing {
			if a.missing {
				return 1
			}
			return -1
		}
		by := cmp.Compare(a.value, b.value)
		if q.sort == "name" {
			by = compareNames(a.community, b.community)
		}
		if q.descending {
			by = -by
		}
		return cmp.Or(by, compareNames(a.community, b.community))
	})
	order := make([]*community, len(ranks))
	for i, r := range ranks {
		order[i] = r.community
	}
	return order
}

// isGone reports whether a community has no members any more. Call it with the lock held.
func (s *store) isGone(c *community) bool {
	return s.gone[c.name] || c.main().latest.flagged(quant.FlagNoMembers)
}

// flagged reports whether a record has the flag, or any; the empty flag asks for nothing.
func (r *record) flagged(flag string) bool {
	return flag == "" || slices.ContainsFunc(r.estimate.Flags, func(f string) bool {
		return flag == flagAny || quant.FlagName(f) == flag
	})
}

// sortValue returns the value that a series is sorted by; false if it is not published.
func (s *series) sortValue(q listOrder) (float64, bool) {
	e := &s.latest.estimate
	switch q.sort {
	case "members":
		return e.Members, !e.Suppressed
	case "coverage":
		return e.Coverage, !e.Suppressed
	case "certificate":
		return e.Certificate, !e.Suppressed
	case "flags":
		return float64(len(e.Flags)), true
	case "updated":
		return float64(s.evident.UnixNano()), true
	case "change":
		m, ok := s.dayChange(q.class)
		return math.Abs(m.Change), ok
	case "movement":
		m, ok := s.dayChange(q.class)
		return math.Abs(m.Moved) / m.Error, ok && m.Error > 0
	case "share":
		if q.class < len(e.Prevalence) {
			return e.Prevalence[q.class], true
		}
	case "width":
		if q.class < len(e.Low) && q.class < len(e.High) {
			return e.High[q.class] - e.Low[q.class], true
		}
	}
	return 0, q.sort == sortKeys[0]
}
