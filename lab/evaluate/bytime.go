package evaluate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gqlstream/incremental"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// TimeConfig configures an evaluation over time.
type TimeConfig struct {
	Core   incremental.Config
	Period time.Duration // of a row
}

// periodLabelsMin is how many labels of a community in a period are compared with its estimate:
// fewer say little beyond chance.
const periodLabelsMin = 10

// periods are the lengths of a row in a report, the longest first.
var periods = []time.Duration{
	7 * 24 * time.Hour, 24 * time.Hour, time.Hour, 10 * time.Minute, time.Minute, 10 * time.Second,
}

// PeriodOf returns the longest period that fits at least four times into a log of a length.
func PeriodOf(span time.Duration) time.Duration {
	for _, p := range periods {
		if span >= 4*p {
			return p
		}
	}
	return max(span/4, time.Second)
}

// TimeReport compares the labels of each period with the estimates before them. Labels are the
// only truth in a log. If people were not drawn at random from a community, their labels predict
// labels of the same kind, not the share of the community.
type TimeReport struct {
	Period      time.Duration `json:"period"`
	Confidence  float64       `json:"confidence"`
	Labels      int           `json:"labels"`      // that were predicted
	Unpredicted int           `json:"unpredicted"` // before there was an estimate
	Rows        []TimeRow     `json:"rows"`        // by period and method, then of all periods
	Bins        []TimeBin     `json:"calibration"`
}

// TimeRow sums up one method in one period, over communities and classes.
type TimeRow struct {
	From     event.Time `json:"from"` // 0: all periods
	Method   string     `json:"method"`
	Compared int        `json:"compared"` // communities with enough labels
	Labels   int        `json:"labels"`   // in these
	Error    float64    `json:"error"`    // mean difference of the labels' shares and the estimate
	// expected value if every estimate were right
	Chance   float64 `json:"chance"`
	Beyond   float64 `json:"beyond"`   // root of the mean squared error beyond that of chance
	Coverage float64 `json:"coverage"` // of intervals widened by the chance of the labels
}

// TimeBin compares estimated shares with how often labels had their class.
type TimeBin struct {
	Method   string  `json:"method"`
	Labels   int     `json:"labels"`
	Said     float64 `json:"said"`
	Observed float64 `json:"observed"`
}

// binsOf is the number of bins of estimated shares.
const binsOf = 10

// timeCell collects the labels of one community, method and period.
type timeCell struct {
	period            int64
	community, method string

	n                       int
	counts, sums, low, high []float64 // by class, sums over labels
	variances               []float64 // of counts, if the estimates were right
}

// byTime is an evaluation over time under way.
type byTime struct {
	core    *incremental.Core
	config  TimeConfig
	latest  map[string][]quant.Estimate // by community, one for each method
	cells   map[timeKey]*timeCell
	bins    map[string][]TimeBin
	methods []string
	report  TimeReport
}

type timeKey struct {
	period            int64
	community, method string
}

// RunByTime runs a log through a core. Every label is compared with the last published estimates
// of its vertex's communities, before the core reads the label.
func RunByTime(ctx context.Context, config TimeConfig, load Load) (*TimeReport, error) {
	if config.Period <= 0 {
		return nil, errors.New("evaluate: the period must be more than 0")
	}
	core, err := incremental.New(config.Core)
	if err != nil {
		return nil, fmt.Errorf("evaluate: %w", err)
	}
	defer core.Close()
	options := config.Core.WithDefaults().Estimates[0]
	e := &byTime{
		core: core, config: config, latest: map[string][]quant.Estimate{},
		cells: map[timeKey]*timeCell{}, bins: map[string][]TimeBin{},
		report: TimeReport{
			Period:     config.Period,
			Confidence: cmp.Or(options.Confidence, quant.DefaultOptions().Confidence),
		},
	}
	if err := load(ctx, e.step); err != nil {
		return nil, fmt.Errorf("evaluate: %w", err)
	}
	e.sumUp()
	return &e.report, nil
}

// step predicts the labels of a batch, then reads it.
func (e *byTime) step(b *event.Batch) ([]event.Refusal, error) {
	for i := range b.Labels {
		if l := &b.Labels[i]; l.Class != event.NoClass && l.Role != event.Train {
			e.predict(l, cmp.Or(l.Time, b.Time))
		}
	}
	result := e.core.Step(b)
	for _, r := range result.Estimates {
		if r.Method == string(quant.Audits) || len(r.Prevalence) == 0 {
			continue
		}
		r.Prevalence = slices.Clone(r.Prevalence)
		r.Low, r.High = slices.Clone(r.Low), slices.Clone(r.High)
		list := e.latest[r.Community]
		at := slices.IndexFunc(list, func(x quant.Estimate) bool { return x.Method == r.Method })
		if at < 0 {
			e.latest[r.Community] = append(list, r)
		} else {
			list[at] = r
		}
		if !slices.Contains(e.methods, r.Method) {
			e.methods = append(e.methods, r.Method)
		}
	}
	return result.Refused, nil
}

// predict holds a label against the latest estimates of the communities of its vertex.
func (e *byTime) predict(l *event.Label, at event.Time) {
	view := e.core.View()
	v, known := view.Lookup(l.Vertex)
	if !known {
		return
	}
	predicted := false
	for _, m := range view.MemberOf(v) {
		name := view.CommunityName(m.Community)
		for _, r := range e.latest[name] {
			predicted = true
			e.compare(timeKey{int64(at) / int64(e.config.Period), name, r.Method}, &r, l.Class)
		}
	}
	if predicted {
		e.report.Labels++
	} else {
		e.report.Unpredicted++
	}
}

// compare adds a label to a cell.
func (e *byTime) compare(key timeKey, r *quant.Estimate, class event.Class) {
	k := len(r.Prevalence)
	c := e.cells[key]
	if c == nil {
		c = &timeCell{
			period: key.period, community: key.community, method: key.method,
			counts: make([]float64, k), sums: make([]float64, k), variances: make([]float64, k),
			low: make([]float64, k), high: make([]float64, k),
		}
		e.cells[key] = c
	}
	c.n++
	c.counts[class]++
	bins := e.bins[key.method]
	if bins == nil {
		bins = make([]TimeBin, binsOf)
		e.bins[key.method] = bins
	}
	for i, p := range r.Prevalence {
		c.sums[i] += p
		c.variances[i] += p * (1 - p)
		c.low[i] += r.Low[i]
		c.high[i] += r.High[i]
		bin := &bins[min(int(p*binsOf), binsOf-1)]
		bin.Labels++
		bin.Said += p
		if i == int(class) {
			bin.Observed++
		}
	}
}

// timeSums are sums over cells and classes, each weighted by its labels.
type timeSums struct {
	cells, labels                           int
	weight, off, chance, squares, held, all float64
}

// add adds a cell. If the estimates are right, the count of a class is a sum of independent
// draws with their shares.
func (s *timeSums) add(c *timeCell, z float64) {
	n := float64(c.n)
	s.cells++
	s.labels += c.n
	for k := range c.counts {
		observed, said := c.counts[k]/n, c.sums[k]/n
		chance := math.Sqrt(c.variances[k]) / n
		s.weight += n
		s.off += n * math.Abs(observed-said)
		s.chance += n * chance * math.Sqrt(2/math.Pi)
		s.squares += n * ((observed-said)*(observed-said) - chance*chance)
		s.all++
		low := said - math.Hypot(said-c.low[k]/n, z*chance)
		high := said + math.Hypot(c.high[k]/n-said, z*chance)
		if low <= observed && observed <= high {
			s.held++
		}
	}
}

// row returns the means.
func (s *timeSums) row(method string, from event.Time) TimeRow {
	return TimeRow{
		From: from, Method: method, Compared: s.cells, Labels: s.labels,
		Error: s.off / s.weight, Chance: s.chance / s.weight,
		Beyond: math.Sqrt(max(0, s.squares/s.weight)), Coverage: s.held / s.all,
	}
}

// sumUp makes the rows and the bins.
func (e *byTime) sumUp() {
	z := math.Sqrt2 * math.Erfinv(e.report.Confidence)
	cells := make([]*timeCell, 0, len(e.cells))
	for _, c := range e.cells {
		if c.n >= periodLabelsMin {
			cells = append(cells, c)
		}
	}
	method := func(name string) int { return slices.Index(e.methods, name) }
	slices.SortFunc(cells, func(a, b *timeCell) int {
		return cmp.Or(
			cmp.Compare(a.period, b.period), cmp.Compare(method(a.method), method(b.method)),
			cmp.Compare(a.community, b.community),
		)
	})
	all := make([]timeSums, len(e.methods))
	for from := 0; from < len(cells); {
		var sums timeSums
		to := from
		for ; to < len(cells) && cells[to].period == cells[from].period &&
			cells[to].method == cells[from].method; to++ {
			sums.add(cells[to], z)
			all[method(cells[to].method)].add(cells[to], z)
		}
		at := event.Time(cells[from].period * int64(e.config.Period))
		e.report.Rows = append(e.report.Rows, sums.row(cells[from].method, at))
		from = to
	}
	for i, name := range e.methods {
		if all[i].cells > 0 {
			e.report.Rows = append(e.report.Rows, all[i].row(name, 0))
		}
		for _, bin := range e.bins[name] {
			if bin.Labels > 0 {
				bin.Method = name
				bin.Said /= float64(bin.Labels)
				bin.Observed /= float64(bin.Labels)
				e.report.Bins = append(e.report.Bins, bin)
			}
		}
	}
}
