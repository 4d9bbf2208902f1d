package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gqlstream/internal/testfile"
	"gqlstream/pipeline"
	"gqlstream/quant"
)

// editorConfig is a run by times of events whose page takes labels.
const editorConfig = `
state: %q
classes: 2
communities: [{name: everyone, everyone: true}]
step: {time: event}
checkpoint: {every: 5s}
privacy: {min_members: 0}
http: {listen: "127.0.0.1:0", answers: true}
`

// program runs a command of the program.
func program(t *testing.T, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0], args...)
	command.Env = append(os.Environ(), mainVariable+"=1")
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, output)
	}
}

// startEditor runs a pipeline that has read a simulated network.
func startEditor(t *testing.T) *pipeline.Pipeline {
	t.Helper()
	dir := t.TempDir()
	log, state := filepath.Join(dir, "log.ndjson"), filepath.Join(dir, "state")
	program(t, "simulate", "--vertices", "400", "--communities", "2", "--duration", "20s",
		"--activity", "20", "--jump-every", "8s", "--label-share", "0.3", "--out", log)
	program(t, "publish", "--quiet", "--state", state, "--log", log, "--note", "read")
	conf := filepath.Join(dir, "gqlstream.yaml")
	testfile.Write(t, conf, fmt.Sprintf(editorConfig, state))
	p := startPipeline(t, conf)
	awaitEditor(t, "the log is read", func() bool {
		var status struct {
			Ready         bool
			Position, End int
		}
		fetch(t, p, "/api/v1/status", &status)
		return status.Ready && status.Position == status.End && status.End > 0 &&
			newest(t, p).Position > 0
	})
	return p
}

// awaitEditor waits for a condition.
func awaitEditor(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for begun := time.Now(); !holds(); pause(t.Context(), 20*time.Millisecond) {
		if time.Since(begun) > crashStartMax {
			t.Fatalf("not within %v: %s", crashStartMax, what)
		}
	}
}

// newest returns the newest estimate of everyone.
func newest(t *testing.T, p *pipeline.Pipeline) (e quant.Estimate) {
	t.Helper()
	var changed struct{ Estimates []quant.Estimate }
	fetch(t, p, "/api/v1/estimates?community=everyone", &changed)
	if len(changed.Estimates) > 0 {
		e = changed.Estimates[0]
	}
	return e
}

// By times of events, labels move no log time. Those that the page takes must still be in an
// estimate before another event comes, at the same log time.
func TestAnswersOnThePageAreEstimatedAtOnce(t *testing.T) {
	p := startEditor(t)
	before := newest(t, p)
	var draw struct{ Vertices []struct{ Vertex string } }
	fetch(t, p, "/api/v1/communities/everyone/ask?count=40", &draw)
	if len(draw.Vertices) == 0 {
		t.Fatal("no vertices were drawn")
	}
	answers := "vertex,label,role,pi\n"
	for _, v := range draw.Vertices {
		answers += v.Vertex + ",1,audit,0.1\n"
	}
	reply, err := http.Post(p.Page.URL()+"api/v1/labels", "text/csv", strings.NewReader(answers))
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(reply.Body)
	reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s", reply.Status, text)
	}
	var after quant.Estimate
	awaitEditor(t, "an estimate with the labels", func() bool {
		after = newest(t, p)
		return after.Position > before.Position
	})
	if after.AuditLabels == 0 || after.Time != before.Time {
		t.Errorf("an estimate with %d audit labels at %s, before at %s",
			after.AuditLabels, after.Time, before.Time)
	}
}

// A client of the Model Context Protocol starts the program, lists its tools, and each of them
// answers with figures of the run.
func TestMCPToolsAnswerFromARun(t *testing.T) {
	p := startEditor(t)
	command := exec.Command(os.Args[0], "mcp", "--url", p.Page.URL())
	command.Env = append(os.Environ(), mainVariable+"=1")
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: command}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	tools, err := session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var history struct{ Estimates []quant.Estimate }
	fetch(t, p, "/api/v1/communities/everyone/estimates", &history)
	if len(history.Estimates) < 2 {
		t.Fatalf("%d estimates", len(history.Estimates))
	}
	from, to := history.Estimates[0], history.Estimates[len(history.Estimates)-1]
	everyone := func(more map[string]any) map[string]any {
		arguments := map[string]any{"community": "everyone"}
		for name, value := range more {
			arguments[name] = value
		}
		return arguments
	}
	questions := map[string]struct {
		arguments map[string]any
		want      string // a field of the answer, with a value that only a run has
	}{
		"list":    {map[string]any{"sort": "members", "descending": true}, `"name":"everyone"`},
		"latest":  {everyone(nil), fmt.Sprintf(`"position":%d`, to.Position)},
		"history": {everyone(nil), `"everyone"`},
		"explain": {
			everyone(map[string]any{
				"from": fmt.Sprint(from.Position), "to": fmt.Sprint(to.Position),
			}), `"kind":"predictions"`,
		},
		"compare": {everyone(map[string]any{"at": from.Time}), `"prevalence":[`},
		"ask":     {everyone(map[string]any{"count": 20}), `"half_width":`},
	}
	for _, tool := range tools.Tools {
		question, ok := questions[tool.Name]
		if !ok {
			t.Errorf("nobody asks %s", tool.Name)
			continue
		}
		delete(questions, tool.Name)
		answer, err := session.CallTool(t.Context(),
			&mcp.CallToolParams{Name: tool.Name, Arguments: question.arguments})
		if err != nil {
			t.Errorf("%s: %v", tool.Name, err)
			continue
		}
		text, _ := json.Marshal(answer.StructuredContent)
		if answer.IsError || !strings.Contains(string(text), question.want) {
			t.Errorf("%s: no %s in %.2000s %v", tool.Name, question.want, text, answer.Content)
		}
	}
	for name := range questions {
		t.Errorf("the tool %s is not listed", name)
	}
}
