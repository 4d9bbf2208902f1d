package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
	"gqlstream/internal/checkpoint"
	"gqlstream/pipeline"
	"gqlstream/pipeline/config"
	"gqlstream/sinks"
	"gqlstream/sinks/alerts"
)

// twin is the output of an undisturbed run over the whole log.
type twin struct {
	records  map[string][]string // JSON by community
	lines    []string            // of a file of estimates, with the notes
	refused  []string
	alerts   []string // JSON
	engine   *alerts.Engine
	beats    pipeline.ShardHeartbeats // after which alerts and parts are written
	sections []incremental.Section    // after the last step
	parts    string                   // directory
	history  []string                 // roll-ups, where they are compared
	last     event.Position
}

// compare reads everything that the killed runs left and holds it against a twin.
func (r *crashRun) compare() {
	b, err := config.OpenBroker(config.Settings{State: r.dir}, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	defer b.Close()
	names := broker.DefaultStreamNames()
	r.compareLog(b.JS, names.Log)
	r.compareWithTwin(b.JS)
}

// compareOutputs is compare for a log that has other producers.
func (r *crashRun) compareOutputs() {
	withBroker(r.t, r.dir, r.compareWithTwin)
}

func (r *crashRun) compareWithTwin(js jetstream.JetStream) {
	names := defaultNames()
	want := r.undisturbed(js)
	r.report.positions = int(want.last)
	r.compareRecords(js, names.Estimates, want)
	r.compareFile(want)
	r.compareParts(want)
	r.compareLatest(js, names, want)
	r.compareAlerts(js, names.Alerts, want)
	r.compareLists("stream of history", r.rolledUp(js, names, uint64(want.last)), want.history)
	r.compareQuarantine(js, broker.DefaultStreamNames(), want)
	r.compareState(want)
	if r.report.different > 0 {
		r.t.Fatalf("seed %d: %v", r.seed, r.report)
	}
}

// differ counts a difference and shows the first few.
func (r *crashRun) differ(format string, args ...any) {
	const shownMax = 5
	if r.report.different++; r.report.different <= shownMax {
		r.t.Errorf("seed %d: %s", r.seed, fmt.Sprintf(format, args...))
	}
}

// eachMessage visits a stream in order, but for the marks of the output log.
func (r *crashRun) eachMessage(js jetstream.JetStream, name string, visit func(jetstream.Msg)) {
	r.t.Helper()
	for read, begun := uint64(0), time.Now(); ; pause(r.t.Context(), 100*time.Millisecond) {
		end, err := r.messagesAfter(js, name, &read, visit)
		if err == nil && read >= end {
			return
		}
		if time.Since(begun) > crashStartMax { // a cluster that elects answers in a moment
			r.t.Fatalf(
				"seed %d: stream %s was read up to %d of %d: %v", r.seed, name, read, end, err,
			)
		}
	}
}

// messagesAfter visits the messages of a stream after a sequence, and advances it. The
// consumer may be led by a copy that lags, so it can end before the end that is returned.
func (r *crashRun) messagesAfter(
	js jetstream.JetStream, name string, read *uint64, visit func(jetstream.Msg),
) (end uint64, err error) {
	ctx, cancel := context.WithTimeout(r.t.Context(), crashStartMax)
	defer cancel()
	stream, err := js.Stream(ctx, name)
	if err != nil {
		return 0, err
	}
	end = stream.CachedInfo().State.LastSeq
	if end <= *read || stream.CachedInfo().State.Msgs == 0 {
		*read = end
		return end, nil
	}
	consumer, err := stream.OrderedConsumer(
		ctx,
		jetstream.OrderedConsumerConfig{
			DeliverPolicy: jetstream.DeliverByStartSequencePolicy,
			OptStartSeq:   *read + 1,
		},
	)
	if err != nil {
		return end, err
	}
	messages, err := consumer.Messages()
	if err != nil {
		return end, err
	}
	defer messages.Stop()
	quiet, stop := context.WithTimeout(ctx, crashStartMax/6)
	defer stop()
	for *read < end {
		m, err := messages.Next(jetstream.NextContext(quiet))
		if err != nil {
			return end, err
		}
		at, err := m.Metadata()
		if err != nil {
			return end, err
		}
		*read = at.Sequence.Stream
		if !strings.HasPrefix(m.Subject(), "gqlest.shard.") { // marks are no records
			visit(m)
		}
	}
	return end, nil
}

// compareLog counts that every message of the producer is in the log once.
func (r *crashRun) compareLog(js jetstream.JetStream, name string) {
	ids := map[string]int{}
	r.eachMessage(js, name, func(m jetstream.Msg) {
		if id := m.Headers().Get(jetstream.MsgIDHeader); strings.HasPrefix(id, "crash/") {
			ids[id]++
		}
	})
	for i := range r.report.messages {
		if n := ids[fmt.Sprintf("crash/%d", i+1)]; n != 1 {
			r.differ("message %d of the producer is %d times in the log", i+1, n)
		}
	}
	if len(ids) != r.report.messages {
		r.differ("%d messages of the producer in the log, it sent %d", len(ids), r.report.messages)
	}
}

const twinMax = 5 * time.Minute // for the whole log

// undisturbed runs the whole log through one core.
func (r *crashRun) undisturbed(js jetstream.JetStream) twin {
	settings, err := config.Load(r.config)
	r.must(err)
	source := r.wholeLog(js, settings)
	defer source.Close()
	conf, err := settings.Core()
	r.must(err)
	core, err := incremental.New(conf)
	r.must(err)
	defer core.Close()
	out := twin{
		records: map[string][]string{},
		beats:   make(pipeline.ShardHeartbeats, max(settings.Group.Shards, 1)),
		parts:   filepath.Join(r.t.TempDir(), "parts"),
	}
	parts := r.twinParts(js, out.parts, settings.Output.Every)
	defer parts.Close()
	rollups := r.twinRollups(js)
	rules, err := settings.AlertRules()
	r.must(err)
	out.engine, err = alerts.New(rules)
	r.must(err)
	ctx, cancel := context.WithTimeoutCause(
		r.t.Context(),
		twinMax,
		fmt.Errorf("the whole log was not read in %v", twinMax),
	)
	defer cancel()
	var batch event.Batch
	for {
		err := source.Next(ctx, &batch)
		if errors.Is(err, io.EOF) {
			break
		}
		r.must(cmp.Or(context.Cause(ctx), err))
		result := core.Step(&batch)
		r.must(out.keep(&batch, result, parts, rollups))
	}
	out.last = batch.Last
	out.sections, err = core.Sections()
	r.must(err)
	out.history = r.rolledUp(js, twinNames, uint64(out.last))
	return out
}

func (r *crashRun) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// wholeLog opens the log from its beginning to its end, cut as the run cuts it.
func (r *crashRun) wholeLog(
	js jetstream.JetStream,
	settings config.Settings,
) *ingest.JetStreamSource {
	r.t.Helper()
	steps, err := settings.Steps()
	r.must(err)
	decoder, err := wire.NewDecoder(settings.Classes.ClassSet())
	r.must(err)
	source, err := ingest.OpenJetStream(
		r.t.Context(), js, decoder, ingest.JetStreamConfig{Step: steps, UntilLast: true},
	)
	r.must(err)
	return source
}

// keep notes the output of one step.
func (w *twin) keep(
	batch *event.Batch,
	result incremental.Result,
	followers ...sinks.Follower,
) error {
	stored := sinks.Stored{
		Position: uint64(batch.Last),
		Time:     int64(batch.Time),
		Cut:      batch.Checkpoint,
		Notes:    batch.Notes(),
	}
	for _, e := range result.Estimates {
		data, err := json.Marshal(e)
		if err != nil {
			return err
		}
		w.records[e.Community] = append(w.records[e.Community], string(data))
		stored.Records = append(stored.Records, data)
	}
	published := sinks.Emission{
		Position:  stored.Position,
		Time:      stored.Time,
		Estimates: result.Estimates,
		Cut:       stored.Cut,
		Notes:     stored.Notes,
	}
	if batch.Emit && w.beats.Publishes(&published) {
		w.evaluate(batch, result.Estimates)
		lines, err := stored.Lines()
		if err != nil {
			return err
		}
		for _, line := range lines {
			w.lines = append(w.lines, string(line))
		}
		for _, f := range followers {
			if err := f.Take(context.Background(), &stored); err != nil {
				return err
			}
		}
	}
	for _, x := range slices.Concat(batch.Refused, result.Refused) {
		w.refused = append(w.refused, fmt.Sprintf("%d/%d %s", x.Position, x.Index, x.Reason))
	}
	return nil
}

// compareRecords compares the published records with the expected ones, byte for byte and
// in order.
func (r *crashRun) compareRecords(js jetstream.JetStream, name string, want twin) {
	got := map[string][]string{}
	last := uint64(0)
	r.eachMessage(js, name, func(m jetstream.Msg) {
		var e struct {
			Community string
			Position  uint64
		}
		if err := json.Unmarshal(m.Data(), &e); err != nil {
			r.t.Fatal(err)
		}
		if e.Position < last {
			r.differ("a record of position %d follows one of %d", e.Position, last)
		}
		last = e.Position
		got[e.Community] = append(got[e.Community], string(m.Data()))
		r.report.records++
	})
	r.compareSequences(got, want)
}

// compareFile does so for the file of estimates.
func (r *crashRun) compareFile(want twin) {
	if r.output == "" {
		return
	}
	data, err := os.ReadFile(r.output)
	if err != nil {
		r.t.Fatal(err)
	}
	got := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		var e struct{ Community string }
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			r.t.Fatalf("seed %d: %q: %v", r.seed, line, err)
		}
		got[e.Community] = append(got[e.Community], strings.TrimSuffix(line, "\n"))
	}
	r.compareSequences(got, want)
}

func (r *crashRun) compareSequences(got map[string][]string, want twin) {
	if len(got) != len(want.records) || r.report.records == 0 {
		r.differ("estimates of %d communities, want %d", len(got), len(want.records))
	}
	for community, list := range want.records {
		if len(got[community]) != len(list) {
			r.differ("%d records of %s, want %d", len(got[community]), community, len(list))
		}
		for i := range min(len(got[community]), len(list)) {
			if got[community][i] != list[i] {
				r.differ(
					"record %d of %s is\n%s, want\n%s", i, community, got[community][i], list[i],
				)
			}
		}
	}
}

// bucketLagMax bounds the time that the broker takes to copy the last record into the
// bucket. The broker notices after ten seconds that a server with the source of the copy is
// gone, and asks again ten seconds later.
const bucketLagMax = 45 * time.Second

// compareLatest compares the bucket with the last records there should be.
func (r *crashRun) compareLatest(js jetstream.JetStream, names sinks.Names, want twin) {
	bucket, err := js.KeyValue(r.t.Context(), names.Latest)
	if err != nil {
		r.t.Fatal(err)
	}
	last := map[string]string{} // by key
	for _, list := range want.records {
		for _, record := range list {
			var e struct{ Community, Method string }
			if err := json.Unmarshal([]byte(record), &e); err != nil {
				r.t.Fatal(err)
			}
			last[sinks.LatestKey(e.Community, e.Method, 0)] = record
		}
	}
	for key, record := range last {
		entry, err := bucket.Get(r.t.Context(), key)
		for begun := time.Now(); (err != nil || string(entry.Value()) != record) &&
			time.Since(begun) < bucketLagMax; {
			pause(r.t.Context(), 20*time.Millisecond)
			entry, err = bucket.Get(r.t.Context(), key)
		}
		if err != nil || string(entry.Value()) != record {
			r.differ("the bucket does not have the last record of %s: %v", key, err)
		}
	}
}

func (r *crashRun) compareQuarantine(js jetstream.JetStream, names broker.StreamNames, want twin) {
	q, err := ingest.OpenQuarantine(r.t.Context(), js, names)
	if err != nil {
		r.t.Fatal(err)
	}
	var got []string
	err = q.List(
		r.t.Context(),
		ingest.QuarantineFilter{Retried: true},
		func(e ingest.QuarantineEntry) error {
			got = append(got, fmt.Sprintf("%d/%d %s", e.Position, e.Index, e.Reason))
			return nil
		},
	)
	if err != nil {
		r.t.Fatal(err)
	}
	slices.Sort(got)
	slices.Sort(want.refused)
	if r.report.refused = len(got); !slices.Equal(got, want.refused) || len(got) == 0 {
		r.differ("%d refusals, want %d", len(got), len(want.refused))
	}
}

// compareState compares the newest checkpoint, byte for byte, with the state of
// the twin at the end of the log.
func (r *crashRun) compareState(want twin) {
	dir, err := checkpoint.Open(checkpoint.Disk{}, filepath.Join(r.dir, "checkpoints"))
	if err != nil {
		r.t.Fatal(err)
	}
	c, err := dir.Load(func(damage error) { r.differ("a damaged checkpoint: %v", damage) })
	if err != nil || c == nil {
		r.t.Fatalf("seed %d: no checkpoint: %v", r.seed, err)
	}
	if c.Manifest.Position != uint64(want.last) || len(c.Sections) != len(want.sections) {
		r.differ("the last checkpoint is at %d with %d sections, want %d with %d",
			c.Manifest.Position, len(c.Sections), want.last, len(want.sections))
	}
	for _, s := range want.sections {
		if !bytes.Equal(c.Sections[s.Name], s.Data) {
			r.differ("section %s of the final state", s.Name)
		}
	}
}

// twinParts opens a directory of parts as the killed runs opened theirs.
func (r *crashRun) twinParts(
	js jetstream.JetStream,
	dir string,
	every time.Duration,
) sinks.Follower {
	log, err := js.Stream(r.t.Context(), broker.DefaultStreamNames().Log)
	r.must(err)
	parts, _, err := sinks.OpenPartsDir(sinks.PartsDirConfig{
		Dir: dir, Every: every, Log: broker.LogName(log),
	})
	r.must(err)
	return parts
}

// twinNames are where the roll-ups of a twin are stored, on the server that is compared.
var twinNames = func() sinks.Names {
	n, err := sinks.NewNames("twin")
	if err != nil {
		panic(err)
	}
	return n
}()

// twinRollups begins roll-ups of the records of a twin.
func (r *crashRun) twinRollups(js jetstream.JetStream) sinks.Follower {
	log, err := js.Stream(r.t.Context(), broker.DefaultStreamNames().Log)
	r.must(err)
	for _, stream := range historyStreams(twinNames) {
		if err := js.DeleteStream(r.t.Context(), stream); !errors.Is(
			err,
			jetstream.ErrStreamNotFound,
		) {
			r.must(err)
		}
	}
	follower, _, err := sinks.NewRollups(sinks.RollupsConfig{
		JS: js, Streams: sinks.StreamsConfig{Names: twinNames}, Log: broker.LogName(log),
		State: sinks.FileStore(filepath.Join(r.t.TempDir(), "history.json")),
	}).Open(r.t.Context())
	r.must(err)
	return follower
}

// historyStreams are the streams of roll-ups, by resolution.
func historyStreams(n sinks.Names) []string {
	return []string{n.History + "_MINUTES", n.History + "_HOURS", n.History}
}

// rolledUp returns the roll-ups and notes that belong to a position at the latest.
func (r *crashRun) rolledUp(
	js jetstream.JetStream,
	names sinks.Names,
	until uint64,
) (list []string) {
	for _, stream := range historyStreams(names) {
		r.eachMessage(js, stream, func(m jetstream.Msg) {
			var position, number uint64
			if _, err := fmt.Sscanf(m.Headers().Get("Gqlstream-Place"), "%d.%d", &position,
				&number); err != nil {
				r.t.Fatalf(
					"seed %d: stream %s: a message without its place: %v", r.seed, stream, err,
				)
			}
			if _, subject, _ := strings.Cut(m.Subject(), "."); position <= until {
				list = append(list, fmt.Sprintf("%d.%d %s %s", position, number, subject, m.Data()))
			}
		})
	}
	return list
}

// compareParts compares the directories of parts, byte for byte.
func (r *crashRun) compareParts(want twin) {
	if r.parts == "" {
		return
	}
	got, parts := r.partsIn(r.parts), r.partsIn(want.parts)
	r.report.parts = len(parts)
	for name, data := range parts {
		if got[name] != data {
			r.differ("part %s has %d bytes, want %d", name, len(got[name]), len(data))
		}
	}
	if len(got) != len(parts) || len(parts) == 0 {
		r.differ("%d parts, want %d", len(got), len(parts))
	}
}

func (r *crashRun) partsIn(dir string) map[string]string {
	names, err := filepath.Glob(filepath.Join(dir, "*.parquet*"))
	if err != nil {
		r.t.Fatal(err)
	}
	files := map[string]string{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			r.t.Fatal(err)
		}
		files[filepath.Base(name)] = string(data)
	}
	return files
}
