package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"

	"gqlstream/alerts"
	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/quant"
	"gqlstream/sinks"
	"gqlstream/sinks/notify"
)

// alertsSection is the part of a checkpoint that holds the alerts. It is no part of
// the core's state: the rules may change without the log being read again.
const alertsSection = "alerts.arrow"

// alerting is the engine of the alerts, under the rules in force at the position
// that the log has reached, and where transitions go. The run loop owns it.
type alerting struct {
	engine  *alerts.Engine
	history ruleHistory
	at      int    // generation in force; -1: none yet
	digest  string // of the core's configuration
	log     *slog.Logger

	stream  *sinks.Alerts // nil in a replay
	targets *notify.Targets
	shown   shown
	fired   map[string]uint64 // transitions into firing since the process began, by rule
}

// alertsState is the one row of alertsSection.
type alertsState struct {
	Generation uint32 // in the file of rules, from 1; 0: none
	Engine     []byte // JSON
}

// restoreAlerting returns the alerts as a checkpoint has them, which may be of
// another configuration, or none.
func restoreAlerting(section []byte, c alerts.Config, history ruleHistory) (*alerting, error) {
	a := &alerting{history: history, at: -1, fired: map[string]uint64{}}
	if section == nil {
		engine, err := alerts.New(alerts.Config{Pipeline: c.Pipeline, Classes: c.Classes, Methods: c.Methods})
		a.engine = engine
		return a, err
	}
	rows, err := graphstore.ReadRows[alertsState](section)
	switch {
	case err == nil && len(rows) != 1:
		err = fmt.Errorf("%d rows, want 1", len(rows))
	case err == nil && int(rows[0].Generation) > len(history.Generations):
		err = fmt.Errorf("%s has not the rules that held then; restore it, or move it away with the directory of "+
			"checkpoints, and the log is read again", alertRulesFile)
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoint: section %s: %w", alertsSection, err)
	}
	a.at = int(rows[0].Generation) - 1
	a.engine, err = alerts.Restore(c, rows[0].Engine)
	return a, err
}

// section returns the state for a checkpoint.
func (a *alerting) section() (incremental.Section, error) {
	var data bytes.Buffer
	err := graphstore.WriteRows(&data, []alertsState{{Generation: uint32(a.at + 1), Engine: a.engine.Save()}})
	return incremental.Section{Name: alertsSection, Data: data.Bytes()}, err
}

// evaluate takes what a step published. Steps that do not emit change nothing.
func (a *alerting) evaluate(b *event.Batch, estimates []quant.Estimate) []alerts.Transition {
	if !b.Emit || !a.advance(uint64(b.Last)) {
		return nil
	}
	out := a.engine.Evaluate(alerts.Moment{Position: uint64(b.Last), Time: int64(b.Time)}, estimates)
	for _, t := range out {
		if t.State == alerts.Firing {
			a.fired[t.Rule]++
		}
	}
	return out
}

// advance puts the rules in force that hold at a position. It reports whether there
// are any: what an earlier configuration has seen is not evaluated again.
func (a *alerting) advance(position uint64) bool {
	first, forgotten := a.history.first(a.digest), 0
	for next := max(a.at+1, first); next < len(a.history.Generations); next++ {
		g := &a.history.Generations[next]
		if g.From >= position {
			break
		}
		a.at = next
		if g.Forgotten || g.Classes == nil { // as files of earlier versions say it
			forgotten++
			continue
		}
		c := alerts.Config{Pipeline: g.Pipeline, Classes: g.Classes, Methods: g.Methods, Rules: g.Rules}
		if err := a.engine.Configure(c); err != nil {
			a.log.Error("alert rules are left out", "generation", next+1, "error", err) // they were valid when written
		}
	}
	if forgotten > 0 {
		a.log.Warn("alert rules that held for a while are not remembered: alerts go on under those before", "sets", forgotten)
	}
	return a.at >= first
}

// publish writes transitions where they are kept; delivery reads them from there.
func (a *alerting) publish(ctx context.Context, transitions []alerts.Transition) error {
	if len(transitions) == 0 {
		return nil
	}
	if err := a.stream.Write(ctx, transitions); err != nil {
		return err
	}
	for _, t := range transitions {
		a.log.Info("alert", "rule", t.Rule, "community", t.Community, "class", t.Class, "state", t.State,
			"position", t.Position, "reason", t.Reason)
	}
	return nil
}

// openAlerts makes the alerts of a pipeline, whose core stands at its position.
func (p *pipeline) openAlerts(ctx context.Context, section []byte, restored bool) error {
	config, err := p.settings.alerts()
	if err != nil {
		return usageError{err}
	}
	history, err := readRules(p.settings.State)
	if err != nil {
		return err
	}
	from := uint64(0)
	if restored || len(history.Generations) > 0 {
		log, err := p.broker.js.Stream(ctx, ingest.DefaultStreamNames().Log)
		if err != nil {
			return err
		}
		from = log.CachedInfo().State.LastSeq
	}
	history.add(from, p.config.Digest(), config)
	if p.alerts, err = restoreAlerting(section, config, history); err != nil {
		return err
	}
	p.alerts.digest, p.alerts.log = p.config.Digest(), p.log
	return nil
}

// openAlertSinks opens what transitions are written to.
func (p *pipeline) openAlertSinks(ctx context.Context, log string) (err error) {
	a := p.alerts
	names := ingest.DefaultStreamNames()
	if a.stream, err = sinks.NewAlerts(p.broker.nc, sinks.NATSConfig{Stream: names.Alerts, Log: log}); err != nil {
		return err
	}
	p.closers = append(p.closers, a.stream.Close, func() error { return p.closeTargets() })
	if a.targets, err = p.startTargets(ctx, p.settings); err != nil {
		return err
	}
	return a.targets.RemoveOthers(ctx)
}

// startTargets begins to tell those whom the settings name.
func (p *pipeline) startTargets(ctx context.Context, settings fileConfig) (*notify.Targets, error) {
	config, err := settings.notify()
	if err != nil {
		return nil, usageError{err}
	}
	return notify.Start(ctx, p.broker.js, ingest.DefaultStreamNames().Alerts, config, p.log)
}

func (p *pipeline) closeTargets() error {
	if p.alerts.targets == nil {
		return nil
	}
	return p.alerts.targets.Close()
}

// alert evaluates the alerts after a step, publishes what began and ended, and
// tells it.
func (p *pipeline) alert(ctx context.Context, b *event.Batch, estimates []quant.Estimate) ([]alerts.Transition, error) {
	transitions := p.alerts.evaluate(b, estimates)
	if err := p.alerts.publish(ctx, transitions); err != nil {
		return nil, fmt.Errorf("position %d: %w", b.Last, err)
	}
	p.tellAlerts(transitions)
	return transitions, nil
}
