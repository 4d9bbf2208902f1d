package bench

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// tiny is the smallest run that does all of the work.
func tiny(t *testing.T) Config {
	return Config{Vertices: 1000, Edges: 8000, Seed: 1, Quick: true, Dir: t.TempDir(), Progress: t.Output()}
}

// Every measure must give finite, positive figures whose names are its own, and
// the certificate must hold; no figure is held against a time.
func TestEveryMeasureGivesItsRows(t *testing.T) {
	seen := map[string]Row{}
	if err := Run(t.Context(), tiny(t), Measures(), func(r Row) {
		if _, twice := seen[r.Name]; twice {
			t.Errorf("row %s twice", r.Name)
		}
		seen[r.Name] = r
	}); err != nil {
		t.Fatal(err)
	}
	for _, m := range Measures() {
		if _, ok := seen[m.Name]; !ok {
			t.Errorf("no row %s", m.Name)
		}
	}
	for name, r := range seen {
		if math.IsNaN(r.Value) || math.IsInf(r.Value, 0) || r.Value <= 0 || r.Unit == "" {
			t.Errorf("row %s: %v %q", name, r.Value, r.Unit)
		}
		if r.Goal == "" && r.Met != nil {
			t.Errorf("row %s: goal %q, met %v", name, r.Goal, r.Met)
		}
		if !slices.ContainsFunc(Measures(), func(m Measure) bool {
			return name == m.Name || strings.HasPrefix(name, m.Name+"/")
		}) {
			t.Errorf("row %s belongs to no measure", name)
		}
	}
	if r := seen["certificate"]; r.Met == nil || !*r.Met {
		t.Errorf("the certificate is %v, want %s", r.Value, r.Goal)
	}
}

// The graph must be a function of the seed.
func TestGraphIsAFunctionOfTheSeed(t *testing.T) {
	small := func(seed uint64) *graph {
		w := &World{Config: Config{Vertices: 500, Edges: 3000, Seed: seed, Progress: t.Output()}}
		g, err := w.shared(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.release)
		return g
	}
	a, b, c := small(5), small(5), small(6)
	for range 5 {
		_, da, errA := a.change(t.Context(), 100)
		_, db, errB := b.change(t.Context(), 100)
		_, dc, errC := c.change(t.Context(), 100)
		if err := errors.Join(errA, errB, errC); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(da.Edges, db.Edges) {
			t.Fatal("one seed gives two streams")
		}
		if slices.Equal(da.Edges, dc.Edges) {
			t.Fatal("two seeds give one stream")
		}
	}
}

func TestConfigReportsEveryViolation(t *testing.T) {
	for _, c := range []Config{{}, {Vertices: 1000, Edges: 10}, {Vertices: 100, Edges: 5000}, {Vertices: 10, Edges: 20}} {
		if err := c.Validate(); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
}

// A measure that fails must not hide the others, and none may run after the end of
// the context.
func TestRunReportsFailuresAndGoesOn(t *testing.T) {
	broken := errors.New("broken")
	ctx, cancel := context.WithCancel(t.Context())
	var rows []string
	err := Run(ctx, tiny(t), []Measure{
		{"a", "", func(context.Context, *World) ([]Row, error) { return nil, broken }},
		{"b", "", func(context.Context, *World) ([]Row, error) { cancel(); return []Row{{Name: "b"}}, nil }},
		{"c", "", func(context.Context, *World) ([]Row, error) { return []Row{{Name: "c"}}, nil }},
	}, func(r Row) { rows = append(rows, r.Name) })
	if !errors.Is(err, broken) || !errors.Is(err, context.Canceled) || !slices.Equal(rows, []string{"b"}) {
		t.Errorf("rows %v, error %v", rows, err)
	}
}

func TestGoalsPointTheRightWay(t *testing.T) {
	for _, c := range []struct {
		row  Row
		goal string
		met  bool
	}{
		{Row{Value: 3}.atMost(3), "<= 3", true},
		{Row{Value: 4}.atMost(3), "<= 3", false},
		{Row{Value: 1e6}.atLeast(1e6), ">= 1000000", true},
		{Row{Value: 2}.atLeast(3), ">= 3", false},
	} {
		if c.row.Goal != c.goal || *c.row.Met != c.met {
			t.Errorf("%+v, want %q %v", c.row, c.goal, c.met)
		}
	}
	data, err := json.Marshal(Row{Name: "x"})
	if want := `{"name":"x","value":0,"unit":"","goal":"","met":null,"reference":""}`; err != nil || string(data) != want {
		t.Errorf("%s, %v, want %s", data, err, want)
	}
}
