package web

import (
	"cmp"
	"container/list"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mtibben/confusables"

	"gqlstream/quant"
	"gqlstream/sinks"
	"gqlstream/sinks/alerts"
)

// community is one tracked community. Its series are in order of first mention.
type community struct {
	name    string
	folded  string // lower case, for search: the name for people and that of the log
	natural string // key of its place in a list
	look    string // shape of its name: equal for names that people cannot tell apart
	series  []*series
}

// find returns the series of a method, nil when there is none. The empty method
// asks for the main one: auto if it is there, else the first that adjusts.
func (c *community) find(method string) *series {
	if method == "" {
		return c.main()
	}
	for _, s := range c.series {
		if s.method == method {
			return s
		}
	}
	return nil
}

func (c *community) main() *series {
	order := func(s *series) int {
		switch m := quant.Method(s.method); {
		case m == quant.Auto:
			return 0
		case m.Unadjusted():
			return 2
		}
		return 1
	}
	return slices.MinFunc(c.series,
		func(a, b *series) int { return cmp.Compare(order(a), order(b)) })
}

// methods returns the names of the series.
func (c *community) methods() []string {
	names := make([]string, len(c.series))
	for i, s := range c.series {
		names[i] = s.method
	}
	return names
}

// store keeps the records. Write changes it under the lock; everybody else reads.
type store struct {
	mu       sync.RWMutex
	byName   map[string]*community
	order    []*community // of first mention
	byLook   map[string][]*community
	newest   *list.List // of *series, the one that changed last first
	dropped  int        // estimates left out: one community too many, or of other classes
	position uint64

	definitions map[string]string // of communities by rule, in words
	gone        map[string]bool   // communities that have no members any more

	display                 alerts.Display
	classes, communitiesMax int
}

func newStore(c Config) *store {
	return &store{
		byName:         map[string]*community{},
		byLook:         map[string][]*community{},
		newest:         list.New(),
		display:        c.Display,
		classes:        len(c.Classes),
		communitiesMax: c.CommunitiesMax,
	}
}

// Write stores the estimates of a position and takes over their slices. It never waits for a
// reader. Estimates with another number of classes are left out, and counted.
func (s *store) Write(estimates []quant.Estimate) { s.write(estimates, time.Now()) }

// Load stores estimates that were published before this server began, the latest of each community
// say. They count as received at their log time. Call it before the first Write.
func (s *store) Load(estimates []quant.Estimate) {
	slices.SortStableFunc(estimates,
		func(a, b quant.Estimate) int { return cmp.Compare(a.Position, b.Position) })
	s.write(estimates, time.Time{})
}

// Recall adds roll-ups of a community by a method, oldest first, of the day before the estimates
// of Load. The list takes its trend and change from them. Call it after Load and before the
// first Write.
func (s *store) Recall(community, method string, rollups []sinks.Rollup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.byName[community]
	if c == nil || c.find(method) == nil {
		return
	}
	ser, limit := c.find(method), pastLimit(s.newest.Len(), s.classes)
	ser.past = nil
	for i := range rollups {
		if r := &rollups[i]; len(r.Last) == s.classes && r.Until.Before(ser.latest.at) {
			ser.addPoint(
				point{
					at:     r.Until,
					shares: r.Last,
					se:     errorsOf(r),
					news:   addNews(ser.lastNews(), r.Moved, nil),
					rests:  !slices.Contains(r.Flags, quant.FlagNoLabels),
				},
				limit,
			)
		}
	}
	ser.add(ser.latest, limit)
}

// errorsOf returns standard errors of the shares of a roll-up that are not too small: those of its
// least lower and largest upper bounds.
func errorsOf(r *sinks.Rollup) (se []float64) {
	z := math.Sqrt2 * math.Erfinv(quant.DefaultOptions().Confidence)
	for k := range r.Low {
		se = append(se, (r.High[k]-r.Low[k])/(2*z))
	}
	return se
}

// Define sets how communities are defined, in words for people, in place of all earlier
// definitions. Communities without a definition may be left out. The map becomes the server's.
func (s *store) Define(definitions map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.definitions = definitions
}

// Gone sets which communities have no members any more, in place of all earlier ones. Lists leave
// them out. The map becomes the server's.
func (s *store) Gone(names map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.gone = names
}

// write stores the estimates of a position, or of several in their order, and takes over their
// lists. Those with another number of classes are left out. They are received now, or at their log
// time where now is zero.
func (s *store) write(estimates []quant.Estimate, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range estimates {
		e := &estimates[i]
		if sinks.Ordinal(estimates, i) > 0 {
			continue // of a method that is configured twice the first is shown
		}
		if !fits(e, s.classes) {
			s.dropped++
		} else if c := s.community(e.Community); c == nil {
			s.dropped++
		} else {
			s.position = max(s.position, e.Position)
			s.put(c, e, now)
		}
	}
}

// community returns the community of that name, new if need be, and nil when
// there are too many.
func (s *store) community(name string) *community {
	name = strings.ToValidUTF8(name, "\uFFFD")
	c, ok := s.byName[name]
	if !ok {
		if len(s.order) >= s.communitiesMax {
			return nil
		}
		name = strings.Clone(name)
		shown := strings.ToLower(s.display.Name(name))
		c = &community{
			name: name, folded: shown, natural: naturalKey(shown), look: confusables.Skeleton(name),
		}
		if low := strings.ToLower(name); low != shown {
			c.folded += "\n" + low
		}
		s.byName[name] = c
		s.byLook[c.look] = append(s.byLook[c.look], c)
		s.order = append(s.order, c)
	}
	return c
}

// looksLike returns the name of another community that looks like that of c, empty if there is
// none: a client that may create communities can choose a deceptive name.
func (s *store) looksLike(c *community) string {
	for _, other := range s.byLook[c.look] {
		if other != c {
			return other.name
		}
	}
	return ""
}

// put adds one estimate to its series. A suppressed one that names no method is of all
// methods that the community has; a community without one keeps it until there is one.
func (s *store) put(c *community, e *quant.Estimate, now time.Time) {
	unnamed := len(c.series) > 0 && c.series[0].method == ""
	switch {
	case e.Method == "" && !unnamed && len(c.series) > 0:
		for _, ser := range c.series {
			one := *e
			one.Method = ser.method
			s.put(c, &one, now)
		}
		return
	case e.Method != "" && unnamed:
		s.newest.Remove(c.series[0].place)
		c.series = nil
	}
	at := slices.IndexFunc(c.series, func(x *series) bool { return x.method == e.Method })
	if at < 0 {
		at = len(c.series)
		c.series = append(c.series, &series{method: strings.Clone(e.Method)})
		c.series[at].place = s.newest.PushFront(c.series[at])
	}
	ser := c.series[at]
	r := newRecord(*e, now)
	r.estimate.Community, r.estimate.Method = c.name, ser.method
	ser.add(r, pastLimit(s.newest.Len(), s.classes))
	ser.changed = s.position
	if !now.IsZero() {
		ser.published++
	}
	s.newest.MoveToFront(ser.place)
}

// changed returns the newest records that came after a position, of the communities named or of
// all, by community and method, and the position of that state. It reads only the named series,
// or only the changed ones.
func (s *store) changed(names []string, after uint64) (list []*record, position uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, name := range names {
		if c := s.byName[name]; c != nil {
			for _, ser := range c.series {
				if ser.changed > after {
					list = append(list, ser.latest)
				}
			}
		}
	}
	if len(names) == 0 {
		for at := s.newest.Front(); at != nil &&
			at.Value.(*series).changed > after; at = at.Next() {
			list = append(list, at.Value.(*series).latest)
		}
	}
	slices.SortFunc(list, func(a, b *record) int {
		return cmp.Or(strings.Compare(a.estimate.Community, b.estimate.Community),
			strings.Compare(a.estimate.Method, b.estimate.Method))
	})
	return list, s.position
}

// totals returns how many communities there are, and the position of the newest estimates.
func (s *store) totals() (communities int, position uint64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.order), s.position
}

// compareNames orders names as people do: digits by their number, upper and lower
// case alike. Names that are alike so are in byte order.
func compareNames(a, b *community) int {
	return cmp.Or(strings.Compare(a.natural, b.natural), strings.Compare(a.name, b.name))
}

var numbers = regexp.MustCompile("[0-9]+")

// naturalKey returns a text that sorts by bytes in the natural order of lower-case names:
// before the digits of a number, without zeros in front, it says how many they are.
func naturalKey(folded string) string {
	return numbers.ReplaceAllStringFunc(folded, func(n string) string {
		n = strings.TrimLeft(n, "0")
		return "0" + string(rune(len(n))) + n
	})
}
