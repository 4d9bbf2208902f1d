package quant

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"gqlstream/quant/adjusted"
	"gqlstream/quant/auto"
	"gqlstream/quant/stats"
)

// Method names a quantifier. The zero value is not a method; Auto is the default.
type Method string

// The methods with names of their own. The others are compositions: sis, nacc and
// sis-nacc, each also with -hard (hard predictions), -ml (maximum likelihood in
// place of least squares) or -hard-ml, and acc-ml, pacc-ml.
const (
	MLPE    Method = "mlpe"     // the share of the calibration labels
	CC      Method = "cc"       // count of hard predictions
	PCC     Method = "pcc"      // mean of soft predictions
	ACC     Method = "acc"      // cc, adjusted by the confusion matrix
	PACC    Method = "pacc"     // pcc, adjusted
	SIS     Method = "sis"      // pacc with the kernel's weights
	NACC    Method = "nacc"     // pacc on own x neighbourhood cells
	SISNACC Method = "sis-nacc" // both
	Diff    Method = "diff"     // pcc plus the mean weighted residual of the labels
	ML      Method = "ml"       // likelihood on nacc cells, averaged over lambda
	Auto    Method = "auto"     // tempered mean of the posteriors plus the labels' residual
	Audits  Method = "audit"    // audit labels alone, by the way they were drawn
)

// basis lists the inputs of a method. If one is missing, an estimate is a stand-in; audit labels
// alone are enough for a method that can rest on them.
type basis uint8

const (
	onLabels basis = 1 << iota
	onPredictions
	onAudits
)

// method is a row of the table of methods.
type method struct {
	name       Method
	rests      basis
	reads      stats.Kind // the cells, if the method reads cells
	weighted   bool       // a kernel makes a difference
	posterior  bool       // it reads posteriors, as auto does, or to correct untypical labels
	unadjusted bool       // it corrects nothing; see Method.Unadjusted
	quantifier quantifier // nil: auto; every Solver has its own
}

// adjustedCount returns the row of an adjusted count.
func adjustedCount(name Method, a adjusted.Solve) method {
	return method{
		name: name, rests: onLabels | onPredictions, reads: a.Kind, weighted: a.Weighted,
		quantifier: a,
	}
}

// The cells that methods read, other than those of the soft predictions.
var (
	hardCells     = stats.Kind{Hard: true}
	pairCells     = stats.Kind{Pair: true}
	hardPairCells = stats.Kind{Hard: true, Pair: true}
)

// methods lists every method in the order of documentation and of "all".
var methods = []method{
	{
		name: MLPE, rests: onLabels, posterior: true, unadjusted: true,
		quantifier: adjusted.LabelShare{},
	},
	{
		name: CC, rests: onPredictions, reads: hardCells, unadjusted: true,
		quantifier: adjusted.Count{Hard: true},
	},
	{name: PCC, rests: onPredictions, unadjusted: true, quantifier: adjusted.Count{}},
	adjustedCount(ACC, adjusted.Solve{Kind: hardCells}),
	adjustedCount("acc-ml", adjusted.Solve{Kind: hardCells, Likelihood: true}),
	adjustedCount(PACC, adjusted.Solve{}),
	adjustedCount("pacc-ml", adjusted.Solve{Likelihood: true}),
	adjustedCount(SIS, adjusted.Solve{Weighted: true}),
	adjustedCount("sis-ml", adjusted.Solve{Weighted: true, Likelihood: true}),
	adjustedCount("sis-hard", adjusted.Solve{Kind: hardCells, Weighted: true}),
	adjustedCount("sis-hard-ml", adjusted.Solve{Kind: hardCells, Weighted: true, Likelihood: true}),
	adjustedCount(NACC, adjusted.Solve{Kind: pairCells}),
	adjustedCount("nacc-ml", adjusted.Solve{Kind: pairCells, Likelihood: true}),
	adjustedCount("nacc-hard", adjusted.Solve{Kind: hardPairCells}),
	adjustedCount("nacc-hard-ml", adjusted.Solve{Kind: hardPairCells, Likelihood: true}),
	adjustedCount(SISNACC, adjusted.Solve{Kind: pairCells, Weighted: true}),
	adjustedCount("sis-nacc-ml", adjusted.Solve{Kind: pairCells, Weighted: true, Likelihood: true}),
	adjustedCount("sis-nacc-hard", adjusted.Solve{Kind: hardPairCells, Weighted: true}),
	adjustedCount("sis-nacc-hard-ml",
		adjusted.Solve{Kind: hardPairCells, Weighted: true, Likelihood: true}),
	{
		name: Diff, rests: onLabels | onPredictions, weighted: true, posterior: true,
		quantifier: adjusted.Diff{},
	},
	{
		name: ML, rests: onLabels | onPredictions, reads: pairCells, weighted: true,
		quantifier: adjusted.ML{},
	},
	{name: Auto, rests: onLabels | onPredictions | onAudits, weighted: true, posterior: true},
	{name: Audits, rests: onAudits, quantifier: auto.Audited{}},
}

// row returns the row of a method, one without a name when it names none.
func (m Method) row() *method {
	for i := range methods {
		if methods[i].name == m {
			return &methods[i]
		}
	}
	return &method{}
}

// known reports whether there is such a method.
func (m Method) known() bool { return m != "" && m.row().name == m }

// Methods returns every method, in the order of the documentation.
func Methods() []Method {
	out := make([]Method, len(methods))
	for i, m := range methods {
		out[i] = m.name
	}
	return out
}

// Needs reports the cells, beyond the soft ones of the own prediction, that the
// statistics must hold for the method.
func (m Method) Needs() (softPair, hard, hardPair bool) {
	reads := m.row().reads
	return reads == pairCells, reads == hardCells, reads == hardPairCells
}

// ReadsPosterior reports whether the method reads posteriors: auto does, and the methods that rest
// on the shares of classes among the labels, to correct labels that are not typical of the graph.
func (m Method) ReadsPosterior() bool { return m.row().posterior }

// Unadjusted reports whether the method corrects no error of the classifier. Where a community has
// estimates by several methods, the page shows an unadjusted one last.
func (m Method) Unadjusted() bool { return m.row().unadjusted }

// WeighsCells reports whether the method reads the sums of cells weighted by the kernel, A1 and A2.
// The others read them of whole classes at most, as auto does, with every kernel.
func (m Method) WeighsCells() bool {
	return m.row().weighted && m != Auto
}

// UsesKernel reports whether a kernel makes a difference to the method.
func (m Method) UsesKernel() bool {
	return m.row().weighted
}

// ParseMethods reads a comma list of method names; "all" stands for every one.
// Repeats are dropped, the order is that of the list.
func ParseMethods(list string) ([]Method, error) {
	var out []Method
	for name := range strings.SplitSeq(list, ",") {
		m := Method(strings.ToLower(strings.TrimSpace(name)))
		if m == "all" {
			return Methods(), nil
		}
		if !m.known() {
			return nil, fmt.Errorf("no method %q; want one of %s or all", name, Methods())
		}
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out, nil
}

// Options say how an estimate is read from the statistics.
type Options struct {
	Method Method       // no default: the empty method is refused
	Preset stats.Preset // "" is Density; ml, auto and their diff always use Density

	// Lambda is the share of the kernel in the weights, 0..1, or LambdaAuto. Zero is
	// zero: constant weights. Read by sis... and diff; ml and auto choose their own.
	Lambda float64

	Confidence   float64 // of the interval, between 0 and 1; 0 is 0.9
	Simultaneous bool    // the intervals hold together, not each on its own
}

// DefaultOptions returns auto, density, lambda 0.9 and marginal 90 % intervals.
func DefaultOptions() Options {
	return Options{
		Method: Auto, Preset: stats.Density, Lambda: stats.LambdaDefault, Confidence: 0.9,
	}
}

// withDefaults fills in options that are not set, and the preset of methods that have one of their
// own.
func (o Options) withDefaults() Options {
	if o.Preset == "" || o.Method == ML || o.Method == Auto {
		o.Preset = stats.Density
	}
	o.Confidence = cmp.Or(o.Confidence, stats.ConfidenceDefault)
	return o
}

// scaling returns how the options have labels weighed by the kernel.
func (o Options) scaling() stats.Scaling {
	return stats.Scaling{Preset: o.Preset, Lambda: o.Lambda}
}

// Validate reports every option that is out of range.
func (o Options) Validate() error {
	var errs []error
	if !o.Method.known() {
		errs = append(errs, fmt.Errorf("no method %q; want one of %s", o.Method, Methods()))
	}
	switch o.Preset {
	case "", stats.Density, stats.Reference, stats.Paper:
	default:
		errs = append(errs, fmt.Errorf("no preset %q; want density, reference or paper", o.Preset))
	}
	if o.Lambda != stats.LambdaAuto && !(o.Lambda >= 0 && o.Lambda <= 1) {
		errs = append(errs, fmt.Errorf("lambda: %v is not between 0 and 1", o.Lambda))
	}
	if o.Confidence != 0 && !(o.Confidence > 0 && o.Confidence < 1) {
		errs = append(errs, fmt.Errorf("confidence: %v is not between 0 and 1", o.Confidence))
	}
	return errors.Join(errs...)
}
