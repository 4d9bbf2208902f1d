//go:build linux && !race

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"gqlstream/internal/testfile"
	"gqlstream/lab/campaign"
)

// questionsConfig is a run as people have it: a page, history, two methods, the default step.
const questionsConfig = `
classes: [left, right]
estimates: [{method: auto}, {method: pcc}]
http: {listen: "127.0.0.1:0"}
`

// BenchmarkQuestionsBesideLoad asks a run under a steady load every question that it
// answers on NATS, from another process, one every 5 ms, and reports the times of the
// answers. Two rows describe the machine: ping is a round trip to the same server without a
// question, and sleep is how much later than 5 ms the client woke. The benchmark has no
// bound. GQLSTREAM_QUESTIONS_RATE is the load in events a second,
// GQLSTREAM_QUESTIONS_COMMUNITIES the number of communities, GQLSTREAM_QUESTIONS_WARM for
// how many seconds the run has had them.
//
//	go test -run - -bench QuestionsBesideLoad -benchtime 500x ./cmd/gqlstream
func BenchmarkQuestionsBesideLoad(b *testing.B) {
	communities := campaign.Size(b, "GQLSTREAM_QUESTIONS_COMMUNITIES", 100)
	warm := time.Duration(campaign.Size(b, "GQLSTREAM_QUESTIONS_WARM", 60)) * time.Second
	rate := campaign.Size(b, "GQLSTREAM_QUESTIONS_RATE", 2000)
	dir, address := b.TempDir(), freeAddress(b)
	testfile.Write(b, filepath.Join(dir, "gqlstream.yaml"), questionsConfig)
	startProgram(
		b, "run", "--config", filepath.Join(dir, "gqlstream.yaml"), "--state",
		filepath.Join(dir, "state"), "--listen", address,
	)
	nc, err := nats.Connect(
		"nats://"+address, nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1),
		nats.ReconnectWait(100*time.Millisecond),
	)
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	startProgram(
		b, "simulate", "--nats", "nats://"+address, "--duration", "0", "--vertices",
		strconv.Itoa(50*communities), "--rate", strconv.Itoa(rate), "--communities",
		strconv.Itoa(communities),
	)
	last := fmt.Sprintf("group-%02d", communities-1)
	until(b, func(ctx context.Context) bool {
		reply, err := nc.RequestWithContext(
			ctx,
			"gqlest.query.latest",
			[]byte(`{"community":"`+last+`"}`),
		)
		return err == nil && strings.Contains(string(reply.Data), `"name"`)
	})
	pause(b.Context(), warm/2)
	middle := time.Now().UTC().Format(time.RFC3339)
	pause(b.Context(), warm/2)
	end := time.Now().UTC().Format(time.RFC3339)
	for _, q := range []struct{ name, subject, request string }{
		{"info", "info", ""},
		{"latest", "latest", `{"community":"` + last + `"}`},
		{"list", "list", `{"limit":100}`},
		{"history/whole", "history", `{"community":"` + last + `"}`},
		{"history/from", "history", `{"community":"` + last + `","from":"` + middle + `"}`},
		{"history/each", "history", `{"community":"group-%02d"}`},
		{"explain", "explain", `{"community":"` + last + `","from":"` + middle + `","to":"` + end +
			`"}`},
		// most nobody has asked yet
		{"explain/each", "explain", `{"community":"group-%02d","from":"` + middle + `","to":"` +
			end + `"}`},
	} {
		b.Run(q.name, func(b *testing.B) {
			var took, pings, late []time.Duration
			bytes := 0
			for i := range b.N {
				begun := time.Now()
				time.Sleep(5 * time.Millisecond)
				late = append(late, time.Since(begun)-5*time.Millisecond)
				begun = time.Now()
				if err := nc.FlushTimeout(time.Minute); err != nil {
					b.Fatal(err)
				}
				pings = append(pings, time.Since(begun))
				request := q.request
				if strings.Contains(request, "%") {
					request = fmt.Sprintf(request, i%communities)
				}
				begun = time.Now()
				reply, err := nc.Request("gqlest.query."+q.subject, []byte(request), time.Minute)
				took = append(took, time.Since(begun))
				if err != nil ||
					!slices.Contains(
						[]string{"", "503"},
						reply.Header.Get("Nats-Service-Error-Code"),
					) { // 503: it is being made
					b.Fatal(err, reply)
				}
				bytes = max(bytes, len(reply.Data))
			}
			for name, list := range map[string][]time.Duration{
				"": took, "ping-": pings,
				"sleep-": late,
			} {
				slices.Sort(list)
				for p, at := range map[string]int{
					"p50": len(list) / 2, "p99": len(list) * 99 / 100,
					"max": len(list) - 1,
				} {
					b.ReportMetric(float64(list[at].Microseconds())/1e3, name+p+"-ms")
				}
			}
			b.ReportMetric(float64(bytes), "bytes")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// startProgram runs the program until the test ends.
func startProgram(tb testing.TB, args ...string) {
	tb.Helper()
	process := exec.Command(os.Args[0], args...)
	process.Env = append(os.Environ(), mainVariable+"=1")
	if os.Getenv("GQLSTREAM_QUESTIONS_STDERR") != "" {
		process.Stderr = os.Stderr
	}
	if err := process.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		_ = process.Process.Kill()
		_ = process.Wait()
	})
}

// until waits for a condition, a minute at most.
func until(tb testing.TB, holds func(context.Context) bool) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	for !holds(ctx) {
		if ctx.Err() != nil {
			tb.Fatal("no estimates of the last community after a minute")
		}
		pause(ctx, 50*time.Millisecond)
	}
}
