package main

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gqlstream/internal/testfile"
)

// An estimate is one row for each community at the end of a log, however often the log has
// emissions and whatever communities it had before a configure event.
func TestEstimateIsOfTheEndOfALog(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log.ndjson")
	events := strings.Join([]string{
		`{"kind":"member","community":"by events","vertex":1,"time":1}`,
		`{"kind":"member","community":"at rest","vertex":9,"time":1}`,
		`{"kind":"vertex","vertex":1,"attributes":{"language":"de"},"time":1}`,
		`{"kind":"prediction","vertex":1,"p":[0.25,0.75],"time":1}`,
		`{"kind":"label","vertex":2,"class":0,"time":1}`,
		`{"kind":"prediction","vertex":2,"p":[1,0],"time":1}`,
		`{"kind":"control","op":"configure","config":{"communities":[{"name":"a",` +
			`"everyone":true},{"name":"gone","everyone":true}]},"time":1}`,
		`{"kind":"control","op":"flush","time":2}`,
		`{"kind":"control","op":"configure","config":{"communities":[{"name":"a",` +
			`"where":{"language":"de"}}]},"time":3}`,
		`{"kind":"control","op":"flush","time":4}`,
		`{"kind":"prediction","vertex":1,"p":[0.5,0.5],"time":5}`,
	}, "\n")
	testfile.Write(t, log, events)
	out, _ := mustRun(t, "estimate", "--classes", "2", "--method", "pcc,cc", "--log", log)
	var rows []string
	for line := range strings.Lines(out) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"community method members 0 1 flags",
		"a pcc 1 0.500 [0.000, 1.000] 0.500 [0.000, 1.000] unsupported-class:1",
		"a cc 1 1.000 [0.000, 1.000] 0.000 [0.000, 1.000] unsupported-class:1",
		"at rest pcc 1 1.000 [0.000, 1.000] 0.000 [0.000, 1.000] no-coverage",
		"at rest cc 1 1.000 [0.000, 1.000] 0.000 [0.000, 1.000] no-coverage",
		"by events pcc 1 0.500 [0.000, 1.000] 0.500 [0.000, 1.000] unsupported-class:1",
		"by events cc 1 1.000 [0.000, 1.000] 0.000 [0.000, 1.000] unsupported-class:1",
	}
	if !slices.Equal(rows, want) {
		t.Errorf("estimates\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
}

// estimateFiles writes a small graph and returns the flags that name its files.
func estimateFiles(t *testing.T) []string {
	t.Helper()
	var flags []string
	for name, text := range map[string]string{
		"edges":       "src,dst\n1,2\n2,3\n3,4\n4,5\n5,1\n",
		"labels":      "vertex,label\n1,0\n2,1\n3,0\n",
		"predictions": "vertex,p0,p1\n1,0.9,0.1\n2,0.3,0.7\n3,0.6,0.4\n4,0.5,0.5\n5,0.2,0.8\n",
	} {
		path := filepath.Join(t.TempDir(), name+".csv")
		testfile.Write(t, path, text)
		flags = append(flags, "--"+name, path)
	}
	return append(flags, "--everyone")
}

// A configuration's settings of intervals must hold unless a flag overrides them, and an
// invalid value of a flag must not be taken for a missing flag.
func TestFlagsOfEstimate(t *testing.T) {
	config := filepath.Join(t.TempDir(), "gqlstream.yaml")
	text := "classes: 2\nestimates: [{method: pcc, confidence: 0.99, simultaneous: true}]\n"
	testfile.Write(t, config, text)
	files := append([]string{"estimate", "--format", "json"}, estimateFiles(t)...)
	for _, test := range []struct {
		flags []string
		want  string
	}{
		{nil, `"confidence":0.9,"variance"`},
		{[]string{"--config", config}, `"confidence":0.99,"simultaneous":true`},
		{
			[]string{"--config", config, "--confidence", "0.5"},
			`"confidence":0.5,"simultaneous":true`,
		},
		{[]string{"--simultaneous"}, `"confidence":0.9,"simultaneous":true`},
	} {
		if out, _ := mustRun(t, append(slices.Clone(files), test.flags...)...); !strings.Contains(
			out,
			test.want,
		) {
			t.Errorf("%q: %s, want %s", test.flags, out, test.want)
		}
	}
	for _, flag := range []string{
		"--confidence=0", "--alpha=0", "--tolerance=0", "--lambda=-1",
		"--lambda=2",
	} {
		code, out, diagnostics := runCommand(append(slices.Clone(files), flag)...)
		if code != exitUsage || out != "" {
			t.Errorf("%s: exit code %d, %s%s", flag, code, out, diagnostics)
		}
	}
}

// Of more classes than a line holds, the table must name those with the largest shares.
func TestEstimateNamesTheLargestOfManyClasses(t *testing.T) {
	edges := testfile.New(t, "e.csv", "src,dst\n1,2\n2,3\n3,1\n")
	labels := testfile.New(t, "l.csv", "vertex,label\n1,7\n2,2\n")
	flags := []string{
		"estimate",
		"--edges",
		edges,
		"--labels",
		labels,
		"--everyone",
		"--method",
		"pcc",
		"--classes",
		"9",
		"--classifier",
		"diffusion",
	}
	out, _ := mustRun(t, flags...)
	for _, want := range []string{"largest of 9", "2: 0.", "7: 0."} {
		if !strings.Contains(out, want) {
			t.Errorf("without %q:\n%s", want, out)
		}
	}
	if widest := slices.MaxFunc(strings.Split(out, "\n"),
		func(a, b string) int { return len(a) - len(b) }); len(widest) > 160 {
		t.Errorf("a line of %d characters:\n%s", len(widest), widest)
	}
}

// An estimate names the attributes that auto reads, and warns of a configured one that it does not.
func TestEstimateNamesTheAttributesThatItReads(t *testing.T) {
	dir := t.TempDir()
	vertices, settings := filepath.Join(dir, "v.csv"), filepath.Join(dir, "c.yaml")
	text := "vertex,age,city\n1,20,a\n2,30,b\n3,40,a\n4,50,b\n5,60,a\n"
	conf := "classes: [\"0\", \"1\"]\nevidence: {attributes: [age, citty]}\n"
	for path, content := range map[string]string{vertices: text, settings: conf} {
		testfile.Write(t, path, content)
	}
	flags := append(estimateFiles(t), "--vertices", vertices, "--everyone")
	_, all := mustRun(t, append([]string{"estimate"}, flags...)...)
	if want := "auto reads the attributes age, city (2 values)"; !strings.Contains(all, want) {
		t.Errorf("%s\nwant %s", all, want)
	}
	_, named := mustRun(t, append([]string{"estimate", "--config", settings}, flags...)...)
	for _, want := range []string{"auto reads the attributes age\n", `does not read "citty"`} {
		if !strings.Contains(named, want) {
			t.Errorf("%s\nwant %s", named, want)
		}
	}
}
