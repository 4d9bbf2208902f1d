package evaluate

import (
	"context"
	"errors"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gqlstream/incremental"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// The same data, configuration and seed must give the same report to the last bit, whatever
// the number of processors; another seed must give another.
func TestReportIsDeterministic(t *testing.T) {
	w := &world{seed: 11, n: 300, k: 3, islands: 40, weighted: true}
	c := w.config("auto", "sis", "mlpe")
	first := run(t, c, w.load())
	before := runtime.GOMAXPROCS(1)
	second := run(t, c, w.load())
	runtime.GOMAXPROCS(before)
	if diff := cmp.Diff(first, second); diff != "" {
		t.Errorf("a second run differs:\n%s", diff)
	}
	c.Seed++
	if cmp.Equal(first.Outcomes, run(t, c, w.load()).Outcomes) {
		t.Error("another seed gives the same outcomes")
	}
}

// A further method or protocol must not change the results of the others.
func TestAskingForMoreChangesNothingElse(t *testing.T) {
	w := &world{seed: 12, n: 300, k: 2}
	c := w.config("diff", "pacc")
	c.Protocols = []string{rw}
	few := run(t, c, w.load())
	c = w.config("mlpe", "diff", "pacc", "nacc")
	c.Protocols = []string{pps, rw, bfs}
	many := run(t, c, w.load())
	for _, want := range few.Outcomes {
		i := slices.IndexFunc(many.Outcomes, func(o Outcome) bool {
			return o.Split == want.Split && o.Community == want.Community && o.Method == want.Method
		})
		if i < 0 {
			t.Fatalf("%s of %s is gone", want.Method, want.Community)
		}
		got := many.Outcomes[i]
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s of %s:\n%s", want.Method, want.Community, diff)
		}
	}
}

// An estimate must be that of a core that read the user's own events without the hidden
// labels: the evaluation measures the product.
func TestEstimatesAreThoseOfTheCore(t *testing.T) {
	w := &world{seed: 13, n: 400, k: 3, train: 40, weighted: true}
	c := w.config("auto", "sis-nacc", "nacc-hard").WithDefaults()
	c.Core.Tolerance = 1e-9
	report := run(t, c, w.load())
	d := w.data(t, c)
	bags, calibration, err := d.draw(c, 1)
	if err != nil {
		t.Fatal(err)
	}
	core, err := incremental.New(c.Core)
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	var last event.Position
	err = w.load()(t.Context(), func(b *event.Batch) ([]event.Refusal, error) {
		b.Labels = slices.DeleteFunc(b.Labels, func(l event.Label) bool {
			v, _ := d.view.Lookup(l.Vertex)
			return l.Role == event.Calibrate && !slices.Contains(calibration, v)
		})
		core.Step(b)
		last = b.Last
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	members := &event.Batch{First: last + 1, Last: last + 1, Emit: true}
	for _, b := range bags {
		for _, m := range b.members {
			members.Members = append(
				members.Members,
				event.Member{
					Community:    b.name,
					Vertex:       d.ids[m.vertex],
					Multiplicity: m.multiplicity,
				},
			)
		}
	}
	compared := 0
	for _, e := range core.Step(members).Estimates {
		for i := range report.Outcomes {
			o := &report.Outcomes[i]
			if o.Split != 1 || o.Community != e.Community || o.Method != e.Method {
				continue
			}
			compared++
			for k := range e.Prevalence {
				if math.Abs(o.Estimate[k]-e.Prevalence[k])+math.Abs(o.Low[k]-e.Low[k])+math.Abs(
					o.High[k]-e.High[k],
				) > 1e-6 {
					t.Fatalf(
						"%s of %s: %v [%v, %v], the core says %v [%v, %v]", e.Method, e.Community,
						o.Estimate, o.Low, o.High, e.Prevalence, e.Low, e.High,
					)
				}
			}
		}
	}
	if want := 3 * len(bags); compared != want {
		t.Errorf("compared %d estimates, want %d", compared, want)
	}
}

// A classifier that is always right and sure must leave no error to any method
// that reads the own prediction alone, and every interval must hold the truth. The
// posterior of auto is never quite sure.
func TestPerfectClassifierHasNoError(t *testing.T) {
	w := &world{seed: 14, n: 400, k: 3, accuracy: 1}
	methods := slices.DeleteFunc(quant.Methods(), func(m quant.Method) bool {
		pair, _, hardPair := m.Needs()
		return pair || hardPair || m == quant.MLPE
	})
	for _, row := range run(t, w.config(methods...), w.load()).Rows {
		bound := 1e-6
		if row.Method == string(quant.Auto) {
			bound = 2e-3
		}
		if row.AE > bound || row.Coverage != 1 {
			t.Errorf("%s, %s: AE %g, coverage %v", row.Protocol, row.Method, row.AE, row.Coverage)
		}
	}
}

// The constant kernel must turn sis into pacc, and another not; the communities must be the same.
func TestKernelsDecideTheMethodsThatUseThem(t *testing.T) {
	w := &world{seed: 15, n: 300, k: 2}
	ae := map[string]float64{}
	for _, kernel := range []string{"ppr", "constant", "shortest-path"} {
		c := w.config("pacc", "sis")
		c.Core.Kernel, c.Protocols = kernel, []string{bfs}
		report := run(t, c, w.load())
		for _, row := range report.Rows {
			ae[row.Method+" "+kernel] = row.AE
		}
		if len(report.Rows) != 2 || report.Kernel != kernel {
			t.Errorf("%d rows of %s, want 2 of %s", len(report.Rows), report.Kernel, kernel)
		}
	}
	if a, b := ae["pacc constant"], ae["sis constant"]; a != ae["pacc ppr"] ||
		math.Abs(a-b) > 1e-9 {
		t.Errorf("sis with the constant kernel has AE %v, pacc %v and %v", b, a, ae["pacc ppr"])
	}
	if ae["sis ppr"] == ae["pacc ppr"] || ae["sis ppr"] == ae["sis shortest-path"] {
		t.Errorf("kernels make no difference: %v", ae)
	}
}

// More communities than one core may hold must give the same estimates as one core
// for all, where each has a field.
func TestCoresAreSplitWithoutATrace(t *testing.T) {
	w := &world{seed: 16, n: 200, k: 2}
	c := w.config("auto").WithDefaults()
	d := w.data(t, c)
	var got [2][]quant.Estimate
	for i, most := range []int{1000, 7} {
		bags, calibration, err := d.draw(c, 0)
		if err != nil {
			t.Fatal(err)
		}
		c.Core.Engine = incremental.EnginePrimal
		for chunk := range slices.Chunk(bags, most) {
			if err := d.estimateChunk(c, chunk, calibration); err != nil {
				t.Fatal(err)
			}
		}
		for _, b := range bags {
			for _, e := range b.estimates {
				e.Position = 0
				got[i] = append(got[i], e)
			}
		}
	}
	if diff := cmp.Diff(got[0], got[1]); diff != "" {
		t.Error(diff)
	}
}

// Events that the graph refuses must be returned, not stop the evaluation; progress must
// end at the total.
func TestRefusalsAndProgressAreReported(t *testing.T) {
	w := &world{seed: 17, n: 100, k: 2}
	loop := event.Edge{Src: w.id(1), Dst: w.id(1), Weight: 1}
	var last, all int
	var refusals []event.Refusal
	load := func(ctx context.Context, visit func(*event.Batch) ([]event.Refusal, error)) error {
		return w.load(&event.Batch{Edges: []event.Edge{loop}})(
			ctx,
			func(b *event.Batch) ([]event.Refusal, error) {
				refused, err := visit(b)
				refusals = append(refusals, refused...)
				return refused, err
			},
		)
	}
	report, err := Run(t.Context(), w.config("mlpe"), load,
		func(done, of int) {
			if done <= last {
				t.Errorf("progress %d after %d", done, last)
			}
			last, all = done, of
		})
	if err != nil {
		t.Fatal(err)
	}
	if len(refusals) != 1 || refusals[0].Reason != event.SelfLoop {
		t.Errorf("refused %v; want one self-loop", refusals)
	}
	if last != all || all != len(report.Outcomes) {
		t.Errorf("progress ends at %d of %d, with %d outcomes", last, all, len(report.Outcomes))
	}
}

// Every mistake in the configuration must be named at once.
func TestConfigReportsEveryMistake(t *testing.T) {
	c := Config{
		Protocols: []string{"pps", "dfs", "group:", "pps"}, Splits: -1, PerClass: -2,
		Size: -3, Share: 1.5,
	}
	o := quant.DefaultOptions()
	c.Core.Kernel, c.Core.Estimates = "gauss", []quant.Options{o, o}
	err := c.Validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`"dfs"`, `"group:"`, `"pps" twice`, `"gauss"`, "splits: -1", "per_class: -2", "size: -3",
		"calibration: 1.5",
		"classes", `"auto" twice`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing from:\n%v", want, err)
		}
	}
}

// Data that cannot be evaluated must say why: too few labels, no community to draw,
// a source that fails, a cancelled context.
func TestUnusableDataIsAnError(t *testing.T) {
	small := &world{seed: 18, n: 15, k: 2}
	w := &world{seed: 18, n: 100, k: 2}
	lonely := w.config("mlpe")
	lonely.Protocols = []string{"group:nothing"}
	broken := errors.New("disk on fire")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		name   string
		ctx    context.Context
		config Config
		load   Load
		want   string
	}{
		{"few labels", t.Context(), small.config("mlpe"), small.load(), "15 labelled vertices"},
		{"no group", t.Context(), lonely, w.load(), "group:nothing draws no community"},
		{"broken", t.Context(), w.config("mlpe"), func(context.Context,
			func(*event.Batch) ([]event.Refusal, error),
		) error {
			return broken
		}, "fire"},
		{"cancelled", cancelled, w.config("mlpe"), w.load(), context.Canceled.Error()},
	} {
		_, err := Run(test.ctx, test.config, test.load, nil)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %q", test.name, err, test.want)
		}
	}
}
