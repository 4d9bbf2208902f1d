package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/config"
	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
	"gqlstream/request"
	"gqlstream/sinks"
	"gqlstream/sinks/web"
)

// Pipeline joins one source, one core, the log out and its followers. The loop's goroutine owns
// the core, the checkpoints and their counts.
type Pipeline struct {
	settings   config.Settings
	Config     incremental.Config
	log        *slog.Logger
	names      names
	Broker     *broker.Broker
	source     *ingest.JetStreamSource
	ticker     atomic.Pointer[ingest.Ticker] // nil until it is started, and where none is needed
	full       atomic.Pointer[request.State] // since when the embedded server cannot write; nil: it can
	Core       *incremental.Core
	quarantine *ingest.QuarantineWriter

	outlets outlets
	group   *membership   // nil for a run alone
	applied atomic.Uint64 // last position that the core has applied

	logID       string       // of the log that positions count in
	beginAt     sinks.Cursor // the end of the log out when the pipeline was opened
	followers   followers
	rollups     *sinks.Rollups
	alerting    *alerting
	Page        *web.Server
	history     *sinks.History
	version     string
	Taken       string // address that the page was to have, and another program has
	Checkpoints *checkpoints
	reload      *reloader // nil: the configuration is not read again
	idle        atomic.Bool
	behind      atomic.Bool                  // the next emission has records of the last one
	step        atomic.Pointer[stepUnderWay] // that the loop takes; nil: none
	closers     []func() error
	preparing   atomic.Bool   // the next pipeline is being prepared
	tookOver    time.Time     // when it began with what was prepared; zero: it did not, or has caught up
	auditEvery  time.Duration // see auditStreams
	dropped     bool          // and said so
	stats       runStats
	refused     atomic.Pointer[web.Quarantine] // how full the quarantine is; nil until it is known
	definitions definitions
	status      shownStatus
}

type names struct {
	In  broker.StreamNames
	Out sinks.Names
}

// Options are decisions of the caller besides the settings.
type Options struct {
	Version string         // of the program, for the page and the checkpoints
	Skip    event.Position // a message to pass over from now on; 0: none
	Drain   bool           // end after what the stream holds now
	Same    bool           // refuse a state of another configuration
	Out     io.Writer      // for estimates, where the settings say so
	Err     io.Writer      // for the greeting
	Log     *slog.Logger
	Follow  map[string]Take // further followers, by name

	Group  string // to take part in; empty: none
	Worker string // name of this worker in it; empty: of the host and the state directory
	member *membership

	FreePort bool // for the page, where the one it should have is taken
}

// Open connects, checks the streams and builds everything that Run needs.
func Open(ctx context.Context, settings config.Settings, o Options) (p *Pipeline, err error) {
	p = &Pipeline{settings: settings, log: o.Log, version: o.Version, stats: newRunStats(), group: o.member, auditEvery: streamsAuditEvery}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
			p = nil
		}
	}()
	if p.Config, err = settings.Core(); err != nil {
		return p, err
	}
	if p.names.In, p.names.Out, err = settings.Names(); err != nil {
		return p, err
	}
	p.Config.HashSeed = rand.Uint64() // another one at each start, since it decides nothing
	p.Config.Owned = p.group.owned(p.Config.Shards)
	steps, err := settings.Steps()
	if err != nil {
		return p, err
	}
	if err = p.openBroker(ctx); err != nil {
		return p, err
	}
	if err = limitLog(ctx, p.Broker.JS, p.names.In.Log, p.Config, p.log); err != nil {
		return p, err
	}
	if err = p.openOutput(ctx); err != nil {
		return p, err
	}
	r := restorer{Pipeline: p, config: p.Config, shards: p.outlets.watermarks(), same: o.Same}
	core, at, identity, err := r.restore(ctx)
	if p.Core = core; err != nil {
		return p, err
	}
	if r.next != nil {
		p.behind.Store(r.next.behind)
		p.tookOver = time.Now()
	}
	p.applied.Store(uint64(at.Position))
	p.status.last = web.Status{State: "running", Position: uint64(at.Position)} // said if no step comes; see showIdle
	p.closers = append(p.closers, func() error { p.Core.Close(); return nil }, p.Checkpoints.finish)
	if err = p.skip(ctx, o.Skip); err != nil {
		return p, err
	}
	err = p.openSource(ctx, ingest.JetStreamConfig{Stream: p.names.In.Log, Step: steps, From: at, Identity: identity, UntilLast: o.Drain})
	if err != nil {
		return p, err
	}
	return p, p.openFollowers(ctx, o)
}

func (p *Pipeline) openBroker(ctx context.Context) (err error) {
	if p.Broker, err = config.OpenBroker(p.settings, p.log); err != nil {
		return err
	}
	p.closers = append(p.closers, p.Broker.Close)
	if p.Broker.Embedded == nil { // which has a lock of its own
		lock, err := broker.AcquireLock(p.settings.State)
		if err != nil {
			return err
		}
		p.closers = append(p.closers, lock.Close)
	}
	replicas, err := openLog(ctx, p.Broker, p.names.In)
	if err != nil {
		return err
	}
	p.names.In.Replicas = cmp.Or(p.names.In.Replicas, replicas)
	id, err := ingest.IdentityAt(ctx, p.Broker.JS, p.names.In.Log, 0)
	p.logID = id.Created.Format(time.RFC3339Nano) // names the log, for outputs that must not mix two
	return err
}

func (p *Pipeline) openOutput(ctx context.Context) (err error) {
	if p.group != nil && p.group.saves != nil {
		p.Checkpoints = p.group.saves
	} else if p.Checkpoints, err = openCheckpoints(p.settings.State, p.log); err != nil {
		return err
	}
	if p.quarantine, err = ingest.NewQuarantineWriter(ctx, p.Broker.NC, p.names.In); err != nil {
		return err
	}
	self := identity()
	if p.group != nil {
		self, p.Checkpoints.share = p.group.self, p.group.share
	}
	p.followers.base = sinks.FollowConfig{JS: p.Broker.JS, Reader: sinks.ReaderConfig{Names: p.names.Out, Shards: max(p.Config.Shards, 1), Log: p.logID, Report: p.log}}
	p.followers.failed = make(chan error, 1)
	p.outlets.shards = max(p.Config.Shards, 1)
	err = p.outlets.open(ctx, p.Broker.JS, sinks.WriterConfig{
		Streams: p.streams(), Writer: self, Config: p.Config.Digest(), Classes: p.settings.Classes, Log: p.logID, Needed: p.slowest,
	}, p.Config.Owned)
	if err != nil {
		return err
	}
	p.followers.base.End = p.outlets.sequence
	p.rollups = sinks.NewRollups(sinks.RollupsConfig{JS: p.Broker.JS, Streams: p.streams(), Log: p.logID, Shelf: p.shelf(followerHistory, historyFile)})
	p.closers = append(p.closers, func() error { p.outlets.close(p.log); return nil })
	p.beginAt, err = sinks.Newest(ctx, p.Broker.JS, p.followers.base.Reader)
	return err
}

func (p *Pipeline) streams() sinks.StreamsConfig {
	return sinks.StreamsConfig{Names: p.names.Out, Bytes: int64(p.settings.Output.StreamBytesMax), Replicas: p.names.In.Replicas, Embedded: p.Broker.Embedded != nil}
}

// openFollowers opens the page and starts the followers of the log out.
func (p *Pipeline) openFollowers(ctx context.Context, o Options) error {
	if err := p.openPage(o.FreePort); err != nil {
		return err
	}
	p.alerting = &alerting{p: p, fired: map[string]uint64{}}
	p.closers = append(p.closers, p.alerting.close, func() error { p.followers.end(p.followers.tasks...); return nil })
	alertsAt, err := p.alerting.begin(ctx)
	if err != nil {
		return err
	}
	p.definitions.show(p.Core.View(), p.Page, p.log, true) // the log may be quiet for long
	p.listFollowers(o, alertsAt)
	return p.assignFollowers(context.WithoutCancel(ctx)) // they run until they are ended, in their order
}

// auditStreams checks that the log in can still be relied upon, and says once that the log out has begun to
// drop records, and every time that fewer servers keep one of them than shall. A broker that does not answer
// says nothing about it.
func (p *Pipeline) auditStreams(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, streamsAuditEvery/10)
	defer cancel()
	if out, err := p.Broker.JS.Stream(ctx, p.names.Out.Estimates); err == nil {
		p.auditReplicas(out)
		if out.CachedInfo().State.FirstSeq > 1 && !p.dropped {
			p.dropped = true
			p.log.Warn("the stream of estimates drops its oldest, and no explanation reaches further back; see output.stream_bytes_max",
				"stream", p.names.Out.Estimates, "begins", out.CachedInfo().State.FirstTime)
		}
	}
	stream, err := p.Broker.JS.Stream(ctx, p.names.In.Log)
	if err != nil {
		return nil //nolint:nilerr // the source says what is wrong
	}
	p.auditReplicas(stream)
	return broker.AuditStream(stream.CachedInfo().Config)
}

// auditReplicas warns of a stream that has lost copies. To end the run would give up what the others hold.
func (p *Pipeline) auditReplicas(stream jetstream.Stream) {
	if err := request.AuditReplicas(stream, p.names.In.Replicas); err != nil {
		p.log.Warn("the loss of one server would lose what a stream holds", "because", err)
	}
}

// logEnd asks for the last position of the log, which the loop learns only from what it reads.
func (p *Pipeline) logEnd(ctx context.Context) uint64 {
	ctx, cancel := context.WithTimeout(ctx, statusEvery)
	defer cancel()
	stream, err := p.Broker.JS.Stream(ctx, p.names.In.Log)
	if err != nil {
		return 0
	}
	return stream.CachedInfo().State.LastSeq
}

// skip records that a message is passed over. One that is applied already cannot be.
func (p *Pipeline) skip(ctx context.Context, position event.Position) error {
	switch {
	case position == 0:
		return nil
	case position <= p.Core.Position():
		return config.Usagef("run: --skip %d: the checkpoint at position %d has applied it", position, p.Core.Position())
	}
	p.log.Warn("the message is passed over from now on, and the log records it", "position", position)
	return ingest.Skip(ctx, p.Broker.JS, p.names.In.Log, position)
}

// openSource begins to read the log. A log that is drained gets a flush and a
// checkpoint first, in one message, so that the end of the run stands in the log, a
// replay ends the same way, and the next run starts here.
func (p *Pipeline) openSource(ctx context.Context, c ingest.JetStreamConfig) (err error) {
	if c.UntilLast {
		if err := checkHistory(ctx, p.Broker.JS, c); err != nil {
			return err // before anything is published to a log that is not ours
		}
		if c.Until, err = publishEnd(ctx, p.Broker.JS, p.names.In.Log); err != nil {
			return err
		}
	}
	if p.source, err = OpenLog(ctx, p.Broker.JS, &p.settings, c); err != nil {
		return err
	}
	p.closers = append(p.closers, p.source.Close)
	p.Core.Limit(p.source.Limits())
	if c.UntilLast || c.Step.Time == ingest.EventTime {
		return nil
	}
	pending := func() bool { return p.source.Pending() || p.behind.Load() }
	ticker := ingest.StartTicker(ctx, p.Broker.JS, ingest.TickerConfig{Stream: p.names.In.Log, Every: c.Step.Every, Pending: pending, Shared: p.group != nil})
	p.ticker.Store(ticker)
	p.closers = append(p.closers, func() error { ticker.Stop(); return nil })
	return nil
}

// OpenLog opens the log that the settings name.
func OpenLog(ctx context.Context, js jetstream.JetStream, settings *config.Settings, c ingest.JetStreamConfig) (*ingest.JetStreamSource, error) {
	decoder, err := wire.NewDecoder(settings.Classes.ClassSet())
	if err != nil {
		return nil, config.Usage(err)
	}
	in, _, err := settings.Names()
	if err != nil {
		return nil, err
	}
	c.Stream = in.Log
	return ingest.OpenJetStream(ctx, js, decoder, c)
}

func checkHistory(ctx context.Context, js jetstream.JetStream, c ingest.JetStreamConfig) error {
	id := c.Identity
	if id == nil {
		beginning, err := ingest.IdentityAt(ctx, js, c.Stream, 0)
		if err != nil {
			return err
		}
		id = &beginning
	}
	return id.Check(ctx, js)
}

func publishEnd(ctx context.Context, js jetstream.JetStream, log string) (event.Position, error) {
	m := nats.NewMsg(broker.Subject(log, event.KindControl))
	m.Header.Set(wire.HeaderContentType, wire.NDJSON)
	m.Data = []byte(`{"op":"flush"}` + "\n" + `{"op":"checkpoint"}` + "\n")
	ack, err := js.PublishMsg(ctx, m)
	if err != nil {
		return 0, fmt.Errorf("publish flush and checkpoint: %w", err)
	}
	return event.Position(ack.Sequence), nil
}

// Close undoes openPipeline, last first, and reports what went wrong on the way.
func (p *Pipeline) Close() error {
	var errs []error
	for i := len(p.closers) - 1; i >= 0; i-- {
		errs = append(errs, p.closers[i]())
	}
	p.closers = nil
	if p.stats.steps > 0 {
		p.log.Info("stopped", "position", p.applied.Load(), "steps", p.stats.steps, "events", sum(p.stats.byKind),
			"refused", sum(p.stats.byReason), "estimates", p.stats.estimates, "late", p.stats.late)
	}
	return errors.Join(errs...)
}
