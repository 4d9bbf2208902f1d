package pipeline

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"time"

	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/internal/checkpoint"
	"gqlstream/pipeline/config"
	"gqlstream/sinks"
)

// Options are decisions of the caller that are not in the settings.
type Options struct {
	Version string       // of the program, for the page and the checkpoints
	Skip    ingest.Range // messages to skip from now on; zero: none
	Accept  bool         // accept the log even if it is not the one read before
	Drain   bool         // end after the messages that the stream has now
	Same    bool         // refuse a state of another configuration
	Out     io.Writer    // for estimates, if the settings say so
	Err     io.Writer    // for the greeting
	Log     *slog.Logger
	Follow  map[string]TakeFunc // further followers, by name

	Group  string // group to join; empty: none
	Worker string // name of this worker; empty: from the host and the state directory

	FreePort bool // choose another port for the page if its own is in use

	Tracer *Tracer // of emissions; nil: none

	since  time.Time // when the process began
	reload *reloader // nil: the configuration is not read again
}

// plan has all decisions of the settings and options of a run, before anything is opened.
type plan struct {
	settings config.Settings
	Config   incremental.Config
	log      *slog.Logger
	version  string
	process  sinks.Identity // this process, as its marks name it
	shards   int            // number of shards of the communities
	memory   int            // bytes that the process may use; 0: unknown
}

func newPlan(settings config.Settings, o *Options) (*plan, error) {
	if err := settings.Validate(); err != nil {
		return nil, err
	}
	core, err := settings.Core()
	if err != nil {
		return nil, err
	}
	if o.Group != "" && (settings.NATS.URL == "" || o.Drain) {
		return nil, config.Usagef(
			"run: --group needs an outside server (--nats), and does not end when drained")
	}
	return &plan{
		settings: settings,
		Config:   core,
		log:      o.Log,
		version:  o.Version,
		process:  identity(o.since),
		shards:   max(core.Shards, 1),
		memory:   int(machineMemory("")),
	}, nil
}

// closers is a stack of functions that close opened parts.
type closers []func() error

func (c *closers) add(one func() error) { *c = append(*c, one) }

// close calls the functions, last first, and returns their errors.
func (c *closers) close() error {
	var errs []error
	for i := len(*c) - 1; i >= 0; i-- {
		errs = append(errs, (*c)[i]())
	}
	*c = nil
	return errors.Join(errs...)
}

// closeTogether calls the functions in parallel and returns their errors.
func (c *closers) closeTogether() error {
	errs := make([]error, len(*c))
	var all sync.WaitGroup
	for i, one := range *c {
		all.Go(func() { errs[i] = one() })
	}
	all.Wait()
	*c = nil
	return errors.Join(errs...)
}

// Open connects, checks the streams and opens everything that Run needs. After an error it has
// closed everything that it opened.
func Open(ctx context.Context, settings config.Settings, o Options) (*Pipeline, error) {
	opened := new(closers)
	p, err := open(ctx, settings, o, opened)
	if err != nil {
		return nil, errors.Join(err, opened.close())
	}
	return p, nil
}

// open opens the input log and joins the group, and then opens the rest. It adds to opened how each
// part is closed.
func open(
	ctx context.Context, settings config.Settings, o Options, opened *closers,
) (*Pipeline, error) {
	plan, err := newPlan(settings, &o)
	if err != nil {
		return nil, err
	}
	in, err := openInput(ctx, plan, o.Accept, opened)
	if err != nil {
		return nil, err
	}
	dir, err := openCheckpointDir(settings.State)
	if err != nil {
		return nil, err // before waiting until workers of an older release have ended
	}
	folds := &folds{log: o.Log, reached: in.reached}
	opened.add(folds.close) // after this worker has left the group
	group, err := joinGroup(ctx, plan, in, &o, opened)
	if err != nil {
		return nil, err
	}
	if o.Skip, err = skipHole(ctx, in, o.Skip, o.Log); err != nil {
		return nil, err
	}
	b, err := agreeOnLog(ctx, plan, in, dir, group, o.Accept)
	if err != nil {
		return nil, err
	}
	b.reportLostPositions(ctx)
	if err = limitLog(ctx, in.Broker.JS, in.names.In.Log, plan.Config, o.Log); err != nil {
		return nil, err
	}
	return openOn(ctx, b, folds, &o, opened)
}

// base is the opened input log with everything known before its first event is read. All later
// parts need it, and it does not change.
type base struct {
	*plan
	*input
	records
	dir      *checkpoint.Dir
	group    *membership    // nil without a group
	logID    string         // name of the log that positions belong to
	recorded []ingest.Place // places that the log must agree with
}

// openOn opens the output log, the main fold, the page and the followers, in this order.
func openOn(
	ctx context.Context, b *base, folds *folds, o *Options, opened *closers,
) (*Pipeline, error) {
	out, err := openOutput(ctx, b)
	if err != nil {
		return nil, err
	}
	followers := newFollowers(b, out.reader, folds)
	opener := newOpener(b, out, followers)
	if err = folds.openMain(ctx, opener, o); err != nil {
		return nil, err
	}
	lost, err := b.reportLostOutput(ctx)
	if err != nil {
		return nil, err
	}
	ticker, err := startTicker(ctx, b, folds, o.Drain, opened)
	if err != nil {
		return nil, err
	}
	checkpoints := newCheckpoints(b.dir, b.log, b.group.upload())
	// each of these may take seconds to end, and a process manager waits ten
	parts := &closers{checkpoints.finish, followers.close}
	opened.add(parts.closeTogether)
	conditions := &conditions{
		log: b.names.In.Log, followers: followers, folds: folds, quarantine: out.quarantine,
		ticker: ticker,
	}
	observed := &observed{
		digest: b.Config.Digest(), group: b.group, folds: folds, reload: o.reload,
		outputLost: lost, audits: audits{every: streamsAuditEvery},
	}
	page, taken, err := openPage(b, out, conditions.list, observed.deployment, o.FreePort)
	if err != nil {
		return nil, err
	}
	parts.add(page.Close)
	if err = answerQuestions(b, page, opened); err != nil {
		return nil, err
	}
	alerting, err := openAlerting(ctx, b, out.streams, page, folds)
	if err != nil {
		return nil, err
	}
	parts.add(alerting.close)
	p := &Pipeline{
		base: b, output: out, opener: opener, folds: folds, ticker: ticker,
		followers: followers, alerting: alerting, Page: page, Taken: taken,
		Checkpoints: checkpoints, conditions: conditions, observed: observed, reload: o.reload,
		status: statusOf(folds.main.Load()), tracer: o.Tracer, opened: opened,
	}
	p.definitions.show(folds.main.Load().core.View(), page, b.log,
		true) // the log may be quiet for long
	tasks := p.listTasks(o)
	// they run until they are ended, in their order
	return p, followers.assignTasks(context.WithoutCancel(ctx), tasks)
}
