package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"time"

	"gqlstream/checkpoint"
	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
)

// logPlace is a position or a time of a log; the zero value is none.
type logPlace struct {
	position event.Position
	time     event.Time
}

// parsePlace reads the value of --from or --to.
func parsePlace(flag, text string) (logPlace, error) {
	if text == "" {
		return logPlace{}, nil
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil && n > 0 {
		return logPlace{position: event.Position(n)}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.UnixNano() == 0 {
		return logPlace{}, usagef("%s %q is neither a position, 1 or more, nor a time such as "+
			"2026-05-01T12:00:00Z", flag, text)
	}
	return logPlace{time: event.Time(t.UnixNano())}, nil
}

// passed reports whether b goes beyond the place.
func (p logPlace) passed(b *event.Batch) bool {
	return p.position > 0 && b.Last > p.position || p.time != 0 && b.Time > p.time
}

// replay is one core on its way through a log.
type replay struct {
	core     *incremental.Core
	from, to logPlace
	digest   string // when; see replayCmd
	alerts   *replayAlerts
	con      console

	begun, told time.Time // for the progress
	events      int
}

// progressEvery is how often a replay says where it is.
const progressEvery = 2 * time.Second

func (c *replayCmd) newReplay(con console) (*replay, error) {
	from, err := parsePlace("--from", c.From)
	if err != nil {
		return nil, err
	}
	to, err := parsePlace("--to", c.To)
	if err != nil {
		return nil, err
	}
	if to.position > 0 && from.position >= to.position || to.time != 0 && from.time >= to.time && from.time != 0 {
		return nil, usagef("replay: nothing lies between --from %s and --to %s", c.From, c.To)
	}
	if c.UseCheckpoint && (c.any() || c.State == "") {
		return nil, usagef("replay: --use-checkpoint needs --state, where the checkpoints are")
	}
	now := time.Now()
	return &replay{from: from, to: to, digest: c.Digest, con: con, begun: now, told: now}, nil
}

// resume is where the source begins.
type resume struct {
	place    ingest.Resume
	identity *ingest.Identity
}

// begin makes the core: a fresh one, or that of a checkpoint.
func (c *replayCmd) begin(r *replay, state string, config incremental.Config) (at resume, err error) {
	if !c.UseCheckpoint {
		if r.core, err = incremental.New(config); err != nil {
			err = usageError{err}
		}
		return at, err
	}
	dir := checkpoint.Look(checkpoint.Disk{}, filepath.Join(state, "checkpoints"))
	positions, err := dir.List()
	if err != nil {
		return at, err
	}
	for _, p := range positions {
		if most := max(r.from.position, r.to.position); r.from.position > 0 && p > uint64(r.from.position) ||
			most > 0 && p > uint64(most) {
			continue
		}
		saved, err := dir.Read(p)
		if err != nil || saved.Manifest.Config != config.Digest() {
			fmt.Fprintf(r.con.Err, "replay: checkpoint %d is passed over: damaged, or of another configuration\n", p)
			continue
		}
		if r.core, err = incremental.Restore(config, saved.Sections); err != nil {
			return at, err
		}
		r.alerts = &replayAlerts{section: saved.Sections[alertsSection]}
		fmt.Fprintf(r.con.Err, "replay: begins at checkpoint %d\n", p)
		at.place, at.identity = resumeOf(saved.Manifest)
		return at, nil
	}
	return at, fmt.Errorf("replay: no checkpoint in %s is intact, of this configuration and early enough; "+
		"leave --use-checkpoint out to begin with the log", state)
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
		if r.to.passed(&batch) {
			return nil
		}
		result := r.core.Step(&batch)
		shown := r.from == (logPlace{}) || r.from.passed(&batch)
		if err := r.alerts.evaluate(&batch, result.Estimates, shown); err != nil {
			return err
		}
		if shown {
			if err := r.writeEstimates(result.Estimates); err != nil {
				return err
			}
			if err := r.tellDigest(&batch, result.Vacuumed); err != nil {
				return err
			}
		}
		r.events += batch.Events()
		r.tellProgress(source, &batch)
	}
}

// tellDigest names the state after a step as a line of JSON.
func (r *replay) tellDigest(b *event.Batch, vacuumed bool) error {
	wanted := map[string]bool{"step": true, "emission": b.Emit, "checkpoint": vacuumed}
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
		Position: b.Last, Time: b.Time.String(), Emission: b.Emit, Checkpoint: vacuumed,
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
		if r.to.position > 0 {
			end = fmt.Sprintf(" of %d", r.to.position)
		}
	}
	fmt.Fprintf(r.con.Err, "replay: position %d%s, log time %s, %.0f events a second\n",
		b.Last, end, b.Time, float64(r.events)/now.Sub(r.begun).Seconds())
}
