package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"gqlstream/pipeline"
	"gqlstream/pipeline/config"
	"gqlstream/quant"
	"gqlstream/sinks/web"
)

// recordsOf returns the published records of a community and method, in order.
func recordsOf(t *testing.T, lines []string, community, method string) (records []quant.Estimate) {
	t.Helper()
	for _, line := range lines {
		var e quant.Estimate
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Community == community && e.Method == method && !e.Suppressed {
			records = append(records, e)
		}
	}
	return records
}

// mustExplain runs explain and decodes its output.
func mustExplain(t *testing.T, args ...string) quant.Explanation {
	t.Helper()
	out, _ := mustRun(t, append([]string{"explain", "--format", "json"}, args...)...)
	var x quant.Explanation
	if err := json.Unmarshal([]byte(out), &x); err != nil {
		t.Fatal(err)
	}
	return x
}

// checkExplains holds that an explanation is of two published records, and that its
// parts sum to the change.
func checkExplains(t *testing.T, x *quant.Explanation, from, to *quant.Estimate) {
	t.Helper()
	if x.From.Position != from.Position || x.To.Position != to.Position ||
		!slices.Equal(
			x.From.Published,
			from.Prevalence,
		) || !slices.Equal(x.To.Published, to.Prevalence) {
		t.Fatalf(
			"explains %d %v to %d %v, published were %d %v and %d %v", x.From.Position,
			x.From.Published, x.To.Position, x.To.Published, from.Position, from.Prevalence,
			to.Position, to.Prevalence,
		)
	}
	for k := range x.Change {
		sum := x.Numerical[k]
		for _, c := range x.Causes {
			sum += c.Contribution[k]
		}
		if change := to.Prevalence[k] - from.Prevalence[k]; math.Abs(sum-change) > 1e-9 {
			t.Errorf("%s %s: parts sum to %v, the change is %v", x.Community, x.Method, sum, change)
		}
		// Of auto the rest also holds that its coefficients were fitted at another time.
		allowed := 10 * (from.Certificate + to.Certificate)
		if x.Method != string(quant.Auto) && math.Abs(x.Numerical[k]) > allowed+1e-9 {
			t.Errorf("%s %s: our own error is %v, certificates %v and %v",
				x.Community, x.Method, x.Numerical[k], from.Certificate, to.Certificate)
		}
	}
}

// The difference between two published records must be explained in full, the same
// from checkpoints, from the beginning of the log, through a server that others
// use, and for places and times between two records.
func TestExplainPublishedRecords(t *testing.T) {
	const seed = 6
	state, conf, lines := savedState(t, seed)
	common := []string{"--config", conf, "--state", state, "--named", "2"}
	var base quant.Explanation
	for _, c := range [][2]string{
		{"everyone", "auto"},
		{"german", "sis-nacc"},
		{"group-1", "pcc"},
	} {
		records := recordsOf(t, lines, c[0], c[1])
		if len(records) < 3 {
			t.Fatalf("seed %d: %d records of %v", seed, len(records), c)
		}
		from, to := &records[1], &records[len(records)-1]
		base = mustExplain(t, append(common, "--community", c[0], "--method", c[1],
			"--from", position(from.Position), "--to", position(to.Position))...)
		checkExplains(t, &base, from, to)
		if len(base.Causes) < 3 {
			t.Errorf("seed %d: %v: causes %+v", seed, c, base.Causes)
		}
		next := &records[2]
		x := mustExplain(t, append(common, "--community", c[0], "--method", c[1],
			"--from", position(next.Position-1), "--to", to.Time)...)
		checkExplains(t, &x, from, to)
	}
	again := append(common, "--community", "group-1", "--method", "pcc",
		"--from", position(base.From.Position), "--to", position(base.To.Position))
	b, err := config.OpenBroker(
		config.Settings{State: state, NATS: config.NATS{Listen: "127.0.0.1:0"}},
		nil,
	)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	sameExplanation(t, base, mustExplain(t, append(again, "--nats", b.Embedded.URL())...))
	code, _, text := runCommand(append([]string{"explain"}, again...)...)
	if code != exitFailed || !strings.Contains(text, "in use") ||
		!strings.Contains(text, "--listen") {
		t.Errorf("beside a process that uses the directory: exit %d, %s", code, text)
	}
	if err := os.RemoveAll(filepath.Join(state, "checkpoints")); err != nil {
		t.Fatal(err)
	}
	sameExplanation(t, base, mustExplain(t, append(again, "--nats", b.Embedded.URL())...))
}

func position(p uint64) string { return strconv.FormatUint(p, 10) }

// sameExplanation holds two explanations of the same records against each other;
// states that were reached in different ways differ in the last bits.
func sameExplanation(t *testing.T, a, b quant.Explanation) {
	t.Helper()
	if len(a.Causes) != len(b.Causes) {
		t.Fatalf("%d causes and %d", len(a.Causes), len(b.Causes))
	}
	for i, c := range a.Causes {
		d := b.Causes[i]
		if c.Kind != d.Kind || c.Changes != d.Changes ||
			!slices.EqualFunc(c.Contribution, d.Contribution,
				func(x, y float64) bool { return math.Abs(x-y) < 1e-6 }) {
			t.Errorf(
				"%s: %d changes give %v, or %d give %v", c.Kind, c.Changes, c.Contribution,
				d.Changes, d.Contribution,
			)
		}
	}
}

// The answer to an invalid question must name the mistake.
func TestExplainNamesTheMistake(t *testing.T) {
	const seed = 7
	state, conf, lines := savedState(t, seed)
	records := recordsOf(t, lines, "everyone", "auto")
	last := position(records[len(records)-1].Position)
	for _, c := range []struct {
		args []string
		want string
	}{
		{
			[]string{"--community", "nowhere", "--from", "5", "--to", last},
			`"nowhere" is not known at position `,
		},
		{[]string{"--community", "everyon"}, `nothing was published of "everyon"; did you mean ` +
			`"everyone"?`},
		{[]string{"--community", "nowhere"}, `nothing was published of "nowhere"; known are `},
		{
			[]string{"--community", "everyone", "--from", last, "--to", "5"},
			"from must lie before to",
		},
		{
			[]string{"--community", "everyone", "--from", "yesterday", "--to", last},
			"neither a position",
		},
		{
			[]string{"--community", "everyone", "--from", last, "--to", "99999999"},
			"it did not move",
		},
		{[]string{"--community", "nowhere", "--from", "5", "--to", "99999999"}, "before 99999999"},
		{
			[]string{"--community", "everyone", "--from", "5", "--to", last, "--method", "guess"},
			`no method "guess"`,
		},
		{
			[]string{
				"--community", "everyone", "--from", "5", "--to", last, "--method",
				"auto,pcc",
			},
			"one is explained at a time",
		},
	} {
		code, _, text := runCommand(
			append([]string{"explain", "--config", conf, "--state", state}, c.args...)...)
		if code == exitFine || !strings.Contains(text, c.want) {
			t.Errorf("%v: exit %d, want %q in\n%s", c.args, code, c.want, text)
		}
	}
	mustRun(t, "purge", "--state", state)
	if err := os.RemoveAll(filepath.Join(state, "checkpoints")); err != nil {
		t.Fatal(err)
	}
	code, _, text := runCommand(
		"explain", "--config", conf, "--state", state, "--community", "everyone", "--from",
		position(records[0].Position), "--to", last,
	)
	if code == exitFine || !strings.Contains(text, "choose a later --from") {
		t.Errorf("of a trimmed log: exit %d, %s", code, text)
	}
	missing := filepath.Join(t.TempDir(), "none")
	code, _, text = runCommand(
		"explain", "--classes", "2", "--state", missing, "--community", "c", "--from", "1", "--to",
		"2",
	)
	if _, err := os.Stat(missing); code != exitUsage || err == nil {
		t.Errorf("without a state: exit %d, %s", code, text)
	}
}

// The text form must have the figures of the explanation.
func TestExplainForPeople(t *testing.T) {
	const seed = 9
	state, conf, lines := savedState(t, seed)
	args := []string{
		"explain",
		"--config",
		conf,
		"--state",
		state,
		"--community",
		"everyone",
		"--method",
		"auto",
	}
	text, _ := mustRun(
		t,
		// between the last two records there may be no edge, and between far ones too much of each
		// kind
		args...)
	whole, _ := mustRun(
		t,
		append(args, "--from", position(recordsOf(t, lines, "everyone", "auto")[0].Position))...)
	for _, want := range []string{
		"everyone by auto", "percentage points", "moved", "revised",
		"numerical errors", "edges", "Largest single changes",
	} {
		if !strings.Contains(text+whole, want) {
			t.Errorf("no %q in\n%s\n%s", want, text, whole)
		}
	}
	if quiet, _ := mustRun(t, append(args, "--named", "0")...); strings.Contains(quiet, "Largest") {
		t.Errorf("--named 0 names\n%s", quiet)
	}
}

// Every cause must have a line, even if a privacy floor hides its details.
func TestEveryCauseHasALine(t *testing.T) {
	x := &quant.Explanation{
		Classes: []string{"a", "b"}, Change: []float64{.1, -.1}, Numerical: []float64{0, 0},
		Moved: []float64{.1, -.1}, Revised: []float64{0, 0},
		From: quant.ExplanationEnd{Published: []float64{.5, .5}},
		To:   quant.ExplanationEnd{Published: []float64{.6, .4}},
	}
	for _, kind := range []string{
		quant.CauseJoined, quant.CauseAge, quant.CauseGamma, quant.CauseFew,
	} {
		for _, changes := range []int{0, 12} {
			x.Causes = append(x.Causes,
				quant.Cause{Kind: kind, Contribution: []float64{.1, -.1}, Changes: changes})
		}
	}
	var out strings.Builder
	if err := writeExplanation(&out, x); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"age  ", "gamma  ", "few  "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

// The page must get the same explanation while the pipeline runs, without the names of
// vertices under a privacy floor. The answer to an invalid question must name the mistake.
func TestExplainForThePage(t *testing.T) {
	const seed = 8
	state, conf, lines := savedState(t, seed)
	records := recordsOf(t, lines, "german", "auto")
	from, to := &records[0], &records[len(records)-1]
	asked := web.ExplainQuery{
		Community: "german", Method: "auto", From: position(from.Position),
		To: position(to.Position),
	}
	want := mustExplain(t, "--config", conf, "--state", state, "--community", asked.Community,
		"--method", asked.Method, "--from", asked.From, "--to", asked.To)
	settings, err := config.Load(conf)
	if err != nil {
		t.Fatal(err)
	}
	settings.State = state
	p, err := pipeline.Open(
		t.Context(),
		settings,
		pipeline.Options{Log: slog.New(slog.DiscardHandler)},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	x, err := p.Explain(t.Context(), asked, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	checkExplains(t, x, from, to)
	sameExplanation(t, want, *x)
	named := func(c quant.Cause) bool { return len(c.Largest) > 0 }
	if slices.ContainsFunc(x.Causes, named) || !slices.ContainsFunc(want.Causes, named) {
		t.Error("the page names vertices, or the command does not")
	}
	for code, q := range map[int]web.ExplainQuery{
		http.StatusBadRequest: {Community: "german", Method: "auto", From: "noon", To: asked.To},
		http.StatusConflict: {
			Community: "nowhere", Method: "auto", From: asked.From,
			To: asked.To,
		},
	} {
		_, err := p.Explain(t.Context(), q, func(string) {})
		var refusal *web.Refusal
		if !errors.As(err, &refusal) || refusal.Code != code {
			t.Errorf("%+v: %v, want code %d", q, err, code)
		}
	}
	p.Config.MembersMin = max(x.From.Vertices, x.To.Vertices) + 1
	var refusal *web.Refusal
	if _, err := p.Explain(t.Context(), asked, func(string) {}); !errors.As(err, &refusal) ||
		refusal.Code != http.StatusConflict {
		t.Errorf("below the privacy floor: %v", err)
	}
	p.Config.MembersMin = 0
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Explain(ctx, asked, func(string) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("of a client that has gone: %v", err)
	}
}
