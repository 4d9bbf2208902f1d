package web

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"

	"gqlstream/internal/request"
	"gqlstream/quant"
)

// scrape returns the lines of /metrics that are values, by name and labels.
func scrape(t testing.TB, s *Server) map[string]string {
	t.Helper()
	code, _, body := get(t, s, "/metrics")
	if code != 200 {
		t.Fatalf("metrics: code %d: %s", code, body)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(body)) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		out[line[:i]] = strings.TrimSpace(line[i+1:])
	}
	return out
}

func TestMetricsShowEstimatesAndTheLoop(t *testing.T) {
	s := serve(t, func(c *Config) { c.Sinks = twoSinks })
	write(t, s, estimate("x", "auto", 5, 0.25))
	write(
		t,
		s,
		quant.Estimate{
			Community:  "tiny",
			Method:     "auto",
			Position:   5,
			Suppressed: true,
			Flags:      []string{"below-privacy-floor"},
		},
	)
	s.Status(runningStatus(3))
	got := scrape(t, s)
	for name, want := range map[string]string{
		`gqlstream_estimate{class="yes",community="x",method="auto"}`:       "0.25",
		`gqlstream_estimate{class="no",community="x",method="auto"}`:        "0.75",
		`gqlstream_estimate_low{class="yes",community="x",method="auto"}`:   "0.15",
		`gqlstream_estimate_high{class="yes",community="x",method="auto"}`:  "0.35",
		`gqlstream_estimate_se{class="yes",community="x",method="auto"}`:    "0.05",
		`gqlstream_estimate_n_eff{class="yes",community="x",method="auto"}`: "50",
		`gqlstream_estimate_members{community="x",method="auto"}`:           "100",
		`gqlstream_estimate_flag{community="x",flag="thin",method="auto"}`:  "1",

		`gqlstream_estimate_flag{community="tiny",flag="below-privacy-floor",method="auto"}`: "1",

		`gqlstream_events_total{kind="edge"}`:                           "30",
		`gqlstream_refused_total{reason="bad-weight"}`:                  "2",
		`gqlstream_late_total{kind="label"}`:                            "3",
		`gqlstream_rule_mismatches_total{community="adults"}`:           "7",
		`gqlstream_lag_messages`:                                        "10",
		`gqlstream_position`:                                            "1003",
		`gqlstream_steps_total`:                                         "3",
		`gqlstream_ready`:                                               "1",
		`gqlstream_step_seconds_count`:                                  "1",
		`gqlstream_stage_seconds_count{stage="apply"}`:                  "1",
		`gqlstream_sink_up{shard="",sink="file"}`:                       "0",
		`gqlstream_sink_holding{shard="",sink="file"}`:                  "0",
		`gqlstream_sink_up{shard="",sink="GQL_ESTIMATES"}`:              "1",
		`gqlstream_sink_retries_total{shard="",sink="file"}`:            "7",
		`gqlstream_sink_behind{shard="",sink="file"}`:                   "3",
		`gqlstream_sink_position{shard="",sink="file"}`:                 "64",
		`gqlstream_checkpoint_seconds`:                                  "1",
		`gqlstream_checkpoint_position`:                                 "900",
		`gqlstream_graph{what="edges"}`:                                 "20",
		`gqlstream_communities`:                                         "2",
		`gqlstream_metrics_communities_dropped`:                         "0",
		`gqlstream_info{config="",pipeline="test",version="v0"}`:        "1",
		`gqlstream_estimate_records_total{community="x",method="auto"}`: "1",
		`gqlstream_metrics_communities`:                                 "2",
		`gqlstream_certificate_max`:                                     "0.003",

		`gqlstream_estimate_timestamp_seconds{community="x",method="auto"}`: fmt.Sprintf(
			"%.9e",
			float64(logStart.Unix()+5),
		),
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	for name := range got {
		if strings.Contains(name, `"tiny"`) && !strings.Contains(name, "_flag") &&
			!strings.Contains(
				name,
				"_timestamp_seconds",
			) && !strings.Contains(name, "_records_total") {
			t.Errorf("a suppressed community leaks %s", name)
		}
	}
}

// However many communities there are, /metrics has at most as many as are configured, always the
// same ones, and says how many it left out. A worker of a group that is not the one has none.
func TestMetricsAreBounded(t *testing.T) {
	const most = 20
	silent := false
	s := serve(t, func(c *Config) {
		c.MetricsCommunities = new(most)
		c.Deployment = func() Deployment { return Deployment{Silent: silent} }
	})
	for _, name := range names(most + 25) {
		write(t, s, estimate(name, "auto", 1, 0.5))
	}
	exported := func() []string {
		var out []string
		for name := range scrape(t, s) {
			if strings.HasPrefix(name, "gqlstream_estimate_members{") {
				out = append(out, name)
			}
		}
		slices.Sort(out)
		return out
	}
	first := exported()
	if got := scrape(t, s); len(first) != most ||
		got["gqlstream_metrics_communities_dropped"] != "25" ||
		got["gqlstream_metrics_communities"] != "20" {
		t.Errorf("%d exported, %s dropped, want 20 and 25", len(first),
			got["gqlstream_metrics_communities_dropped"])
	}
	for _, name := range names(most + 40) {
		write(t, s, estimate(name, "auto", 2, 0.5))
	}
	if !slices.Equal(first, exported()) {
		t.Error("other communities at the next scrape")
	}
	silent = true
	if got := scrape(t, s); len(exported()) > 0 || got["gqlstream_metrics_communities"] != "0" ||
		got["gqlstream_communities"] != "60" ||
		got["gqlstream_metrics_communities_dropped"] != "0" {
		t.Errorf("a silent worker exports %d of %s", len(exported()), got["gqlstream_communities"])
	}
}

// A scrape of 1,000 communities of two methods and five classes must be quick: Prometheus asks
// every few seconds. It takes a tenth of a second of one core. The bound is four times that, of
// the best of ten, in processor time: the machines of tests are busy.
func TestScrapesAreQuick(t *testing.T) {
	s := serveLarge(t)
	least := time.Hour
	for range 10 {
		begun := processorTime(t)
		families, err := s.gather.Gather()
		if err != nil || len(families) < 50 {
			t.Fatalf("%d families, %v", len(families), err)
		}
		out := 0
		for _, family := range families {
			n, err := expfmt.MetricFamilyToText(io.Discard, family)
			if err != nil {
				t.Fatal(err)
			}
			out += n
		}
		least = min(least, processorTime(t)-begun)
		if out < 4<<20 {
			t.Fatalf("only %d bytes", out)
		}
	}
	if least > 400*time.Millisecond {
		t.Errorf("a scrape takes %v of one core", least)
	}
	t.Logf("a scrape takes %v of one core", least)
}

// processorTime returns the processor time of this process since it began.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func BenchmarkScrape(b *testing.B) {
	s := serveLarge(b)
	for b.Loop() {
		if code, _, _ := get(b, s, "/metrics"); code != 200 {
			b.Fatal(code)
		}
	}
}

// serveLarge returns a server with 1,000 communities, two methods and five classes.
func serveLarge(t testing.TB) *Server {
	s := serve(t, func(c *Config) { c.Classes = []string{"a", "b", "c", "d", "e"} })
	five := []float64{.1, .2, .3, .15, .25}
	for _, name := range names(1000) {
		for _, method := range []string{"auto", "pcc"} {
			write(t, s, quant.Estimate{
				Community: name, Method: method, Position: 1, Prevalence: five, Low: five,
				High: five,
				SE:   five, NEff: five, Members: 100, Flags: []string{"thin"},
			})
		}
	}
	return s
}

// Everything that is counted by kind or reason must be there from 0 on, or the first one is no
// increase.
func TestCountersBeginAtZero(t *testing.T) {
	s := serve(
		t,
		func(c *Config) {
			c.Kinds, c.Reasons = []string{"edge", "vertex"},
				[]string{"bad-weight", "late"}
		},
	)
	s.Status(runningStatus(3))
	got := scrape(t, s)
	for name, want := range map[string]string{
		`gqlstream_refused_total{reason="late"}`:       "0",
		`gqlstream_refused_total{reason="bad-weight"}`: "2",
		`gqlstream_events_total{kind="vertex"}`:        "0",
		`gqlstream_late_total{kind="edge"}`:            "0",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %s", name, got[name], want)
		}
	}
}

// sampleDeployment has something of everything.
func sampleDeployment() Deployment {
	return Deployment{
		LastEvents: map[string]time.Time{"edge": time.Unix(1000, 0)},
		Streams: []Stream{{
			Name: "GQL", Holds: "log", Messages: 5, Bytes: 500, BytesMax: 1000,
			Oldest: time.Unix(900, 0),
		}, {Name: "GQL_HISTORY", Holds: "history"}},
		OutputLost: 2,
		Lacks:      []Lack{{Stream: "GQL", Server: "n2", Messages: 7}},
		Scrub:      Scrub{Ended: time.Unix(1_700_000_000, 0), Faults: 1},
		Group:      &Group{Worker: "a", Workers: 2, Shards: 16, Here: 8, Unserved: 1},
		Reloaded:   time.Unix(800, 0), ReloadOK: true, Config: "1f",
	}
}

func TestMetricsShowTheDeployment(t *testing.T) {
	s := serve(t, func(c *Config) { c.Deployment = sampleDeployment })
	got := scrape(t, s)
	for name, want := range map[string]string{
		`gqlstream_last_event_timestamp_seconds{kind="edge"}`:                 "1000",
		`gqlstream_stream_bytes{holds="log",stream="GQL"}`:                    "500",
		`gqlstream_stream_bytes_max{holds="log",stream="GQL"}`:                "1000",
		`gqlstream_stream_bytes_max{holds="history",stream="GQL_HISTORY"}`:    "",
		`gqlstream_stream_oldest_timestamp_seconds{holds="log",stream="GQL"}`: "900",
		`gqlstream_stream_lacking_messages{server="n2",stream="GQL"}`:         "7",
		`gqlstream_output_lost_messages`:                                      "2",
		`gqlstream_group_info{worker="a"}`:                                    "1",
		`gqlstream_group_workers`:                                             "2",
		`gqlstream_group_shards_here`:                                         "8",
		`gqlstream_group_shards_unserved`:                                     "1",
		`gqlstream_config_last_reload_successful`:                             "1",
		`gqlstream_config_last_reload_success_timestamp_seconds`:              "800",
		`gqlstream_info{config="1f",pipeline="test",version="v0"}`:            "1",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

// No name may break the format or forge a line.
func TestHostileNamesStayInTheirLabels(t *testing.T) {
	s := serve(t, nil)
	for _, name := range append(hostileNames(), "not\xffutf8", "not\xfeutf8", "quote\"",
		"back\\slash", "new\nline") {
		write(t, s, estimate(name, "auto", 1, 0.5))
	}
	status := runningStatus(1)
	status.Refused["odd\xff\n\"reason"] = 1
	s.Status(status)
	line := regexp.MustCompile(
		`^(?:gqlstream|go|process)_[a-z_]+(\{([a-z]+="([^"\\\n]|\\[\\"n])*",?)*\})? ` +
			`[0-9eE.+-]+$|^# (HELP|TYPE) `,
	)
	_, _, body := get(t, s, "/metrics")
	for text := range strings.Lines(string(body)) {
		text = strings.TrimSuffix(text, "\n")
		if !line.MatchString(text) && !strings.Contains(text, `le="`) {
			t.Errorf("line %q", text)
		}
	}
	if got := scrape(t, s)["gqlstream_ready"]; got != "1" {
		t.Errorf("ready is %q", got)
	}
}

// exportedMetrics returns the labels of every metric of a server that has something of everything.
func exportedMetrics(t *testing.T) map[string][]string {
	s := serve(t, func(c *Config) { c.Sinks, c.Deployment = twoSinks, sampleDeployment })
	write(t, s, estimate("x", "auto", 5, 0.25))
	s.Status(runningStatus(3))
	s.SetAlerts(sampleAlerts())
	names := map[string][]string{}
	for series := range scrape(t, s) {
		name, labels, _ := strings.Cut(series, "{")
		names[name] = []string{}
		for _, label := range regexp.MustCompile(`(\w+)="`).FindAllStringSubmatch(labels, -1) {
			names[name] = append(names[name], label[1])
		}
		names[strings.TrimSuffix(name, "_count")] = names[name] // of a histogram
	}
	return names
}

// Metrics of the process must be exported with ours, and each of ours must have a help
// text.
func TestMetricsHaveHelp(t *testing.T) {
	s := serve(t, func(c *Config) { c.Sinks, c.Deployment = twoSinks, sampleDeployment })
	write(t, s, estimate("x", "auto", 5, 0.25))
	s.Status(runningStatus(3))
	s.SetAlerts(sampleAlerts())
	_, _, body := get(t, s, "/metrics")
	for _, name := range []string{
		"go_goroutines", "go_memstats_heap_inuse_bytes",
		"process_resident_memory_bytes", "process_open_fds",
	} {
		if !strings.Contains(string(body), "\n"+name+" ") {
			t.Errorf("%s is not exported", name)
		}
	}
	all := regexp.MustCompile(`(?m)^# TYPE (gqlstream_\w+) `).
		FindAllStringSubmatch(string(body), -1)
	if len(all) < 60 {
		t.Errorf("only %d metrics", len(all))
	}
	for _, m := range all {
		if !regexp.MustCompile(`(?m)^# HELP ` + m[1] + ` \S.*\.$`).Match(body) {
			t.Errorf("%s has no help", m[1])
		}
	}
}

// Every metric and label in the rules and in the dashboard must exist.
func TestExamplesUseMetricsThatExist(t *testing.T) {
	names := exportedMetrics(t)
	for _, path := range []string{
		"prometheus/gqlstream-rules.yml",
		"grafana/dashboards/gqlstream.json",
	} {
		data, err := os.ReadFile(filepath.Join("..", "..", "examples", filepath.FromSlash(path)))
		if err != nil {
			t.Fatal(err)
		}
		used := regexp.MustCompile(`gqlstream_\w+`).FindAllString(string(data), -1)
		for _, name := range used {
			if names[name] == nil {
				t.Errorf("%s: there is no %s", path, name)
			}
		}
		selectors := regexp.MustCompile(`(gqlstream_\w+)\{([^}]*)\}`).
			FindAllStringSubmatch(string(data), -1)
		for _, m := range selectors {
			for _, label := range regexp.MustCompile(`(\w+)(?:=~|!~|!=|=)`).FindAllStringSubmatch(
				m[2], -1) {
				if !slices.Contains(names[m[1]], label[1]) {
					t.Errorf("%s: %s has no label %s", path, m[1], label[1])
				}
			}
		}
		if len(used) < 10 || len(selectors) < 2 {
			t.Errorf("%s: only %d metrics and %d selectors", path, len(used), len(selectors))
		}
	}
}

func twoSinks() []request.State {
	return []request.State{
		{Name: "GQL_ESTIMATES", Condition: request.Delivering},
		{
			Name: "file", Condition: request.Retrying, Since: time.Now().Add(-time.Hour),
			Reason: "no space left", Retries: 7,
			Follows: true, Behind: 3, Position: 64,
		},
	}
}

// A pipeline that waits for a sink is not ready, and /readyz names the sink; the
// status says why.
func TestHeldPipelineNamesItsObstacle(t *testing.T) {
	state := request.State{
		Name:      "file",
		Condition: request.Holding,
		Since:     time.Now(),
		Reason:    "the stream is full",
	}
	s := serve(
		t,
		func(c *Config) { c.Sinks = func() []request.State { return []request.State{state} } },
	)
	s.Status(runningStatus(1))
	if code, _, body := get(t, s, "/readyz"); code != 200 {
		t.Errorf("after a moment: %d %s", code, body)
	}
	state.Since = time.Now().Add(-time.Minute)
	if code, _, body := get(t, s, "/readyz"); code != 503 || string(body) != "waiting for file\n" {
		t.Errorf("after a minute: %d %s", code, body)
	}
	got := into[statusAnswer](t, s, "/api/v1/status")
	if got.Ready || len(got.Sinks) != 1 || got.Sinks[0].Reason != state.Reason ||
		got.Sinks[0].Condition != request.Holding {
		t.Errorf("status %+v", got.Sinks)
	}
	if got := scrape(t, s); got[`gqlstream_sink_holding{shard="",sink="file"}`] != "1" ||
		got["gqlstream_ready"] != "0" {
		t.Errorf("metrics %v", got)
	}
}
