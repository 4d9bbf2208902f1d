package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/internal/testfile"
	"gqlstream/pipeline/config"
)

// endless are commands that run until they are interrupted, with the output after which the
// test interrupts them.
var endless = map[string]string{
	"gqlstream run --classes 2":        "refuses to",
	"gqlstream run --classes left":     "files in estimates",
	"gqlstream run --classes de":       "refuses to",
	"gqlstream run --config":           "refuses to",
	"gqlstream demo":                   "gqlstream demo",
	"gqlstream simulate --nats":        "publishes",
	"gqlstream watch\n":                "berlin",
	"gqlstream watch --flagged --sort": "berlin",
}

// onlyParsed are examples that need a run or a group of workers; other tests cover their
// effects.
var onlyParsed = []string{"gqlstream group", "gqlstream health"}

// Every command must have an example in its help, and every example must run, in a
// folder with the files that it names.
func TestEveryExampleRuns(t *testing.T) {
	template := exampleFolder(t)
	for _, command := range commandNames(t) {
		examples := examplesOf(t, command)
		if len(examples) == 0 {
			t.Errorf("gqlstream %s --help has no example", command)
		}
		for _, example := range examples {
			if !strings.HasPrefix(example, "gqlstream "+strings.Fields(command)[0]) {
				t.Errorf(
					"gqlstream %s --help has an example of another command: %s",
					command,
					example,
				)
			}
			t.Run(example, func(t *testing.T) { runExample(t, template, example) })
		}
	}
}

// commandNames returns every command and group of commands.
func commandNames(t *testing.T) (names []string) {
	t.Helper()
	parser, err := kong.New(&cli{}, helpTexts)
	if err != nil {
		t.Fatal(err)
	}
	var visit func(*kong.Node, string)
	visit = func(n *kong.Node, prefix string) {
		for _, child := range n.Children {
			if child.Type == kong.CommandNode {
				names = append(names, strings.TrimSpace(prefix+" "+child.Name))
				visit(child, prefix+" "+child.Name)
			}
		}
	}
	visit(parser.Model.Node, "")
	if len(names) < 15 {
		t.Fatalf("only the commands %v", names)
	}
	return names
}

// examplesOf reads the examples out of the help of a command, continued lines
// joined.
func examplesOf(t *testing.T, command string) (examples []string) {
	t.Helper()
	out, _ := mustRun(t, append(strings.Fields(command), "--help")...)
	_, text, _ := strings.Cut(out, "\nExample")
	text, _, _ = strings.Cut(text, "\nFlags:")
	text = strings.ReplaceAll(text, "\\\n", " ")
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.Join(strings.Fields(line), " "); strings.HasPrefix(line, "gqlstream ") {
			examples = append(examples, line)
		}
	}
	return examples
}

// exampleFolder makes a folder with every file that an example names: a small graph,
// a state directory with a checkpoint, and refusals.
func exampleFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	files := exampleFiles()
	for name, content := range files {
		data := []byte(content)
		if strings.HasSuffix(name, ".gz") {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			if _, err := z.Write(data); err != nil || z.Close() != nil {
				t.Fatal(err)
			}
			data = b.Bytes()
		}
		testfile.Write(t, filepath.Join(dir, name), data)
	}
	t.Chdir(dir)
	mustRun(t, "simulate", "--vertices", "300", "--duration", "3s", "--out", "events.ndjson.zst")
	mustRun(
		t, "publish", "--state", config.StateDefault, "--edges", "edges.csv.gz", "--labels",
		"labels.csv", "--predictions", "predictions.csv", "--members", "members.csv", "--vertices",
		"v.csv",
	)
	b, err := config.OpenBroker(config.Settings{State: config.StateDefault}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{`{"src":1,"dst":1}`, `{`, `{"src":1,"dst":2,"weight":-1}`} {
		if _, err := b.JS.Publish(t.Context(), "gql.edge", []byte(bad)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.JS.Publish(t.Context(), "gql."+event.KindLabel.String(),
		[]byte(`{"vertex":1,"class":"centre"}`)); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for i := range 3 { // purge keeps two checkpoints, and explain has changes to explain
		path := fmt.Sprintf("moved-%d.csv", i)
		testfile.Write(
			t,
			path,
			fmt.Appendf(nil, "vertex,p0,p1\n%d,0.9,0.1\n%d,0.8,0.2\n", 3*i, 3*i+30),
		)
		mustRun(t, "publish", "--state", config.StateDefault, "--predictions", path)
		mustRun(t, "run", "--config", "gqlstream.yaml", "--exit-when-drained")
	}
	mustRun(t, "snapshot", "export", "--table", "edges", "--out", "e.parquet")
	mustRun(t, "snapshot", "export", "--table", "vertices", "--out", "p.parquet")
	return dir
}

// exampleFiles are the tables of a small graph of two camps, and configurations.
func exampleFiles() map[string]string {
	const vertices = 120
	random := rand.New(rand.NewPCG(1, 1))
	edges, labels, predictions := "src,dst\n", "vertex,label\n", "vertex,p_left,p_right\n"
	members, attributes := "community,vertex\n", "vertex,language\n"
	camps := []string{"left", "right"}
	for v := range vertices {
		camp := v % 2
		for range 4 {
			if u := (random.IntN(vertices/2)*2 + camp) % vertices; u != v {
				edges += fmt.Sprintf("%d,%d\n", v, u)
			}
		}
		if v%2 == 0 || v%5 == 0 { // ask can draw members without a label in every community
			labels += fmt.Sprintf("%d,%s\n", v, camps[camp])
		}
		p := 0.2 + 0.3*random.Float64() + 0.3*float64(1-camp)
		predictions += fmt.Sprintf("%d,%.3f,%.3f\n", v, p, 1-p)
		members += fmt.Sprintf("%s,%d\n", []string{"berlin", "ankara", "lima"}[v%3], v)
		attributes += fmt.Sprintf("%d,%s\n", v, []string{"de", "tr"}[v/2%2])
	}
	return map[string]string{
		"edges.csv.gz": edges, "e.csv": edges, "labels.csv": labels, "l.csv": labels,
		"predictions.csv": predictions,
		"p.csv":           predictions, "members.csv": members, "m.csv": members,
		"v.csv":            attributes,
		"follows.csv":      "follower,followee\n1,2\n3,3\n",
		"rules.yaml":       "communities:\n  - {name: german, where: {language: de}}\n",
		"token":            "secret\n",
		"corrected.json":   `{"src":1,"dst":2}`,
		"corrected.ndjson": `{"src":1,"dst":2}` + "\n",
		"gqlstream.yaml": "classes: [left, right]\ncommunities: [{name: everyone, everyone: " +
			"true}]\n" +
			"estimates: [{method: auto}, {method: sis-nacc}]\nstep: {emit_every: 1s}\nhttp: " +
			"{listen: \"127.0.0.1:0\"}\n" +
			"alerts: [{name: left-wins, when: low > 0.5, classes: [left]}]\n",
	}
}

// runExample runs one example in a copy of the folder, and interrupts it if it has
// no end of its own.
func runExample(t *testing.T, template, example string) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(template)); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	command, redirect, _ := strings.Cut(example, " > ")
	args := strings.Fields(exampleHere(t, command))[1:]
	for _, prefix := range onlyParsed {
		if strings.HasPrefix(example, prefix) {
			parseExample(t, args)
			return
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, said, all := &bytes.Buffer{}, newSpoken(), newSpoken()
	ended := make(chan int, 1)
	go func() {
		ended <- execute(ctx, args, console{
			In: strings.NewReader(""), Out: io.MultiWriter(out, all),
			Err: io.MultiWriter(said, all),
		})
		fmt.Fprint(all, "\nended")
	}()
	for prefix, enough := range endless {
		if strings.HasPrefix(example+"\n", prefix) {
			all.await(t, enough)
			cancel()
		}
	}
	select {
	case code := <-ended:
		if code != exitFine {
			t.Errorf("exit %d\n%s", code, said.text)
		}
		if redirect != "" && out.Len() == 0 {
			t.Error("nothing to write to the file")
		}
	case <-time.After(5 * time.Minute): // under the race detector, too
		t.Fatalf("it does not end:\n%s", all.now())
	}
}

// exampleHere puts the addresses and numbers of this place into an example.
func exampleHere(t *testing.T, command string) string {
	t.Helper()
	command = strings.ReplaceAll(command, "/mnt/backups/", "")
	if strings.HasPrefix(command, "gqlstream restore") {
		return restoreHere(t, command)
	}
	if outside := regexp.MustCompile(
		`nats://(localhost|broker|127\.0\.0\.1):4222\b`); outside.MatchString(command) {
		// The server has the log and the refusals of the folder; the folder keeps the
		// checkpoints.
		server := t.TempDir()
		if err := os.Rename(filepath.Join(config.StateDefault, "nats"),
			filepath.Join(server, "nats")); err != nil {
			t.Fatal(err)
		}
		b, err := broker.StartEmbedded(broker.EmbeddedConfig{Dir: server, Listen: "127.0.0.1:0"})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.Close() })
		command = outside.ReplaceAllString(command, b.URL())
	}
	if strings.HasPrefix(command, "gqlstream watch") {
		page := watchedPage(t, "127.0.0.1:0", 1, "berlin", "berlin-mitte")
		command = strings.ReplaceAll(
			command,
			" --url http://127.0.0.1:8090",
			"",
		) + " --url " + page.URL()
	}
	if strings.HasPrefix(command, "gqlstream simulate") {
		// the last number counts; 20,000 would take minutes under the race detector
		command += " --vertices 2000"
	}
	if strings.HasPrefix(command, "gqlstream notify") {
		target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		t.Cleanup(target.Close)
		file, err := os.OpenFile("gqlstream.yaml", os.O_APPEND|os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(file, "notify: {webhooks: [{name: ops, url: %q}]}\n", target.URL)
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if strings.HasPrefix(command, "gqlstream run --classes") ||
		strings.HasPrefix(command, "gqlstream demo") {
		command += " --http 127.0.0.1:0"
	}
	if strings.HasPrefix(command, "gqlstream run --classes") {
		command += " --state " + t.TempDir() // the folder's is of another configuration
	}
	list, _ := mustRun(t, "snapshot", "list")
	newest, oldest := strings.Fields(strings.Split(list, "\n")[1]), strings.Fields(
		strings.Split(list, "\n")[3],
	)
	command = strings.NewReplacer("120000", newest[0], "--to 3400", "--to "+newest[0],
		"--from 1200", "--from "+oldest[0],
		"--from 2026-05-01T12:00:00Z --to 2026-05-01T13:00:00Z",
		"--from "+oldest[1]+" --to "+newest[1]).
		Replace(command)
	entries := strings.NewReplacer(" 17", " 1", " 18", " 3", " 19", " 3")
	if strings.HasPrefix(command, "gqlstream quarantine") {
		command = entries.Replace(command)
	}
	return regexp.MustCompile(`127\.0\.0\.1:4222\b`).ReplaceAllString(command, "127.0.0.1:0")
}

// restoreHere makes the backup that an example restores, and moves the original away.
func restoreHere(t *testing.T, command string) string {
	t.Helper()
	words := strings.Fields(command)
	mustRun(t, "backup", "--state", config.StateDefault, words[len(words)-1])
	if err := os.Rename(config.StateDefault, "away"); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(command, "--nats ") {
		return command
	}
	empty, err := broker.StartEmbedded(
		broker.EmbeddedConfig{Dir: t.TempDir(), Listen: "127.0.0.1:0"},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { empty.Close() })
	return strings.ReplaceAll(command, "nats://broker:4222", empty.URL())
}

// parseExample checks the words of an example without running it.
func parseExample(t *testing.T, args []string) {
	t.Helper()
	parser, err := kong.New(&cli{}, helpTexts)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parser.Parse(args); err != nil {
		t.Error(err)
	}
}
