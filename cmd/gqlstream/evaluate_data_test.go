//go:build data

package main

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"gqlstream/lab/evaluate"
)

// evaluateReport runs the command and reads its report.
func evaluateReport(t *testing.T, args ...string) evaluate.Report {
	t.Helper()
	code, out, diagnostics := runCommand(
		append([]string{"evaluate", "--format", "json"}, args...)...)
	if code != exitFine {
		t.Fatalf("%v: exit %d: %s", args, code, diagnostics)
	}
	var report evaluate.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	return report
}

// graphFlags name the files of one of the real graphs: all its labels, and the
// predictions of its reference case.
func graphFlags(dir, name string) []string {
	return []string{
		"--edges", filepath.Join(dir, "data", name, "edges.csv.gz"),
		"--labels", filepath.Join(dir, "data", name, "vertices.csv.gz"),
		"--predictions", filepath.Join(dir, "cases", name, "predictions.csv.gz"),
	}
}

// On the paper's graphs auto must have no larger mean error than the paper's method,
// sis-nacc, under every shift.
func TestAutoBeatsThePaperUnderEveryShift(t *testing.T) {
	for _, graph := range []string{"coraml", "citeseer"} {
		report := evaluateReport(
			t,
			append(
				graphFlags(sharedDir(t), graph), "--method", "auto,sis-nacc", "--splits", "3",
			)...)
		errors := map[[2]string]float64{}
		for _, row := range report.Rows {
			errors[[2]string{row.Protocol, row.Method}] = row.AE
		}
		for _, protocol := range []string{"pps", "bfs", "rw"} {
			ours, theirs := errors[[2]string{protocol, "auto"}],
				errors[[2]string{protocol, "sis-nacc"}]
			t.Logf("%s %s: auto %.4f, sis-nacc %.4f", graph, protocol, ours, theirs)
			if !(ours > 0 && ours <= theirs) {
				t.Errorf("%s %s: auto has AE %.4f, sis-nacc %.4f", graph, protocol, ours, theirs)
			}
		}
	}
}

// Predictions that the built-in classifier makes of labels and edges alone must, with
// auto, give smaller errors than the plain shares of the labels under every shift, and
// intervals that hold. One community says little, so there are a hundred and more in
// every row.
func TestTheClassifierBeatsThePlainSharesOfTheLabels(t *testing.T) {
	for _, graph := range []string{"coraml", "citeseer", "icwsm_political"} {
		flags := graphFlags(sharedDir(t), graph)[:4] // without predictions
		report := evaluateReport(
			t,
			append(flags, "--classifier", "diffusion", "--method", "mlpe,auto",
				"--splits", "2", "--per-class", "25")...)
		plain := map[string]float64{}
		for _, row := range report.Rows {
			if row.Method == "mlpe" {
				plain[row.Protocol] = row.AE
			}
		}
		for _, row := range report.Rows {
			if row.Method != "auto" {
				continue
			}
			t.Logf("%s %s: %d communities, auto %.4f, mlpe %.4f, %.1f %% held",
				graph, row.Protocol, row.Communities, row.AE, plain[row.Protocol], 100*row.Coverage)
			if !(row.AE < plain[row.Protocol]) || row.Coverage < 0.8 || row.Communities < 100 {
				t.Errorf(
					"%s %s: %d communities, auto has AE %.4f, mlpe %.4f; %.1f %% of the "+
						"intervals hold",
					graph,
					row.Protocol,
					row.Communities,
					row.AE,
					plain[row.Protocol],
					100*row.Coverage,
				)
			}
		}
	}
}
