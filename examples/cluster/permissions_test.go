package cluster

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
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

// With the permissions a server must let every role do its work, and nothing else.
func TestRolesMayDoTheirWorkAndNothingElse(t *testing.T) {
	url := startWithPermissions(t)
	as := func(role string) string { return urlOf(url, role) }
	dir := t.TempDir()
	startRun(t, write(
		t,
		filepath.Join(dir, "gqlstream.yaml"),
		"{classes: [left, right], state: "+dir+", nats: {url: '"+as(
			"worker",
		)+"'}, http: {listen: '127.0.0.1:0'}}",
	))
	data := filepath.Join("..", "data")
	publish := exec.Command(
		program,
		"publish",
		"--classes",
		"left,right",
		"--nats",
		as("operator"),
		"--edges",
		filepath.Join(data, "edges.csv"),
		"--labels",
		filepath.Join(data, "labels.csv"),
		"--predictions",
		filepath.Join(data, "predictions.csv"),
		"--members",
		filepath.Join(data, "members.csv"),
	)
	if out, err := publish.CombinedOutput(); err != nil {
		t.Fatalf("operators cannot publish files: %v\n%s", err, out)
	}
	if out, err := exec.Command(program, "quarantine", "list", "--nats", as("operator")).CombinedOutput(); err != nil {
		t.Fatalf("operators cannot read the quarantine: %v\n%s", err, out)
	}
	ask := exec.Command(
		program,
		"ask",
		"--classes",
		"left,right",
		"--edges",
		filepath.Join(data, "edges.csv"),
		"--labels",
		filepath.Join(data, "labels.csv"),
		"--predictions",
		filepath.Join(data, "predictions.csv"),
		"--members",
		filepath.Join(data, "members.csv"),
		"--community",
		"berlin",
		"--count",
		"5",
		"--publish",
		"--nats",
		as("operator"),
	)
	if out, err := ask.CombinedOutput(); err != nil {
		t.Fatalf("operators cannot publish questions: %v\n%s", err, out)
	}
	producers(t, url)
	readers(t, url)
	operators(t, url)
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
	return start(t, write(
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
	config := write(
		t,
		filepath.Join(dir, "gqlstream.yaml"),
		"{classes: [left, right], communities: [{name: everyone, everyone: true}, {name: berlin}], group: {shards: 4}, http: {listen: off}}",
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
	for _, name := range []string{"OBJ_gql_group_team_state", "KV_gql_group_team", "GQL_ESTIMATES"} {
		await(t, "messages in "+name, func() bool {
			stream, err := c.js.Stream(t.Context(), name)
			return err == nil && stream.CachedInfo().State.Msgs > 0
		})
	}
	if out, err := exec.Command(program, "group", "team", "drain", "a", "--nats", urlOf(url, "operator")).CombinedOutput(); err != nil {
		t.Errorf("operators cannot drain a worker: %v\n%s", err, out)
	}
	workers[0].ended(t)
	for _, subject := range []string{"$KV.gql_group_team.worker.x", "$O.gql_group_team_state.M.x", "$KV.gql_estimates.drain.auto"} {
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

// refused fails the test unless the server refuses what act does.
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

func producers(t *testing.T, url string) {
	c := connect(t, url, "producer")
	for _, event := range []string{
		`edge {"src": "ann", "dst": "bob"}`, `label {"vertex": "ann", "class": "left"}`,
		`prediction {"vertex": "bob", "probabilities": [0.7, 0.3]}`, `member {"community": "berlin", "vertex": "bob"}`,
		`vertex {"vertex": "bob", "attributes": {"language": "de"}}`,
	} {
		kind, payload, _ := strings.Cut(event, " ")
		if _, err := c.js.Publish(t.Context(), "gql."+kind, []byte(payload)); err != nil {
			t.Errorf("producers cannot publish %s: %v", kind, err)
		}
	}
	for _, subject := range []string{"gql.control", "gql.other", "gqlest.estimate.berlin", "gqlest.alert.x.y", "gqlest.query.list", "gqlq.edge", "$KV.gql_estimates.berlin", "$JS.API.STREAM.DELETE.GQL", "$JS.API.STREAM.MSG.GET.GQL"} {
		c.refused(
			t,
			"a producer's "+subject,
			func() error { return errors.Join(c.Publish(subject, []byte("{}")), c.Flush()) },
		)
	}
	for _, subject := range []string{"gql.>", "gqlest.>", "_INBOX.>", "_INBOX_reader.>", ">"} {
		c.refused(
			t,
			"a producer that listens to "+subject,
			func() error { _, err := c.SubscribeSync(subject); return errors.Join(err, c.Flush()) },
		)
	}
}

func readers(t *testing.T, url string) {
	c := connect(t, url, "reader")
	await(t, "an estimate in the bucket, for readers", func() bool {
		bucket, err := c.js.KeyValue(t.Context(), "gql_estimates")
		if err != nil {
			return false
		}
		entry, err := bucket.Get(t.Context(), "berlin.auto")
		return err == nil && strings.Contains(string(entry.Value()), `"community":"berlin"`)
	})
	for _, name := range []string{"GQL_ESTIMATES", "KV_gql_estimates"} {
		tail, err := c.js.OrderedConsumer(t.Context(), name, jetstream.OrderedConsumerConfig{})
		if err != nil {
			t.Fatalf("readers cannot follow %s: %v", name, err)
		}
		if _, err := tail.Next(jetstream.FetchMaxWait(10 * time.Second)); err != nil {
			t.Errorf("readers get nothing of %s: %v", name, err)
		}
	}
	await(t, "an answer of the pipeline, for readers", func() bool {
		reply, err := c.Request(
			"gqlest.query.latest",
			[]byte(`{"community": "berlin"}`),
			10*time.Second,
		)
		return err == nil && strings.Contains(string(reply.Data), `"name":"berlin"`)
	})
	for _, subject := range []string{"gql.edge", "gql.control", "gqlest.estimate.berlin", "gqlest.history.day.berlin.auto", "$KV.gql_estimates.berlin", "$JS.API.STREAM.PURGE.GQL_ESTIMATES", "$JS.API.STREAM.MSG.GET.GQL", "$JS.API.DIRECT.GET.GQL"} {
		c.refused(
			t,
			"a reader's "+subject,
			func() error { return errors.Join(c.Publish(subject, nil), c.Flush()) },
		)
	}
	for _, subject := range []string{"gql.>", "_INBOX.>", "_INBOX_producer.>"} {
		c.refused(
			t,
			"a reader that listens to "+subject,
			func() error { _, err := c.SubscribeSync(subject); return errors.Join(err, c.Flush()) },
		)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	c.refused(t, "a reader that follows the log", func() error {
		_, err := c.js.OrderedConsumer(ctx, "GQL", jetstream.OrderedConsumerConfig{})
		return err
	})
}

func operators(t *testing.T, url string) {
	c := connect(t, url, "operator")
	if _, err := c.js.Publish(t.Context(), "gql.control", []byte(`{"op": "flush"}`)); err != nil {
		t.Errorf("operators cannot flush: %v", err)
	}
	for _, subject := range []string{"gqlest.estimate.berlin", "gqlest.alert.x.y", "$KV.gql_estimates.berlin"} {
		c.refused(
			t,
			"an operator's "+subject,
			func() error { return errors.Join(c.Publish(subject, []byte("{}")), c.Flush()) },
		)
	}
}
