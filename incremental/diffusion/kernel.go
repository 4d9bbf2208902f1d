package diffusion

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"gqlstream/graphstore"
)

// The kernels by name.
const (
	PPR          = "ppr"           // the field of this package, solved to a certificate
	Truncated    = "truncated"     // Steps steps of x <- (1-a) P x + a m from x = m, with self-loops
	Lazy         = "lazy"          // (a I + (1-a) A D^-1)^Steps m, without self-loops
	ShortestPath = "shortest-path" // exp(-Decay * hops to the nearest source), 0 beyond HopsMax
	Constant     = "constant"      // 1 everywhere
)

// KernelNames lists the kernels in the order in which they are explained.
var KernelNames = []string{PPR, Truncated, Lazy, ShortestPath, Constant}

// KernelParams are the parameters of all kernels.
type KernelParams struct {
	Alpha       float64 // teleport probability; 0 is AlphaDefault
	Steps       int     // of truncated and lazy; 0 is 10
	Decay       float64 // gamma of shortest-path, per hop; 0 is 1
	HopsMax     int     // of shortest-path; 0 is 10
	Certificate float64 // of ppr; 0 is certificateDefault
}

// certificateDefault is the certificate of a one-shot ppr kernel.
const certificateDefault = 1e-6

const stepsMax = 1 << 20 // bounds the time a mistyped parameter can take

// Validate reports every violation.
func (p KernelParams) Validate() error {
	p = p.withDefaults()
	var errs []error
	if err := (Config{Alpha: p.Alpha}).Validate(); err != nil {
		errs = append(errs, err)
	}
	if p.Steps < 1 || p.Steps > stepsMax {
		errs = append(errs, fmt.Errorf("steps is %d, want 1 to %d", p.Steps, stepsMax))
	}
	if !(p.Decay > 0) || math.IsInf(p.Decay, 1) {
		errs = append(errs, fmt.Errorf("decay is %v, want a positive number", p.Decay))
	}
	if p.HopsMax < 1 {
		errs = append(errs, fmt.Errorf("hops max is %d, want at least 1", p.HopsMax))
	}
	if !(p.Certificate > 0 && p.Certificate <= 1) {
		errs = append(errs, fmt.Errorf("certificate is %v, want more than 0 and at most 1", p.Certificate))
	}
	return errors.Join(errs...)
}

func (p KernelParams) withDefaults() KernelParams {
	set := func(x *float64, value float64) {
		if *x == 0 {
			*x = value
		}
	}
	set(&p.Alpha, AlphaDefault)
	set(&p.Decay, 1)
	set(&p.Certificate, certificateDefault)
	if p.Steps == 0 {
		p.Steps = 10
	}
	if p.HopsMax == 0 {
		p.HopsMax = 10
	}
	return p
}

// Kernel computes a kernel once: the mass of every vertex for the source m, which
// has one multiplicity >= 0 for every vertex of view. The walks ppr, truncated and
// lazy conserve mass, so their values sum to M, the sum of m; the other two are
// not scaled. The certificate bounds the L1 error of ppr over M, as far as its
// bound could be reached; it is 0 for the others, which are exact to rounding.
// Errors: an unknown name, or parameters out of range. It panics if m does not
// have the length of the graph.
func Kernel(view graphstore.View, name string, m []float64, params KernelParams) (
	a []float64, certificate float64, err error,
) {
	if len(m) != view.Vertices() {
		panic(fmt.Sprintf("diffusion: source of length %d, graph of %d vertices", len(m), view.Vertices()))
	}
	if err := params.Validate(); err != nil {
		return nil, 0, fmt.Errorf("diffusion: kernel %s: %w", name, err)
	}
	params = params.withDefaults()
	switch name {
	case PPR:
		return solved(view, m, params)
	case Truncated:
		return truncated(view, m, params), 0, nil
	case Lazy:
		return lazy(view, m, params), 0, nil
	case ShortestPath:
		return shortestPath(view, m, params), 0, nil
	case Constant:
		a = make([]float64, len(m))
		for v := range a {
			a[v] = 1
		}
		return a, 0, nil
	}
	return nil, 0, fmt.Errorf("diffusion: unknown kernel %q, want one of %s",
		name, strings.Join(KernelNames, ", "))
}

func solved(view graphstore.View, m []float64, params KernelParams) ([]float64, float64, error) {
	f, err := NewField(Config{Alpha: params.Alpha})
	if err != nil {
		return nil, 0, err
	}
	var sources []SourceChange
	for v, x := range m {
		if x != 0 {
			sources = append(sources, SourceChange{Vertex(v), x})
		}
	}
	certificate := f.Solve(view, sources, params.Certificate)
	a := f.z // d(v) z(v), in place: the field ends here
	for v := range a {
		a[v] *= f.cells[v].d
	}
	return a, certificate, nil
}

// truncated is what the code of Damke and Huellermeier runs.
func truncated(view graphstore.View, m []float64, params KernelParams) []float64 {
	x, y := append([]float64(nil), m...), make([]float64, len(m))
	for range params.Steps {
		for v := range x {
			y[v] = x[v] / (view.Degree(Vertex(v)) + 1)
		}
		for v := range x {
			x[v] = (1-params.Alpha)*(y[v]+neighborSum(view, y, Vertex(v))) + params.Alpha*m[v]
		}
	}
	return x
}

// lazy is what their paper prints. A vertex without edges keeps what it has.
func lazy(view graphstore.View, m []float64, params KernelParams) []float64 {
	x, y := append([]float64(nil), m...), make([]float64, len(m))
	for range params.Steps {
		for v := range x {
			y[v] = 0
			if d := view.Degree(Vertex(v)); d > 0 {
				y[v] = x[v] / d
			}
		}
		for v := range x {
			if view.Degree(Vertex(v)) > 0 {
				x[v] = params.Alpha*x[v] + (1-params.Alpha)*neighborSum(view, y, Vertex(v))
			}
		}
	}
	return x
}

// neighborSum returns the weighted sum of x over the neighbours of v.
func neighborSum(view graphstore.View, x []float64, v Vertex) float64 {
	if weights := view.Weights(v); weights != nil {
		return gatherWeighted(x, view.Neighbors(v), weights)
	}
	return gather(x, view.Neighbors(v))
}

// shortestPath searches breadth first from all sources at once; weights do not
// count.
func shortestPath(view graphstore.View, m []float64, params KernelParams) []float64 {
	a := make([]float64, len(m))
	seen := make(bitmap, (len(m)+63)/64)
	var front, next []Vertex
	for v, x := range m {
		if x > 0 {
			seen.add(Vertex(v))
			front = append(front, Vertex(v))
		}
	}
	for hops := 0; len(front) > 0 && hops <= params.HopsMax; hops++ {
		value := math.Exp(-params.Decay * float64(hops))
		for _, v := range front {
			a[v] = value
			for _, u := range view.Neighbors(v) {
				if seen.add(u) {
					next = append(next, u)
				}
			}
		}
		front, next = next, front[:0]
	}
	return a
}
