package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"gqlstream/internal/testfile"
	"gqlstream/sinks/alerts"
)

// hangUp writes a configuration, sends SIGHUP to the process, and waits for a message.
func (r *crashRun) hangUp(ctx context.Context, config, want string) {
	r.t.Helper()
	if err := os.WriteFile(r.config, []byte(config), 0o600); err != nil {
		r.t.Fatal(err)
	}
	before := strings.Count(r.said(), want)
	if err := r.process.Process.Signal(syscall.SIGHUP); err != nil {
		r.t.Fatal(err)
	}
	for deadline := time.Now().Add(crashStartMax); strings.Count(r.said(), want) == before; {
		select {
		case err := <-r.done:
			r.process = nil
			r.t.Fatalf("the process ended: %v\n%s", err, r.said())
		default:
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("no %q in\n%s", want, r.said())
		}
		pause(ctx, 5*time.Millisecond)
	}
}

// On SIGHUP a running process must apply the new configuration. It must keep the old one if the new
// one changes results, is not valid, or cannot be started with. After kill -9 no published record
// may be repeated or changed.
func TestConfigurationIsReloaded(t *testing.T) {
	ctx := t.Context()
	told := make(chan string, 10000)
	server := httptest.NewServer(
		http.HandlerFunc(
			func(_ http.ResponseWriter, q *http.Request) { told <- q.Header.Get("Webhook-Id") },
		),
	)
	defer server.Close()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	r := newCrashRun(t, 9)
	all := strings.Replace(crashConfig, "every: 300ms", "every: 300ms, alerts: "+r.alerts, 1)
	base, _, _ := strings.Cut(all, "\nalerts:")
	base += "\n"
	testfile.Write(t, r.config, base)
	r.start()
	r.await(ctx)
	producer := startProducer(ctx, r)
	first := all +
		"notify: {webhooks: [{name: a, url: " + server.URL + "}]}\n"
	const again = "the configuration has been read again"
	r.hangUp(ctx, first, again)
	select {
	case <-told:
	case <-time.After(crashStartMax):
		t.Fatalf("the webhook is not told\n%s", r.said())
	}
	r.hangUp(ctx, "clases: 2\n", "is not reloaded")
	r.hangUp(
		ctx,
		strings.Replace(first, "step:", "alpha: 0.2\nkernel: constant\nstep:", 1),
		"changes results, so the log must be read again",
	)
	r.hangUp(
		ctx,
		strings.Replace(first, "point > 0.5", "point > 5", 1),
		"a share is between 0 and 1",
	)
	r.hangUp(
		ctx,
		strings.Replace(first, `listen: "off"`, "listen: "+taken.Addr().String(), 1),
		"the run continues with the old one",
	)
	secret := filepath.Join(t.TempDir(), "secret")
	for _, secured := range []string{
		strings.Replace(first, `listen: "off"`, `listen: "off", token_file: `+secret, 1),
		strings.Replace(first, "name: a,", "name: a, secret_file: "+secret+",", 1),
	} {
		// with a file that no run can begin with
		for _, c := range [][2]string{
			{strings.Repeat("x", 40), again},
			{"short", "is not reloaded"},
		} {
			testfile.Write(t, secret, c[0])
			r.hangUp(ctx, secured, c[1])
		}
	}
	r.awaitSaid("rule=high", 1)
	second := strings.Replace(first, "name: high", "name: tall", 1)
	r.hangUp(ctx, second, again)
	r.kill()
	before := len(alertsOf(t, r.dir))
	r.start()
	r.report.messages = producer.finish(r)
	r.kill()
	r.start("--exit-when-drained")
	r.process = nil
	if err := <-r.done; err != nil {
		t.Fatalf("draining: %v\n%s", err, r.said())
	}
	r.checkAlternating(alertsOf(t, r.dir), before)
	file, err := os.ReadFile(r.alerts)
	if err != nil {
		t.Fatal(err)
	}
	sameLines(t, "the file of alerts", string(file), alertsOf(t, r.dir))
}

// A run must be ready, and its configuration be reloaded, although nothing has come and no ticks
// do, as in a new log that is cut by event time.
func TestARunOfAQuietStreamIsReadyAndReloads(t *testing.T) {
	r := newCrashRun(t, 10)
	page := freeAddress(t)
	quiet := strings.NewReplacer(
		crashStep, "step: {every: 20ms, emit_every: 20ms, time: event}",
		`listen: "off"`, "listen: "+page,
	).
		Replace(crashConfig)
	testfile.Write(t, r.config, quiet)
	r.start()
	r.await(t.Context())
	r.awaitSaid("publishes", 1)
	for deadline := time.Now().Add(crashStartMax); ; pause(t.Context(), 50*time.Millisecond) {
		reply, err := http.Get("http://" + page + "/readyz")
		if err == nil {
			reply.Body.Close()
			if reply.StatusCode == http.StatusOK {
				break
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("not ready after %v: %v %v", crashStartMax, reply, err)
		}
	}
	r.hangUp(
		t.Context(),
		strings.Replace(quiet, "name: high", "name: tall", 1),
		"the configuration has been read again",
	)
	r.kill()
}

// A start that fails must end, also where a setting differs from itself.
func TestARunWithANumberThatIsNoneEnds(t *testing.T) {
	code, _, said := runCommand(
		"run", "--classes", "2", "--alpha", "NaN", "--state", t.TempDir(), "--http", "off",
	)
	if code != exitUsage || !strings.Contains(said, "alpha is NaN") {
		t.Errorf("exit %d: %s", code, said)
	}
}

func freeAddress(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// checkAlternating checks that beginnings and ends alternate and none comes again.
func (r *crashRun) checkAlternating(lines []string, atLeast int) {
	r.t.Helper()
	last, rules := map[string]alerts.State{}, map[string]int{}
	ids := map[string]bool{}
	for _, line := range lines {
		var x alerts.Transition
		if err := json.Unmarshal([]byte(line), &x); err != nil {
			r.t.Fatal(err)
		}
		if ids[x.ID] || x.State == last[x.Alert] ||
			x.State == alerts.Resolved && last[x.Alert] == "" {
			r.t.Errorf("%s after %q", line, last[x.Alert])
		}
		ids[x.ID], last[x.Alert] = true, x.State
		rules[x.Rule]++
	}
	if len(lines) < atLeast || rules["tall"] == 0 || rules["high"] == 0 {
		r.t.Errorf("%d transitions, of %v", len(lines), rules)
	}
	r.t.Logf("%d transitions, %v", len(lines), rules)
}
