package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
	"gqlstream/internal/request"
	"gqlstream/pipeline/config"
	"gqlstream/sinks"
	"gqlstream/sinks/web"
)

// Pipeline joins the input log, its fold, the output log and its followers. The main fold's
// goroutine owns the checkpoints and the counts.
type Pipeline struct {
	settings config.Settings
	Config   incremental.Config
	log      *slog.Logger
	names    names
	Broker   *broker.Broker
	ticker   atomic.Pointer[ingest.Ticker] // nil until it is started, or if none is needed
	// since when the embedded server cannot write; nil: it can
	full       atomic.Pointer[request.State]
	shards     int // number of shards of the communities
	memory     int // bytes that the process may use; 0: unknown
	main       atomic.Pointer[fold]
	nextFold   atomic.Pointer[fold] // fold that will replace the main one; nil: none
	recompute  atomic.Uint64        // position of the last recompute event of this process
	group      *membership          // nil without a group
	quarantine *ingest.QuarantineWriter
	writers    sinks.WriterConfig // for the outlets

	logID       string         // name of the log in which positions count
	recorded    []ingest.Place // recorded places with which the log must agree
	reached     reached
	beginAt     sinks.Cursor // end of the output log when the pipeline was opened
	followers   followers
	rollups     *sinks.Rollups
	alerting    *alerting
	Page        *web.Server
	history     *sinks.History
	version     string
	Taken       string // configured address of the page, if another program has it
	Checkpoints *checkpoints
	reload      *reloader // nil: the configuration is not read again
	closers     []func() error
	audits      audits
	scrubbed    scrubbing
	refused     atomic.Pointer[web.Quarantine] // how full the quarantine is; nil until known
	definitions definitions
	status      shownStatus
	deployed    deployment
}

type names struct {
	In  broker.StreamNames
	Out sinks.Names
}

// Options are decisions of the caller besides the settings.
type Options struct {
	Version string       // of the program, for the page and the checkpoints
	Skip    ingest.Range // messages to skip from now on; zero: none
	Accept  bool         // accept the log even if it is not the one read before
	Drain   bool         // end after the messages that the stream has now
	Same    bool         // refuse a state of another configuration
	Out     io.Writer    // for estimates, if the settings say so
	Err     io.Writer    // for the greeting
	Log     *slog.Logger
	Follow  map[string]Take // further followers, by name

	Group  string    // group to join; empty: none
	Worker string    // name of this worker; empty: from the host and the state directory
	since  time.Time // when the process began

	FreePort bool // choose another port for the page if its own is in use
}

// Open connects, checks the streams and builds everything that Run needs.
func Open(ctx context.Context, settings config.Settings, o Options) (p *Pipeline, err error) {
	p = &Pipeline{
		settings: settings,
		log:      o.Log,
		version:  o.Version,
		audits:   audits{every: streamsAuditEvery},
	}
	p.writers.Writer = identity(o.since)
	defer func() {
		if err != nil {
			err = errors.Join(err, p.Close())
			p = nil
		}
	}()
	if err = settings.Validate(); err != nil {
		return p, err
	}
	if p.Config, err = settings.Core(); err != nil {
		return p, err
	}
	if p.names.In, p.names.Out, err = settings.Names(); err != nil {
		return p, err
	}
	if o.Group != "" && (settings.NATS.URL == "" || o.Drain) {
		return p, config.Usagef(
			"run: --group needs an outside server (--nats), and does not end when drained")
	}
	p.shards, p.memory = max(p.Config.Shards, 1), int(machineMemory(""))
	if err = p.openBroker(ctx, o.Accept); err != nil {
		return p, err
	}
	if p.Checkpoints, err = openCheckpoints(p.settings.State, p.log); err != nil {
		return p, err // before waiting until workers of an older release have ended
	}
	p.closers = append(p.closers, p.closeFolds)
	if err = p.joinGroup(ctx, o); err != nil {
		return p, err
	}
	if o.Skip, err = p.skipHole(ctx, o.Skip); err != nil {
		return p, err
	}
	if err = p.agreeOnLog(ctx, o.Accept); err != nil {
		return p, err
	}
	p.reportLostPositions(ctx)
	if err = limitLog(ctx, p.Broker.JS, p.names.In.Log, p.Config, p.log); err != nil {
		return p, err
	}
	if err = p.openOutput(ctx); err != nil {
		return p, err
	}
	if err = p.openMainFold(ctx, o); err != nil {
		return p, err
	}
	if err = p.startTicker(ctx, o.Drain); err == nil {
		err = p.openFollowers(ctx, o)
	}
	return p, err
}

// openMainFold opens the fold that publishes, from the newest usable checkpoint or the log's start.
func (p *Pipeline) openMainFold(ctx context.Context, o Options) error {
	main := newFold(p.Config, p.shards, nil)
	if p.group != nil {
		main.config.Owned = shardsOf(p.group.member.Places(p.shards, p.group.copies))
	}
	p.main.Store(main)
	if err := p.openFold(ctx, main, o); err != nil {
		return err
	}
	p.status.last = main.restored()
	p.status.nearlyFull = map[string]bool{}
	p.beginAt = main.from
	return nil
}

func (p *Pipeline) openBroker(ctx context.Context, accept bool) (err error) {
	if p.Broker, err = config.OpenBroker(p.settings, p.log); err != nil {
		return err
	}
	p.closers = append(p.closers, p.Broker.Close)
	if p.Broker.Embedded == nil { // the embedded one has its own lock
		lock, err := broker.AcquireLock(p.settings.State)
		if err != nil {
			return err
		}
		p.closers = append(p.closers, lock.Close)
		p.log.Info("the broker's own settings decide its losses at a power cut: with jetstream" +
			" {sync_interval: always} nothing, otherwise acknowledged events of two minutes")
	}
	p.reached.path = reachedIn(p.settings.State)
	p.closers = append(p.closers, p.reached.close)
	if err := p.lostReached(); err != nil {
		p.log.Warn(err.Error())
	}
	if err := p.checkLogIsThere(ctx, accept); err != nil {
		return err
	}
	if err := p.reached.open(); err != nil {
		return err
	}
	if err := broker.EnsureStreams(ctx, p.Broker.JS, p.names.In); err != nil {
		return err
	}
	log, err := broker.EnsureLog(ctx, p.Broker.JS, p.names.In)
	if err != nil {
		return err
	}
	p.names.In.Replicas = cmp.Or(p.names.In.Replicas, log.Replicas)
	return err
}

func (p *Pipeline) openOutput(ctx context.Context) (err error) {
	if p.quarantine, err = ingest.NewQuarantineWriter(ctx, p.Broker.NC, p.names.In); err != nil {
		return err
	}
	p.writers = sinks.WriterConfig{
		Streams: p.streams(),
		Shards:  p.shards,
		Writer:  p.writers.Writer,
		Config:  p.Config.Digest(),
		Classes: p.settings.Classes,
		Log:     p.logID,
		Needed:  p.slowest,
	}
	if p.group != nil {
		p.Checkpoints.share = p.group.storeParts
	}
	p.followers.base = sinks.FollowConfig{
		JS: p.Broker.JS,
		Reader: sinks.ReaderConfig{
			Names:  p.names.Out,
			Shards: p.shards,
			Log:    p.logID,
			Report: p.log,
		},
	}
	p.followers.base.End = func() uint64 { return p.main.Load().outlets.sequence() }
	p.followers.failed = make(chan error, 1)
	p.rollups = sinks.NewRollups(
		sinks.RollupsConfig{
			JS:      p.Broker.JS,
			Streams: p.streams(),
			Log:     p.logID,
			State:   p.stateStore("history", "history.json"),
		},
	)
	return nil
}

func (p *Pipeline) streams() sinks.StreamsConfig {
	return sinks.StreamsConfig{
		Names:    p.names.Out,
		Bytes:    int64(p.settings.Output.StreamBytesMax),
		Replicas: p.names.In.Replicas,
		Classes:  len(p.settings.Classes),
		Embedded: p.Broker.Embedded != nil,
	}
}

// openFollowers opens the page and starts the followers of the output log.
func (p *Pipeline) openFollowers(ctx context.Context, o Options) error {
	p.closers = append(p.closers, p.finish)
	if err := p.openPage(o.FreePort); err != nil {
		return err
	}
	alerting, alertsAt, err := openAlerting(ctx, p)
	if p.alerting = alerting; err != nil {
		return err
	}
	p.definitions.show(p.main.Load().core.View(), p.Page, p.log,
		true) // the log may be quiet for long
	p.listFollowers(o, alertsAt)
	return p.followers.assign(context.WithoutCancel(ctx),
		p.group) // they run until they are ended, in their order
}

// finish ends everything that may wait for others, in parallel, since each may take seconds: a
// process manager waits ten.
func (p *Pipeline) finish() error {
	ends := []func() error{p.Checkpoints.finish}
	for _, t := range p.followers.tasks {
		ends = append(ends, func() error { p.followers.end(t); return nil })
	}
	if p.Page != nil {
		ends = append(ends, p.Page.Close)
	}
	if p.alerting != nil {
		ends = append(ends, p.alerting.close)
	}
	errs := make([]error, len(ends))
	var all sync.WaitGroup
	for i, end := range ends {
		all.Go(func() { errs[i] = end() })
	}
	all.Wait()
	return errors.Join(errs...)
}

// logEnd asks the broker for the last position of the log.
func (p *Pipeline) logEnd(ctx context.Context) uint64 {
	ctx, cancel := context.WithTimeout(ctx, statusEvery)
	defer cancel()
	stream, err := p.Broker.JS.Stream(ctx, p.names.In.Log)
	if err != nil {
		return 0
	}
	return stream.CachedInfo().State.LastSeq
}

func (p *Pipeline) startTicker(ctx context.Context, drain bool) (err error) {
	step := p.main.Load().steps
	if drain || step.Time == ingest.EventTime {
		return nil
	}
	c := ingest.TickerConfig{
		Stream: p.names.In.Log, Every: step.Every,
		Pending: func() bool {
			return p.main.Load().source.Pending() || p.main.Load().behind.Load()
		},
	}
	if p.group != nil {
		if c.Secret, err = ingest.TickSecret(ctx, p.Broker.JS, c.Stream); err != nil {
			return err
		}
	}
	ticker := ingest.StartTicker(ctx, p.Broker.JS, c)
	p.ticker.Store(ticker)
	p.closers = append(p.closers, func() error { ticker.Stop(); return nil })
	return nil
}

// Position returns the last position of the log that was applied.
func (p *Pipeline) Position() event.Position { return event.Position(p.main.Load().applied.Load()) }

// OpenLog opens the log named by the settings.
func OpenLog(
	ctx context.Context, js jetstream.JetStream, settings *config.Settings,
	c ingest.JetStreamConfig,
) (*ingest.JetStreamSource, error) {
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

// publishEnd publishes the end of a drained log.
func publishEnd(ctx context.Context, js jetstream.JetStream, log string) (event.Position, error) {
	return publishControl(ctx, js, log, event.Flush, event.Checkpoint)
}

// publishControl publishes control events as one message, and returns its position.
func publishControl(
	ctx context.Context, js jetstream.JetStream, log string, ops ...event.Op,
) (event.Position, error) {
	m := nats.NewMsg(broker.Subject(log, event.KindControl))
	m.Header.Set(wire.HeaderContentType, wire.NDJSON)
	for _, op := range ops {
		m.Data = fmt.Appendf(m.Data, `{"op":"%v"}`+"\n", op)
	}
	ack, err := js.PublishMsg(ctx, m)
	if err != nil {
		return 0, fmt.Errorf("publish %v: %w", ops, err)
	}
	return event.Position(ack.Sequence), nil
}

// Close closes everything that Open has opened, last first, and returns the errors.
func (p *Pipeline) Close() error {
	var errs []error
	for i := len(p.closers) - 1; i >= 0; i-- {
		errs = append(errs, p.closers[i]())
	}
	p.closers = nil
	if s := &p.status.now; s.Steps > 0 {
		p.log.Info("stopped", "position", p.Position(), "steps", s.Steps, "events", sum(s.Events),
			"refused", sum(s.Refused), "estimates", p.status.estimates, "late", s.Late)
	}
	return errors.Join(errs...)
}
