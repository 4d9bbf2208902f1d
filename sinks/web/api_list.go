package web

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"gqlstream/quant"
)

const (
	searchBytesMax = 256
	pageDefault    = 100
	pageMax        = 1_000
	trendMax       = 60
	orderKeepMax   = 250 * time.Millisecond // an order may be this old
	ordersMax      = 64                     // orders kept at a time
)

// sortKeys are what a list can be sorted by.
var sortKeys = []string{"name", "members", "share", "width", "coverage", "certificate", "flags", "updated"}

// listQuery is a request for a page of communities.
type listQuery struct {
	search, method, sort string
	descending           bool
	class                int
	offset, limit, trend int
}

func (s *Server) readListQuery(query url.Values) (listQuery, error) {
	q := listQuery{
		search: strings.ToLower(query.Get("q")), method: query.Get("method"), sort: query.Get("sort"),
	}
	if len(q.search) > searchBytesMax {
		return q, fmt.Errorf("q: at most %d bytes", searchBytesMax)
	}
	if q.sort == "" {
		q.sort = "name"
	}
	if !slices.Contains(sortKeys, q.sort) {
		return q, fmt.Errorf("sort: want one of %s", strings.Join(sortKeys, ", "))
	}
	switch query.Get("order") {
	case "", "asc":
	case "desc":
		q.descending = true
	default:
		return q, fmt.Errorf("order: want asc or desc")
	}
	for _, n := range []struct {
		field             *int
		name              string
		absent, low, high int
	}{
		{&q.class, "class", 0, 0, len(s.config.Classes) - 1},
		{&q.offset, "offset", 0, 0, 1 << 30},
		{&q.limit, "limit", pageDefault, 0, pageMax},
		{&q.trend, "trend", 0, 0, trendMax},
	} {
		var err error
		if *n.field, err = readInt(query, n.name, n.absent, n.low, n.high); err != nil {
			return q, err
		}
	}
	return q, nil
}

// listAnswer is a page of communities.
type listAnswer struct {
	Total       int       `json:"total"`   // communities there are
	Matched     int       `json:"matched"` // those that the search and the method leave
	Offset      int       `json:"offset"`
	Position    uint64    `json:"position"`
	Now         time.Time `json:"now"` // the server's clock, to which Updated belongs
	Communities []listRow `json:"communities"`
}

// listRow is one community in a page.
type listRow struct {
	Name     string         `json:"name"`
	Methods  []string       `json:"methods"`
	Updated  time.Time      `json:"updated"`
	Estimate quant.Estimate `json:"estimate"`
	Plain    []float64      `json:"plain,omitempty"` // pcc's shares, if published
	Trend    []float64      `json:"trend,omitempty"` // of the class, oldest first
}

func (s *Server) serveCommunities(w http.ResponseWriter, _ *http.Request, query url.Values) {
	q, err := s.readListQuery(query)
	if err != nil {
		fail(w, http.StatusBadRequest, err.Error())
		return
	}
	order := s.orders.get(s.store, q)
	answer(w, s.store.page(order, q))
}

// page reads the rows of one page.
func (s *store) page(order []*community, q listQuery) listAnswer {
	start := min(q.offset, len(order))
	end := min(start+q.limit, len(order))
	s.mu.RLock()
	defer s.mu.RUnlock()
	out := listAnswer{
		Total: len(s.order), Matched: len(order), Offset: q.offset, Position: s.position,
		Now: time.Now().UTC(), Communities: make([]listRow, 0, end-start),
	}
	for _, c := range order[start:end] {
		ser := c.find(q.method)
		row := listRow{
			Name: c.name, Methods: c.methods(), Updated: ser.latest.received.UTC(), Estimate: ser.latest.estimate,
		}
		if plain := c.find(string(quant.PCC)); plain != nil && !plain.latest.estimate.Suppressed {
			row.Plain = plain.latest.estimate.Prevalence
		}
		row.Trend = ser.trend(q.class, q.trend)
		out.Communities = append(out.Communities, row)
	}
	return out
}

// trend returns up to n shares of a class, evenly spaced over the history.
func (s *series) trend(class, n int) []float64 {
	n = min(n, len(s.history))
	if n < 2 {
		return nil
	}
	out := make([]float64, 0, n)
	for i := range n {
		r := s.history[i*(len(s.history)-1)/(n-1)]
		if class < len(r.estimate.Prevalence) {
			out = append(out, r.estimate.Prevalence[class])
		}
	}
	return out
}

// orderCache keeps the order of the communities for each search and sort for a
// moment, so that many pages that look at the same list cost one sort.
type orderCache struct {
	mu      sync.Mutex
	entries map[orderKey]*orderEntry
}

type orderKey struct {
	search, method, sort string
	descending           bool
	class                int
}

type orderEntry struct {
	once  sync.Once
	at    time.Time
	order []*community
}

func (o *orderCache) get(s *store, q listQuery) []*community {
	key := orderKey{q.search, q.method, q.sort, q.descending, q.class}
	now := time.Now()
	o.mu.Lock()
	e := o.entries[key]
	if e == nil || now.Sub(e.at) > orderKeepMax {
		if o.entries == nil || len(o.entries) >= ordersMax {
			o.entries = map[orderKey]*orderEntry{}
		}
		e = &orderEntry{at: now}
		o.entries[key] = e
	}
	o.mu.Unlock()
	e.once.Do(func() { e.order = s.ordered(q) })
	return e.order
}

// rank is a community with what it is sorted by.
type rank struct {
	community *community
	value     float64
	missing   bool // nothing to sort by: last, whatever the direction
}

// ordered returns the communities that match, sorted. Ties are in order of name.
func (s *store) ordered(q listQuery) []*community {
	s.mu.RLock()
	ranks := make([]rank, 0, len(s.order))
	for _, c := range s.order {
		if q.search != "" && !strings.Contains(c.folded, q.search) {
			continue
		}
		if ser := c.find(q.method); ser != nil {
			value, ok := ser.latest.sortValue(q)
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
			by = strings.Compare(a.community.name, b.community.name)
		}
		if q.descending {
			by = -by
		}
		return cmp.Or(by, strings.Compare(a.community.name, b.community.name))
	})
	order := make([]*community, len(ranks))
	for i, r := range ranks {
		order[i] = r.community
	}
	return order
}

// sortValue returns what a record is sorted by; false when it is not published.
func (r *record) sortValue(q listQuery) (float64, bool) {
	e := &r.estimate
	switch q.sort {
	case "members":
		return e.Members, !e.Suppressed
	case "share":
		if q.class < len(e.Prevalence) {
			return e.Prevalence[q.class], true
		}
		return 0, false
	case "width":
		if q.class < len(e.Low) && q.class < len(e.High) {
			return e.High[q.class] - e.Low[q.class], true
		}
		return 0, false
	case "coverage":
		return e.Coverage, !e.Suppressed
	case "certificate":
		return e.Certificate, !e.Suppressed
	case "flags":
		return float64(len(e.Flags)), true
	case "updated":
		return float64(r.received.UnixNano()), true
	}
	return 0, true
}
