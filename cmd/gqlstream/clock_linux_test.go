//go:build !race

// The run and its broker are processes, which the race detector does not see.

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/lab/campaign"
)

// After the clock of a run and its broker has leapt by a day and is right again, log time must
// stand, /readyz must say so, and nothing may be lost. A clock event must end that. A replay must
// give the records that were published. GQLSTREAM_CLOCKS=1 runs the test; it needs the build of
// .ci/bent-clock.
func TestClockLeapsByADay(t *testing.T) {
	if campaign.Size(t, "GQLSTREAM_CLOCKS", 0) == 0 {
		t.Skip("GQLSTREAM_CLOCKS is not set; .ci/clock-test runs this")
	}
	requireBentClock(t)
	const day = 24 * 3600
	for _, wrong := range []int{day, -day} {
		for _, set := range []bool{true, false} {
			t.Run(fmt.Sprintf("by %d hours, clock event %v", wrong/3600, set), func(t *testing.T) {
				leapBy(t, wrong, set)
			})
		}
	}
}

// clockDrill is a run with an embedded server and a clock that can be bent.
type clockDrill struct {
	*drill
	clock, page string
	js          jetstream.JetStream
	process     *exec.Cmd
}

func leapBy(t *testing.T, wrong int, set bool) {
	d := newClockDrill(t)
	d.publish(4 * time.Second)
	bend(t, d.clock, wrong)
	d.publish(2 * time.Second)
	bend(t, d.clock, 0)
	before := time.Now()
	d.publish(2 * time.Second)
	stands := wrong > 0
	if ready, said := d.ready(); ready == stands || stands && !strings.Contains(said, "ahead") {
		t.Errorf("the clock is right again: ready %v: %s", ready, said)
	}
	if set {
		mustRun(t, "publish", "--nats", d.url, "--clock")
		d.publish(2 * time.Second)
		stands = false
	}
	if ready, said := d.ready(); ready == stands {
		t.Errorf("at the end: ready %v: %s", ready, said)
	}
	if err := d.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := d.process.Wait(); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "scrub", "--config", d.config, "--state", d.dir)
	mustRun(
		t, "run", "--config", d.config, "--state", d.dir, "--exit-when-drained", "--output",
		d.dir+".out",
	)
	published := d.records()
	out, _ := mustRun(t, "replay", "--config", d.config, "--state", d.dir)
	if replayed := strings.Split(strings.TrimSpace(out), "\n"); !slices.Equal(replayed, published) {
		t.Errorf("%d records are published, and a replay has %d", len(published), len(replayed))
	}
	var last struct{ Time time.Time }
	if err := json.Unmarshal([]byte(published[len(published)-1]), &last); err != nil {
		t.Fatal(err)
	}
	if ahead := last.Time.Sub(before) > time.Hour; ahead != stands {
		t.Errorf("the last record is of %v, the clock was right again at %v", last.Time, before)
	}
	t.Logf("%d records, the last at log time %v", len(published), last.Time)
}

func newClockDrill(t *testing.T) *clockDrill {
	t.Helper()
	config := strings.Replace(crashConfig, `listen: "off"`, "listen: "+freeAddress(t), 1)
	d := &clockDrill{
		drill: &drill{history: newHistory(t, rand.NewPCG(campaign.Seed(t, 7), 3), config)},
	}
	_, page, _ := strings.Cut(config, "listen: ")
	d.page, _, _ = strings.Cut(page, "}")
	d.clock = filepath.Join(t.TempDir(), "clock")
	bend(t, d.clock, 0)
	address := freeAddress(t)
	d.url = "nats://" + address
	d.process = exec.Command(
		os.Args[0], "run", "--config", d.config, "--state", d.dir, "--listen", address, "--output",
		d.dir+".out",
	)
	d.process.Env = append(os.Environ(), mainVariable+"=1", clockVariable+"="+d.clock)
	if err := d.process.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.process.Process.Kill(); _ = d.process.Wait() })
	d.js = d.broker()
	awaitLog(t, d.js)
	return d
}

// publish publishes edges, labels and predictions for some time, without times of their own.
func (d *clockDrill) publish(lasts time.Duration) {
	d.t.Helper()
	send := func(subject, format string, values ...any) {
		data := fmt.Appendf(nil, format, values...)
		if _, err := d.js.Publish(d.t.Context(), subject, data); err != nil {
			d.t.Fatal(err)
		}
	}
	for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		v := d.rand.IntN(40)
		send("gql.edge", `{"src":%d,"dst":%d}`, v, 50+d.rand.IntN(20))
		send(
			"gql.prediction", `{"vertex":%d,"probabilities":[%g,%g],"version":"m"}`, v,
			float64(v)/40, 1-float64(v)/40,
		)
		send("gql.label", `{"vertex":%d,"class":%d}`, v, v*2/40)
	}
}

// ready waits two seconds, and returns whether the run is ready, with the text of /readyz.
func (d *clockDrill) ready() (ready bool, said string) {
	d.t.Helper()
	time.Sleep(2 * time.Second)
	response, err := http.Get("http://" + d.page + "/readyz")
	if err != nil {
		d.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return response.StatusCode == http.StatusOK, string(text)
}

// records returns the published records, in order.
func (d *clockDrill) records() []string {
	d.t.Helper()
	text, err := os.ReadFile(d.dir + ".out")
	if err != nil {
		d.t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}
