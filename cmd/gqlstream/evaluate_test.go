package main

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gqlstream/internal/testfile"
	"gqlstream/lab/evaluate"
)

// evaluateFiles writes a small labelled graph of two groups and returns the flags
// that name its files.
func evaluateFiles(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	r := rand.New(rand.NewPCG(5, 5))
	var edges, vertices, predictions, members strings.Builder
	edges.WriteString("src,dst\n")
	vertices.WriteString("id,label,language\n")
	predictions.WriteString("vertex,p0,p1\n")
	members.WriteString("community,vertex\n")
	for v := range 200 {
		class := v % 2
		fmt.Fprintf(&vertices, "%d,%d,%s\n", v, class, []string{"de", "fr"}[v/100])
		says := class
		if r.Float64() < 0.2 {
			says = 1 - class
		}
		fmt.Fprintf(&predictions, "%d,%.2f,%.2f\n", v, 0.8-0.6*float64(says), 0.2+0.6*float64(says))
		if v >= 2 {
			fmt.Fprintf(&edges, "%d,%d\n%d,%d\n", v, v-2, v, r.IntN(v))
		}
		if v < 60 {
			fmt.Fprintf(&members, "ours,%d\n", v)
		}
	}
	var flags []string
	for _, file := range []struct{ flag, text string }{
		{"edges", edges.String()},
		{"vertices", vertices.String()},
		{"predictions", predictions.String()},
		{"members", members.String()},
	} {
		path := filepath.Join(dir, file.flag+".csv")
		testfile.Write(t, path, file.text)
		flags = append(flags, "--"+file.flag, path)
		if file.flag == "vertices" { // id, label: it is a table of labels too
			flags = append(flags, "--labels", path)
		}
	}
	return flags
}

// The command must report every requested protocol and method in each format, equal for
// equal seeds, write pictures, and print nothing but the report to standard output.
func TestEvaluateReportsTheRequestedRows(t *testing.T) {
	dir := t.TempDir()
	args := append([]string{
		"evaluate", "--protocol", "pps,rw,members,group:language", "--method", "mlpe,sis,auto",
		"--kernel", "constant",
		"--splits", "2", "--per-class", "2", "--size", "20", "--seed", "3",
	}, evaluateFiles(t)...)
	code, out, diagnostics := runCommand(
		append(args, "--format", "json", "--plots", filepath.Join(dir, "plots"))...)
	if code != exitFine {
		t.Fatalf("exit %d: %s", code, diagnostics)
	}
	var report evaluate.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	if report.Vertices != 200 || report.Labelled != 200 || report.Calibration != 30 ||
		report.Seed != 3 {
		t.Errorf(
			"report of %d vertices, %d labelled, %d calibrate, seed %d", report.Vertices,
			report.Labelled, report.Calibration, report.Seed,
		)
	}
	if len(report.Rows) != 4*3 {
		t.Errorf("%d rows, want 3 methods for each of 4 protocols", len(report.Rows))
	}
	if !strings.Contains(diagnostics, "communities estimated in") {
		t.Errorf("no progress in %q", diagnostics)
	}
	for _, name := range []string{"error.png", "coverage.svg"} {
		if _, err := os.Stat(filepath.Join(dir, "plots", name)); err != nil {
			t.Error(err)
		}
	}
	if !slices.ContainsFunc(
		report.Outcomes,
		func(o evaluate.Outcome) bool { return o.Community == "members/ours" && len(o.Truth) > 0 },
	) {
		t.Errorf("no outcome of a community: %.300s", out)
	}
	_, first, _ := runCommand(args...)
	_, second, _ := runCommand(args...)
	if first != second || !strings.Contains(first, "kernel: constant") {
		t.Errorf("two runs differ, or lack the kernel:\n%s\n%s", first, second)
	}
}

// With --ask, every community must be estimated again after its members were labelled, and the
// error must not grow. The estimates without these labels must not change.
func TestEvaluateTriesTheLabelsThatAskDraws(t *testing.T) {
	args := append([]string{
		"evaluate", "--protocol", "pps", "--method", "auto,pcc", "--splits", "2", "--per-class",
		"5", "--size", "40", "--format", "json",
	}, evaluateFiles(t)...)
	rows := func(more ...string) map[string]evaluate.Row {
		out, _ := mustRun(t, append(args, more...)...)
		var report evaluate.Report
		if err := json.Unmarshal([]byte(out), &report); err != nil {
			t.Fatal(err)
		}
		found := map[string]evaluate.Row{}
		for _, r := range report.Rows {
			found[r.Method] = r
		}
		return found
	}
	without, with := rows(), rows("--ask", "20")
	if r := with["auto+ask"]; len(with) != 3 || r.Communities != with["auto"].Communities ||
		r.AE > with["auto"].AE {
		t.Errorf("auto+ask of %d methods: %+v, without labels %+v", len(with), r, with["auto"])
	}
	for _, more := range [][]string{
		{"--preset", "paper"}, {"--calibration", "0.5"},
	} {
		if other := rows(more...); other["auto"].AE == without["auto"].AE ||
			other["auto"].Communities != without["auto"].Communities {
			t.Errorf("%v: %+v, as without", more, other["auto"])
		}
	}
	for method, r := range without {
		if math.Abs(r.AE-with[method].AE) > 1e-4 {
			t.Errorf("%s: error %v, with --ask %v", method, r.AE, with[method].AE)
		}
	}
}

// Mistakes of the user must end with exit code 2 and a message that names them;
// data that cannot be evaluated with 1.
func TestEvaluateExitCodes(t *testing.T) {
	files := evaluateFiles(t)
	for _, test := range []struct {
		args []string
		code int
		want string
	}{
		{nil, exitUsage, "no files"},
		{append([]string{"--protocol", "dfs"}, files...), exitUsage, `"dfs" is not one of`},
		{append([]string{"--protocol", ","}, files...), exitUsage, `"" is not one of`},
		{append([]string{"--method", "magic"}, files...), exitUsage, "magic"},
		{append([]string{"--kernel", "gauss"}, files...), exitUsage, "gauss"},
		{append([]string{"--splits", "0"}, files...), exitUsage, "splits: 0"},
		{append([]string{"--calibration", "1"}, files...), exitUsage, "calibration"},
		{append([]string{"--confidence", "2"}, files...), exitUsage, "confidence"},
		{append([]string{"--members-min", "101"}, files...), exitUsage, "101"},
		{
			append([]string{"--members-min", "61", "--protocol", "members"}, files...), exitFailed,
			"draws no community",
		},
		{append([]string{"--format", "xml"}, files...), exitUsage, "format"},
		{
			append([]string{"--protocol", "group:nothing"}, files...), exitFailed,
			"draws no community",
		},
	} {
		code, out, diagnostics := runCommand(append([]string{"evaluate"}, test.args...)...)
		if code != test.code || !strings.Contains(diagnostics, test.want) || out != "" {
			t.Errorf(
				"%v: exit %d, want %d with %q; output %q, diagnostics %q",
				test.args[:min(2, len(test.args))], code, test.code, test.want, out, diagnostics,
			)
		}
	}
}

// The help must show how to call the command.
func TestEvaluateHelpHasExamples(t *testing.T) {
	_, out, _ := runCommand("evaluate", "--help")
	for _, want := range []string{
		"gqlstream evaluate --edges", "--protocol", "--plots",
		"group:KEY",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("help lacks %q:\n%s", want, out)
		}
	}
}

// The kernel of features weighs by attributes that are numbers, and is refused where there are
// none.
func TestFeaturesAreAKernel(t *testing.T) {
	files := evaluateFiles(t)
	command := append(
		[]string{"evaluate", "--kernel", "features", "--method", "sis,pacc", "--format", "json"},
		files...)
	code, out, diagnostics := runCommand(command...)
	if code != exitUsage && code != exitFailed || out != "" ||
		!strings.Contains(diagnostics, "--vertices") {
		t.Fatalf("without features: exit %d: %s", code, diagnostics)
	}
	features := filepath.Join(t.TempDir(), "features.csv")
	var table strings.Builder
	table.WriteString("vertex,old\n")
	for v := range 200 {
		fmt.Fprintf(&table, "%d,%d\n", v, v/100) // the second hundred speaks fr
	}
	testfile.Write(t, features, table.String())
	files[slices.Index(files, "--vertices")+1] = features
	code, out, diagnostics = runCommand(append(command[:7:7], files...)...)
	var report evaluate.Report
	if err := json.Unmarshal([]byte(out), &report); err != nil || code != 0 {
		t.Fatalf("exit %d, %v: %s", code, err, diagnostics)
	}
	for i := 0; i < len(report.Rows); i += 2 {
		if a, b := report.Rows[i], report.Rows[i+1]; a.AE == b.AE {
			t.Errorf(
				"%s: %s and %s agree, as if features did not weigh", a.Protocol, a.Method, b.Method,
			)
		}
	}
}
