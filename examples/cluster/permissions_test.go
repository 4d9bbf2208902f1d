package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/testfile"
)

// The page of permissions must lead to the file that the servers include.
func TestPageLeadsToThePermissions(t *testing.T) {
	if text(t, "permissions.conf") == "" ||
		!strings.Contains(
			text(t, "../../docs/permissions.md"),
			"(../examples/cluster/permissions.conf)",
		) {
		t.Error("docs/permissions.md does not lead to examples/cluster/permissions.conf")
	}
}

// startPipeline runs a pipeline as the worker, which answers as the user for that. Its log has no
// ticks.
func startPipeline(t *testing.T, url string) {
	t.Helper()
	dir := t.TempDir()
	startRun(t, testfile.Write(t, filepath.Join(dir, "gqlstream.yaml"), `
classes: [left, right]
step: {time: event, every: 100ms}
emit: {threshold: 0}
state: `+dir+`
privacy: {min_members: 2}
alerts: [{name: many, when: point > 0.99}]
notify: {webhooks: [{name: ops, url: "http://127.0.0.1:1/"}]}
nats:
  url: "`+urlOf(url, "worker")+`"
  answers: {url: "`+urlOf(url, "answers")+`"}
http: {listen: "127.0.0.1:0"}
`))
}

// copyStreams makes the copies that readers read, as the role for that.
func copyStreams(t *testing.T, url string) {
	t.Helper()
	c := connect(t, url, "copies")
	for _, name := range []string{
		"GQL_ESTIMATES", "GQL_ALERTS", "GQL_HISTORY",
		"KV_gql_estimates",
	} {
		var config jetstream.StreamConfig
		err := json.Unmarshal([]byte(text(t, "copies/"+name+".json")), &config)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if _, err := c.js.CreateStream(t.Context(), config); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
}

// Commands must do their work as an operator.
func TestCommandsDoTheirWorkAsTheirRoles(t *testing.T) {
	url := startWithPermissions(t)
	startPipeline(t, url)
	copyStreams(t, url)
	data := filepath.Join("..", "data")
	files := []string{
		"--classes", "left,right", "--edges", filepath.Join(data, "edges.csv"),
		"--labels", filepath.Join(data, "labels.csv"),
		"--predictions", filepath.Join(data, "predictions.csv"),
		"--members", filepath.Join(data, "members.csv"),
	}
	for _, c := range []struct {
		role string
		args []string
	}{
		{"operator", append([]string{"publish"}, files...)},
		{"operator", []string{"quarantine", "list"}},
		{"operator", append([]string{
			"ask", "--community", "berlin", "--count", "5", "--publish",
		}, files...)},
	} {
		args := append(c.args, "--nats", urlOf(url, c.role))
		if out, err := exec.Command(program, args...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %v\n%s", c.role, args, err, out)
		}
	}
}

// startWithPermissions starts a server with the permissions and returns its address.
func startWithPermissions(t *testing.T) (url string) {
	t.Helper()
	setPasswords(t)
	dir := t.TempDir()
	permissions, err := filepath.Abs("permissions.conf")
	if err != nil {
		t.Fatal(err)
	}
	return start(t, testfile.Write(
		t,
		filepath.Join(dir, "nats.conf"),
		"listen: \"127.0.0.1:-1\"\njetstream: {store_dir: \""+dir+"\"}\ninclude \""+relative(
			t,
			dir,
			permissions,
		)+"\"\n",
	)).ClientURL()
}

// urlOf returns an address with the name and password of a role.
func urlOf(url, role string) string {
	return strings.Replace(url, "://", "://"+role+":"+role+"@", 1)
}

// Two workers of a group must be able to divide the shards, store and compare their
// checkpoints and publish with the role of workers, and an operator to list and drain them.
func TestGroupMayDoItsWork(t *testing.T) {
	url := startWithPermissions(t)
	dir := t.TempDir()
	config := testfile.Write(
		t,
		filepath.Join(dir, "gqlstream.yaml"),
		"{classes: [left, right], communities: [{name: everyone, everyone: true}, {name: berlin}],"+
			" group: {shards: 4}, nats: {answers: {url: '"+urlOf(url, "answers")+"'}},"+
			" http: {listen: off}}",
	)
	var workers []process
	for _, name := range []string{"a", "b"} {
		workers = append(
			workers,
			startProgram(t, "run", "--config", config, "--state", filepath.Join(dir, name),
				"--nats", urlOf(url, "worker"), "--group", "team", "--worker", name),
		)
	}
	c := connect(t, url, "operator")
	list := func() string {
		out, _ := exec.Command(program, "group", "team", "--nats", urlOf(url, "operator")).
			CombinedOutput()
		return string(out)
	}
	await(t, "both workers to have shards", func() bool {
		out := list()
		return strings.Count(out, "amd64")+strings.Count(out, "arm64") == 2 &&
			!strings.Contains(out, "[]")
	})
	publish(t, c.js, 1)
	publishControl(t, c.js, "flush", "checkpoint")
	for _, name := range []string{
		"OBJ_gql_group_team_state", "KV_gql_group_team",
		"GQL_ESTIMATES",
	} {
		await(t, "messages in "+name, func() bool {
			stream, err := c.js.Stream(t.Context(), name)
			return err == nil && stream.CachedInfo().State.Msgs > 0
		})
	}
	if out, err := exec.Command(program, "group", "team", "drain", "a", "--nats",
		urlOf(url, "operator")).CombinedOutput(); err != nil {
		t.Errorf("operators cannot drain a worker: %v\n%s", err, out)
	}
	workers[0].ended(t)
	for _, subject := range []string{
		"$KV.gql_group_team.worker.x", "$O.gql_group_team_state.M.x",
		"$KV.gql_estimates.drain.auto",
	} {
		c.refused(
			t,
			"an operator's "+subject,
			func() error { return errors.Join(c.Publish(subject, nil), c.Flush()) },
		)
	}
	if err := workers[1].Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	workers[1].ended(t)
	for _, w := range workers {
		if said := text(t, w.said); strings.Contains(strings.ToLower(said), "permission") {
			t.Errorf("a worker was refused something:\n%s", said)
		}
	}
}

// publishControl publishes control events as one message.
func publishControl(t *testing.T, js jetstream.JetStream, ops ...string) {
	t.Helper()
	m := nats.NewMsg("gql.control")
	m.Header.Set("Content-Type", "application/x-ndjson")
	for _, op := range ops {
		m.Data = append(m.Data, `{"op":"`+op+"\"}\n"...)
	}
	if _, err := js.PublishMsg(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// relative returns a path as seen from a folder, because an include is resolved from there.
func relative(t *testing.T, dir, path string) string {
	t.Helper()
	rel, err := filepath.Rel(dir, path)
	if err != nil {
		t.Fatal(err)
	}
	return rel
}

// client is a connection of a role with the refusals that the server sent.
type client struct {
	*nats.Conn
	js     jetstream.JetStream
	denied chan error
}

func connect(t *testing.T, url, role string) client {
	t.Helper()
	c := client{denied: make(chan error, 16)}
	c.Conn = dial(t, url, role, c.denied)
	js, err := jetstream.New(c.Conn)
	if err != nil {
		t.Fatal(err)
	}
	c.js = js
	return c
}

// refused fails the test unless the server refuses act.
func (c client) refused(t *testing.T, what string, act func() error) {
	t.Helper()
	if len(c.denied) > 0 {
		t.Errorf("before %s, what is allowed was refused: %v", what, <-c.denied)
	}
	if err := act(); err != nil && !errors.Is(err, nats.ErrTimeout) &&
		!errors.Is(err, context.DeadlineExceeded) &&
		!strings.Contains(err.Error(), "ermission") {
		t.Fatalf("%s: %v", what, err)
	}
	select {
	case err := <-c.denied:
		if !errors.Is(err, nats.ErrPermissionViolation) {
			t.Errorf("%s: %v", what, err)
		}
	case <-time.After(5 * time.Second):
		t.Errorf("%s is not refused", what)
	}
}
