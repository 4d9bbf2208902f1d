package incremental

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/mat"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/neighborhood"
	"gqlstream/incremental/tally"
	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
	"gqlstream/quant"
	"gqlstream/quant/stats"
)

// allMethods is a configuration that keeps every kind of cell.
func allMethods(classes int) Config {
	config := Config{
		Classes: classes, Models: Models{SwitchAt: 0.5, LapseAfter: time.Minute},
		Communities: []graphstore.Rule{
			{Name: "all", Kind: graphstore.Everyone},
			{
				Name: "german", Kind: graphstore.ByAttribute, Key: "language",
				Value: event.Value{Kind: event.StringValue, Text: "de"},
			},
		},
	}
	for _, m := range quant.Methods() {
		o := quant.DefaultOptions()
		o.Method = m
		config.Estimates = append(config.Estimates, o)
	}
	return config
}

// sharing leaves the methods that weigh cells out of a configuration: for those a dual keeps no
// masses.
func sharing(config Config) Config {
	config.Estimates = slices.DeleteFunc(
		config.Estimates,
		func(o quant.Options) bool { return o.Method.WeighsCells() },
	)
	return config
}

// newCore returns a core, which the caller closes.
func newCore(t testing.TB, config Config) *Core {
	t.Helper()
	core, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return core
}

// withRules adds communities by expression and of an ego network to a configuration,
// for one seed in four: each community costs every step of a test.
func withRules(seed uint64, config Config) Config {
	config.Evidence.Attributes = []string{graphstore.EveryAttribute}
	if seed%4 == 0 {
		config.Communities = append(
			config.Communities,
			graphstore.Rule{
				Name:       "not german",
				Kind:       graphstore.ByExpression,
				Expression: `language in ["fr", "en"] or language == nil`,
			},
			graphstore.Rule{
				Name:       "near 1",
				Kind:       graphstore.Ego,
				Root:       "v1",
				Hops:       2,
				MembersMax: 15,
			},
		)
	}
	return config
}

// After every batch of a random history, neighbourhood sums and tallies must be
// bit-equal to a recount, kernels within their certificate of a dense solve, and
// the certificate never below the true error.
func TestIncrementalEqualsRecompute(t *testing.T) {
	const histories = 1200
	emitted := 0
	for seed := range uint64(histories) {
		stream := eventtest.New(seed, eventtest.Config{
			Weighted: seed%2 == 0, Erase: seed%3 == 0, TTL: seed%5 == 0, SelfLoops: true,
			Withdraw: seed%4 == 0, RollOuts: seed%4 == 1, Audits: seed%3 == 1,
			Attributes: seed%7 == 1,
		})
		config := withRules(seed, allMethods(stream.Config.Classes))
		config.Windows = windowsOf(seed / 5)
		config.HalfLife = halfLifeOf(seed / 7)
		core := newCore(t, config)
		for i := range 12 {
			batch := stream.Next()
			result := checkedStep(t, seed, i, core, batch)
			checkRefused(t, seed, i, batch, result.Refused)
			emitted += len(result.Estimates)
			checkKernels(t, seed, i, core)
			checkWeights(t, fmt.Sprintf("seed %d batch %d", seed, i), core)
		}
		core.Close()
	}
	if emitted < histories {
		t.Fatalf("only %d estimates were emitted over %d histories", emitted, histories)
	}
}

// checkedStep takes a step, after which estimates must be sane and the state that of a
// recount.
func checkedStep(t *testing.T, seed uint64, i int, core *Core, batch *event.Batch) Result {
	t.Helper()
	result := core.Step(batch)
	checkEstimates(t, seed, i, result.Estimates)
	if err := checkCore(core); err != nil {
		t.Fatalf("seed %d batch %d: %v", seed, i, err)
	}
	return result
}

// checkRefused checks that all self-loops were refused, and no other events but stray
// predictions of older model versions.
func checkRefused(t *testing.T, seed uint64, batch int, b *event.Batch, refused []event.Refusal) {
	t.Helper()
	loops := 0
	for _, e := range b.Edges {
		if e.Src == e.Dst {
			loops++
		}
	}
	refused = slices.DeleteFunc(
		slices.Clone(refused),
		func(r event.Refusal) bool { return r.Reason == event.Late },
	)
	if len(refused) != loops {
		t.Fatalf("seed %d batch %d: %d self-loops, refused %v", seed, batch, loops, refused)
	}
	for _, r := range refused {
		if r.Reason != event.SelfLoop {
			t.Fatalf("seed %d batch %d: refused %v", seed, batch, r)
		}
	}
}

// checkCore recomputes every operator from nothing.
func checkCore(c *Core) error {
	view := c.store.View()
	anew := neighborhood.Recount(view, c.config.Classes, c.config.families().HardPair, c.sums.At())
	for v := range graphstore.Vertex(view.Vertices()) {
		if got, want := c.sums.Votes(v), anew.Votes(v); !reflect.DeepEqual(got, want) {
			return fmt.Errorf("vertex %d has votes %v, a recount gives %v", v, got, want)
		}
	}
	if !c.warm() {
		return nil
	}
	twin := tally.New(c.config.Classes, c.config.families(), view, c.sums, c.pairs)
	return sameTallies(reflect.ValueOf(c.tallies).Elem(), reflect.ValueOf(twin).Elem())
}

// sameTallies names the first sum of tallies that is not bit-equal in a recount.
func sameTallies(got, want reflect.Value) error {
	for _, name := range []string{"decay.landmark", "rows"} {
		if err := sameField(got, want, name); err != nil {
			return err
		}
	}
	for id := range got.FieldByName("each").Len() {
		of, anew := got.FieldByName("each").
			Index(id).
			Elem(),
			want.FieldByName("each").
				Index(id).
				Elem()
		for _, name := range []string{
			"members", "labelled", "profiled", "known", "knownSquares",
			"squares", "anchored", "versions", "ownSquare", "p", "audited", "audit",
		} {
			if err := sameField(of, anew, name); err != nil {
				return fmt.Errorf("community %d: %w", id, err)
			}
		}
	}
	return nil
}

// sameField compares a field of two structs, or one of a struct that they have or point to.
func sameField(got, want reflect.Value, path string) error {
	for name := range strings.SplitSeq(path, ".") {
		got, want = reflect.Indirect(got).
			FieldByName(name),
			reflect.Indirect(want).
				FieldByName(name)
	}
	if !sameValue(got, want) {
		return fmt.Errorf("%s is %v, a recount gives %v", path, got, want)
	}
	return nil
}

// sameValue compares numbers, and structs and lists of them; zeros at the end of one list are a
// model version that nobody has any more, or a list that was never made.
func sameValue(got, want reflect.Value) bool {
	switch got.Kind() {
	case reflect.Slice, reflect.Array:
		n := min(got.Len(), want.Len())
		for i := range n {
			if !sameValue(got.Index(i), want.Index(i)) {
				return false
			}
		}
		for _, list := range []reflect.Value{got, want} {
			for i := n; i < list.Len(); i++ {
				if !list.Index(i).IsZero() {
					return false
				}
			}
		}
		return true
	case reflect.Struct:
		for i := range got.NumField() {
			if !sameValue(got.Field(i), want.Field(i)) {
				return false
			}
		}
		return true
	}
	return got.Equal(want)
}

// checkWeights holds the sums over the labels of fields against their definition.
func checkWeights(t *testing.T, where string, c *Core) {
	t.Helper()
	fields, are := c.kernels.(*fields)
	if !are {
		return
	}
	for id := range graphstore.Community(len(fields.each)) {
		s := fields.Statistics(id, c.View())
		k := s.K
		want := map[string][]float64{
			"class, a": make(
				[]float64,
				k,
			), "class, a²": make([]float64, k), "soft, a": make([]float64, k*k),
			"pairs, a²": make([]float64, k*k*k),
		}
		s.Rows(func(r stats.Row) {
			a := r.A
			if c.config.HalfLife > 0 {
				a *= r.G
			}
			want["class, a"][r.Class] += a
			want["class, a²"][r.Class] += a * a
			for i, own := range r.Own {
				want["soft, a"][i*k+r.Class] += a * own
				for j, neighbors := range r.Neighbors {
					want["pairs, a²"][(i*k+j)*k+r.Class] += a * a * own * neighbors
				}
			}
		})
		got := map[string][]float64{
			"class, a":  s.ClassA1,
			"class, a²": s.ClassA2,
			"soft, a":   s.Soft.A1,
			"pairs, a²": s.SoftPair.A2,
		}
		if diff := cmp.Diff(want, got, approximately(1e-9*max(1,
			s.KernelSum*s.KernelSum))); diff != "" {
			t.Fatalf("%s community %d: sums by definition (-) and read (+):\n%s", where, id, diff)
		}
	}
}

// massOf reads the masses of a community: none where a dual serves it, or before its
// first emission.
func massOf(c *Core, id graphstore.Community) tally.Mass {
	if f, are := c.kernels.(*fields); are && int(id) < len(f.each) {
		return f.each[id].mass
	}
	return func(tally.Vertex) float64 { return 0 }
}

// checkKernels holds every field against a dense solve of
// (D - (1-alpha) A) z = alpha m.
func checkKernels(t *testing.T, seed uint64, batch int, c *Core) {
	t.Helper()
	view := c.store.View()
	n := view.Vertices()
	if !c.warm() || n == 0 {
		return
	}
	system := mat.NewDense(n, n, nil)
	for v := range n {
		system.Set(v, v, view.Degree(graphstore.Vertex(v))+1-(1-c.config.Alpha))
		for i, u := range view.Neighbors(graphstore.Vertex(v)) {
			w := 1.0
			if weights := view.Weights(graphstore.Vertex(v)); weights != nil {
				w = weights[i]
			}
			system.Set(v, int(u), -(1-c.config.Alpha)*w)
		}
	}
	var lu mat.LU
	lu.Factorize(system)
	if d, is := c.kernels.(*sharedDual); is {
		checkValues(
			t, fmt.Sprintf("seed %d batch %d", seed, batch), d.dual, view, &lu, c.config.Alpha,
		)
		return
	}
	each := c.kernels.(*fields).each
	for id := range each {
		k := &each[id]
		source := mat.NewVecDense(n, nil)
		var total float64
		for _, s := range diffusion.Sources(graphstore.Community(id), view) {
			source.SetVec(int(s.V), c.config.Alpha*s.Change)
			total += s.Change
		}
		var z mat.VecDense
		if err := lu.SolveVecTo(&z, false, source); err != nil {
			t.Fatalf("seed %d batch %d: dense solve: %v", seed, batch, err)
		}
		var off float64
		for v := range n {
			off += math.Abs(
				z.AtVec(v)*(view.Degree(graphstore.Vertex(v))+1) - k.field.Mass(
					graphstore.Vertex(v),
				),
			)
		}
		if total > 0 {
			off /= total
		}
		if bound := k.bound(); off > bound+1e-12 || math.IsNaN(bound) {
			t.Fatalf("seed %d batch %d community %s: error %g above certificate %g",
				seed, batch, view.CommunityName(graphstore.Community(id)), off, bound)
		}
	}
}

// checkValues holds every value of a dual against the solution of (D - (1-alpha) A) y = alpha D f.
func checkValues(
	t *testing.T, where string, dual *diffusion.Dual, view graphstore.View, lu *mat.LU,
	alpha float64,
) {
	t.Helper()
	n, functions := view.Vertices(), len(dual.Values(0))
	f := mat.NewDense(n, functions, nil)
	for v := range n {
		for i, x := range dual.Function(graphstore.Vertex(v)) {
			f.Set(v, i, alpha*(view.Degree(graphstore.Vertex(v))+1)*x)
		}
	}
	var y mat.Dense
	if err := lu.SolveTo(&y, false, f); err != nil {
		t.Fatalf("%s: dense solve: %v", where, err)
	}
	for v := range n {
		for i, x := range dual.Values(graphstore.Vertex(v)) {
			if off := math.Abs(x - y.At(v, i)); off > dual.Certificate()+1e-11 {
				t.Fatalf(
					"%s: value %d of vertex %d is off by %g, certificate %g", where, i, v, off,
					dual.Certificate(),
				)
			}
		}
	}
}

// checkEstimates checks the properties of every published record.
func checkEstimates(t *testing.T, seed uint64, batch int, estimates []quant.Estimate) {
	t.Helper()
	for _, e := range estimates {
		var total float64
		for i, q := range e.Prevalence {
			total += q
			if !(q >= 0 && q <= 1) || !(e.Low[i] <= q && q <= e.High[i]) {
				t.Fatalf("seed %d batch %d: %s %s: share %v outside [%v, %v]",
					seed, batch, e.Community, e.Method, q, e.Low[i], e.High[i])
			}
		}
		if math.Abs(total-1) > 1e-9 {
			t.Fatalf(
				"seed %d batch %d: %s %s: shares sum to %v", seed, batch, e.Community, e.Method,
				total,
			)
		}
	}
}
