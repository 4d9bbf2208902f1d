package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/event"
	"gqlstream/quant"
	"gqlstream/sinks/alerts"
)

// evaluate keeps the transitions of a step.
func (w *twin) evaluate(b *event.Batch, estimates []quant.Estimate) {
	for _, t := range w.engine.Evaluate(alerts.Moment{
		Position: uint64(b.Last),
		Time:     int64(b.Time),
	}, estimates) {
		w.alerts = append(w.alerts, string(t.JSON()))
	}
}

// compareAlerts compares the stream and the file of alerts with the expected ones, byte for
// byte. Transitions at one position may be in any order in the stream; those of the file
// are in order.
func (r *crashRun) compareAlerts(js jetstream.JetStream, name string, want twin) {
	var got []string
	ids := map[string]bool{}
	r.eachMessage(js, name, func(m jetstream.Msg) {
		got = append(got, string(m.Data()))
		var t alerts.Transition
		if err := json.Unmarshal(m.Data(), &t); err != nil || ids[t.ID] {
			r.differ("alert %s comes again, or not whole: %v", t.ID, err)
		}
		ids[t.ID] = true
	})
	if r.report.alerts = len(got); len(got) == 0 {
		r.differ("no alert began")
	}
	if r.alerts != "" {
		data, err := os.ReadFile(r.alerts)
		if err != nil {
			r.t.Fatal(err)
		}
		r.compareLists(
			"file of alerts",
			strings.Split(strings.TrimSpace(string(data)), "\n"),
			want.alerts,
		)
	}
	slices.Sort(got)
	r.compareLists("stream of alerts", got, slices.Sorted(slices.Values(want.alerts)))
}

func (r *crashRun) compareLists(what string, got, want []string) {
	if len(got) != len(want) {
		r.differ("the %s has %d entries, want %d", what, len(got), len(want))
	}
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			r.differ("entry %d of the %s is\n%s, want\n%s", i, what, got[i], want[i])
			return
		}
	}
}
