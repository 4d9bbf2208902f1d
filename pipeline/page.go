package pipeline

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/incremental/ask"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/internal/request"
	"gqlstream/pipeline/config"
	"gqlstream/quant"
	"gqlstream/sinks"
	"gqlstream/sinks/web"
)

// openPage starts page, API and metrics, unless they are turned off. It returns also the
// configured address, if another program has it and the page has another one.
func openPage(
	b *base, out *output, states func() []request.State, deployment func() web.Deployment,
	freePort bool,
) (page *web.Server, taken string, err error) {
	conf := pageConfig(b, out)
	conf.Sinks, conf.Deployment = states, deployment
	page, err = web.New(conf)
	if errors.Is(err, syscall.EADDRINUSE) && freePort {
		taken = conf.Listen
		host, _, _ := net.SplitHostPort(conf.Listen)
		conf.Listen = net.JoinHostPort(host, "0")
		page, err = web.New(conf)
	}
	if errors.As(err,
		// do not wrap it: a network error would count as a broker that may come back
		new(*net.OpError)) {
		return nil, "", fmt.Errorf(
			"%v; choose another address with --http, or --http off for no page",
			err) //nolint:errorlint // see above
	}
	return page, taken, err
}

// pageConfig returns the settings of the page, and the functions that answer its questions.
func pageConfig(b *base, out *output) web.Config {
	conf := web.Config{
		HTTP:     b.settings.HTTP,
		Pipeline: b.settings.Pipeline, Version: b.version,
		Classes: b.settings.Classes,
		Logger:  b.log,
		Questions: web.Questions{
			Records:    out.history.Read,
			Rollups:    out.rollups.Read,
			Explain:    b.Explain,
			Quarantine: b.newestRefusals,
		},
		Display: b.settings.Display,
		State:   b.settings.State,
		NATS:    b.serverForCommands(),
		Quiet:   b.Config.Emit.AtLeastEvery,
	}
	for kind := range event.Kind(event.Kinds) {
		conf.Kinds = append(conf.Kinds, kind.String())
	}
	for _, reason := range event.Reasons {
		conf.Reasons = append(conf.Reasons, string(reason))
	}
	conf.InForce = func(
		ctx context.Context, community, method string, at time.Time,
	) (quant.Estimate, bool, error) {
		return out.history.InForce(ctx, community, method, 0, at)
	}
	conf.Ask = func(q ask.Question) (*ask.Answer, error) {
		return ask.OfState(b.settings.State, b.settings.Classes, b.Config.MembersMin,
			b.group.fetchShards, q)
	}
	if b.settings.HTTP.Answers {
		conf.Publish = b.publishAnswers
	}
	if b.settings.HTTP.Silences {
		conf.Note = b.publishNote
	}
	return conf
}

// answerQuestions starts to answer on NATS.
func answerQuestions(b *base, page *web.Server, opened *closers) error {
	nc, own, err := config.ConnectToAnswer(b.settings, b.Broker.NC, b.log)
	if err != nil {
		return err
	}
	if own {
		opened.add(func() error { nc.Close(); return nil })
	}
	stop, err := page.AnswerOn(nc, b.names.Out.Queries(), b.settings.NATS.Answers.Inboxes...)
	if err != nil {
		return err
	}
	opened.add(stop)
	return nil
}

// serverForCommands is the server address in commands that the page shows, without secrets; empty
// if the server is inside this process and has no port.
func (p *plan) serverForCommands() string {
	if nats := p.settings.NATS; nats.URL == "" && nats.Listen != "" {
		return "nats://" + nats.Listen
	}
	return broker.Redacted(p.settings.NATS.URL)
}

// pageTask fills the page and lets it follow the output log. It runs in parallel to the loop:
// reading earlier records may take seconds after servers died.
func (p *Pipeline) pageTask(from sinks.Cursor) task {
	open, filled := takeBehind(from, p.showEstimates), false
	return task{
		FollowConfig: sinks.FollowConfig{
			Name: "page",
			Open: func(ctx context.Context) (sinks.Follower, sinks.Cursor, error) {
				if !filled {
					if err := p.fillPage(ctx, from); err != nil {
						return nil, sinks.Cursor{}, err
					}
					filled = true
				}
				return open(ctx)
			},
		},
	}
}

// fillPage shows the records before a cursor on the page, which will not get them again.
func (p *Pipeline) fillPage(ctx context.Context, from sinks.Cursor) error {
	awaitBucket(ctx, p.Broker.JS, p.names.Out, from.Sequence)
	latest, err := p.history.Latest(ctx, from.Position)
	if err != nil {
		return err
	}
	notes, err := p.rollups.Notes(ctx, web.NotesMax)
	if err != nil {
		return err
	}
	p.Page.AddNotes(notes)
	p.Page.Load(latest)
	ctx, cancel := context.WithTimeout(ctx, trendsWaitMax)
	defer cancel()
	if err := p.rollups.Recent(ctx, p.Page.Recall); err != nil {
		p.log.Warn("the page shows trends from this start on", "error", err)
	}
	return nil
}

const (
	// how long a start waits for the broker's copy of the latest estimates
	bucketWaitMax = 2 * time.Second
	trendsWaitMax = 5 * time.Second // how long new records wait for the records of the last day
)

// awaitBucket waits until the bucket has the records up to a sequence: the page begins with it, and
// follows later records, which other workers may publish at any time.
func awaitBucket(ctx context.Context, js jetstream.JetStream, names sinks.Names, sequence uint64) {
	for begun := time.Now(); time.Since(begun) < bucketWaitMax &&
		ctx.Err() == nil; time.Sleep(catchUpLookEvery) {
		out, err := js.Stream(ctx, names.Estimates)
		if err != nil {
			return
		}
		stream, err := js.Stream(ctx, "KV_"+names.Latest)
		if err != nil {
			return
		}
		sources := stream.CachedInfo().Sources
		if len(sources) == 1 && sources[0].Active >= 0 &&
			sequence+sources[0].Lag <= out.CachedInfo().State.LastSeq {
			return
		}
	}
}

func (p *Pipeline) showEstimates(_ context.Context, e *sinks.Stored) error {
	estimates, err := e.Estimates()
	if err != nil {
		return err
	}
	p.Page.AddNotes(sinks.NotesOf(e.Position, e.Time, e.Notes))
	p.Page.Write(estimates)
	return nil
}
