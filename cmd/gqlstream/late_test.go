package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gqlstream/internal/testfile"
)

// Late events must be diverted or applied as the configuration says, be counted in
// the closing line, and count when they are retried.
func TestLateEventsOfARun(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		testfile.Write(t, path, text)
		return path
	}
	config := write(
		"c.yaml",
		"classes: 2\ncommunities: [{name: all, everyone: true}]\nprivacy: {min_members: 0}\n"+
			"late: {after: 5m, divert: [labels]}\nestimates: [{method: mlpe}]\nstate: "+state+"\n",
	)
	old, now := time.Now().Add(-time.Hour).Unix(), time.Now().Unix()
	labels := write(
		"labels.csv",
		fmt.Sprintf("vertex,label,time\n1,0,%d\n2,1,%d\n3,1,\n", old, now),
	)
	edges := write("edges.csv", fmt.Sprintf("src,dst,time\n1,2,%d\n2,3,%d\n", old, now))
	mustRun(t, "publish", "--classes", "2", "--labels", labels, "--edges", edges, "--state", state)
	_, said := mustRun(t, "run", "--config", config, "--exit-when-drained")
	if !strings.Contains(said, "refused=1") || !strings.Contains(said, "map[edge:1 label:1]") {
		t.Errorf("the run says\n%s", said)
	}
	if list, _ := mustRun(t, "quarantine", "list", "--state", state, "--reason",
		"late"); !strings.Contains(list, "label") {
		t.Errorf("the quarantine holds\n%s", list)
	}
	mustRun(t, "quarantine", "retry", "--reason", "late", "--state", state)
	out, said := mustRun(t, "run", "--config", config, "--exit-when-drained", "--output", "-")
	if strings.Contains(said, "map[edge") || !strings.Contains(out, `"labelled":3`) {
		t.Errorf("the run after the retry says\n%s\n%s", said, out)
	}
}
