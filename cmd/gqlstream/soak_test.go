//go:build linux && !race

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"gqlstream/internal/testfile"
	"gqlstream/lab/campaign"
)

// soakMetrics are the quantities that must not grow: process_ and go_ metrics, and the bytes of
// checkpoints. The heap in use is only reported, because it includes uncollected garbage and the
// embedded server's temporary buffers of 4 and 8 MB.
var soakMetrics = []string{
	"process_resident_memory_bytes", "go_memstats_heap_inuse_bytes", "go_goroutines",
	"process_open_fds", "checkpoints",
}

// soakLag is the metric of the lag of a run. A run that cannot keep up fills its read-ahead
// windows, so its memory says nothing about a leak.
const soakLag = "gqlstream_lag_messages"

// soakConfig is crashConfig at a pace that a machine can keep up for hours.
var soakConfig = strings.NewReplacer(
	crashStep, "step: {every: 100ms, emit_every: 100ms}",
	"checkpoint: {every: 200ms}", "checkpoint: {every: 2s}",
	"output: {every: 300ms}", "output: {every: 5s}").
	Replace(crashConfig)

// soakGrowthMax bounds the growth of a median from the third quarter of a soak to the last. In the
// first half bounded structures fill up, for example the history of the page. If that half is
// shorter than half of soakJudgedMin, it does not fill them: such a soak is only reported.
const (
	soakGrowthMax = 0.05
	soakJudgedMin = 2 * time.Hour
	soakLagMax    = 2000 // messages, in the median of either half: some seconds
)

// A run under steady load, with members that come and go, things that end by themselves, alerts,
// erasures, refusals and a page open, must not grow in its second half. GQLSTREAM_SOAK_SECONDS sets
// how long it takes (make soak: two hours); it is sampled a hundred times.
func TestSoakOfARunDoesNotGrow(t *testing.T) {
	length := time.Duration(campaign.Size(t, "GQLSTREAM_SOAK_SECONDS", 3)) * time.Second
	t.Setenv(
		"GOGC",
		"25",
	) // so that memory is live data, not up to 256 MiB of garbage
	r := newCrashRun(t, campaign.Seed(t, 1))
	page := freeAddress(t)
	r.pace = 10 * time.Millisecond
	testfile.Write(t, r.config, strings.Replace(soakConfig, `listen: "off"`, "listen: "+page, 1))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.start()
	r.await(ctx)
	producer := startProducer(ctx, r)
	watchPage(ctx, t, page)
	begun := time.Now()
	samples := map[string][]float64{}
	for every := length / 100; time.Since(begun) < length; pause(ctx, every) {
		now := scrapeProcess(t, page)
		now["checkpoints"] = bytesBelow(t, filepath.Join(r.dir, "checkpoints"))
		for name, value := range now {
			samples[name] = append(samples[name], value)
		}
		if len(samples[soakMetrics[0]])%10 == 0 {
			t.Logf("after %v: %v", time.Since(begun).Round(time.Second), now)
		}
	}
	events := producer.finish(r)
	cancel() // the page is closed before the run
	r.kill()
	for _, name := range soakMetrics {
		list, quarters := samples[name], [4]float64{}
		for i := range quarters {
			quarters[i] = median(list[i*len(list)/4 : (i+1)*len(list)/4])
		}
		before, last := quarters[2], quarters[3]
		t.Logf("%s: %.4g by quarters, the last one %+.1f %%", name, quarters, 100*(last/before-1))
		if length >= soakJudgedMin && name != soakMetrics[1] && last > before*(1+soakGrowthMax) {
			t.Errorf("%s grows by more than %.0f %%", name, 100*soakGrowthMax)
		}
	}
	if lag := samples[soakLag]; max(
		median(lag[:len(lag)/2]),
		median(lag[len(lag)/2:]),
	) > soakLagMax {
		t.Errorf("the run did not keep up: it was behind by %v messages", lag)
	}
	t.Logf("%v, %d messages", time.Since(begun).Round(time.Second), events)
}

// watchPage sends the requests of an open page once a second.
func watchPage(ctx context.Context, t *testing.T, address string) {
	t.Helper()
	ask := func(path string) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+path, nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", path, response.Status)
		}
		_, err = io.Copy(io.Discard, response.Body)
		return err
	}
	err := ask("/api/v1/status")
	for begun := time.Now(); err != nil &&
		time.Since(begun) < crashStartMax; err = ask("/api/v1/status") {
		pause(ctx, 20*time.Millisecond) // the page opens last
	}
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for ctx.Err() == nil {
			if err := errors.Join(ask("/api/v1/status"),
				ask("/api/v1/estimates?after=1")); err != nil &&
				ctx.Err() == nil {
				t.Errorf("the page got no answer: %v", err)
			}
			pause(ctx, time.Second)
		}
	}()
}

// scrapeProcess returns the metrics of the process, and how far it is behind.
func scrapeProcess(t *testing.T, address string) map[string]float64 {
	t.Helper()
	response, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	values := map[string]float64{}
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		name, text, _ := strings.Cut(lines.Text(), " ")
		if slices.Contains(soakMetrics, name) || name == soakLag {
			if values[name], err = strconv.ParseFloat(text, 64); err != nil {
				t.Fatal(err)
			}
		}
	}
	return values
}

// bytesBelow returns the size of the files in a directory, while files may be removed.
func bytesBelow(t *testing.T, dir string) (bytes float64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // it is gone
		}
		if info, err := entry.Info(); err == nil && !entry.IsDir() {
			bytes += float64(info.Size())
		}
		return nil
	})
	if err != nil {
		t.Fatal(fmt.Errorf("%s: %w", dir, err))
	}
	return bytes
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	return sorted[len(sorted)/2]
}
