package pipeline

import (
	"context"
	"log/slog"
	"sync/atomic"

	"gqlstream/ingest"
	"gqlstream/pipeline/config"
	"gqlstream/sinks"
)

// folds are the folds of a run: the main one, which publishes, and the next one, which will replace
// it. Any goroutine may read them.
type folds struct {
	log  *slog.Logger
	main atomic.Pointer[fold]
	next atomic.Pointer[fold] // nil: none
}

// openMain opens the fold that publishes, from the newest usable checkpoint or the log's start.
func (f *folds) openMain(ctx context.Context, opener *opener, o *Options) error {
	var owned []int
	if g := opener.group; g != nil {
		owned = shardsOf(g.member.Places(opener.shards, g.copies))
	}
	main := newFold(opener.Config, opener.shards, owned)
	f.main.Store(main)
	return opener.open(ctx, main, o)
}

// opened returns the main fold, and the next one if there is one that is open.
func (f *folds) opened() []*fold {
	list := []*fold{f.main.Load()}
	if next := f.next.Load(); next != nil && next.opened.Load() {
		list = append(list, next)
	}
	return list
}

// processMark tells the folds how far another worker has published a shard.
func (f *folds) processMark(m sinks.Mark) {
	for _, one := range f.opened() {
		one.outlets.processMark(m)
	}
}

func (f *folds) close() error {
	if main := f.main.Load(); main != nil {
		main.outlets.close(f.log)
		main.close()
	}
	if next := f.next.Load(); next != nil {
		next.close()
	}
	return nil
}

// opener opens folds.
type opener struct {
	*base
	writers sinks.WriterConfig // for the outlets
	reader  sinks.ReaderConfig
	// position of the last recompute event that this process has published
	recompute atomic.Uint64
}

func newOpener(b *base, out *output, followers *followers) *opener {
	return &opener{
		base: b,
		writers: sinks.WriterConfig{
			Streams: out.streams,
			Shards:  b.shards,
			Writer:  b.process,
			Config:  b.Config.Digest(),
			Classes: b.settings.Classes,
			Log:     b.logID,
			Needed:  followers.slowestOfGroup,
		},
		reader: out.reader,
	}
}

// open restores the core of a fold, and starts reading the log after it.
func (p *opener) open(ctx context.Context, f *fold, o *Options) (err error) {
	if f.steps, err = p.settings.Steps(); err != nil {
		return err
	}
	if err = f.outlets.open(ctx, p.Broker.JS, p.writers, f.owned()); err != nil {
		return err
	}
	if f.outputEnd, err = sinks.Newest(ctx, p.Broker.JS, p.reader); err != nil {
		return err
	}
	core, at, identity, err := p.restore(ctx, f, o.Same)
	if f.core = core; err != nil {
		return err
	}
	f.applied.Store(uint64(at.Position))
	if err = p.skipMessages(ctx, f, o.Skip); err != nil {
		return err
	}
	if core.Waits() {
		if err = p.askToRecompute(ctx, f, identity); err != nil {
			return err
		}
	}
	c := ingest.JetStreamConfig{
		Step: f.steps, From: at, Identity: identity, Recorded: p.recorded, UntilLast: o.Drain,
	}
	if c.UntilLast {
		if err := identity.Check(ctx, p.Broker.JS); err != nil {
			return err // before anything is published for another log
		}
		if c.Until, err = publishEnd(ctx, p.Broker.JS, p.names.In.Log); err != nil {
			return err
		}
		if c.Until == 1 {
			p.log.Warn("the log was empty: nothing to estimate", "stream", p.names.In.Log,
				"at", p.Broker.Where)
		}
	}
	if f.source, err = OpenLog(ctx, p.Broker.JS, &p.settings, c); err == nil {
		f.core.Limit(f.source.Limits())
	}
	return err
}

// skipMessages records that messages are skipped. Applied messages cannot be.
func (p *opener) skipMessages(ctx context.Context, f *fold, r ingest.Range) error {
	switch {
	case r == ingest.Range{}:
		return nil
	case r.First <= f.core.Position():
		return config.Usagef("run: --skip %s: the checkpoint at position %d has applied it",
			r, f.core.Position())
	}
	p.log.Warn("the messages are skipped from now on; the log records it", "positions", r)
	return ingest.Skip(ctx, p.Broker.JS, p.names.In.Log, r)
}
