package main

import (
	"fmt"
	"io"
	"os"

	"gqlstream/alerts"
	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/quant"
	"gqlstream/sinks"
)

// replayAlerts are the alerts of a replay; without an engine there are none.
type replayAlerts struct {
	section []byte // of the checkpoint at which the replay begins; nil: none
	engine  *alerts.Engine
	lines   *sinks.Lines
	file    io.Closer // nil for standard output
	instead bool      // of the estimates, on standard output
}

// openAlerts makes the engine and the file of --alerts.
func (c *replayCmd) openAlerts(r *replay, settings fileConfig) error {
	if r.alerts == nil {
		r.alerts = &replayAlerts{}
	}
	a := r.alerts
	if c.Alerts == "" {
		return nil
	}
	config, err := settings.alerts()
	if err != nil {
		return usageError{err}
	}
	if len(config.Rules) == 0 {
		return usagef("replay: --alerts is given, and the configuration has no alerts")
	}
	if a.engine, err = a.begin(config); err != nil {
		return err
	}
	if c.Alerts == "-" {
		a.instead, a.lines = true, sinks.NewLines(r.con.Out)
		return nil
	}
	file, err := os.Create(c.Alerts)
	if err != nil {
		return err
	}
	a.file, a.lines = file, sinks.NewLines(file)
	return nil
}

// begin returns the engine as the checkpoint has it, under the rules given.
func (a *replayAlerts) begin(c alerts.Config) (*alerts.Engine, error) {
	if a.section == nil {
		return alerts.New(c)
	}
	rows, err := graphstore.ReadRows[alertsState](a.section)
	if err != nil || len(rows) != 1 {
		return nil, fmt.Errorf("replay: section %s: %d rows: %w", alertsSection, len(rows), err)
	}
	engine, err := alerts.Restore(c, rows[0].Engine)
	if err != nil {
		return nil, err
	}
	return engine, engine.Configure(c)
}

// evaluate takes what a step published, and writes what began and ended if it is
// asked for.
func (a *replayAlerts) evaluate(b *event.Batch, estimates []quant.Estimate, shown bool) error {
	if a.engine == nil || !b.Emit {
		return nil
	}
	out := a.engine.Evaluate(alerts.Moment{Position: uint64(b.Last), Time: int64(b.Time)}, estimates)
	if !shown {
		return nil
	}
	return a.lines.WriteAlerts(out)
}

// writeEstimates prints estimates, unless alerts are printed in their place.
func (r *replay) writeEstimates(estimates []quant.Estimate) error {
	if r.alerts.instead {
		return nil
	}
	return writeLines(r.con.Out, estimates)
}

func (r *replay) closeAlerts() error {
	if r.alerts == nil || r.alerts.file == nil {
		return nil
	}
	return r.alerts.file.Close()
}
