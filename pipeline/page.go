package pipeline

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"gqlstream/ask"
	"gqlstream/ingest/broker"
	"gqlstream/sinks"
	"gqlstream/sinks/web"
)

// openPage begins to answer on NATS and, unless they are turned off, starts page, API and
// metrics. It shows what was published before, as far as it does not come again.
func (p *Pipeline) openPage(ctx context.Context, freePort bool) error {
	http := p.settings.HTTP
	stored := sinks.NewHistory(p.Broker.JS, sinks.HistoryConfig{Names: p.names.Out, Log: p.logID})
	conf := web.Config{
		Listen: http.Listen, Hosts: http.Hosts, TokenFile: http.TokenFile, CertFile: http.CertFile, KeyFile: http.KeyFile,
		Pipeline: p.settings.Pipeline, Version: p.version, Classes: p.settings.Classes, Logger: p.log,
		Explain: p.Explain, Sinks: p.states, History: stored.Between, Rollups: p.rollups.Read,
		NATS: broker.Redacted(p.settings.NATS.URL), Quarantine: p.refusals, Quiet: p.Config.Emit.AtLeastEvery,
	}
	conf.Ask = func(q ask.Question) (*ask.Answer, error) {
		return ask.OfState(p.settings.State, p.settings.Classes, p.Config.MembersMin <= 1, q)
	}
	page, err := web.New(conf)
	if errors.Is(err, syscall.EADDRINUSE) && freePort {
		p.Taken = conf.Listen
		host, _, _ := net.SplitHostPort(conf.Listen)
		conf.Listen = net.JoinHostPort(host, "0")
		page, err = web.New(conf)
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("%w; another program, or another gqlstream, has it: choose another address with --http, "+
			"or --http off for no page", err)
	case err != nil:
		return fmt.Errorf("%w; choose another address with --http, or --http off for no page", err)
	}
	p.Page = page
	p.closers = append(p.closers, page.Close)
	stop, err := page.AnswerOn(p.Broker.NC, p.names.Out.Queries())
	if err != nil {
		return err
	}
	p.closers = append(p.closers, stop)
	if err := p.seedAlerts(ctx); err != nil {
		return err
	}
	notes, err := p.rollups.Notes(ctx, web.NotesMax)
	if err != nil {
		p.log.Warn("the page begins without the notes before", "error", err)
	}
	page.AddNotes(notes)
	p.awaitBucket(ctx)
	latest, err := stored.Latest(ctx, p.beginAt.Position)
	if err == nil {
		err = page.Load(latest)
	}
	if err != nil {
		p.log.Warn("the page begins without the estimates before", "error", err)
	}
	return nil
}

// bucketWaitMax bounds how long a start waits for the broker's copy of the latest
// estimates.
const bucketWaitMax = 2 * time.Second

// awaitBucket waits until the bucket holds what was published before this run: the page
// begins with it, and follows what comes after.
func (p *Pipeline) awaitBucket(ctx context.Context) {
	for begun := time.Now(); time.Since(begun) < bucketWaitMax && ctx.Err() == nil; time.Sleep(catchUpLookEvery) {
		stream, err := p.Broker.JS.Stream(ctx, "KV_"+p.names.Out.Latest)
		if err != nil {
			return
		}
		if sources := stream.CachedInfo().Sources; len(sources) == 1 && sources[0].Lag == 0 && sources[0].Active >= 0 {
			return
		}
	}
}

// showEstimates gives the page what is published.
func (p *Pipeline) showEstimates(ctx context.Context, e *sinks.Stored) error {
	estimates, err := e.Estimates()
	if err != nil {
		return err
	}
	p.Page.AddNotes(sinks.NotesOf(e.Position, e.Time, e.Notes))
	return p.Page.Write(ctx, estimates)
}
