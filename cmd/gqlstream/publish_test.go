package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/ingest/files"
	"gqlstream/ingest/wire"
	"gqlstream/internal/testfile"
	"gqlstream/pipeline/config"
)

// publishFiles writes the files of a small graph with times and returns the flags
// that name them.
func publishFiles(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	var edges strings.Builder
	edges.WriteString("src,dst,weight,ts,type\n")
	for i := range 3000 {
		fmt.Fprintf(
			&edges, "%d,u%d,%g,%d,x\n", i%50, i%70, 1+float64(i%4)/4, 1_700_000_000+(i*7)%900,
		)
	}
	edges.WriteString("1,1,1,1700000001,x\n1,2,-3,1700000001,x\n")
	files := map[string]string{
		"edges.csv":  edges.String(),
		"labels.csv": "vertex,label,role\n1,right,train\n2,left,\nu3,,\n",
		"predictions.ndjson": `{"vertex":1,"p_left":0.25,"p_right":0.75,"time":1700000100}` + "\n" +
			`{"vertex":"u3","class":"left","time":1700000500}`,
		"members.csv":  "community,vertex,weight\nall,1,2\nall,u3,\n",
		"vertices.csv": "id,language,views\n1,de,5\nu3,,7\n",
	}
	var flags []string
	for name, content := range files {
		path := filepath.Join(dir, name)
		testfile.Write(t, path, content)
		flags = append(flags, "--"+strings.SplitN(name, ".", 2)[0]+"="+path)
	}
	slices.Sort(flags)
	return flags
}

// runCommand runs one command line.
func runCommand(args ...string) (code int, out, diagnostics string) {
	var o bytes.Buffer
	e := newSpoken() // the command and its logger write to it side by side
	code = execute(context.Background(), args, console{In: strings.NewReader(""), Out: &o, Err: e})
	return code, o.String(), e.text
}

// mustRun runs one command line as a user would and returns its output.
func mustRun(t *testing.T, args ...string) (stdout, stderr string) {
	t.Helper()
	code, out, diagnostics := runCommand(args...)
	if code != exitFine {
		t.Fatalf("gqlstream %s: exit %d\n%s", strings.Join(args, " "), code, diagnostics)
	}
	return out, diagnostics
}

// storedEvents reads the log of a state directory as lines of JSON.
func storedEvents(t *testing.T, state string) []string {
	t.Helper()
	b, err := config.OpenBroker(config.Settings{State: state}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	decoder, err := wire.NewDecoder(event.ClassSet{Names: []string{"left", "right"}})
	if err != nil {
		t.Fatal(err)
	}
	source, err := ingest.OpenJetStream(
		t.Context(), b.JS, decoder, ingest.JetStreamConfig{UntilLast: true},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	return sourceLines(t, source, false)
}

// sourceLines reads a source to its end. The received time of events without one
// is taken out again.
func sourceLines(t *testing.T, source ingest.Source, ofFiles bool) []string {
	t.Helper()
	var out bytes.Buffer
	log := files.NewLogWriter(&out)
	for {
		var b event.Batch
		err := source.Next(t.Context(), &b)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if !ofFiles && len(b.Refused) > 0 {
			t.Fatalf("the stream holds what is refused: %+v", b.Refused[0])
		}
		dropLateTimes(&b)
		if err := log.Write(&b); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(out.String()), "\n")
}

func dropLateTimes(b *event.Batch) {
	// all times in the files are before, the clock is after
	const late = event.Time(1_710_000_000 * 1e9)
	drop := func(t *event.Time) {
		if *t > late {
			*t = 0
		}
	}
	for i := range b.Edges {
		drop(&b.Edges[i].Time)
	}
	for i := range b.Labels {
		drop(&b.Labels[i].Time)
	}
	for i := range b.Predictions {
		drop(&b.Predictions[i].Time)
	}
	for i := range b.Members {
		drop(&b.Members[i].Time)
	}
	for i := range b.Vertices {
		drop(&b.Vertices[i].Time)
	}
}

// The stream must hold the events of the files, those of each kind in the order of a FileSource.
func TestPublishedFilesAreTheStream(t *testing.T) {
	before := goleak.IgnoreCurrent()
	// Where a connection ends early, nats.go 1.55 may leave this one waiting for a channel that it
	// has just dropped.
	theirs := goleak.IgnoreTopFunction(
		"github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect",
	)
	t.Cleanup(func() { goleak.VerifyNone(t, before, theirs) })
	flags := publishFiles(t)
	var command publishCmd
	for _, flag := range flags {
		name, path, _ := strings.Cut(flag, "=")
		switch name {
		case "--edges":
			command.Edges = []string{path}
		case "--labels":
			command.Labels = []string{path}
		case "--predictions":
			command.Predictions = []string{path}
		case "--members":
			command.Members = []string{path}
		case "--vertices":
			command.Vertices = []string{path}
		}
	}
	source, err := files.NewSource(files.Config{Inputs: command.inputs()})
	if err != nil {
		t.Fatal(err)
	}
	want := sourceLines(t, source, true)
	source.Close()
	state, rejects := t.TempDir(), filepath.Join(t.TempDir(), "rejects.ndjson")
	args := append(
		[]string{"publish", "--state", state, "--rejects", rejects, "--skip-refused"},
		flags...)
	code, out, diagnostics := runCommand(args...)
	if code != exitFine || !strings.Contains(out, "published 3,008 events") {
		t.Fatalf("exit %d\n%s%s", code, out, diagnostics)
	}
	for _, text := range []string{
		"left out: 1 self-loops", "refused: 1 rows, bad-weight", "edges.csv:3003: ",
		"0 = left, 1 = right",
		"ignored columns type",
	} {
		if !strings.Contains(diagnostics, text) {
			t.Errorf("the diagnostics lack %q:\n%s", text, diagnostics)
		}
	}
	checkRejects(t, rejects)
	got := storedEvents(t, state)
	kind := func(a, b string) int {
		of := func(line string) string { return line[:strings.Index(line, ",")] }
		return strings.Compare(of(a), of(b))
	}
	slices.SortStableFunc(got, kind)
	slices.SortStableFunc(want, kind)
	if !slices.Equal(got, want) {
		for i := range min(len(got), len(want)) {
			if got[i] != want[i] {
				t.Fatalf("event %d of the stream is\n%s, of the files\n%s", i, got[i], want[i])
			}
		}
		t.Fatalf("%d events in the stream, %d in the files", len(got), len(want))
	}
}

// --map must lend our names to the columns of files of every kind.
func TestPublishMapsColumnsOfEveryKind(t *testing.T) {
	for _, c := range []struct{ kind, csv, mapping, want string }{
		{
			"edges", "follower,followee,strength\n1,2,3\n",
			"src=follower,dst=followee,weight=strength",
			`{"kind":"edge","src":1,"dst":2,"weight":3}`,
		},
		{
			"labels", "user,side\n1,right\n2,left\n", "vertex=user,label=side",
			`{"kind":"label","vertex":1,"class":1}`,
		},
		{
			"predictions", "user,left,right\n1,0.25,0.75\n", "vertex=user,p0=left,p1=right",
			`{"kind":"prediction","vertex":1,"probabilities":[0.25,0.75]}`,
		},
		{
			"members", "grp,user,n\nnews,1,3\n", "community=grp,vertex=user,weight=n",
			`{"kind":"member","community":"news","vertex":1,"multiplicity":3}`,
		},
		{
			"vertices", "user,lang\n1,de\n", "vertex=user,language=lang",
			`{"kind":"vertex","vertex":1,"attributes":{"language":"de"}}`,
		},
	} {
		path := filepath.Join(t.TempDir(), "x.csv")
		testfile.Write(t, path, c.csv)
		state := t.TempDir()
		_, said := mustRun(
			t, "publish", "--state", state, "--"+c.kind, path, "--map", c.mapping, "--classes",
			"left,right",
		)
		if got := storedEvents(t, state); len(got) == 0 || got[0] != c.want {
			t.Errorf("%s: %q, want %s\n%s", c.kind, got, c.want, said)
		}
	}
}

// Predictions that name no version get the one of the flag, and others keep theirs.
func TestPublishNamesTheModelVersion(t *testing.T) {
	path, state := testfile.New(
		t,
		"p.csv",
		"vertex,p0,p1,version\n1,0.25,0.75,\n2,0.5,0.5,old\n",
	), t.TempDir()
	mustRun(
		t, "publish", "--state", state, "--predictions", path, "--classes", "2", "--model-version",
		"new",
	)
	got := strings.Join(storedEvents(t, state), "\n")
	if strings.Count(got, `"version":"new"`) != 1 || strings.Count(got, `"version":"old"`) != 1 {
		t.Error(got)
	}
}

func checkRejects(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	var first rejected
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || len(lines) != 2 {
		t.Fatalf("%d rejects, want 2: %v", len(lines), err)
	}
	if first.Row != 3002 || first.Reason != event.SelfLoop ||
		first.Original != "1,1,1,1700000001,x" {
		t.Errorf("reject %+v", first)
	}
}

// A run that listens takes files from another process, at the rate asked for.
func TestPublishToAListeningServer(t *testing.T) {
	state := t.TempDir()
	server, err := broker.StartEmbedded(broker.EmbeddedConfig{Dir: state, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	args := append(
		[]string{
			"publish",
			"--nats",
			server.URL(),
			"--rate",
			"1e6",
			"--producer",
			"test",
			"--max-refused",
			"1",
		},
		publishFiles(t)...)
	for range 2 { // the second time the broker drops the repeats
		if code, out, diagnostics := runCommand(args...); code != exitFine {
			t.Errorf("exit %d:\n%s%s", code, out, diagnostics)
		}
	}
	if err := server.Close(); err != nil {
		t.Fatal(err)
	}
	if got := storedEvents(t, state); len(got) != 3008 {
		t.Errorf("%d events in the stream, want 3008", len(got))
	}
}

// A large message is split, and events that Arrow cannot encode go as JSON.
func TestPublishSplitsLargeMessages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "v.csv")
	text := strings.Repeat("x", 2000)
	var rows strings.Builder
	rows.WriteString("id,note,views\n")
	for i := range 1500 {
		fmt.Fprintf(&rows, "%d,%s,\n", i, text)
	}
	testfile.Write(t, path, rows.String())
	state := t.TempDir()
	if code, _, diagnostics := runCommand("publish", "--state", state, "--vertices",
		path); code != exitFine {
		t.Fatalf("exit %d: %s", code, diagnostics)
	}
	if got := storedEvents(t, state); len(got) != 1500 {
		t.Errorf("%d events in the stream, want 1500", len(got))
	}
	b, err := config.OpenBroker(config.Settings{State: state}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	stream, err := b.JS.Stream(t.Context(), broker.DefaultStreamNames().Log)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := stream.Info(t.Context()); err != nil || info.State.Msgs < 3 {
		t.Errorf("%d messages for 3 MB, want 3 or more: %v", infoMessages(info), err)
	}
}

func infoMessages(info *jetstream.StreamInfo) uint64 {
	if info == nil {
		return 0
	}
	return info.State.Msgs
}

// Which number is which class is never guessed: names of labels alone are in no order, and a run
// that has published says its own.
func TestPublishDoesNotGuessTheOrderOfClasses(t *testing.T) {
	labels, predictions := testfile.New(t, "l.csv", "vertex,label\n1,right\n"), testfile.New(
		t,
		"p.csv",
		"vertex,p_left,p_right\n1,0.25,0.75\n",
	)
	state := t.TempDir()
	code, _, said := runCommand("publish", "--state", state, "--labels", labels)
	if code != exitUsage || !strings.Contains(said, "--classes with all names") {
		t.Errorf("labels alone: exit %d\n%s", code, said)
	}
	mustRun(t, "publish", "--state", state, "--labels", labels, "--predictions", predictions)
	if got := storedEvents(t, state); got[0] != `{"kind":"label","vertex":1,"class":1}` {
		t.Errorf("with predictions that name theirs: %q", got)
	}
	other := t.TempDir()
	mustRun(
		t, "run", "--state", other, "--classes", "right,left", "--everyone", "--exit-when-drained",
	)
	mustRun(t, "publish", "--state", other, "--labels", labels)
	_, said = mustRun(
		t, "publish", "--state", other, "--labels", labels, "--predictions", predictions,
	)
	got := strings.Join(storedEvents(t, other), "\n")
	if strings.Count(got, `{"kind":"label","vertex":1,"class":0}`) != 2 ||
		!strings.Contains(got, "[0.75,0.25]") ||
		!strings.Contains(said, "0 = right") {
		t.Errorf("during a run: %s\n%s", got, said)
	}
	deleteLog(t, other)
	mustRun(t, "publish", "--state", other, "--labels", labels, "--predictions", predictions)
	if got := storedEvents(t, other); got[0] != `{"kind":"label","vertex":1,"class":1}` {
		t.Errorf("during a run on a log that is no more: %q", got)
	}
}

func deleteLog(t *testing.T, state string) {
	t.Helper()
	b, err := config.OpenBroker(config.Settings{State: state}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := b.JS.DeleteStream(t.Context(), broker.DefaultStreamNames().Log); err != nil {
		t.Fatal(err)
	}
}

// Exit codes tell mistakes of the command line from those of the files.
func TestPublishExitCodes(t *testing.T) {
	write := func(name, content string) string {
		path := filepath.Join(t.TempDir(), name)
		testfile.Write(t, path, content)
		return path
	}
	good, extra := write("e.csv", "src,dst\n1,2\n"), write("x.csv", "src,dst,x\n1,2,3\n")
	bad, none, half := write("b.csv", "src,dst\n1,\n"), write("n.csv", "src,dst\n"), write(
		"h.csv",
		"src,dst\n1,2\n3,\n",
	)
	loops := write("l.csv", "src,dst\n1,2\n3,3\n")
	state := t.TempDir()
	lock, err := broker.AcquireLock(filepath.Join(state, "locked"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	for _, test := range []struct {
		args []string
		code int
		text string
	}{
		{[]string{"--state", state}, exitUsage, "no files"},
		{[]string{"--edges", good}, exitUsage, "no stream"},
		{
			[]string{"--edges", good, "--state", state, "--nats", "nats://localhost:1"},
			exitUsage,
			"choose one",
		},
		{[]string{"--edges", good, "--state", state, "--map", "sorce=x"}, exitUsage, "sorce"},
		{[]string{"--edges", good, "--state", state, "--classes", "0"}, exitUsage, "classes"},
		{[]string{"--edges", good, "--nats", "nats://localhost:99999"}, exitFailed, "connect"},
		{
			[]string{"--edges", good, "--state", filepath.Join(state, "locked")},
			exitFailed,
			"in use by another gqlstream",
		},
		{[]string{"--edges", bad, "--state", state}, exitFailed, "every row of"},
		{[]string{"--edges", none, "--state", state}, exitFailed, "no rows"},
		{
			[]string{"--edges", half, "--state", state},
			exitFailed,
			"the other rows are published, but 1 of 2 rows were refused",
		},
		{
			[]string{"--edges", half, "--state", state, "--max-refused", "50%"},
			exitFine,
			"refused 1 rows",
		},
		{
			[]string{"--edges", bad, "--edges", good, "--state", state, "--skip-refused"},
			exitFailed,
			"the other rows are published, but every row of",
		},
		{[]string{"--edges", loops, "--state", state}, exitFine, "left out: 1 self-loops"},
		{[]string{"--edges", extra, "--state", state}, exitFine, "warning: "},
	} {
		code, out, diagnostics := runCommand(append([]string{"publish"}, test.args...)...)
		if code != test.code || !strings.Contains(out+diagnostics, test.text) {
			t.Errorf(
				"%v: exit %d, want %d and %q:\n%s%s", test.args, code, test.code, test.text, out,
				diagnostics,
			)
		}
	}
}

// A message must hold no more event times than an estimate may stand for: a run by event time emits
// between messages only. Posts and edges that alternate must not be a message each, and the kind
// that comes second must not be late.
func TestMessagesHoldAnHour(t *testing.T) {
	dir := t.TempDir()
	var rows, links strings.Builder
	rows.WriteString("author,class,time\n")
	links.WriteString("src,dst,time\n")
	for minute := range 5 * 60 {
		at := fmt.Sprintf("2026-05-01T%02d:%02d:", minute/60, minute%60)
		fmt.Fprintf(&rows, "p%d,%d,%s00Z\n", minute%7, minute%2, at)
		fmt.Fprintf(&links, "p%d,p%d,%s30Z\n", minute%7, minute%7+1, at)
	}
	posts, edges := filepath.Join(dir, "posts.csv"), filepath.Join(dir, "edges.csv")
	conf, late := filepath.Join(dir, "c.yaml"), filepath.Join(dir, "late.yaml")
	testfile.Write(t, posts, rows.String())
	testfile.Write(t, edges, links.String())
	testfile.Write(t, conf, "classes: 2\nstep: {time: event, emit_every: 30m}\n")
	testfile.Write(t, late, "classes: 2\nstep: {time: event}\nlate: {after: 15m}\n")
	for want, args := range map[string][]string{
		"in 5 messages":  {"--classes", "2", "--state", filepath.Join(dir, "a")},
		"in 10 messages": {"--config", conf, "--state", filepath.Join(dir, "b")},
		" 600 events in 10 messages": {
			"--classes", "2", "--state", filepath.Join(dir, "c"), "--edges", edges,
		},
		" 600 events in 40 messages": {
			"--config", late, "--state", filepath.Join(dir, "d"), "--edges", edges,
		},
	} {
		out, _ := mustRun(t, append([]string{"publish", "--posts", posts}, args...)...)
		if !strings.Contains(out, want) {
			t.Errorf("%v: %s, want %s", args, out, want)
		}
	}
}
