package pipeline

import (
	"context"
	"log/slog"
	"sync/atomic"

	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/pipeline/config"
	"gqlstream/sinks"
)

// folds are the folds of a run: the main one, which publishes, and the next one, which will replace
// it. Until then the next one publishes only what no other worker has published for a while. Any
// goroutine may read them.
type folds struct {
	log     *slog.Logger
	reached *reached
	main    atomic.Pointer[fold]
	next    atomic.Pointer[fold] // nil: none
}

// openMain opens the fold that publishes, from the newest usable checkpoint or the log's start.
func (f *folds) openMain(ctx context.Context, opener *opener, o *Options) error {
	var owned []int
	if g := opener.group; g != nil {
		owned = shardsOf(g.member.Places(opener.shards, g.copies))
	}
	main := newFold(opener.Config, owned)
	parts, err := opener.open(ctx, main.config, o)
	if err != nil {
		return err
	}
	main.install(parts)
	f.main.Store(main)
	return nil
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

func (f *folds) close() (err error) {
	if main := f.main.Load(); main != nil {
		main.outlets.close(f.log)
		err = f.reached.recordOutput(main.outlets.sequence())
		main.close()
	}
	if next := f.next.Load(); next != nil {
		next.close()
	}
	return err
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

// open opens the parts of a fold with a configuration: it restores the core, and starts reading the
// log after it. After an error nothing stays open.
func (p *opener) open(
	ctx context.Context, c incremental.Config, o *Options,
) (parts foldParts, err error) {
	steps, err := p.settings.Steps()
	if err != nil {
		return parts, err
	}
	out, err := openOutlets(ctx, p.Broker.JS, p.writers, c.Owned)
	if err != nil {
		return parts, err
	}
	end, err := sinks.Newest(ctx, p.Broker.JS, p.reader)
	if err != nil {
		return parts, err
	}
	core, at, identity, err := p.restore(ctx, c, out, o.Same)
	if err != nil {
		return parts, err
	}
	source, err := p.openSource(ctx, core, at, identity, steps, o)
	if err != nil {
		core.Close()
		return parts, err
	}
	core.Limit(source.Limits())
	return foldParts{steps, out, end, at.Position, core, source}, nil
}

// openSource opens the log after the place of a core. It records skipped messages before.
func (p *opener) openSource(
	ctx context.Context, core *incremental.Core, at ingest.Resume, identity *ingest.Identity,
	steps ingest.StepConfig, o *Options,
) (*ingest.JetStreamSource, error) {
	if err := p.skipMessages(ctx, core, o.Skip); err != nil {
		return nil, err
	}
	if core.Waits() {
		if err := p.askToRecompute(ctx, core, identity); err != nil {
			return nil, err
		}
	}
	c := ingest.JetStreamConfig{
		Step: steps, From: at, Identity: identity, Recorded: p.recorded, UntilLast: o.Drain,
	}
	if c.UntilLast {
		if err := identity.Check(ctx, p.Broker.JS); err != nil {
			return nil, err // before anything is published for another log
		}
		var err error
		if c.Until, err = publishEnd(ctx, p.Broker.JS, p.names.In.Log); err != nil {
			return nil, err
		}
		if c.Until == 1 {
			p.log.Warn("the log was empty: nothing to estimate", "stream", p.names.In.Log,
				"at", p.Broker.Where)
		}
	}
	return OpenLog(ctx, p.Broker.JS, &p.settings, c)
}

// skipMessages records that messages are skipped. Applied messages cannot be.
func (p *opener) skipMessages(
	ctx context.Context, core *incremental.Core, r ingest.Range,
) error {
	switch {
	case r == ingest.Range{}:
		return nil
	case r.First <= core.Position():
		return config.Usagef("run: --skip %s: the checkpoint at position %d has applied it",
			r, core.Position())
	}
	p.log.Warn("the messages are skipped from now on; the log records it", "positions", r)
	return ingest.Skip(ctx, p.Broker.JS, p.names.In.Log, r)
}
