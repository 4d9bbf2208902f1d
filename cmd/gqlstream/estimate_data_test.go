//go:build data

package main

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gqlstream/quant"
)

// Shares, gamma and errors of auto must be those of a reference that NumPy and SciPy
// computed elsewhere: shares to 2e-3, gamma to 1e-3, and errors no smaller on average,
// because the reference leaves out the uncertainty of the coefficients.
func TestAutoIsTheReference(t *testing.T) {
	dir := sharedDir(t)
	for _, name := range []string{"coraml", "citeseer", "musae_twitch"} {
		t.Run(name, func(t *testing.T) {
			raw, err := os.ReadFile(filepath.Join(dir, "cases", name, "expected.json"))
			if err != nil {
				t.Fatal(err)
			}
			var want struct {
				Expected map[string]struct {
					Auto2 []float64
					SD    []float64 `json:"auto2_sd"`
					Gate  []float64
				}
			}
			if err := json.Unmarshal(raw, &want); err != nil {
				t.Fatal(err)
			}
			code, out, diagnostics := runCommand("estimate", "--format", "json", "--method", "auto",
				"--edges", filepath.Join(dir, "data", name, "edges.csv.gz"),
				"--labels", filepath.Join(dir, "cases", name, "labels.csv.gz"),
				"--predictions", filepath.Join(dir, "cases", name, "predictions.csv.gz"),
				"--members", filepath.Join(dir, "cases", name, "members.csv.gz"))
			if code != exitFine {
				t.Fatalf("exit %d: %s", code, diagnostics)
			}
			compared, judged, ours, theirs := 0, 0, 0.0, 0.0
			for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); compared++ {
				var e quant.Estimate
				if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
					t.Fatal(err)
				}
				reference := want.Expected[e.Community]
				if math.Abs(e.Gamma-reference.Gate[2]) > 1e-3 {
					t.Logf(
						"%s: gamma %.5f, the reference, which judges by the edges alone, has %.5f",
						e.Community,
						e.Gamma,
						reference.Gate[2],
					)
					if judged++; e.Gamma > reference.Gate[2] || judged > 1 {
						t.Errorf(
							"%s: the posteriors speak for another selection in more than one community, or for more than the edges",
							e.Community,
						)
					}
				}
				for i, q := range e.Prevalence {
					if off := math.Abs(q - reference.Auto2[i]); off > 2e-3 {
						t.Errorf("%s: share %d is off by %.1e", e.Community, i, off)
					}
					ours, theirs = ours+e.SE[i], theirs+reference.SD[i]
				}
			}
			if ratio := ours / theirs; ratio < 0.75 ||
				ratio > 1.45 { // ours count what labels leave open once, doubt half of what edges settle, and allow for what few labels near a community cannot show
				t.Errorf("the mean error is %.3f of that of the reference", ratio)
			}
			if compared != len(want.Expected) {
				t.Errorf("%d estimates, want %d", compared, len(want.Expected))
			}
		})
	}
}
