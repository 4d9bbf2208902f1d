package explain

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"gonum.org/v1/gonum/stat/combin"

	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// tolerance bounds the certificates of the estimates that are compared.
const tolerance = 1e-8

// copyEventsMax bounds the facts in a batch of the copy.
const copyEventsMax = 1 << 14

// ErrUnknown is matched when a state does not have the community.
var ErrUnknown = errors.New("the community is not known")

// Options select the explained change. The zero value of each optional field has the meaning given.
type Options struct {
	Config    incremental.Config // of the pipeline; its communities and outputs are not read
	Community string
	Estimate  quant.Options
	Classes   []string // names for the details; nil: none

	// SameFit: the pipeline did not fit the coefficients of auto again in between.
	SameFit bool
	// Gamma is that of the published estimates at both ends, which averages the evidence of many
	// emissions; 0: not known, and the copy judges the state alone.
	Gamma [2]float64

	Named    int                  // largest changes named for each cause that has few; 0 names none
	Progress func(done, most int) // called now and then; nil: nobody listens
}

// config returns the configuration of the copy: the one community, explicit, the one
// method, no floor, and kernels as good as exact.
func (o *Options) config() incremental.Config {
	c := o.Config
	c.Communities = []graphstore.Rule{{Name: o.Community}}
	c.Estimates = []quant.Options{o.Estimate}
	c.Tolerance, c.MembersMin, c.CompactEvery = tolerance, 0, -1
	// the second state is estimated however little has moved
	c.Emit = incremental.Emit{}
	c.Limits, c.Windows = event.Limits{}, graphstore.Windows{} // nothing ends on the way
	c.Engine = incremental.EnginePrimal                        // no second moments that are old
	return c
}

// Walk is a copy of a state on its way to another one. One goroutine owns it.
type Walk struct {
	options Options
	core    *incremental.Core
	from    quant.ExplanationEnd
	version string // of the predictions in the first state
	batch   event.Batch
	last    quant.Estimate // of the state that the copy is in
	done    int            // estimates
	most    int

	// Coefficients and gamma of auto: at both ends, now, and whether auto determines them for every
	// combination.
	ends    [2]incremental.Choices
	reading incremental.Choices
	refit   bool
	ages    [2]incremental.Ages // of predictions and labels
	errors  [2][]float64        // standard errors of the moved and the revised part
}

// Begin copies the state of a core at the position p, for one community. The core is not needed
// afterwards. Close frees the copy.
func Begin(ctx context.Context, from *incremental.Core, p Place, o Options) (*Walk, error) {
	community, known := from.View().FindCommunity(o.Community)
	if !known {
		return nil, ErrUnknown
	}
	core, err := incremental.New(o.config())
	if err != nil {
		return nil, fmt.Errorf("explain: %w", err)
	}
	w := &Walk{options: o, core: core}
	here := read(from, community)
	if err := w.copy(ctx, here); err != nil {
		w.Close()
		return nil, err
	}
	if w.ages[before] = from.Ages(); w.ages[before] != (incremental.Ages{}) {
		w.core.HoldAges(w.ages[before])
		if err := w.step(ctx, true); err != nil {
			w.Close()
			return nil, err
		}
	}
	if err := w.holdGamma(ctx); err != nil {
		w.Close()
		return nil, err
	}
	w.version = here.version
	w.from = w.end(p, w.version)
	return w, nil
}

// holdGamma estimates the first state again with the published gamma, if there is one.
func (w *Walk) holdGamma(ctx context.Context) error {
	gamma, fit := w.options.Gamma[before], w.core.Coefficients()
	if gamma == 0 || fit == nil {
		return nil
	}
	w.core.Hold(incremental.Choices{Epoch: fit, Gamma: &gamma})
	return w.step(ctx, true)
}

// Close releases the copy's memory.
func (w *Walk) Close() { w.core.Close() }

// copy asserts every fact of a state, which are its changes since the copy was empty, and
// estimates.
func (w *Walk) copy(ctx context.Context, s state) (err error) {
	own, _ := w.core.View().FindCommunity(w.options.Community)
	facts := 0
	compare(read(w.core, own), s, func(_ string, g group) {
		for i := range g {
			w.assert(&g[i], after)
		}
		if facts += len(g); facts >= copyEventsMax && err == nil {
			facts, err = 0, w.step(ctx, false)
		}
	})
	if err != nil {
		return err
	}
	return w.step(ctx, true)
}

// endOfTime is the log time of a comparison with labels that age: no label is younger, and the
// labels of both states are known from the start.
const endOfTime event.Time = math.MaxInt64 / 2

// step takes the batch that was filled and empties it, and keeps the estimate when one is requested
// and has moved.
func (w *Walk) step(ctx context.Context, emit bool) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("explain: %w", err)
	}
	if emit && w.refit {
		w.core.Hold(incremental.Choices{})
	}
	at := w.core.Position() + 1
	w.batch.First, w.batch.Last, w.batch.Emit = at, at, emit
	w.batch.EmitAll = emit // the value of a combination does not depend on the order of its causes
	if w.options.Config.HalfLife > 0 {
		w.batch.Time = endOfTime
	}
	result := w.core.Step(&w.batch)
	w.batch.Reset()
	if len(result.Refused) > 0 { // the states hold nothing that was not accepted once
		return fmt.Errorf("explain: the copy refused %s %s: %s", result.Refused[0].Kind,
			result.Refused[0].Original, result.Refused[0].Reason)
	}
	for _, e := range result.Estimates {
		w.last = e
	}
	if emit {
		w.done++
		if w.options.Progress != nil && w.most > 0 {
			w.options.Progress(w.done, w.most)
		}
	}
	return nil
}

// put asserts one side of facts, and estimates on request.
func (w *Walk) put(ctx context.Context, groups []group, side int, emit bool) error {
	for _, g := range groups {
		for i := range g {
			w.assert(&g[i], side)
		}
	}
	return w.step(ctx, emit)
}

// assert makes one side of a fact true with the next step. The label of a vertex has the pair of
// that side, and where the label stays the same, that of the side of the prediction.
func (w *Walk) assert(f *fact, side int) {
	f.assert(&w.batch, w.options.Community, side)
	same := f.about[before].label == f.about[after].label
	if f.kind == event.KindLabel || f.kind == event.KindPrediction && same {
		w.core.HoldPair(f.u, f.about[side].pair)
	}
}

// turn puts a cause in place or takes it back, and estimates.
func (w *Walk) turn(ctx context.Context, c *cause, side int) error {
	switch c.kind {
	case quant.CauseCoefficients:
		w.reading.Epoch = w.ends[side].Epoch
		w.core.Hold(w.reading)
	case quant.CauseGamma:
		w.reading.Gamma = w.ends[side].Gamma
		w.core.Hold(w.reading)
	case quant.CauseAge:
		w.core.HoldAges(w.ages[side])
	}
	return w.put(ctx, c.groups, side, true)
}

// values visits every combination of causes and returns the shares of each, by the
// set of causes that are in place, bit by bit. The copy begins with all in place, and ends so
// where changes are named.
func (w *Walk) values(ctx context.Context, causes []cause) ([][]float64, error) {
	n := len(causes)
	order := cheapestFirst(causes)
	values := make([][]float64, 1<<n)
	set := uint(1)<<n - 1
	values[set] = slices.Clone(w.last.Prevalence)
	for i := uint(1); n > 0 && i < 1<<n+uint(min(w.options.Named, 1)); i++ {
		// In a Gray code the i-th change is of bit number "trailing zeros of i". It ends with
		// one bit off where it began, which a last round turns back.
		j := order[min(bits.TrailingZeros(i), n-1)]
		set ^= 1 << j
		if err := w.turn(ctx, &causes[j], int(set>>j&1)); err != nil {
			return nil, err
		}
		if i < 1<<n {
			values[set] = slices.Clone(w.last.Prevalence)
		}
	}
	values[0] = w.from.Estimate.Prevalence // the first values of the copy, to the last bit
	return values, nil
}

// cheapestFirst orders causes by how dear they are to put in place: gamma concerns no vertex, a
// prediction or a label the neighbours, members and edges move the kernel, and coefficients all
// posteriors.
func cheapestFirst(causes []cause) []int {
	cost := func(j int) int {
		switch n := len(causes[j].groups); causes[j].kind {
		case quant.CauseCoefficients:
			return math.MaxInt
		case quant.CauseJoined, quant.CauseLeft, quant.CauseEdges:
			return 1<<32 + n
		default:
			return n
		}
	}
	order := make([]int, len(causes))
	for j := range order {
		order[j] = j
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(cost(i), cost(j)) })
	return order
}

// shapley returns the contribution of each of n causes to values[all] - values[none]:
//
//	phi_j = sum over S without j of |S|! (n-1-|S|)! / n! (v(S + j) - v(S))
func shapley(n int, values [][]float64) [][]float64 {
	share := make([]float64, n) // by |S|
	for s := range share {
		share[s] = 1 / float64(n*combin.Binomial(n-1, s))
	}
	out := make([][]float64, n)
	for j := range out {
		out[j] = make([]float64, len(values[0]))
		for set, v := range values {
			if set>>j&1 == 1 {
				continue
			}
			with, weight := values[set|1<<j], share[bits.OnesCount(uint(set))]
			for k := range v {
				out[j][k] += weight * (with[k] - v[k])
			}
		}
	}
	return out
}
