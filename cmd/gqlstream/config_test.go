package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"gqlstream/ingest/broker"
	"gqlstream/internal/testfile"
	"gqlstream/pipeline"
	"gqlstream/pipeline/config"
)

// check must end with exit code 2 on every mistake in a configuration, with a message that
// names the place and the mistake.
func TestMistakesInAConfigurationAreNamed(t *testing.T) {
	for _, c := range []struct{ yaml, want string }{
		{"", "classes: missing"},
		{"classes: 0", "between 1 and"},
		{"classes: [a, a]", "both named"},
		{"classes: {a: 1}", "classes"},
		{"clases: 2", `did you mean "classes"?`},
		{"classes: 2\ncomunities: []", `did you mean "communities"?`},
		{"classes: 2\nstep: {evry: 1s}", `did you mean "every"?`},
		{"classes: 2\nclasses: 3", "classes"},
		{"classes: 2\nalpha: 3", "alpha is 3"},
		{"classes: 2\ntolerance: -1", "tolerance is -1"},
		{"classes: 2\nkernel: pagerank", `"pagerank" is not one of`},
		{"classes: 2\nestimates: [{method: magic}]", `no method "magic"`},
		{"classes: 2\nestimates: [{method: sis, lambda: 7}]", "lambda: 7"},
		{"classes: 2\nestimates: [{method: sis, lambda: lots}]", `"lots" is neither`},
		{"classes: 2\nestimates: [{method: sis, lambda: -1}]", `"-1" is neither`},
		{"classes: 2\nestimates: [{method: sis, preset: best}]", `no preset "best"`},
		{"classes: 2\nestimates: [{method: sis, confidence: 2}]", "confidence: 2"},
		{"classes: 2\ncommunities: [{everyone: true}]", "has no name"},
		{"classes: 2\ncommunities: [{name: a, everyone: true, where: {x: 1}}]", "choose one"},
		{"classes: 2\ncommunities: [{name: a, where: {x: 1, y: 2}}]", "2 conditions"},
		{"classes: 2\ncommunities: [{name: a}, {name: a}]", "defined twice"},
		{"classes: 2\nstep: {every: soon}", `[2:15] "soon": want a duration such as 10m or 1h30m`},
		{"classes: 2\nstep: {every: 5}", `[2:15] "5": want a duration`},
		{
			"classes: 2\nlate: {after: 5m, ahead: 2 hours}\nbogus: 1",
			`[2:26] "2 hours": want a duration`,
		},
		{"classes: 2\nlate: {after: 5m, ahead: 2 hours}\nbogus: 1", `unknown field "bogus"`},
		{"classes: 2\nalerts:\n  - {name: a, when: point > 0.1}\n  - {name: b, when: point > " +
			"0.1, every: true}", `[4:41] "true": want a duration`},
		{
			"classes: 2\nwindows: {edges: &long never, labels: *long}",
			`[2:24] "never": want a duration`,
		},
		{"classes: 2\nstep: {time: local}", "neither received nor event"},
		{"classes: 2\nstep: {every: 100ms, emit_every: 150ms}", "not a multiple"},
		{"classes: 2\nwindows: {labels: -1h}", "windows.labels: -1h0m0s is negative"},
		{"classes: 2\nwindows: {lables: 1h}", `did you mean "labels"?`},
		{
			"classes: 2\nlate: {after: 5m, divert: [vertices]}",
			`late.divert: "vertices" is not one of edges, labels, predictions, posts, members`,
		},
		{
			"classes: 2\ncontrol: {configure: no}",
			`control.configure: "no" is neither allow nor deny`,
		},
		{"classes: 2\nlate: {divert: [labels]}", "late.after: missing"},
		{"classes: 2\nlate: {after: -5m}", "late.after: -5m0s must be positive"},
		{"classes: 2\nprivacy: {min_members: -3}", "negative"},
		{"classes: [", "classes"},
		{
			"classes: 2\nalerts: [{name: a, when: low > 2}]",
			`alerts.rules[0] "a": when: a share is between 0 and 1`,
		},
		{"classes: 2\nalerts: [{when: lo > 0.2}]", `"lo" is not one of`},
		{"classes: 2\nalerts: [{name: a, wen: low > 0.2}]", `did you mean "when"?`},
		{
			"classes: 2\nalerts: [{name: a, when: low > 0.2, classes: [2]}]",
			`"2" is not one of [0 1]`,
		},
		{
			"classes: 2\nalerts: [{name: a, when: low > 0.2, method: pcc}]",
			`"pcc" is not published; [auto] are`,
		},
		{
			"classes: 2\nalerts: [{name: a, when: cusum drift -1 > 5}]",
			"drift: -1 is not a number of usual movements",
		},
		{
			"classes: 2\nalerts: [{name: a, when: change over soon > 0.1}]",
			`over: "soon": want a duration`,
		},
		{"classes: 2\nalpha: 3\nalerts: [{name: a}]", "alpha is 3"},
		{"classes: 2\nalpha: 3\nalerts: [{name: a}]", "when: missing"},
		{
			"classes: 2\nnotify: {webhooks: [{name: a, url: example.com}]}",
			"notify.webhooks[0].url: scheme",
		},
		{
			"classes: 2\nnotify: {webhooks: [{name: a, url: https://x.org, rules: none}]}",
			`no alert is named "none"`,
		},
		{
			"classes: 2\nnotify: {alertmanagers: [{name: a, url: https://x.org, token_fil: x}]}",
			`did you mean "token_file"?`,
		},
		{
			"classes: 2\nalerts: [{name: a, when: point > 0.1, for: 3 of 5}]",
			`[2:44] "3 of 5": want a duration such as 10m`,
		},
		{
			"classes: 2\nalerts: [{name: a, when: point > 0.1, no_data: alert after 3}]",
			`no_data: "3": want a duration such as alert after 10m`,
		},
		{
			"classes: 2\nalerts: [{name: a, when: cusum > 0}]",
			`"cusum > 0": want a threshold above 0`,
		},
		{"classes: 2\nstep: {every: -1s}", "step.every: -1s is negative"},
		{"classes: 2\nnats: {prefix: a.b}", `nats.prefix: "a.b": want at most 64 ` +
			`letters`},
		{"classes: 2\nnats: {replicas: 6}", "nats.replicas: 6, want 1 to 5"},
		{"classes: 2\nnats: {listen: 0.0.0.0:4222}", "can be reached from other hosts"},
		{
			"classes: 2\nhttp: {listen: 0.0.0.0:8090}",
			"is not a loopback address: give a token file",
		},
		{"classes: 2\nhttp: {listen: 8090}", "want host:port"},
		{"classes: 2\nhttp: {hosts: [http://x]}", `host "http://x" is not a host name`},
		{"classes: 2\noutput: {file: x, parquet: ./x}", "output: file and parquet name one path"},
	} {
		path := filepath.Join(t.TempDir(), "gqlstream.yaml")
		testfile.Write(t, path, c.yaml)
		code, _, diagnostics := runCommand("check", path)
		if code != exitUsage || !strings.Contains(diagnostics, c.want) ||
			!strings.Contains(diagnostics, path) {
			t.Errorf(
				"%q: exit %d, want 2 and %q beside the file's name:\n%s", c.yaml, code, c.want,
				diagnostics,
			)
		}
	}
}

// The output of check must itself be a configuration with the same meaning.
func TestEffectiveConfigurationReadsBack(t *testing.T) {
	dir := t.TempDir()
	first := filepath.Join(dir, "first.yaml")
	text := "alerts:\n  budget: 2 per week\n  rules: [{name: a, when: low > 0.2, suppress: []}, " +
		"{name: b, communities: x*, when: cusum drift 0 > 4}, " +
		"{name: c, when: change over 1h < -0.1}, {name: d, when: cusum, recover: 1}, {name: e, " +
		"when: change over 1h}]\n" +
		"classes: [left, right]\ncommunities:\n  - {name: all, everyone: true}\n  - {name: " +
		"german, where: {language: de}}\n" +
		"estimates: [{method: sis, lambda: auto}, {method: pcc}]\nstep: {emit_every: " +
		"1s}\nwindows: {edges: 720h, predictions: 36h}\nlate: {after: 5m, divert: " +
		"[labels]}\ncontrol: " +
		"{configure: deny}\n"
	testfile.Write(t, first, text)
	printed, _ := mustRun(t, "check", first)
	second := filepath.Join(dir, "second.yaml")
	testfile.Write(t, second, printed)
	again, _ := mustRun(t, "check", second)
	if _, want, _ := strings.Cut(printed, "\n"); !strings.HasSuffix(again, want) {
		t.Errorf("printed\n%s\nread back as\n%s", printed, again)
	}
	if digest := func(s string) string {
		_, d, _ := strings.Cut(s,
			"Digest ")
		return d[:16]
	}; digest(printed) != digest(again) {
		t.Errorf("digests differ:\n%s\n%s", printed, again)
	}
}

// A duration may be 0 as on the command line, an anchor, or left out after its key.
func TestADurationMayBeWrittenInSeveralWays(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gqlstream.yaml")
	text := "classes: 2\nwindows: {edges: &month 720h, labels: *month, predictions: 0}\nstep: " +
		"{every: !!str 200ms}\nlate: {ahead: }\n" +
		"alerts: [{name: a, when: point > 0.1, for: 0}]\n"
	testfile.Write(t, path, text)
	printed, _ := mustRun(t, "check", path)
	for _, want := range []string{
		"edges: 720h0m0s", "labels: 720h0m0s", "every: 200ms",
		"ahead: 1h0m0s",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("check does not print %q:\n%s", want, printed)
		}
	}
}

// The example of docs/alerts.md must be a configuration.
func TestDocumentedAlertsAreRules(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "alerts.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	path := filepath.Join(t.TempDir(), "gqlstream.yaml")
	if err := os.WriteFile(path, []byte("classes: [left, right]\n"+example), 0o600); err != nil ||
		!found {
		t.Fatal(err, found)
	}
	printed, _ := mustRun(t, "check", "--elsewhere", path)
	for _, want := range []string{
		"majority-lost", "secret_file: /etc/gqlstream/hook.key",
		"when: high < 0.5", "every: 10m", "- mixed-model", "budget: 1 per month",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("check does not print %q:\n%s", want, printed)
		}
	}
}

// Every key that a configuration can have must stand in docs/configuration.md, and
// every key that stands there must exist.
func TestEveryKeyIsDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "configuration.md"))
	if err != nil {
		t.Fatal(err)
	}
	var documented []string
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			for cell := range strings.SplitSeq(cells[1], ",") {
				if key := strings.Trim(strings.TrimSpace(cell), "`"); strings.Contains(cell, "`") {
					documented = append(documented, key)
				}
			}
		}
	}
	keys := configPaths("", reflect.TypeFor[config.Settings]())
	for _, key := range keys {
		if !slices.Contains(documented, key) {
			t.Errorf("%s is not in docs/configuration.md", key)
		}
	}
	for _, key := range documented {
		if !slices.Contains(keys, key) &&
			!slices.ContainsFunc(
				keys,
				func(k string) bool { return strings.HasPrefix(k, key+"[]") },
			) {
			t.Errorf("docs/configuration.md explains %s, which does not exist", key)
		}
	}
}

// configPaths returns the full names of the keys that hold values.
func configPaths(prefix string, t reflect.Type) (paths []string) {
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct {
		return configPaths(strings.TrimSuffix(prefix, ".")+"[].", t.Elem())
	}
	if t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return []string{strings.TrimSuffix(prefix, ".")}
	}
	for field := range t.Fields() {
		switch key, _, _ := strings.Cut(field.Tag.Get("yaml"), ","); {
		case field.Anonymous:
			paths = append(paths, configPaths(prefix, field.Type)...)
		case key != "-":
			paths = append(
				paths,
				configPaths(prefix+cmp.Or(key, strings.ToLower(field.Name))+".", field.Type)...)
		}
	}
	return paths
}

// check must name every unknown key and the communities without alerts under a rule, refuse
// a receiver that the run would refuse later, and print the defaults.
func TestCheckReportsTheProblemsOfARun(t *testing.T) {
	conf := filepath.Join(t.TempDir(), "gqlstream.yaml")
	testfile.Write(
		t,
		conf,
		"classes: [a, b]\nclassifer: diffusion\nestimatess:\n  - {method: auto}\nhttp:\n  "+
			"listn: x\n"+
			"estimates: [{method: atuo, lamda: 1}]\nalerts:\n  - {name: a, when: share > 0.3}\n",
	)
	code, _, said := runCommand("check", conf)
	for _, want := range []string{
		`"classifer"`, `did you mean "classifier"?`, `"estimatess"`,
		`"listn"`, `"lamda"`, `no method "atuo"`, `"share" is not one of`,
	} {
		if code != 2 || !strings.Contains(said, want) {
			t.Errorf("exit %d, without %s:\n%s", code, want, said)
		}
	}
	const rest = "classes: [a, b]\nalerts:\n  - {name: rise, when: point > 0.3, suppress: " +
		"[thin]}\n  - {name: jump, when: change over 1h}\n  - {name: loud, when: point > 0.3, " +
		"suppress: " +
		"[]}\nnotify:\n  webhooks:\n    - {name: w, url: %q}\n"
	testfile.Write(t, conf, fmt.Sprintf(rest, "ftp://127.0.0.1:9999/x"))
	if code, _, said := runCommand("check", conf); code != 2 ||
		!strings.Contains(said, "notify.webhooks[0].url") {
		t.Errorf("exit %d: %s", code, said)
	}
	testfile.Write(t, conf, fmt.Sprintf(rest, "http://127.0.0.1:9999/x"))
	printed, said := mustRun(t, "check", conf)
	if !strings.Contains(said, "alert rise is silent") ||
		!strings.Contains(said, "fewer than 60 labels") ||
		strings.Contains(said, "loud is silent") ||
		!strings.Contains(said, "alert jump: about 1 false alarms per month") {
		t.Errorf("check foresees %q", said)
	}
	if _, heard := mustRun(t, "run", "--config", conf, "--state", t.TempDir(),
		"--exit-when-drained"); !strings.Contains(heard, "alert rise is silent") {
		t.Errorf("run says %q", heard)
	}
	if strings.Contains(printed, " 0s") || strings.Contains(printed, "null") ||
		strings.Contains(printed, `""`) {
		t.Errorf("check prints what is off:\n%s", printed)
	}
	for _, want := range []string{
		"retry_for: 24h0m0s", "listen: 127.0.0.1:8090", "prefix: gql",
		"method: auto", "recover: 0.3", "suppress: []",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("without %q:\n%s", want, printed)
		}
	}
}

// Another cut of the log gives other estimates, so it is another configuration. A second run with
// another cut must be refused, not become a standby, and the message must name the cut. A second
// run that spells the same cut differently must become a standby.
func TestARunWithAnotherCutIsRefused(t *testing.T) {
	server, err := broker.StartEmbedded(
		broker.EmbeddedConfig{Dir: t.TempDir(), Listen: "127.0.0.1:0"},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	with := func(cut string) string {
		path := filepath.Join(t.TempDir(), "gqlstream.yaml")
		testfile.Write(
			t,
			path,
			"{classes: 2, communities: [{name: all, everyone: true}], state: "+t.TempDir()+
				", nats: {url: '"+server.URL()+"'}, http: {listen: 'off'}, step: {"+cut+"}}",
		)
		return path
	}
	p := startPipeline(t, with("emit_every: 100ms"))
	if _, err := p.Broker.JS.Publish(t.Context(), "gql.edge",
		[]byte(`{"src":1,"dst":2}`)); err != nil {
		t.Fatal(err)
	}
	for begun := time.Now(); ; pause(t.Context(), 10*time.Millisecond) {
		stream, err := p.Broker.JS.Stream(t.Context(), "GQL_ESTIMATES")
		if err == nil && stream.CachedInfo().State.Msgs > 0 {
			break
		}
		if time.Since(begun) > time.Minute {
			t.Fatalf("nothing is published: %v", err)
		}
	}
	for cut, refused := range map[string]bool{
		"every: 100ms, emit_every: 100ms, time: received": false,
		"emit_every: 1s":                 true,
		"every: 50ms, emit_every: 100ms": true,
		"emit_every: 100ms, time: event": true,
	} {
		settings, err := config.Load(with(cut))
		if err != nil {
			t.Fatal(err)
		}
		other, err := pipeline.Open(
			t.Context(),
			settings,
			pipeline.Options{Log: slog.New(slog.DiscardHandler)},
		)
		if err == nil {
			err = other.Close()
		}
		if said := fmt.Sprint(err); refused != strings.Contains(
			said,
			"another run publishes here: host ",
		) ||
			refused != (err != nil) ||
			refused != strings.Contains(said, "configuration "+p.Config.Digest()) {
			t.Errorf("%s: %v", cut, err)
		}
	}
}
