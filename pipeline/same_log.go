package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/internal/checkpoint"
	"gqlstream/pipeline/config"
	"gqlstream/sinks"
)

// recordedPlace is a place of the input log recorded by this pipeline.
type recordedPlace struct {
	ingest.Place
	log string // name of the log at that time
}

// records are the files and streams that have recorded places of the input log.
type records struct {
	in      *input
	state   string // directory
	outputs config.Output
	// state and position of alerts and of roll-ups: a file in the state directory, or for a worker
	// of a group an object in its store, where another worker finds it
	alertsState, historyState sinks.StateStore
}

func newRecords(in *input, settings *config.Settings, group *membership) records {
	r := records{
		in: in, state: settings.State, outputs: settings.Output,
		alertsState:  sinks.FileStore(filepath.Join(settings.State, "alerting.json")),
		historyState: sinks.FileStore(filepath.Join(settings.State, "history.json")),
	}
	if group != nil {
		r.alertsState = group.store.StateStore("alerts")
		r.historyState = group.store.StateStore("history")
	}
	return r
}

// checkLogIsThere refuses to create a log if the state directory knows one: an empty broker would
// give new events the positions of the lost ones.
func (in *input) checkLogIsThere(ctx context.Context, state string, accept bool) error {
	_, err := in.Broker.JS.Stream(ctx, in.names.In.Log)
	if !errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil //nolint:nilerr // EnsureStreams reports the error
	}
	places := in.statePlaces(state)
	if len(places) == 0 || accept {
		return nil
	}
	newest := places[0]
	return fmt.Errorf(
		"the broker has no log %s, and %s in %s has read one to position %d. Nothing was made:"+
			" restore a backup of the log (gqlstream restore, or nats stream restore), or begin "+
			"an empty"+
			" one with run --accept-log",
		in.names.In.Log, newest.RecordedBy, state, newest.Position,
	)
}

// statePlaces returns the places recorded in the state directory, newest first.
func (in *input) statePlaces(state string) (places []recordedPlace) {
	if at, _, ok := in.reached.read(); ok {
		at.Stream = in.names.In.Log
		places = append(places, at)
	}
	dir := checkpoint.Look(checkpoint.Disk{}, checkpointsIn(state))
	for _, m := range dir.Manifests() {
		_, id := ResumeOf(m)
		id.Stream = in.names.In.Log
		places = append(places, recordedPlace{
			ingest.Place{Identity: *id, RecordedBy: fmt.Sprintf("checkpoint %d", m.Position)},
			m.Stream.Log,
		})
	}
	slices.SortStableFunc(places,
		func(a, b recordedPlace) int { return int(b.Position) - int(a.Position) })
	return places
}

// outputPlaces returns the places that the output log and the followers have recorded of a log.
func (r *records) outputPlaces(ctx context.Context, logID string) (places []recordedPlace) {
	add := func(log string, position uint64, digest, recordedBy string) {
		if log == logID && position > 0 {
			id := ingest.Identity{
				Stream:   r.in.names.In.Log,
				Position: event.Position(position),
				Digest:   ingest.ParseDigest(digest),
			}
			place := ingest.Place{Identity: id, RecordedBy: recordedBy}
			places = append(places, recordedPlace{place, log})
		}
	}
	// otherwise the writers report the error
	marks, _ := sinks.Marks(ctx, r.in.Broker.JS, r.in.names.Out)
	for _, m := range marks {
		add(m.Log, m.Position, m.Digest, fmt.Sprintf("the newest mark of shard %d in %s",
			m.Shard, r.in.names.Out.Estimates))
	}
	for _, s := range r.positionShelves() {
		log, at := sinks.StatePlace(ctx, s)
		add(log, at.Position, at.Digest, s.String())
	}
	return places
}

// places returns the places that the state directory, the output log and the followers have
// recorded of a log.
func (r *records) places(ctx context.Context, logID string) []recordedPlace {
	return append(r.in.statePlaces(r.state), r.outputPlaces(ctx, logID)...)
}

// RecordedPlaces returns every place of the log recorded by a run with these settings, and the
// damaged or missing position files.
func RecordedPlaces(
	ctx context.Context,
	b *broker.Broker,
	settings config.Settings,
) (places []ingest.Place, damaged []error, err error) {
	names, err := namesOf(&settings)
	if err != nil {
		return nil, nil, err
	}
	stream, err := b.JS.Stream(ctx, names.In.Log)
	if err != nil {
		return nil, nil, err
	}
	in := &input{Broker: b, names: names, reached: &reached{path: reachedIn(settings.State)}}
	r := newRecords(in, &settings, nil)
	for _, at := range r.places(ctx, broker.LogName(stream)) {
		places = append(places, at.Place)
	}
	for _, s := range r.positionShelves() {
		if err := sinks.VerifyState(ctx, s); err != nil {
			damaged = append(damaged, err)
		}
	}
	return places, append(damaged, r.missingPositions(ctx)...), nil
}

// positionShelves lists the storage of the positions of followers.
func (r *records) positionShelves() []sinks.StateStore {
	list := []sinks.StateStore{r.alertsState, r.historyState}
	out := r.outputs
	for _, file := range []string{out.File, out.Alerts} {
		if file != "" && file != "-" {
			list = append(list, sinks.FileStore(sinks.PositionFile(file)))
		}
	}
	if out.Parquet != "" {
		list = append(list, sinks.FileStore(sinks.PartsPositionFile(out.Parquet)))
	}
	return list
}

// agreeOnLog names the log, and compares it with all recorded places. It refuses a log that is not
// the one read before, unless the operator accepts it.
func agreeOnLog(
	ctx context.Context, plan *plan, in *input, dir *checkpoint.Dir, group *membership, accept bool,
) (*base, error) {
	b := &base{
		plan: plan, input: in, dir: dir, group: group,
		records: newRecords(in, &plan.settings, group),
	}
	name, err := in.nameLog(ctx, b.state)
	if err != nil {
		return nil, err
	}
	b.logID = name
	places := b.places(ctx, name)
	for _, at := range places {
		b.recorded = append(b.recorded, at.Place)
	}
	err = ingest.CheckPlaces(ctx, in.Broker.JS, b.recorded)
	if accept {
		b.recorded = nil // the prefix may differ as well
		if errors.Is(err, ingest.ErrWrongHistory) {
			plan.log.Warn("the log is accepted as it is", "because", err)
			b.logID, err = b.acceptLog(ctx, dir, places, name)
		}
	}
	return b, err
}

// nameLog returns the name of the log, and gives it one if it has none.
func (in *input) nameLog(ctx context.Context, state string) (string, error) {
	stream, err := in.Broker.JS.Stream(ctx, in.names.In.Log)
	if err != nil {
		return "", err
	}
	name := broker.LogName(stream)
	if stream.CachedInfo().Config.Metadata[broker.LogNameKey] != "" {
		return name, nil
	}
	// an earlier release, or another tool, created it
	if places := in.statePlaces(state); len(places) > 0 && places[0].log != "" &&
		ingest.CheckPlaces(ctx, in.Broker.JS, []ingest.Place{places[0].Place}) == nil {
		name = places[0].log // it is a copy of that log
	}
	return name, ingest.NameLog(ctx, in.Broker.JS, in.names.In.Log, name)
}

// acceptLog gives the log another name if the disagreeing places have this one, so that its earlier
// records no longer count, and drops the disagreeing states. It returns the name.
func (r *records) acceptLog(
	ctx context.Context, dir *checkpoint.Dir, places []recordedPlace, name string,
) (string, error) {
	js, log := r.in.Broker.JS, r.in.names.In.Log
	again := false
	for _, at := range places {
		err := ingest.CheckPlaces(ctx, js, []ingest.Place{at.Place})
		if err != nil && !errors.Is(err, ingest.ErrWrongHistory) {
			return name, err
		}
		again = again || err != nil && (at.log == name || at.log == "")
	}
	if again {
		name = time.Now().UTC().Format(time.RFC3339Nano)
		if err := ingest.NameLog(ctx, js, log, name); err != nil {
			return name, err
		}
	}
	for _, s := range []sinks.StateStore{r.alertsState, r.historyState} {
		if was, _ := sinks.StatePlace(ctx, s); was != "" && was != name {
			if err := sinks.ResetState(ctx, s, name); err != nil {
				return name, err
			}
		}
	}
	if err := r.in.reached.forget(); err != nil {
		return name, err
	}
	return name, dir.Drop(func(m checkpoint.Manifest) bool {
		_, id := ResumeOf(m)
		id.Stream = log
		return errors.Is(id.Check(ctx, js), ingest.ErrWrongHistory)
	})
}

// skipHole records that missing messages are skipped, and returns the rest of the range, if any. A
// state that has applied them continues after them.
func skipHole(
	ctx context.Context, in *input, r ingest.Range, log *slog.Logger,
) (ingest.Range, error) {
	if r == (ingest.Range{}) {
		return r, nil
	}
	stream, err := in.Broker.JS.Stream(ctx, in.names.In.Log)
	if err != nil {
		return r, err
	}
	holes, err := ingest.Holes(ctx, stream)
	if err != nil || !slices.ContainsFunc(holes, func(hole ingest.Range) bool {
		return hole.First <= r.First && r.Last <= hole.Last
	}) {
		return r, err
	}
	log.Warn("messages that the log lacks are skipped from now on; the log records it",
		"positions", r)
	return ingest.Range{}, ingest.Skip(ctx, in.Broker.JS, in.names.In.Log, r)
}

func reachedIn(state string) string { return filepath.Join(state, "reached") }
