package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/lab/campaign"
	"gqlstream/sinks"
)

// crashEventsBegin is the time of the first event where events have times.
var crashEventsBegin = time.Date(2026, 3, 1, 17, 30, 0, 0, time.UTC)

// crashHistoryConfig divides history by the times of events: a second of a campaign has
// many hours of them.
const crashHistoryConfig = `
classes: [left, right]
communities:
  - {name: everyone, everyone: true}
  - {name: german, where: {language: de}}
estimates: [{method: auto}, {method: pcc}]
step: {every: 1m, time: event}
checkpoint: {every: 30m}
privacy: {min_members: 3}
http: {listen: "off"}
`

// However often the process is killed, the finished roll-ups must be those of the output log
// from its beginning, each once and in the same order. The unfinished ones must agree as
// well.
func TestKilledRunsHaveTheHistoryOfTheOutputLog(t *testing.T) {
	kills := campaign.Size(t, "GQLSTREAM_KILLS", 3)
	for seed := campaign.Seed(t, 1); kills > 0; kills, seed = kills-crashKillsOfLog, seed+1 {
		r := newCrashRun(t, seed)
		r.must(os.WriteFile(r.config, []byte(crashHistoryConfig), 0o600))
		r.logPace = 20 * time.Minute
		r.campaign(min(kills, crashKillsOfLog))
		withBroker(t, r.dir, r.compareHistory)
		mustHaveTrend(t, r.dir, r.config)
		t.Logf("seed %d: %d kills, %d messages, %d roll-up messages, %d differences",
			seed, r.report.kills, r.report.messages, r.report.records, r.report.different)
	}
}

// compareHistory compares the streams of roll-ups, byte for byte, with those of a follower
// that starts at the beginning of the output log; the unfinished ones too.
func (r *crashRun) compareHistory(js jetstream.JetStream) {
	names, err := sinks.NewNames("again")
	r.must(err)
	kept := r.followHistory(js, defaultNames(), filepath.Join(r.dir, "history.json"))
	again := r.followHistory(js, names, filepath.Join(r.t.TempDir(), "again.json"))
	for _, suffix := range []string{"", "_HOURS", "_MINUTES"} {
		lists := map[string][]string{}
		for _, prefix := range []string{"GQL", "AGAIN"} {
			r.eachMessage(js, prefix+"_HISTORY"+suffix, func(m jetstream.Msg) {
				_, subject, _ := strings.Cut(m.Subject(), ".")
				lists[prefix] = append(
					lists[prefix],
					subject+" "+m.Headers().Get("Gqlstream-Place")+" "+string(m.Data()),
				)
			})
		}
		if !slices.Equal(lists["GQL"], lists["AGAIN"]) {
			r.differ(
				"GQL_HISTORY%s has %d messages, made again they are %d, or others", suffix,
				len(lists["GQL"]), len(lists["AGAIN"]),
			)
		}
		r.report.records += len(lists["GQL"])
	}
	if r.report.records == 0 {
		r.t.Errorf("seed %d: no roll-up was stored", r.seed)
	}
	for _, q := range []sinks.RollupQuery{
		{Community: "everyone", Method: "auto", Points: 1 << 20},
		{Community: "german", Method: "pcc", Points: 1 << 20},
		{Community: "everyone", Method: "pcc", Points: 200},
		{Community: "german", Method: "auto", Points: 20},
	} {
		want, err := again.Read(r.t.Context(), q)
		r.must(err)
		got, err := kept.Read(r.t.Context(), q)
		r.must(err)
		if diff := cmp.Diff(want, got); diff != "" || len(want.Rollups) == 0 {
			r.differ("%+v: %d roll-ups (-made again +kept):\n%.1000s", q, len(got.Rollups), diff)
		}
	}
}

// followHistory returns roll-ups with a state in a file that have taken the whole output log.
func (r *crashRun) followHistory(
	js jetstream.JetStream,
	names sinks.Names,
	state string,
) *sinks.Rollups {
	r.t.Helper()
	log, err := js.Stream(r.t.Context(), broker.DefaultStreamNames().Log)
	r.must(err)
	out := sinks.ReaderConfig{Names: defaultNames(), Log: broker.LogName(log)}
	end, err := sinks.Newest(r.t.Context(), js, out)
	r.must(err)
	rollups := sinks.NewRollups(sinks.RollupsConfig{
		JS: js, Streams: sinks.StreamsConfig{Names: names}, Log: out.Log,
		State: sinks.FileStore(state),
	})
	runner := sinks.NewRunner(
		sinks.FollowConfig{Name: "history", JS: js, Reader: out, Open: rollups.Open},
	)
	ctx, cancel := context.WithTimeout(r.t.Context(), crashStartMax)
	ended := make(chan error, 1)
	go func() { ended <- runner.Run(ctx) }()
	for runner.Taken().Position < end.Position && ctx.Err() == nil {
		pause(ctx, 5*time.Millisecond)
	}
	cancel()
	r.must(<-ended)
	if at := runner.Taken().Position; at < end.Position {
		r.t.Fatalf(
			"seed %d: the history of %d positions is read up to %d: %+v", r.seed, end.Position, at,
			runner.State(),
		)
	}
	return rollups
}
