package evaluate

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gqlstream/internal/testfile"
	"gqlstream/quant"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata")

// sample is a report of two communities with three methods, small enough to check
// by hand.
func sample() *Report {
	estimate := func(method string, share, low, high float64) quant.Estimate {
		return quant.Estimate{
			Method: method, Flags: []string{}, Prevalence: []float64{share, 1 - share},
			Low: []float64{low, 1 - high}, High: []float64{high, 1 - low},
		}
	}
	r := &Report{
		Classes: 2, Vertices: 1000, Edges: 5000, Labelled: 400, Calibration: 60, Splits: 1, Seed: 7,
		Kernel:     "ppr",
		Confidence: 0.9, MembersMin: 11, Freshness: 1,
	}
	r.add(0, []*bag{
		{
			name: "pps/0", protocol: pps, size: 100, truth: []float64{0.5, 0.5},
			estimates: []quant.Estimate{
				estimate("auto", 0.52, 0.45, 0.59), // error .02, inside, width .14
				estimate("pcc", 0.54, 0.51, 0.57),  // error .04
				estimate("mlpe", 0.54, 0.53, 0.55), // error .04: ties with the one above
			},
		},
		{
			name: "pps/1", protocol: pps, size: 100, truth: []float64{0.2, 0.8},
			estimates: []quant.Estimate{
				estimate("auto", 0.24, 0.20, 0.28), // the truth is the bound: inside
				estimate("pcc", 0.23, 0.15, 0.31),
				estimate("mlpe", 0.54, 0.53, 0.55),
			},
		},
		{
			name: "bfs/0", protocol: bfs, size: 50, truth: []float64{1, 0},
			estimates: []quant.Estimate{
				estimate("auto", 0.9, 0.85, 0.95),
				estimate("pcc", 0.8, 0.7, 0.9),
				estimate("mlpe", 0.54, 0.53, 0.55),
			},
		},
	})
	r.sumUp()
	return r
}

// Means, coverage up to the bound, width and standard errors must equal figures computed by
// hand.
func TestRowsAreTheMeansOfTheirOutcomes(t *testing.T) {
	want := []Row{
		{
			Protocol:    pps,
			Method:      "auto",
			Communities: 2,
			AE:          0.03,
			AEError:     0.01,
			Coverage:    1,
			Width:       0.11,
		},
		{
			Protocol: pps, Method: "pcc", Communities: 2, AE: 0.035, AEError: 0.005,
			Coverage: 0.5, CoverageError: 0.5, Width: 0.11,
		},
		{Protocol: pps, Method: "mlpe", Communities: 2, AE: 0.19, AEError: 0.15, Width: 0.02},
		{Protocol: bfs, Method: "auto", Communities: 1, AE: 0.1, Width: 0.1},
		{Protocol: bfs, Method: "pcc", Communities: 1, AE: 0.2, Width: 0.2},
		{Protocol: bfs, Method: "mlpe", Communities: 1, AE: 0.46, Width: 0.02},
	}
	rows := sample().Rows
	if len(rows) != len(want) {
		t.Fatalf("%d rows, want %d", len(rows), len(want))
	}
	for i, w := range want {
		g := rows[i]
		if g.Protocol != w.Protocol || g.Method != w.Method || g.Communities != w.Communities {
			t.Errorf(
				"row %d is %s %s of %d, want %s %s of %d", i, g.Protocol, g.Method, g.Communities,
				w.Protocol, w.Method, w.Communities,
			)
		}
		for name, pair := range map[string][2]float64{
			"AE": {g.AE, w.AE}, "its error": {g.AEError, w.AEError},
			"coverage": {g.Coverage, w.Coverage}, "its error ": {g.CoverageError, w.CoverageError},
			"width": {g.Width, w.Width},
		} {
			if diff := pair[0] - pair[1]; diff > 1e-9 || diff < -1e-9 {
				t.Errorf("%s %s: %s %v, want %v", w.Protocol, w.Method, name, pair[0], pair[1])
			}
		}
	}
}

// The relative error must smooth estimate and truth, so that a class that does not occur divides by
// no zero, and its mean be that of the outcomes.
func TestRelativeErrorIsSmoothed(t *testing.T) {
	o := Outcome{
		Size: 50, Truth: []float64{.6, .4, 0}, Estimate: []float64{.5, .45, .05},
		Low: make([]float64, 3), High: make([]float64, 3),
	}
	if o.score(); math.Abs(o.RAE-1.762) > 5e-4 || math.Abs(o.AE-0.2/3) > 1e-12 {
		t.Errorf("AE %v, RAE %v", o.AE, o.RAE)
	}
	r := sample()
	mean := map[string]float64{}
	for _, o := range r.Outcomes {
		mean[o.Protocol+o.Method] += o.RAE
	}
	for _, row := range r.Rows {
		if want := mean[row.Protocol+row.Method] / float64(row.Communities); math.Abs(
			row.RAE-want,
		) > 1e-12*want {
			t.Errorf("%s %s: RAE %v, want %v", row.Protocol, row.Method, row.RAE, want)
		}
	}
}

// The forms of a report must stay as people and programs know them. go test -update rewrites the
// golden files.
func TestReportsLookAsTheyDid(t *testing.T) {
	r := sample()
	for name, format := range map[string]string{"report.md": "markdown", "report.json": "json"} {
		var got bytes.Buffer
		if err := r.Write(&got, format); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", name)
		if *update {
			testfile.Write(t, path, got.Bytes())
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != string(want) {
			t.Errorf("%s:\n%s\nwant\n%s", name, got.String(), want)
		}
	}
	if err := r.Write(&bytes.Buffer{}, "yaml"); err == nil {
		t.Error("an unknown format is no error")
	}
}

// JSON must say the same as the rows.
func TestReportsCanBeReadBack(t *testing.T) {
	r := sample()
	var text bytes.Buffer
	if err := r.Write(&text, "json"); err != nil {
		t.Fatal(err)
	}
	var back Report
	if err := json.Unmarshal(text.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	for i, row := range r.Rows {
		if back.Rows[i] != row {
			t.Errorf("row %d from JSON is %v, want %v", i, back.Rows[i], row)
		}
	}
}

// A report warns where predictions have changed since the labels were given.
func TestOldLabelsAreWarnedOf(t *testing.T) {
	for freshness, want := range map[float64]bool{1: false, 0.95: false, 0.6: true} {
		r, out := sample(), &strings.Builder{}
		r.Freshness = freshness
		if err := r.Write(out, "markdown"); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(out.String(), "--by-time") != want {
			t.Errorf("freshness %v: %s", freshness, out)
		}
	}
}

// The advice must name the method with the smallest error over the protocols, and
// warn where its interval is too short.
func TestAdviceNamesTheBestAndWarns(t *testing.T) {
	r := sample()
	for _, want := range []string{"`auto`", "0.0650", "`pcc`", "too short under bfs", "0.0 %"} {
		if !strings.Contains(r.Advice, want) {
			t.Errorf("advice %q lacks %q", r.Advice, want)
		}
	}
	for i := range r.Rows {
		r.Rows[i].Coverage = 0.86
	}
	if got := r.advice(); !strings.Contains(got, "can be believed: it held the truth in 86.0 %") {
		t.Errorf("advice %q does not believe 86 %% of 90 %%", got)
	}
	if got := (&Report{}).advice(); got != "Nothing was evaluated." {
		t.Errorf("advice of an empty report: %q", got)
	}
}
