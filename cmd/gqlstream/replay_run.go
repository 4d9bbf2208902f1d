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
	"time"

	"gqlstream/checkpoint"
	"gqlstream/config"
	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/pipeline"
)

// replay is one core on its way through a log.
type replay struct {
	core     *incremental.Core
	from, to pipeline.Place
	digest   string // when; see replayCmd
	alerts   replayAlerts
	con      console

	begun, told time.Time // for the progress
	events      int
	refused     map[event.Reason]int
}

// progressEvery is the time between two reports of a replay.
const progressEvery = 2 * time.Second

func (c *replayCmd) newReplay(con console, state string) (*replay, error) {
	from, err := pipeline.ParsePlace("--from", c.From)
	if err != nil {
		return nil, err
	}
	to, err := pipeline.ParsePlace("--to", c.To)
	if err != nil {
		return nil, err
	}
	if to.Position > 0 && from.Position >= to.Position || to.Time != 0 && from.Time >= to.Time && from.Time != 0 {
		return nil, config.Usagef("replay: nothing lies between --from %s and --to %s", c.From, c.To)
	}
	if c.UseCheckpoint && (c.any() || state == "") {
		return nil, config.Usagef("replay: --use-checkpoint needs --state, where the checkpoints are")
	}
	now := time.Now()
	return &replay{from: from, to: to, digest: c.Digest, con: con, begun: now, told: now}, nil
}

// begin makes the core: a fresh one, or that of a checkpoint.
func (c *replayCmd) begin(r *replay, state string, conf incremental.Config) (at pipeline.Resume, err error) {
	if !c.UseCheckpoint {
		if r.core, err = incremental.New(conf); err != nil {
			err = config.Usage(err)
		}
		return at, err
	}
	until := pipeline.Place{Position: cmp.Or(r.from.Position, r.to.Position)}
	saved, err := pipeline.NearestCheckpoint(state, conf.Digest(), 0, until, func(format string, args ...any) {
		fmt.Fprintf(r.con.Err, "replay: "+format+"\n", args...)
	})
	switch {
	case err != nil:
		return at, err
	case saved == nil:
		return at, fmt.Errorf("replay: no checkpoint in %s is intact, of this configuration and early enough; "+
			"leave --use-checkpoint out to begin with the log", state)
	}
	if r.core, err = incremental.Restore(conf, saved.Sections); err != nil {
		if saved.Manifest.Watermarks != nil {
			err = fmt.Errorf("replay: checkpoint %d is that of one worker of a group, with its shards only; leave --use-checkpoint out: %w", saved.Manifest.Position, err)
		}
		return at, err
	}
	fmt.Fprintf(r.con.Err, "replay: begins at checkpoint %d\n", saved.Manifest.Position)
	at.Place, at.Identity = pipeline.ResumeOf(saved.Manifest)
	return at, nil
}

// run takes every step up to the place where the replay ends.
func (r *replay) run(ctx context.Context, source ingest.Source) error {
	var batch event.Batch
	for {
		err := source.Next(ctx, &batch)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if r.to.Passed(&batch) {
			return nil
		}
		result := r.core.Step(&batch)
		r.countRefused(batch.Refused)
		r.countRefused(result.Refused)
		shown := r.from == (pipeline.Place{}) || r.from.Passed(&batch)
		if err := r.alerts.evaluate(&batch, result.Estimates, shown); err != nil {
			return err
		}
		if shown {
			if err := r.writeEstimates(&batch, result.Estimates); err != nil {
				return err
			}
			if err := r.tellDigest(&batch, result.Compacted); err != nil {
				return err
			}
		}
		r.events += batch.Events()
		r.tellProgress(source, &batch)
	}
}

func (r *replay) countRefused(refused []event.Refusal) {
	if r.refused == nil {
		r.refused = map[event.Reason]int{}
	}
	for i := range refused {
		r.refused[refused[i].Reason] += 1 + refused[i].More
	}
}

// reportRefused says at the end what was refused on the way, by reason.
func (r *replay) reportRefused() {
	for _, reason := range slices.Sorted(maps.Keys(r.refused)) {
		fmt.Fprintf(r.con.Err, "replay: refused %d, %s\n", r.refused[reason], reason)
	}
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
	entries := make([]checkpoint.Entry, len(state))
	for i, s := range state {
		entries[i] = checkpoint.EntryOf(s.Name, s.Data)
	}
	return json.NewEncoder(r.con.Err).Encode(stateDigest{
		Position: b.Last, Time: b.Time.String(), Emission: b.Emit, Checkpoint: compacted,
		State: checkpoint.Digest(entries),
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

// tellProgress says now and then how far the replay is.
func (r *replay) tellProgress(source ingest.Source, b *event.Batch) {
	now := time.Now()
	if now.Sub(r.told) < progressEvery {
		return
	}
	r.told = now
	end := ""
	if stream, ok := source.(*ingest.JetStreamSource); ok {
		end = fmt.Sprintf(" of %d", uint64(b.Last)+stream.Stats().Behind)
		if r.to.Position > 0 {
			end = fmt.Sprintf(" of %d", r.to.Position)
		}
	}
	fmt.Fprintf(r.con.Err, "replay: position %d%s, log time %s, %.0f events a second\n",
		b.Last, end, b.Time, float64(r.events)/now.Sub(r.begun).Seconds())
}
