package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"gqlstream/alerts"
	"gqlstream/config"
	"gqlstream/ingest/event"
	"gqlstream/pipeline"
	"gqlstream/quant"
	"gqlstream/sinks"
)

// replayAlerts are the alerts of a replay; without an engine there are none.
type replayAlerts struct {
	engine  *alerts.Engine
	beats   pipeline.Heartbeats // alerts are evaluated where something is published
	out     io.Writer
	file    io.Closer // nil for standard output
	instead bool      // of the estimates, on standard output
}

// openAlerts makes the engine and the file of --alerts.
func (c *replayCmd) openAlerts(r *replay, settings config.Settings) error {
	a := &r.alerts
	if c.Alerts == "" {
		return nil
	}
	if c.UseCheckpoint {
		return config.Usagef("replay: --alerts needs the log from its beginning, since checkpoints hold no alerts; leave --use-checkpoint out")
	}
	conf, err := settings.AlertRules()
	if err != nil {
		return config.Usage(err)
	}
	if len(conf.Rules) == 0 {
		return config.Usagef("replay: --alerts is given, and the configuration has no alerts")
	}
	if a.engine, err = alerts.New(conf); err != nil {
		return err
	}
	a.beats = make(pipeline.Heartbeats, max(settings.Group.Shards, 1))
	if c.Alerts == "-" {
		a.instead, a.out = true, r.con.Out
		return nil
	}
	file, err := os.Create(c.Alerts)
	if err != nil {
		return err
	}
	a.file, a.out = file, file
	return nil
}

// evaluate takes what a step published, and writes what began and ended if it is
// asked for.
func (a *replayAlerts) evaluate(b *event.Batch, estimates []quant.Estimate, shown bool) error {
	e := sinks.Emission{Position: uint64(b.Last), Time: int64(b.Time), Estimates: estimates, Cut: b.Checkpoint, Notes: b.Notes()}
	if a.engine == nil || !b.Emit || !a.beats.Publishes(&e) {
		return nil
	}
	out := a.engine.Evaluate(alerts.Moment{Position: uint64(b.Last), Time: int64(b.Time)}, estimates)
	if !shown {
		return nil
	}
	for i := range out {
		if _, err := fmt.Fprintf(a.out, "%s\n", out[i].JSON()); err != nil {
			return err
		}
	}
	return nil
}

// writeEstimates prints estimates and notes, unless alerts are printed in their place.
func (r *replay) writeEstimates(b *event.Batch, estimates []quant.Estimate) error {
	if r.alerts.instead {
		return nil
	}
	notes := sinks.NotesOf(uint64(b.Last), int64(b.Time), b.Notes())
	return errors.Join(writeLines(r.con.Out, estimates), writeLines(r.con.Out, notes))
}

func (r *replay) closeAlerts() error {
	if r.alerts.file == nil {
		return nil
	}
	return r.alerts.file.Close()
}
