package main

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"gqlstream/quant"
)

// The walk-through of docs/labels.md, typed as it stands there with the labels filled in from
// the answers, must make the interval of the community less than half as wide, around the truth.
func TestLabelsThatWereAskedForShrinkTheInterval(t *testing.T) {
	text := fromRoot(t, "docs", "labels.md")
	t.Chdir(t.TempDir())
	commands := regexp.MustCompile(`(?m)^bin/gqlstream (.*)$`).FindAllStringSubmatch(text, -1)
	if len(commands) != 6 {
		t.Fatalf("%d commands in docs/labels.md, want 6", len(commands))
	}
	for _, command := range commands {
		args := strings.Fields(command[1])
		if args[0] == "publish" && strings.Contains(command[1], "filled.csv") {
			fillIn(t)
		}
		out, said := mustRun(t, args...)
		if args[0] == "ask" && !regexp.MustCompile(`50 labels: ±0\.\d\d`).MatchString(out) {
			t.Errorf("ask does not say what labels buy: %s%s", out, said)
		}
	}
	before, after := lastRecord(t, "before.ndjson"), lastRecord(t, "after.ndjson")
	width := func(e quant.Estimate) float64 { return e.High[0] - e.Low[0] }
	t.Logf("before %v [%v, %v], after %v [%v, %v]", before.Prevalence[0], before.Low[0], before.High[0],
		after.Prevalence[0], after.Low[0], after.High[0])
	if before.AuditLabels != 0 || after.AuditLabels != 100 || after.AuditReach < 0.9 || after.AuditReach > 1.1 {
		t.Errorf("audit labels %d, then %d, which stand for %v of the members", before.AuditLabels, after.AuditLabels, after.AuditReach)
	}
	if width(after) > width(before)/2 {
		t.Errorf("the interval was %v wide and is %v", width(before), width(after))
	}
	if !strings.Contains(text, "less than half as wide") {
		t.Error("docs/labels.md does not say what is tested here")
	}
}

// fillIn joins questions and answers as the awk script of the page does.
func fillIn(t *testing.T) {
	t.Helper()
	answers := map[string]string{}
	for _, line := range linesOf(t, "answers.csv") {
		vertex, label, _ := strings.Cut(line, ",")
		answers[vertex] = label
	}
	var filled strings.Builder
	for _, line := range linesOf(t, "questions.csv") {
		fields := strings.Split(line, ",")
		fields[1] = answers[fields[0]]
		filled.WriteString(strings.Join(fields, ",") + "\n")
	}
	if err := os.WriteFile("filled.csv", []byte(filled.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

func linesOf(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

// lastRecord returns the last record of group-03.
func lastRecord(t *testing.T, path string) (last quant.Estimate) {
	t.Helper()
	for _, line := range linesOf(t, path) {
		var e quant.Estimate
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Community == "group-03" {
			last = e
		}
	}
	if last.Community == "" {
		t.Fatalf("%s: no record of group-03", path)
	}
	return last
}

// Files give what a state directory gives: rows that publish takes, and advice.
func TestAskReadsFilesAndWritesNDJSON(t *testing.T) {
	const data = "../../examples/data/"
	args := []string{
		"ask", "--edges", data + "edges.csv", "--labels", data + "labels.csv", "--predictions", data + "predictions.csv",
		"--members", data + "members.csv", "--community", "berlin", "--community", "lima", "--count", "40", "--format", "ndjson",
	}
	out, said := mustRun(t, args...)
	if n := strings.Count(out, "\n"); n < 38 || n > 42 {
		t.Errorf("%d rows, want about 40", n)
	}
	if again, _ := mustRun(t, args...); again != out {
		t.Error("the same files and seed draw other vertices")
	}
	for _, want := range []string{"berlin: 10 labels: ±", "lima: ", "calibration: ", "to label: "} {
		if !strings.Contains(said, want) {
			t.Errorf("the summary lacks %q: %s", want, said)
		}
	}
	for _, wrong := range [][]string{
		{"ask", "--community", "berlin", "--count", "5", "--state", t.TempDir()},
		append(args[:9:9], "--community", "nobody", "--count", "5"),
		append(args[:9:9], "--community", "berlin"),
	} {
		if code, _, _ := runCommand(wrong...); code != exitUsage {
			t.Errorf("gqlstream %v: exit %d, want %d", wrong, code, exitUsage)
		}
	}
}
