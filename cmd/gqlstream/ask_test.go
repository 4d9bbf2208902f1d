package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/internal/testfile"
	"gqlstream/quant"
)

// The walk-through of docs/labels.md, typed as it stands there with the labels filled in from
// the answers, must make the interval of the community less than half as wide, around the truth.
func TestLabelsThatWereAskedForShrinkTheInterval(t *testing.T) {
	text := strings.ReplaceAll(fromRoot(t, "docs", "labels.md"), "\\\n", "")
	t.Chdir(t.TempDir())
	commands := regexp.MustCompile(`(?m)^bin/gqlstream (.*)$`).FindAllStringSubmatch(text, -1)
	if len(commands) != 6 {
		t.Fatalf("%d commands in docs/labels.md, want 6", len(commands))
	}
	for _, command := range commands {
		args := strings.Fields(command[1])
		if args[0] == "publish" && strings.Contains(command[1], "filled.csv") {
			fillIn(t)
		}
		out, said := mustRun(t, args...)
		if args[0] == "ask" && !regexp.MustCompile(`50 labels: ±0\.\d\d`).MatchString(out) {
			t.Errorf("ask does not say what labels buy: %s%s", out, said)
		}
	}
	before, after := lastRecord(t, "before.ndjson"), lastRecord(t, "after.ndjson")
	width := func(e quant.Estimate) float64 { return e.High[0] - e.Low[0] }
	t.Logf(
		"before %v [%v, %v], after %v [%v, %v]", before.Prevalence[0], before.Low[0],
		before.High[0], after.Prevalence[0], after.Low[0], after.High[0],
	)
	if before.AuditLabels != 0 || after.AuditLabels != 100 || after.AuditReach < 0.9 ||
		after.AuditReach > 1.1 {
		t.Errorf(
			"audit labels %d, then %d, which stand for %v of the members", before.AuditLabels,
			after.AuditLabels, after.AuditReach,
		)
	}
	if width(after) > width(before)/2 {
		t.Errorf("the interval was %v wide and is %v", width(before), width(after))
	}
	if !strings.Contains(text, "less than half as wide") {
		t.Error("docs/labels.md does not say what is tested here")
	}
}

// fillIn joins questions and answers as the awk script of the page does.
func fillIn(t *testing.T) {
	t.Helper()
	answers := map[string]string{}
	for _, line := range linesOf(t, "answers.csv") {
		vertex, label, _ := strings.Cut(line, ",")
		answers[vertex] = label
	}
	var filled strings.Builder
	for _, line := range linesOf(t, "questions.csv") {
		fields := strings.Split(line, ",")
		fields[1] = answers[fields[0]]
		filled.WriteString(strings.Join(fields, ",") + "\n")
	}
	testfile.Write(t, "filled.csv", filled.String())
}

func linesOf(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

// lastRecord returns the last record of group-03.
func lastRecord(t *testing.T, path string) (last quant.Estimate) {
	t.Helper()
	for _, line := range linesOf(t, path) {
		var e quant.Estimate
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		if e.Community == "group-03" {
			last = e
		}
	}
	if last.Community == "" {
		t.Fatalf("%s: no record of group-03", path)
	}
	return last
}

// With files, ask must return the same as with a state directory: advice, and rows that
// publish takes.
func TestAskReadsFiles(t *testing.T) {
	const data = "../../examples/data/"
	args := []string{
		"ask", "--edges", data + "edges.csv", "--labels", data + "labels.csv", "--predictions",
		data + "predictions.csv",
		"--members", data + "members.csv", "--community", "berlin", "--community", "lima",
		"--count", "40",
	}
	out, said := mustRun(t, args...)
	if n := strings.Count(out, "\n"); n < 39 || n > 43 { // and the head
		t.Errorf("%d rows, want about 40", n)
	}
	if again, _ := mustRun(t, args...); again != out {
		t.Error("the same files and seed draw other vertices")
	}
	for _, want := range []string{"berlin: 10 labels: ±", "lima: ", "calibration: ", "to label: "} {
		if !strings.Contains(said, want) {
			t.Errorf("the summary lacks %q: %s", want, said)
		}
	}
	_, said = mustRun(t, append(args[:9:9], "--community", "berlin", "--target-width", "0.1")...)
	if widest := regexp.MustCompile(`interval is ±0\.(\d+)`).FindStringSubmatch(
		said); widest == nil ||
		widest[1] > "100" {
		t.Errorf("asked for ±0.1: %s", said)
	}
	for _, wrong := range [][]string{
		{"ask", "--community", "berlin", "--count", "5", "--state", t.TempDir()},
		append(args[:9:9], "--community", "nobody", "--count", "5"),
		append(args[:9:9], "--community", "berlin"),
		append(args[:9:9], "--community", "berlin", "--count", "5", "--publish"),
		append(args[:9:9], "--community", "berlin", "--count", "5", "--nats", "127.0.0.1"),
	} {
		if code, _, _ := runCommand(wrong...); code != exitUsage {
			t.Errorf("gqlstream %v: exit %d, want %d", wrong, code, exitUsage)
		}
	}
}

// The same with a server and a labelling tool that reads the questions from its stream. The
// published questions must be the ones that ask prints, and the answers must make the
// interval less than half as wide.
func TestQuestionsInTheStreamAreAnswered(t *testing.T) {
	t.Chdir(t.TempDir())
	server, err := broker.StartEmbedded(
		broker.EmbeddedConfig{Dir: t.TempDir(), Listen: "127.0.0.1:0"},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	mustRun(
		t, "simulate", "--vertices", "2000", "--duration", "10s", "--seed", "3", "--out",
		"log.ndjson", "--answers", "answers.csv",
	)
	testfile.Write(
		t,
		"gqlstream.yaml",
		"{classes: 2, state: state, label_half_life: 1h, nats: {url: '"+server.URL()+"'}}",
	)
	live := []string{"--config", "gqlstream.yaml", "--http", "off", "--exit-when-drained"}
	mustRun(t, "publish", "--nats", server.URL(), "--log", "log.ndjson")
	mustRun(t, append([]string{"run", "--output", "before.ndjson"}, live...)...)
	mustRun(
		t, "ask", "--config", "gqlstream.yaml", "--community", "group-03", "--count", "100",
		"--out", "questions.csv", "--publish",
	)

	nc, err := nats.Connect(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), "GQL_ASK")
	if err != nil {
		t.Fatal(err)
	}
	ofAnotherPipeline(t, js, server.URL())
	questions := linesOf(t, "questions.csv")
	info := stream.CachedInfo()
	if int(info.State.Msgs) != len(questions)-1 {
		t.Fatalf("%d questions in the stream, %d in the file", info.State.Msgs, len(questions)-1)
	}
	answered := questions[:1:1]
	for sequence := info.State.FirstSeq; sequence <= info.State.LastSeq; sequence++ {
		m, err := stream.GetMsg(t.Context(), sequence)
		if err != nil {
			t.Fatal(err)
		}
		var question struct {
			Vertex, Role string
			Label        *string
			Pi           float64
			Communities  []string
		}
		if err := json.Unmarshal(m.Data, &question); err != nil {
			t.Fatal(err)
		}
		line := fmt.Sprintf(
			"%s,,%s,%s", question.Vertex, question.Role,
			strconv.FormatFloat(question.Pi, 'g', 6, 64),
		)
		if !slices.Contains(questions, line) || question.Label != nil ||
			!slices.Equal(question.Communities, []string{"group-03"}) {
			t.Fatalf("the stream asks %s, which the file does not", m.Data)
		}
		answered = append(answered, line)
	}
	testfile.Write(t, "questions.csv", strings.Join(answered, "\n"))
	fillIn(t)
	mustRun(t, "publish", "--nats", server.URL(), "--classes", "2", "--labels", "filled.csv")
	mustRun(t, append([]string{"run", "--output", "after.ndjson"}, live...)...)
	before, after := lastRecord(t, "before.ndjson"), lastRecord(t, "after.ndjson")
	// about half as wide; the drawn labels decide how much
	const narrower = 0.6
	if after.AuditLabels != 100 ||
		after.High[0]-after.Low[0] > narrower*(before.High[0]-before.Low[0]) {
		t.Errorf("%d audit labels; the interval was [%v, %v] and is [%v, %v]",
			after.AuditLabels, before.Low[0], before.High[0], after.Low[0], after.High[0])
	}
}

// ofAnotherPipeline checks that a pipeline with a prefix of its own has its own questions, kept by
// as many servers as its configuration says, and that a prefix without a log is an error.
func ofAnotherPipeline(t *testing.T, js jetstream.JetStream, url string) {
	t.Helper()
	ask := func(nats string) (int, string) {
		testfile.Write(
			t,
			"other.yaml",
			"{classes: 2, state: state, nats: {url: '"+url+"', prefix: other"+nats+"}}",
		)
		code, _, said := runCommand(
			"ask", "--config", "other.yaml", "--community", "group-03", "--count", "20", "--out",
			"other.csv", "--publish",
		)
		return code, said
	}
	if code, said := ask(""); code == 0 ||
		!strings.Contains(said, "the log OTHER of the pipeline (see nats.prefix)") {
		t.Errorf("questions about a log that does not exist: exit %d, %s", code, said)
	}
	mustRun(t, "publish", "--nats", url, "--prefix", "other", "--log", "log.ndjson")
	if code, said := ask(""); code != 0 {
		t.Fatalf("exit %d: %s", code, said)
	}
	stream, err := js.Stream(t.Context(), "OTHER_ASK")
	if err != nil {
		t.Fatal(err)
	}
	if have, want := int(stream.CachedInfo().State.Msgs),
		len(linesOf(t, "other.csv"))-1; have != want ||
		have == 0 {
		t.Errorf("%d questions in the stream, %d in the file", have, want)
	}
	if code, said := ask(", replicas: 3"); code == 0 ||
		!strings.Contains(said, "stream OTHER_ASK is kept by 1 server, nats.replicas wants 3") {
		t.Errorf("fewer copies than shall be: exit %d, %s", code, said)
	}
}
