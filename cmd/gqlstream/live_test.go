//go:build data

package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gqlstream/internal/testfile"
	"gqlstream/pipeline/config"
	"gqlstream/quant"
	"gqlstream/sinks"
)

// sharedDir is the folder of the data and the reference cases: the parent of
// $GQLSTREAM_DATA, or ../shared next to the project. It must exist.
func sharedDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "shared")
	if data := os.Getenv("GQLSTREAM_DATA"); data != "" {
		dir = filepath.Dir(filepath.Clean(data))
	}
	if _, err := os.Stat(filepath.Join(dir, "data")); err != nil {
		t.Fatalf("the real graphs are missing: set GQLSTREAM_DATA to their folder: %v", err)
	}
	return dir
}

// lastEstimates reads JSON lines and keeps the last of each community and method.
func lastEstimates(t *testing.T, lines string) map[[2]string]quant.Estimate {
	t.Helper()
	last := map[[2]string]quant.Estimate{}
	decoder := json.NewDecoder(strings.NewReader(lines))
	for {
		var e quant.Estimate
		err := decoder.Decode(&e)
		if err == io.EOF {
			return last
		}
		if err != nil {
			t.Fatal(err)
		}
		last[[2]string{e.Community, e.Method}] = e
	}
}

// compareLive compares the last live estimates with one-shot estimates of the final graph:
// plain counts must agree to rounding, estimates by the kernel within the sum of the two
// certificates.
func compareLive(t *testing.T, what string, live, once map[[2]string]quant.Estimate) {
	t.Helper()
	if len(live) != len(once) || len(once) == 0 {
		t.Fatalf("%s: %d live estimates, %d one-shot ones", what, len(live), len(once))
	}
	for key, want := range once {
		got, ok := live[key]
		if !ok {
			t.Fatalf("%s: no live estimate of %v", what, key)
		}
		tolerance := got.Certificate + want.Certificate
		if key[1] == "pcc" || key[1] == "nacc" {
			tolerance = 1e-12
		}
		if got.Certificate > 0.05 || want.Certificate > 1e-6 {
			t.Errorf(
				"%s: %v: certificates %g live, %g one-shot", what, key, got.Certificate,
				want.Certificate,
			)
		}
		for i := range want.Prevalence {
			if off := math.Abs(got.Prevalence[i] - want.Prevalence[i]); off > tolerance {
				t.Errorf(
					"%s: %v: live %v, one-shot %v, certificates allow %g", what, key,
					got.Prevalence, want.Prevalence, tolerance,
				)
			}
		}
	}
}

// The 77,920 timed interactions of the 2010 midterms, published in time order to
// an embedded JetStream with predictions and labels, must leave the estimates that
// one-shot runs give on the final graph; also after a third of the edges is
// deleted again; and a restart from the checkpoint must add nothing.
func TestLiveEqualsOneShotOnRealInteractions(t *testing.T) {
	shared := sharedDir(t)
	data, reference := filepath.Join(shared, "data", "icwsm_political"), filepath.Join(
		shared,
		"cases",
		"icwsm_political",
	)
	dir := t.TempDir()
	state := filepath.Join(dir, "state")
	common := []string{
		"--labels", filepath.Join(reference, "labels.csv.gz"),
		"--predictions", filepath.Join(reference, "predictions.csv.gz"),
		"--members", filepath.Join(reference, "members.csv.gz"),
	}
	estimates := []string{
		"--classes",
		"2",
		"--everyone",
		"--method",
		"pcc,nacc,sis,sis-nacc,ml,auto",
	}
	run := func() string {
		out, _ := mustRun(
			t,
			append(
				[]string{"run", "--state", state, "--exit-when-drained", "--output", "-"},
				estimates...)...)
		return out
	}

	published, report := mustRun(t, append([]string{
		"publish", "--state", state,
		"--edges", filepath.Join(data, "events.csv.gz"),
	}, common...)...)
	if !strings.Contains(published+report, "self-loop") {
		t.Errorf(
			"the 40 interactions of an account with itself were not reported:\n%s%s",
			published,
			report,
		)
	}
	once := func(edges string) map[[2]string]quant.Estimate {
		out, _ := mustRun(
			t,
			append(
				append([]string{"estimate", "--edges", edges, "--format", "json"}, common...),
				estimates...)...)
		return lastEstimates(t, out)
	}
	all := once(filepath.Join(data, "edges.csv.gz"))
	compareLive(t, "all edges", lastEstimates(t, run()), all)
	checkPublished(t, state, all)

	if out := run(); out != "" {
		t.Errorf("a restart with nothing new published\n%s", out)
	}

	gone, left := filepath.Join(dir, "gone.csv"), filepath.Join(dir, "left.csv")
	splitEdges(t, filepath.Join(data, "edges.csv.gz"), gone, left)
	mustRun(t, "publish", "--state", state, "--edges", gone)
	compareLive(t, "two thirds of the edges", lastEstimates(t, run()), once(left))
}

// checkPublished checks the streams of a stopped run: the bucket has the latest estimate of
// every community and method, and the stream of estimates has the same record as the last
// one of its community and method.
func checkPublished(t *testing.T, state string, once map[[2]string]quant.Estimate) {
	t.Helper()
	b, err := config.OpenBroker(config.Settings{State: state}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	names := defaultNames()
	bucket, err := b.JS.KeyValue(t.Context(), names.Latest)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := b.JS.Stream(t.Context(), names.Estimates)
	if err != nil {
		t.Fatal(err)
	}
	live := map[[2]string]quant.Estimate{}
	for key := range once {
		entry, err := bucket.Get(t.Context(), sinks.LatestKey(key[0], key[1], 0))
		if err != nil {
			t.Fatalf("bucket: %v: %v", key, err)
		}
		var e quant.Estimate
		if err := json.Unmarshal(entry.Value(), &e); err != nil {
			t.Fatalf("bucket: %v: %v", key, err)
		}
		live[key] = e
		if _, err := stream.GetLastMsgForSubject(t.Context(),
			names.EstimateSubject(key[0], key[1], 0)); err != nil {
			t.Fatalf("stream: %v: %v", key, err)
		}
	}
	compareLive(t, "bucket", live, once)
}

// splitEdges writes the removal of every third edge to gone, and the others to left.
func splitEdges(t *testing.T, path, gone, left string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var out [2]strings.Builder
	lines := bufio.NewScanner(z)
	for i := 0; lines.Scan(); i++ {
		src, rest, _ := strings.Cut(lines.Text(), ",")
		dst, _, _ := strings.Cut(rest, ",")
		row := src + "," + dst + "\n"
		switch {
		case i == 0: // the header
			out[0].WriteString(strings.TrimSpace(row) + ",op\n")
			out[1].WriteString(row)
		case i%3 == 0:
			out[0].WriteString(strings.TrimSpace(row) + ",remove\n")
		default:
			out[1].WriteString(row)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	for i, path := range []string{gone, left} {
		testfile.Write(t, path, out[i].String())
	}
}
