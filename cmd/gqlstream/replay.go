package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/ingest/files"
	"gqlstream/internal/checkpoint"
	"gqlstream/pipeline"
	"gqlstream/pipeline/config"
	"gqlstream/quant"
	"gqlstream/sinks"
	"gqlstream/sinks/alerts"
)

type replayCmd struct {
	fileFlags
	refusedFlags
	serverFlags
	config.ResultFlags
	From          string `placeholder:"POSITION|TIME" help:"Print only records after this place."`
	To            string `placeholder:"POSITION|TIME" help:"${replay_to}"`
	UseCheckpoint bool   `help:"${replay_use_checkpoint}"`
	Alerts        bool   `help:"${replay_alerts}"`

	Digest string `enum:",step,emission,checkpoint" default:"" placeholder:"WHEN" help:"${when}"`
}

func (*replayCmd) Help() string {
	return `Prints every estimate of a log, one JSON object a line: the records of gqlstream run,
bit for bit, with the same configuration. The log is a stream (of --nats or of --state, by default
gqlstream-state) or files. Publishes and changes nothing.

The record that run published at position P is the last one of --to P. With --to TIME, and in files,
the replay ends with the last whole step. --alerts tries the rules of the configuration on the whole
log. --digest prints the digest of the state, as gqlstream snapshot list does, to compare two runs.

Examples:
  gqlstream replay --config gqlstream.yaml --state gqlstream-state --to 120000
  gqlstream replay --config gqlstream.yaml --state gqlstream-state --from 2026-05-01T12:00:00Z \
      --digest checkpoint
  gqlstream replay --config gqlstream.yaml --state gqlstream-state --alerts
  gqlstream replay --classes 2 --everyone --log events.ndjson.zst`
}

// Run replays to the end of the log, or to the place asked for.
func (c *replayCmd) Run(ctx context.Context, con console) error {
	settings := &c.settings
	if err := c.Merge(settings); err != nil {
		return err
	}
	settings.State = cmp.Or(settings.State, config.StateDefault)
	r, err := c.newReplay(con)
	if err != nil {
		return err
	}
	conf, err := settings.Core()
	if err != nil {
		return err
	}
	from, err := c.openCore(r, settings.State, conf)
	if err != nil {
		return err
	}
	if err := c.openAlerts(r, *settings); err != nil {
		return err
	}
	defer func() { r.core.Close() }()
	source, err := c.openLog(ctx, settings, con, r.to.Position, from)
	if err != nil {
		return err
	}
	if log, is := source.(*ingest.JetStreamSource); is {
		r.core.Limit(log.Limits())
	}
	if files, is := source.(*files.Source); is {
		return errors.Join(c.readFiles(ctx, files, r.meter, r.step))
	}
	refused, err := readLog(ctx, source.Next, r.meter, r.step)
	for _, reason := range slices.Sorted(maps.Keys(refused.byReason)) {
		fmt.Fprintf(con.Err, "replay: refused %d, %s\n", refused.byReason[reason], reason)
	}
	return err
}

// openLog opens the one log that the flags name.
func (c *replayCmd) openLog(
	ctx context.Context, settings *config.Settings, con console, to event.Position,
	from ingest.JetStreamConfig,
) (ingest.Source, error) {
	steps, err := settings.Steps()
	switch {
	case err != nil:
		return nil, err
	case c.any() && (c.NATS != "" || c.State != ""):
		return nil, config.Usagef("replay: files and a stream are given; choose one")
	case c.any():
		return c.openFiles(con, settings, steps)
	}
	b, err := c.openExisting(ctx, con)
	if err != nil {
		return nil, err
	}
	from.Step = steps
	from.Until = to
	from.UntilLast = to == 0
	source, err := pipeline.OpenLog(ctx, b.JS, settings, from)
	if errors.Is(err, ingest.ErrWrongHistory) && from.Identity == nil {
		if log, e := b.JS.Stream(ctx, c.names.Log); e == nil {
			err = fmt.Errorf(
				"replay: the beginning of the log was purged: it begins at %d; --use-checkpoint "+
					"begins at a checkpoint of --state",
				log.CachedInfo().State.FirstSeq)
		}
	}
	if err != nil {
		return nil, err
	}
	con.atEnd(source.Close)
	return source, nil
}

// replay is one core on its way through a log.
type replay struct {
	core     *incremental.Core
	from, to pipeline.Place
	digest   string                   // when; see replayCmd
	alerts   *alerts.Engine           // nil: estimates are printed
	beats    pipeline.ShardHeartbeats // alerts are evaluated where something is published
	con      console
	meter    *meter
}

func (c *replayCmd) newReplay(con console) (*replay, error) {
	from, err := pipeline.ParsePlace("--from", c.From)
	if err != nil {
		return nil, err
	}
	to, err := pipeline.ParsePlace("--to", c.To)
	if err != nil {
		return nil, err
	}
	if to.Position > 0 && from.Position >= to.Position ||
		to.Time != 0 && from.Time >= to.Time && from.Time != 0 {
		return nil, config.Usagef("replay: nothing lies between --from %s and --to %s",
			c.From, c.To)
	}
	if c.UseCheckpoint && c.any() {
		return nil, config.Usagef("replay: --use-checkpoint needs --state, not files")
	}
	r := &replay{
		from:   from,
		to:     to,
		digest: c.Digest,
		con:    con,
		meter:  newMeter(con.Err, "events read"),
	}
	if c.Digest != "" {
		r.meter.what = "" // digests tell enough
	}
	return r, nil
}

// openCore makes the core: a fresh one, or that of a checkpoint.
func (c *replayCmd) openCore(
	r *replay,
	state string,
	conf incremental.Config,
) (from ingest.JetStreamConfig, err error) {
	if !c.UseCheckpoint {
		if r.core, err = incremental.New(conf); err != nil {
			err = config.Usage(err)
		}
		return from, err
	}
	until := pipeline.Place{Position: cmp.Or(r.from.Position, r.to.Position)}
	saved, err := pipeline.NearestCheckpoint(
		state,
		conf.Digest(),
		until,
		func(format string, args ...any) {
			fmt.Fprintf(r.con.Err, "replay: "+format+"\n", args...)
		},
	)
	switch {
	case err != nil:
		return from, err
	case saved == nil:
		return from, fmt.Errorf(
			"replay: no checkpoint in %s is intact, of this configuration and early enough; "+
				"without --use-checkpoint the replay begins with the log",
			state,
		)
	}
	if saved.Manifest.Derived != checkpoint.Derived {
		fmt.Fprintf(r.con.Err, "replay: another version wrote checkpoint %d: estimates begin at "+
			"the next recompute event of the log\n", saved.Manifest.Position)
		r.core, err = incremental.RestoreTables(conf, saved.Sections, false)
	} else {
		r.core, err = incremental.Restore(conf, saved.Sections)
	}
	if err != nil {
		if has := saved.Manifest.Watermarks; has != nil && len(has) < max(conf.Shards, 1) {
			err = fmt.Errorf(
				"replay: checkpoint %d is that of one worker of a group, with its shards only; "+
					"leave --use-checkpoint out: %w",
				saved.Manifest.Position, err)
		}
		return from, err
	}
	fmt.Fprintf(r.con.Err, "replay: begins at checkpoint %d\n", saved.Manifest.Position)
	from.From, from.Identity = pipeline.ResumeOf(saved.Manifest)
	return from, nil
}

// step takes a batch through the core and returns the refused events, or io.EOF after the end of
// the replay.
func (r *replay) step(b *event.Batch) ([]event.Refusal, error) {
	if r.to.Passed(b) {
		return nil, io.EOF
	}
	result := r.core.Step(b)
	shown := r.from == (pipeline.Place{}) || r.from.Passed(b)
	err := r.write(b, result.Estimates, shown)
	if err == nil && shown {
		err = r.tellDigest(b, result.Compacted)
	}
	return result.Refused, err
}

// tellDigest names the state after a step as a line of JSON.
func (r *replay) tellDigest(b *event.Batch, compacted bool) error {
	wanted := map[string]bool{"step": true, "emission": b.Emit, "checkpoint": compacted}
	if !wanted[r.digest] {
		return nil
	}
	state, err := r.core.Sections()
	if err != nil {
		return err
	}
	c := checkpoint.New(checkpoint.Manifest{})
	for _, s := range state {
		c.Add(s.Name, s.Data)
	}
	return json.NewEncoder(r.con.Err).Encode(stateDigest{
		Position: b.Last, Time: b.Time.String(), Emission: b.Emit, Checkpoint: compacted,
		State: checkpoint.Digest(c.Manifest.Sections),
	})
}

// stateDigest is a line of --digest.
type stateDigest struct {
	Position   event.Position `json:"position"`
	Time       string         `json:"time"`
	Emission   bool           `json:"emission"`
	Checkpoint bool           `json:"checkpoint"`
	State      string         `json:"state"`
}

// openAlerts makes the engine of --alerts.
func (c *replayCmd) openAlerts(r *replay, settings config.Settings) error {
	if !c.Alerts {
		return nil
	}
	if c.UseCheckpoint {
		return config.Usagef(
			"replay: --alerts needs the log from its beginning, since checkpoints hold no " +
				"alerts: run without --use-checkpoint")
	}
	conf, err := settings.AlertRules()
	if err != nil {
		return config.Usage(err)
	}
	if len(conf.Rules) == 0 {
		return config.Usagef("replay: --alerts is given, and the configuration has no alerts")
	}
	r.alerts, err = alerts.New(conf)
	r.beats = make(pipeline.ShardHeartbeats, max(settings.Group.Shards, 1))
	return err
}

// write prints the output of a step if it is asked for: estimates and notes, or instead
// beginnings and ends of alerts.
func (r *replay) write(b *event.Batch, estimates []quant.Estimate, shown bool) error {
	if r.alerts == nil {
		if !shown {
			return nil
		}
		notes := sinks.NotesOf(uint64(b.Last), int64(b.Time), b.Notes())
		return errors.Join(writeLines(r.con.Out, estimates), writeLines(r.con.Out, notes))
	}
	e := sinks.Emission{
		Position:  uint64(b.Last),
		Time:      int64(b.Time),
		Estimates: estimates,
		Cut:       b.Checkpoint,
		Notes:     b.Notes(),
	}
	if !b.Emit || !r.beats.Publishes(&e) {
		return nil
	}
	for _, change := range r.alerts.Evaluate(
		alerts.Moment{Position: e.Position, Time: e.Time, Notes: e.Notes}, estimates) {
		if !shown {
			continue
		}
		if _, err := fmt.Fprintf(r.con.Out, "%s\n", change.JSON()); err != nil {
			return err
		}
	}
	return nil
}
