package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"gqlstream/incremental"
	"gqlstream/incremental/prequential"
	"gqlstream/ingest/event"
	"gqlstream/sinks"
	"gqlstream/sinks/web"
)

// httpOff turns the page off.
const httpOff = "off"

// openPage starts the page, the API and the metrics, unless they are turned off. It
// shows what was published before, as far as it does not come again.
func (p *pipeline) openPage(ctx context.Context, stored *sinks.Stored, freePort bool) error {
	http := p.settings.HTTP
	if http.Listen == httpOff {
		return nil
	}
	config := web.Config{
		Listen: http.Listen, Hosts: http.Hosts, TokenFile: http.TokenFile, CertFile: http.CertFile, KeyFile: http.KeyFile,
		Pipeline: p.settings.Pipeline, Version: version, Classes: p.settings.Classes, Logger: p.log,
		Explain: p.explain, Sinks: p.sinkStates, MetricsMax: http.MetricsMax, History: stored.Between,
	}
	page, err := web.New(config)
	if errors.Is(err, syscall.EADDRINUSE) && freePort {
		p.taken = config.Listen
		host, _, _ := net.SplitHostPort(config.Listen)
		config.Listen = net.JoinHostPort(host, "0")
		page, err = web.New(config)
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w; another program, or another gqlstream, has it: choose another address with --http, "+
			"or --http off for no page", err)
	case err != nil:
		return fmt.Errorf("%w; choose another address with --http, or --http off for no page", err)
	}
	p.page = page
	if err := p.seedAlerts(ctx); err != nil {
		return errors.Join(err, page.Close())
	}
	p.sinks = append(p.sinks, page)
	p.closers = append(p.closers, page.Close)
	latest, err := stored.Latest(ctx, uint64(p.core.Position()))
	if err == nil {
		err = page.Load(latest)
	}
	if err != nil {
		p.log.Warn("the page begins without the estimates before", "error", err)
	}
	return nil
}

// tell shows on the page where the pipeline stands after a step.
func (p *pipeline) tell(result *incremental.Result, took [2]time.Duration) {
	if p.page == nil {
		return
	}
	now := p.source.Stats()
	s := web.Status{
		State: "running", Position: uint64(result.Position), End: uint64(result.Position) + now.Behind,
		Engine: result.Engine, Steps: p.stats.steps, Step: took[0] + took[1],
		Stages: []web.Stage{{Name: "core", Took: took[0]}, {Name: "sinks", Took: took[1]}},
		Events: map[string]uint64{}, Refused: map[string]uint64{}, Late: map[string]uint64{},
		Checkpoint: web.Checkpoint{
			Position: uint64(p.checkpoints.last.position), At: p.checkpoints.last.at,
			Took: p.checkpoints.last.took, Bytes: p.checkpoints.last.bytes, Failed: p.checkpoints.failed,
		},
		Graph: web.Graph{
			Vertices: uint64(p.core.View().Present()), Edges: uint64(p.core.View().Edges()),
		},
	}
	s.Mismatches, s.Models = p.definitions.misses, p.models()
	if now.Behind > catchingUp {
		s.State, s.Message = "replaying", fmt.Sprintf("%d messages behind", now.Behind)
	}
	if result.Time != 0 {
		s.LogTime = time.Unix(0, int64(result.Time)).UTC()
	}
	for kind, n := range p.stats.byKind {
		s.Events[event.Kind(kind).String()] = n
	}
	for kind, n := range p.stats.late {
		if n > 0 {
			s.Late[event.Kind(kind).String()] = n
		}
	}
	for reason, n := range p.stats.byReason {
		s.Refused[string(reason)] = n
	}
	p.page.Status(s)
}

// models returns how right the model versions have been.
func (p *pipeline) models() (models []web.Model) {
	names := p.core.View().Versions()
	for _, v := range p.core.Judged() {
		m := web.Model{Version: names[v.Version], Degraded: v.Degraded, Drift: v.Drift / prequential.Threshold}
		for i := range v.Classes {
			c := &v.Classes[i]
			one := web.ModelClass{
				Class: p.settings.Classes[i], Judged: c.Judged, Accuracy: c.Accuracy, Brier: c.Brier, LogScore: c.LogScore,
			}
			if reference, ok := c.Reference(); ok {
				one.Reference = &reference
			}
			m.Classes = append(m.Classes, one)
		}
		models = append(models, m)
	}
	return models
}

// catchingUp is how many messages behind the end of the stream a pipeline may be
// and still call itself running.
const catchingUp = 1000
