//go:build data

package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
)

// coverageRuns are the graphs, real and simulated, with known truth for the test of
// coverage.
func coverageRuns(t *testing.T) map[string][]string {
	t.Helper()
	dir := sharedDir(t)
	runs := map[string][]string{
		"coraml":          append(graphFlags(dir, "coraml"), "--splits", "3"),
		"citeseer":        append(graphFlags(dir, "citeseer"), "--splits", "3"),
		"icwsm_political": append(graphFlags(dir, "icwsm_political"), "--splits", "8"),
		"musae_twitch": append(
			graphFlags(dir, "musae_twitch"), "--splits", "3", "--per-class", "5", "--protocol",
			"pps,bfs,rw,group:language", "--vertices",
			filepath.Join(dir, "data", "musae_twitch", "vertices.csv.gz"),
		),
	}
	for classes := 2; classes <= 4; classes++ {
		log := filepath.Join(t.TempDir(), "log.ndjson")
		code, _, diagnostics := runCommand(
			"simulate", "--seed", fmt.Sprint(classes), "--vertices", "3000", "--classes",
			fmt.Sprint(classes), "--duration", "20s", "--jump-every", "0", "--label-share", "0.6",
			"--label-renew", "1", "--out", log, "--truth", log+".truth.csv",
		)
		if code != exitFine {
			t.Fatalf("simulate: exit %d: %s", code, diagnostics)
		}
		runs[fmt.Sprintf("simulated-%d", classes)] = []string{
			"--log", log, "--splits", "3", "--protocol", "pps,bfs,rw,members", "--seed",
			fmt.Sprint(classes),
		}
	}
	return runs
}

// The 90 % intervals of auto must hold the truth of at least 2,000 communities in
// 87 to 98 % of the cases, and in at least 85 % for every graph and shift.
func TestIntervalsOfAutoHoldTheTruth(t *testing.T) {
	runs := coverageRuns(t)
	var names []string
	for name := range runs {
		names = append(names, name)
	}
	slices.Sort(names)
	communities, held := 0, 0.0
	for _, name := range names {
		for _, row := range evaluateReport(t, append(runs[name], "--method", "auto")...).Rows {
			t.Logf(
				"%s %s: %d communities, %.1f %% held, width %.3f", name, row.Protocol,
				row.Communities, 100*row.Coverage, row.Width,
			)
			communities += row.Communities
			held += row.Coverage * float64(row.Communities)
			if row.Coverage < 0.85 {
				t.Errorf(
					"%s %s: %.1f %% of the intervals hold the truth, want at least 85 %%", name,
					row.Protocol, 100*row.Coverage,
				)
			}
		}
	}
	overall := held / float64(communities)
	t.Logf("%d communities, %.1f %% held", communities, 100*overall)
	if communities < 2000 || overall < 0.87 || overall > 0.98 {
		t.Errorf(
			"%.1f %% of the intervals of %d communities hold the truth, want 87 to 98 %% of 2,"+
				"000 or more",
			100*overall,
			communities,
		)
	}
}
