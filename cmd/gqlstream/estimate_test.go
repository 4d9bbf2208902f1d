package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// However often a log publishes on its way, and whatever communities it had before a
// configure event, an estimate is one row for each community that there is at its end.
func TestEstimateIsOfTheEndOfALog(t *testing.T) {
	log := filepath.Join(t.TempDir(), "log.ndjson")
	events := strings.Join([]string{
		`{"kind":"member","community":"by events","vertex":1,"time":1}`,
		`{"kind":"member","community":"at rest","vertex":9,"time":1}`,
		`{"kind":"vertex","vertex":1,"attributes":{"language":"de"},"time":1}`,
		`{"kind":"prediction","vertex":1,"p":[0.25,0.75],"time":1}`,
		`{"kind":"label","vertex":2,"class":0,"time":1}`,
		`{"kind":"prediction","vertex":2,"p":[1,0],"time":1}`,
		`{"kind":"control","op":"configure","config":{"communities":[{"name":"a","everyone":true},{"name":"gone","everyone":true}]},"time":1}`,
		`{"kind":"control","op":"flush","time":2}`,
		`{"kind":"control","op":"configure","config":{"communities":[{"name":"a","where":{"language":"de"}}]},"time":3}`,
		`{"kind":"control","op":"flush","time":4}`,
		`{"kind":"prediction","vertex":1,"p":[0.5,0.5],"time":5}`,
	}, "\n")
	if err := os.WriteFile(log, []byte(events), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _ := mustRun(t, "estimate", "--classes", "2", "--method", "pcc,cc", "--log", log)
	var rows []string
	for line := range strings.Lines(out) {
		rows = append(rows, strings.Join(strings.Fields(line), " "))
	}
	want := []string{
		"community method members 0 1 flags",
		"a pcc 1 0.500 [0.500, 0.500] 0.500 [0.500, 0.500]",
		"a cc 1 1.000 [1.000, 1.000] 0.000 [0.000, 0.000]",
		"at rest pcc 1 1.000 [0.000, 1.000] 0.000 [0.000, 1.000] no-coverage",
		"at rest cc 1 1.000 [0.000, 1.000] 0.000 [0.000, 1.000] no-coverage",
		"by events pcc 1 0.500 [0.500, 0.500] 0.500 [0.500, 0.500]",
		"by events cc 1 1.000 [1.000, 1.000] 0.000 [0.000, 0.000]",
	}
	if !slices.Equal(rows, want) {
		t.Errorf("estimates\n%s\nwant\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
}
