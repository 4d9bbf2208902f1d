package quant

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Method names a quantifier. The zero value is not a method; Auto is the default.
type Method string

// The methods whose names stand alone. The others are compositions: sis, nacc and
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

// family names the kind of computation of a method.
type family uint8

const (
	familyShares family = iota // mlpe
	familyCount                // cc, pcc
	familySolve                // adjusted counts
	familyDiff
	familyML
	familyAuto
	familyAudit
)

// recipe is a method taken apart.
type recipe struct {
	family     family
	hard       bool // hard predictions
	pair       bool // K^2 cells
	weighted   bool // the kernel's weights
	likelihood bool
}

// method is a row of the table of methods.
type method struct {
	name   Method
	recipe recipe
}

// methods lists every method in the order of documentation and of "all".
var methods = []method{
	{MLPE, recipe{family: familyShares}},
	{CC, recipe{family: familyCount, hard: true}},
	{PCC, recipe{family: familyCount}},
	{ACC, recipe{family: familySolve, hard: true}},
	{"acc-ml", recipe{family: familySolve, hard: true, likelihood: true}},
	{PACC, recipe{family: familySolve}},
	{"pacc-ml", recipe{family: familySolve, likelihood: true}},
	{SIS, recipe{family: familySolve, weighted: true}},
	{"sis-ml", recipe{family: familySolve, weighted: true, likelihood: true}},
	{"sis-hard", recipe{family: familySolve, hard: true, weighted: true}},
	{"sis-hard-ml", recipe{family: familySolve, hard: true, weighted: true, likelihood: true}},
	{NACC, recipe{family: familySolve, pair: true}},
	{"nacc-ml", recipe{family: familySolve, pair: true, likelihood: true}},
	{"nacc-hard", recipe{family: familySolve, hard: true, pair: true}},
	{"nacc-hard-ml", recipe{family: familySolve, hard: true, pair: true, likelihood: true}},
	{SISNACC, recipe{family: familySolve, pair: true, weighted: true}},
	{"sis-nacc-ml", recipe{family: familySolve, pair: true, weighted: true, likelihood: true}},
	{"sis-nacc-hard", recipe{family: familySolve, hard: true, pair: true, weighted: true}},
	{
		"sis-nacc-hard-ml",
		recipe{family: familySolve, hard: true, pair: true, weighted: true, likelihood: true},
	},
	{Diff, recipe{family: familyDiff, weighted: true}},
	{ML, recipe{family: familyML, pair: true, weighted: true, likelihood: true}},
	{Auto, recipe{family: familyAuto, weighted: true}},
	{Audits, recipe{family: familyAudit}},
}

// recipe returns the method taken apart; false when it names none.
func (m Method) recipe() (recipe, bool) {
	for i := range methods {
		if methods[i].name == m {
			return methods[i].recipe, true
		}
	}
	return recipe{}, false
}

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
	r, _ := m.recipe()
	return r.pair && !r.hard, r.hard && !r.pair, r.hard && r.pair
}

// WeighsCells reports whether the method reads the sums of cells weighted by the kernel, A1 and A2.
// The others read them of whole classes at most, as auto does, whatever kernel there is.
func (m Method) WeighsCells() bool {
	r, _ := m.recipe()
	return r.weighted && r.family != familyAuto
}

// UsesKernel reports whether a kernel makes a difference to the method.
func (m Method) UsesKernel() bool {
	r, _ := m.recipe()
	return r.weighted
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
		if _, ok := m.recipe(); !ok {
			return nil, fmt.Errorf("no method %q; want one of %s or all", name, Methods())
		}
		if !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out, nil
}

// Preset names a rule by which kernel mass a becomes the weight of a label.
type Preset string

// The presets. Each goes with a kernel that the caller chooses: ppr, truncated, lazy.
const (
	Density   Preset = "density"   // w = lambda a / mean of a + 1 - lambda
	Reference Preset = "reference" // w = lambda a + 1 - lambda: the authors' code
	Paper     Preset = "paper"     // w = lambda a / M + 1 - lambda: as printed
)

const (
	// LambdaDefault is the lambda of the methods that do not choose their own.
	LambdaDefault = 0.9
	// LambdaAuto asks for the largest lambda that keeps an effective sample of 0.3 of the labels.
	// It is a number, unlike NaN, so that options stay comparable and fit into JSON.
	LambdaAuto = -1
)

// Options say how an estimate is read from the statistics.
type Options struct {
	Method Method // no default: the empty method is refused
	Preset Preset // "" is Density; ml, auto and their diff always use Density

	// Lambda is the share of the kernel in the weights, 0..1, or LambdaAuto. Zero is
	// zero: constant weights. Read by sis... and diff; ml and auto choose their own.
	Lambda float64

	Confidence   float64 // of the interval, between 0 and 1; 0 is 0.9
	Simultaneous bool    // the intervals hold together, not each on its own
}

// DefaultOptions returns auto, density, lambda 0.9 and marginal 90 % intervals.
func DefaultOptions() Options {
	return Options{Method: Auto, Preset: Density, Lambda: LambdaDefault, Confidence: 0.9}
}

// withDefaults fills in options that are not set, and the preset of methods that have one of their
// own.
func (o Options) withDefaults(r recipe) Options {
	if o.Preset == "" || r.family == familyML || r.family == familyAuto {
		o.Preset = Density
	}
	o.Confidence = cmp.Or(o.Confidence, confidenceDefault)
	return o
}

// Validate reports every option that is out of range.
func (o Options) Validate() error {
	var errs []error
	if _, ok := o.Method.recipe(); !ok {
		errs = append(errs, fmt.Errorf("no method %q; want one of %s", o.Method, Methods()))
	}
	switch o.Preset {
	case "", Density, Reference, Paper:
	default:
		errs = append(errs, fmt.Errorf("no preset %q; want density, reference or paper", o.Preset))
	}
	if o.Lambda != LambdaAuto && !(o.Lambda >= 0 && o.Lambda <= 1) {
		errs = append(errs, fmt.Errorf("quant: lambda %v is not between 0 and 1", o.Lambda))
	}
	if o.Confidence != 0 && !(o.Confidence > 0 && o.Confidence < 1) {
		errs = append(errs, fmt.Errorf("quant: confidence %v is not between 0 and 1", o.Confidence))
	}
	return errors.Join(errs...)
}
