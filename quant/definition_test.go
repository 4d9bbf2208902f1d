package quant_test

import (
	"math"
	"strings"
	"testing"

	"gqlstream/quant"
	"gqlstream/quant/stats"
)

// matrix is a dense matrix of rows, for the definitions only.
type matrix [][]float64

func newMatrix(rows, columns int) matrix {
	m := make(matrix, rows)
	for i := range m {
		m[i] = make([]float64, columns)
	}
	return m
}

func (m matrix) times(o matrix) matrix {
	out := newMatrix(len(m), len(o[0]))
	for i := range m {
		for j := range o[0] {
			for l := range o {
				out[i][j] += m[i][l] * o[l][j]
			}
		}
	}
	return out
}

func (m matrix) transposed() matrix {
	out := newMatrix(len(m[0]), len(m))
	for i := range m {
		for j := range m[i] {
			out[j][i] = m[i][j]
		}
	}
	return out
}

// add adds weight x y' to m.
func (m matrix) add(weight float64, x, y []float64) {
	for i := range m {
		for j := range m[i] {
			m[i][j] += weight * x[i] * y[j]
		}
	}
}

// inverse is Gauss-Jordan elimination with pivoting.
func (m matrix) inverse() matrix {
	n := len(m)
	work := newMatrix(n, 2*n)
	for i := range n {
		copy(work[i], m[i])
		work[i][n+i] = 1
	}
	for j := range n {
		pivot := j
		for i := j; i < n; i++ {
			if math.Abs(work[i][j]) > math.Abs(work[pivot][j]) {
				pivot = i
			}
		}
		work[j], work[pivot] = work[pivot], work[j]
		for i := range n {
			factor := work[i][j] / work[j][j]
			for l := range work[i] {
				if i != j {
					work[i][l] -= factor * work[j][l]
				}
			}
		}
	}
	out := newMatrix(n, n)
	for i := range n {
		for j := range n {
			out[i][j] = work[i][n+j] / work[i][i]
		}
	}
	return out
}

// definition is one estimate written out from the design, vertex by vertex.
type definition struct {
	w              *world
	c              community
	a              []float64
	r, s           float64
	pair, hard     bool
	likelihood     bool
	profiles       map[int][]float64
	z              int
	columns        matrix // k x z
	mass, nEff     []float64
	p              []float64
	members, count float64
}

// define gathers C and p for a weighting w = r a + s.
func define(w *world, c community, a []float64, r, s float64, method quant.Method) *definition {
	d := &definition{w: w, c: c, a: a, r: r, s: s, z: w.classes, profiles: map[int][]float64{}}
	d.pair = strings.Contains(string(method), "nacc")
	d.hard = strings.Contains(string(method), "hard")
	d.likelihood = strings.HasSuffix(string(method), "ml")
	if d.pair {
		d.z *= w.classes
	}
	d.columns = newMatrix(w.classes, d.z)
	d.mass, d.nEff, d.p = make([]float64, w.classes), make([]float64, w.classes), make(
		[]float64,
		d.z,
	)
	squares := make([]float64, w.classes)
	for v, l := range w.labels {
		if l >= 0 {
			x := r*a[v] + s
			d.mass[l] += x
			squares[l] += x * x
			for z, f := range d.profile(v) {
				d.columns[l][z] += x * f
			}
		}
	}
	for i := range d.columns {
		d.nEff[i] = d.mass[i] * d.mass[i] / squares[i]
		for z := range d.columns[i] {
			d.columns[i][z] /= d.mass[i]
		}
	}
	var square float64
	for i, v := range c.members {
		m := c.weights[i]
		d.members += m
		square += m * m
		for z, f := range d.profile(v) {
			d.p[z] += m * f
		}
	}
	for z := range d.p {
		d.p[z] /= d.members
	}
	d.count = d.members * d.members / square
	return d
}

// profile is the vector phi of a vertex.
func (d *definition) profile(v int) []float64 {
	if f := d.profiles[v]; f != nil {
		return f
	}
	k, at := d.w.classes, &d.w.profiles[v]
	f := make([]float64, d.z)
	switch {
	case d.hard && d.pair:
		f[at.own*k+at.majority] = 1
	case d.hard:
		f[at.own] = 1
	case d.pair:
		for j, x := range d.w.predictions[v] {
			for l, y := range at.neighbors {
				f[j*k+l] = x * y
			}
		}
	default:
		copy(f, d.w.predictions[v])
	}
	d.profiles[v] = f
	return f
}

// shares solves by a slow and simple method.
func (d *definition) shares() []float64 {
	k := d.w.classes
	if d.likelihood {
		q := make([]float64, k)
		for i := range q {
			q[i] = 1 / float64(k)
		}
		for range 20_000 {
			expectationStep(d.columns, d.p, q)
		}
		return q
	}
	g, b := make([]float64, k*k), make([]float64, k)
	for i := range k {
		for j := range k {
			for z := range d.z {
				g[i*k+j] += d.columns[i][z] * d.columns[j][z]
			}
		}
		for z := range d.z {
			b[i] += d.columns[i][z] * d.p[z]
		}
	}
	return projectedGradient(g, b, 20_000)
}

// errors are the standard errors at q from the definition, with the covariances
// of the profiles themselves or with the stand-in from second moments.
func (d *definition) errors(q []float64, exact bool) []float64 {
	h := d.sensitivity(q)
	noise := d.memberNoise(q)
	for i, c := range d.columns {
		factor := q[i] * q[i] * d.nEff[i] / max(d.nEff[i]-1, .5) / (d.mass[i] * d.mass[i])
		for v, l := range d.w.labels {
			if l != i {
				continue
			}
			x := d.r*d.a[v] + d.s
			phi := d.profile(v)
			if exact {
				apart := make([]float64, d.z)
				for z := range apart {
					apart[z] = phi[z] - c[z]
				}
				noise.add(factor*x*x, apart, apart)
				continue
			}
			for z, f := range phi {
				noise[z][z] += factor * x * x * f
			}
			noise.add(-factor*x*x, phi, c)
			noise.add(-factor*x*x, c, phi)
			noise.add(factor*x*x, c, c)
		}
	}
	v := h.times(noise).times(h.transposed())
	se := make([]float64, len(q))
	for i := range se {
		se[i] = math.Sqrt(v[i][i])
	}
	return se
}

// memberNoise is S_p.
func (d *definition) memberNoise(q []float64) matrix {
	s := newMatrix(d.z, d.z)
	for i, c := range d.columns {
		for z, x := range c {
			s[z][z] += q[i] * x / d.count
		}
		s.add(-q[i]/d.count, c, c)
	}
	return s
}

// sensitivity is H = A C'D.
func (d *definition) sensitivity(q []float64) matrix {
	k := len(q)
	c := d.columns.transposed()
	weighted := newMatrix(k, d.z)
	for z := range d.z {
		weight := 1.0
		if d.likelihood {
			var fit float64
			for i := range q {
				fit += q[i] * c[z][i]
			}
			weight = 1 / max(fit, 1e-6)
		}
		for i := range k {
			weighted[i][z] = c[z][i] * weight
		}
	}
	inverse := weighted.times(c).inverse()
	ones := make([]float64, k)
	var total float64
	for i := range k {
		for j := range k {
			ones[i] += inverse[i][j]
		}
		total += ones[i]
	}
	inverse.add(-1/total, ones, ones)
	return inverse.times(weighted)
}

// Shares, effective labels and standard errors must be those of the formulas,
// computed vertex by vertex with dense matrices and slow solvers.
func TestEstimatesMatchDefinitions(t *testing.T) {
	w := syntheticWorld(3, 120, 300, 1)
	masses := w.masses(personalised, w.communities)
	for b, c := range w.communities {
		s := w.statistics(c, masses[b])
		mean := total(s.ClassA1) / total(s.ClassN)
		for _, method := range quant.Methods() {
			plain, isML := strings.CutSuffix(string(method), "-ml")
			r, constant := .6/mean, .4
			switch plain {
			case "acc", "pacc", "nacc", "nacc-hard":
				r, constant = 0, 1
			case "sis", "sis-hard", "sis-nacc", "sis-nacc-hard":
			default:
				continue
			}
			name := plain
			if plain == "acc" {
				name = "acc-hard"
			}
			if isML {
				name += "-ml"
			}
			d := define(w, c, masses[b], r, constant, quant.Method(name))
			compareDefinition(t, c.name, method, s, d)
		}
	}
}

func compareDefinition(
	t *testing.T, community string, method quant.Method, s *stats.Statistics, d *definition,
) {
	q := d.shares()
	for _, exact := range []bool{true, false} {
		in := *s
		if !exact {
			in.Rows = nil
		}
		e, err := quant.Quantify(&in, quant.Options{Method: method, Lambda: .6})
		if err != nil {
			t.Fatal(err)
		}
		if want := map[bool]string{
			true:  quant.VarianceExact,
			false: quant.VarianceDiagonal,
		}[exact || d.hard]; e.Variance != want {
			t.Errorf("%s %s: variance %q, want %q", community, method, e.Variance, want)
		}
		near(t, community, method, "shares", e.Prevalence, q, 1e-6)
		near(t, community, method, "n_eff", e.NEff, d.nEff, 1e-9*d.members)
		near(t, community, method, "se", e.SE, d.errors(q, exact), 1e-6)
	}
}

// near fails the test where two vectors differ by more than a tolerance.
func near(
	t *testing.T, community string, method quant.Method, what string, got, want []float64,
	tolerance float64,
) {
	t.Helper()
	for i := range want {
		if !(math.Abs(got[i]-want[i]) <= tolerance) {
			t.Errorf("%s %s: %s %v, want %v", community, method, what, got, want)
			return
		}
	}
}
