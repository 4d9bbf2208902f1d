package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/testfile"
	"gqlstream/lab/campaign"
)

// A process must hear that it is told to end also in the middle of a step, which does not look:
// not before, and in the time that is promised.
func TestALongStepIsEndedBySIGTERM(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		told, tell := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		go endWithin(told, stopWaitMax, func(code int) { ended <- code })
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(ended) > 0 {
			t.Fatal("it ends before it is told")
		}
		tell()
		begun := time.Now()
		if code := <-ended; code != exitFailed || time.Since(begun) != stopWaitMax {
			t.Errorf("it ends with %d after %v", code, time.Since(begun))
		}
	})
}

const rubbishConfig = `
classes: [left, right]
communities: [{name: everyone, everyone: true}]
step: {every: 20ms}
emit: {threshold: 0}
privacy: {min_members: 1}
http: {listen: "off"}
`

// Whatever rubbish producers publish, honest events in between must be applied, refusals
// must stay within their limit, and the run must go on. GQLSTREAM_RUBBISH sets the number
// of messages of a megabyte (make faults: 1000).
func TestRubbishHoldsNoHonestEventUp(t *testing.T) {
	const megabyte = 1_000_000 // with its headers less than the broker takes
	count := campaign.Size(t, "GQLSTREAM_RUBBISH", 10)
	random := rand.New(rand.NewPCG(campaign.Seed(t, 1), 43))
	r := newCrashRun(t, 1)
	testfile.Write(t, r.config, rubbishConfig)
	r.start()
	ctx, cancel := context.WithTimeout(
		t.Context(),
		time.Duration(count)*10*time.Second+crashStartMax,
	)
	defer cancel()
	r.await(ctx)
	nc, err := nats.Connect("nats://" + r.address)
	r.must(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	r.must(err)
	lines := bytes.Repeat([]byte("{}\n"), megabyte/3)
	noise := make([]byte, megabyte)
	begun := time.Now()
	for i := range count {
		m := nats.NewMsg("gql.edge")
		m.Header.Set("Content-Type", "application/x-ndjson")
		if m.Data = lines; i%4 == 3 {
			for at := range noise {
				noise[at] = byte(random.Uint32())
			}
			m.Data = noise
		}
		_, err := js.PublishMsg(ctx, m)
		r.must(err)
		_, err = js.Publish(
			ctx,
			"gql.prediction",
			fmt.Appendf(nil, `{"vertex": %d, "probabilities": [0.7, 0.3]}`, i),
		)
		r.must(err)
	}
	published := time.Since(begun)
	bucket, err := js.KeyValue(ctx, "gql_estimates")
	r.must(err)
	for want := fmt.Sprintf(`"members":%d,`, count); ; pause(ctx, 20*time.Millisecond) {
		entry, err := bucket.Get(ctx, "everyone.auto")
		if err == nil && strings.Contains(string(entry.Value()), want) {
			break
		}
		if err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
			t.Fatalf("%v\n%s", err, r.said())
		}
		select {
		case err := <-r.done:
			t.Fatalf("the run ended: %v\n%s", err, r.said())
		default:
		}
	}
	t.Logf(
		"%d messages of a megabyte in %v, all honest events in estimates after %v", count,
		published, time.Since(begun),
	)
	quarantine, err := js.Stream(ctx, "GQL_QUARANTINE")
	r.must(err)
	info := quarantine.CachedInfo()
	if most := uint64(101 * count); info.State.Msgs == 0 || info.State.Msgs > most ||
		info.State.Bytes > uint64(info.Config.MaxBytes) {
		t.Errorf(
			"%d refusals are kept, in %d bytes; want at most %d in %d", info.State.Msgs,
			info.State.Bytes, most, info.Config.MaxBytes,
		)
	}
}

// A senseless command must be refused before it does anything, with a message that names the
// mistake. No output may contain terminal escape sequences.
func TestSenselessCommandsAreRefused(t *testing.T) {
	t.Chdir(t.TempDir())
	members := testfile.New(t, "m.csv", "community,vertex\nberlin,1\nberlin,2\n")
	files := "--classes 2 --members " + members + " --edges " + testfile.New(
		t,
		"e.csv",
		"src,dst\n1,2\n",
	)
	for line, want := range map[string]string{
		"ask --community berlin --count 1 --confidence NaN " + files: "the confidence NaN",
		"ask --community berlin --target-width NaN " +
			files: "the target width NaN",
		"ask --community berln --count 1 " + files: `did you mean ` +
			`"berlin"?`,
		"ask --community berlin --community berlin --count 1 " + files: "named twice",
		"ask --community berlin --count 1 --state x " + files:          "choose one",
		"communities --out no/where.csv --edges " +
			members: "no such file or directory",
		"ask --community berlin --count 1 --out no/where.csv " +
			files: "no such file or directory",
		"replay --classes 2 --state nowhere":                                 "no log",
		"replay --classes 2 --state " + t.TempDir():                          "no log GQL at ",
		"quarantine list --prefix other --state " + t.TempDir():              "no log OTHER at ",
		"replay --classes 2 --state x --to 9999-13-01T00:00:00Z":             "neither a position",
		"simulate --out x.ndjson --rate NaN":                                 "--rate",
		"simulate --out x.ndjson --duration 1s --start 9999-01-01T00:00:00Z": "want a year",
		"demo --speed NaN":                               "--speed",
		"run --classes 2 --worker a":                     "--group",
		"ask --community \x1b[31m --count 1 " + files:    `no community "\x1b[31m"`,
		"check " + testfile.New(t, "c.yaml", "\x1b[31m"): "?[31m",
	} {
		code, out, said := runCommand(strings.Fields(line)...)
		if code != exitUsage || !strings.Contains(said, want) ||
			strings.Contains(out+said, "\x1b") {
			t.Errorf("%s: exit %d, want %q in\n%s%q", line, code, want, out, said)
		}
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("they left %v, %v", left, err)
	}
	edges := testfile.New(t, "x.ndjson", `{"kind":"edge","src":"a\u001b[31mb","dst":"c"}`)
	if out, said := mustRun(t, "communities", "--log", edges, "--min-size", "1", "--out",
		"c.csv"); strings.Contains(out+said, "\x1b") ||
		!strings.Contains(out, "a?[31mb") {
		t.Errorf("names steer the terminal: %q", out+said)
	}
}
