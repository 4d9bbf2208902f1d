//go:build data

package main

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gqlstream/quant"
)

// auto must be as near to the truth as a reference that NumPy and SciPy computed elsewhere, which
// reads every member in place of cells, and its shares must be near those of the reference. Its
// errors must be about as large: the reference leaves out the uncertainty of the coefficients.
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
					Truth []float64
					Auto2 []float64
					SD    []float64 `json:"auto2_sd"`
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
			compared, ours, theirs, wrong, theirsWrong := 0, 0.0, 0.0, 0.0, 0.0
			var apart []float64
			for lines := bufio.NewScanner(strings.NewReader(out)); lines.Scan(); compared++ {
				var e quant.Estimate
				if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
					t.Fatal(err)
				}
				reference := want.Expected[e.Community]
				for i, q := range e.Prevalence {
					wrong += math.Abs(q - reference.Truth[i])
					theirsWrong += math.Abs(reference.Auto2[i] - reference.Truth[i])
					apart = append(apart, math.Abs(q-reference.Auto2[i]))
					ours, theirs = ours+e.SE[i], theirs+reference.SD[i]
				}
			}
			slices.Sort(apart)
			median, far := apart[len(apart)/2], apart[len(apart)*95/100]
			t.Logf("error %.3f of the reference; shares differ by %.4f (median), %.4f (95 %%)",
				wrong/theirsWrong, median, far)
			if wrong > 1.05*theirsWrong || name != "musae_twitch" && (median > 0.01 || far > 0.04) {
				t.Errorf(
					"error %.3f of the reference; shares differ by %.4f (median), %.4f (95 %%)",
					wrong/theirsWrong, median, far,
				)
			}
			// Our standard errors count the uncertainty that labels leave once, credit edges with
			// half of the uncertainty that they remove, and allow for effects that few labels near
			// a community cannot show. The reference takes three languages of Twitch for selected
			// by class. The members' cells contradict that.
			least := 0.75
			if name == "musae_twitch" {
				least = 0.5
			}
			if ratio := ours / theirs; ratio < least || ratio > 1.45 {
				t.Errorf("the mean error is %.3f of that of the reference", ratio)
			}
			if compared != len(want.Expected) {
				t.Errorf("%d estimates, want %d", compared, len(want.Expected))
			}
		})
	}
}
