package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/checkpoint"
	"gqlstream/config"
	"gqlstream/explain"
	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/quant"
	"gqlstream/sinks"
)

// Explainer answers one question about estimates from a log and the checkpoints beside it. It keeps
// graphs only, no kernels, so it costs what the graph costs.
type Explainer struct {
	config   incremental.Config
	settings *config.Settings
	js       jetstream.JetStream
	steps    ingest.StepConfig // of run, so that what a step decides, a switch of the model version say, is decided alike
	in       broker.StreamNames
	out      sinks.Names
	tell     func(format string, args ...any)
	told     time.Time // when it last told how far it is

	core   *incremental.Core // of the log up to place; nil: none is open
	place  Place
	source *ingest.JetStreamSource
	batch  event.Batch
	held   bool // batch is beyond the last place that was reached
}

// NewExplainer returns an explainer of the estimates of a pipeline with these settings and this
// configuration. It calls tell to say how far it is.
func NewExplainer(
	b *broker.Broker, settings *config.Settings, core incremental.Config, tell func(format string, args ...any),
) (e *Explainer, err error) {
	e = &Explainer{config: core, settings: settings, js: b.JS, tell: tell, told: time.Now()}
	var misnamed error
	e.steps, err = settings.Steps()
	e.in, e.out, misnamed = settings.Names()
	return e, cmp.Or(err, misnamed)
}

// Query is a question to an Explainer.
type Query struct {
	Community  string
	Method     string // "": the first that is published
	From, To   Place  // without a place: the newest estimate, and the one before it
	Named      int    // changes named for each cause
	membersMin int    // communities below it are not explained
}

// Explain answers a question. An error that is a config.UsageError says that it cannot be answered as it stands.
func (e *Explainer) Explain(ctx context.Context, q Query) (*quant.Explanation, error) {
	defer e.close()
	if q.From.Position > 0 && q.To.Position > 0 && q.From.Position >= q.To.Position ||
		q.From.Time != 0 && q.To.Time != 0 && q.From.Time >= q.To.Time {
		return nil, config.Usagef("explain: from must lie before to")
	}
	options := e.options(q.Method)
	published, err := e.inForce(ctx, &q, string(options.Method))
	if err != nil {
		return nil, err
	}
	if err := e.reach(ctx, q.From, q.To); err != nil {
		return nil, err
	}
	core := e.config
	core.SelectedBy = e.core.SelectedBy()
	walk, err := explain.Begin(ctx, e.core.View(), e.place, explain.Options{
		Config: core, Community: q.Community, Estimate: options, Classes: e.settings.Classes, Named: q.Named,
		SameFit:  published[0] != nil && published[1] != nil && published[0].Posterior == published[1].Posterior,
		Progress: func(done, most int) { e.tellSeldom("estimate %d of %d", done, most) },
	})
	if err != nil {
		return nil, e.unknown(err, q)
	}
	defer walk.Close()
	if err := e.reach(ctx, q.To, q.To); err != nil {
		return nil, err
	}
	x, err := walk.To(ctx, e.core.View(), e.place)
	if err != nil {
		return nil, e.unknown(err, q)
	}
	for i, end := range []*quant.ExplanationEnd{&x.From, &x.To} {
		if end.Vertices < q.membersMin {
			return nil, config.Usagef("explain: %s has fewer than %d members at position %d, so nothing is published of it",
				q.Community, q.membersMin, end.Position)
		}
		if p := published[i]; p != nil && p.Position == end.Position {
			end.Published, end.Certificate = p.Prevalence, p.Certificate
		}
	}
	x.Settle()
	return x, nil
}

func (e *Explainer) options(method string) quant.Options {
	for _, o := range e.config.WithDefaults().Estimates {
		if method == "" || o.Method == quant.Method(method) {
			return o
		}
	}
	o := quant.DefaultOptions()
	o.Method = quant.Method(method)
	return o
}

// inForce looks up which records were in force at both places and moves the places there, because an
// explanation says why one record differs from another. Without records the places stand.
func (e *Explainer) inForce(ctx context.Context, q *Query, method string) (found [2]*quant.Estimate, err error) {
	log, err := ingest.IdentityAt(ctx, e.js, e.in.Log, 0)
	if err != nil {
		return found, err
	}
	history := sinks.NewHistory(e.js, e.out, log.Created.Format(time.RFC3339Nano))
	newest := q.To == Place{}
	if newest {
		q.To.Position = math.MaxUint64
		e.awaitPublished(ctx)
	}
	for at, place := range slices.Backward([]*Place{&q.From, &q.To}) {
		before := at == 0 && *place == Place{}
		if before {
			*place = Place{Position: event.Position(found[1].Position) - 1}
		}
		record, ok, err := history.InForce(ctx, q.Community, method, uint64(place.Position), time.Unix(0, int64(place.Time)))
		if err != nil {
			return found, err
		}
		ok = ok && record.Config == e.config.Digest()
		switch {
		case !ok && (before || at == 1 && newest):
			return found, e.tooFew(ctx, history, q.Community, method)
		case !ok:
			return [2]*quant.Estimate{}, nil
		}
		found[at] = &record
	}
	if found[0].Position == found[1].Position {
		return found, config.Usagef("explain: %s has one estimate by %s from --from to --to, that of position %d; it did not move",
			q.Community, method, found[0].Position)
	}
	q.From, q.To = Place{Position: event.Position(found[0].Position)}, Place{Position: event.Position(found[1].Position)}
	return found, nil
}

// awaitPublished waits, for a while, until a worker has published what the log of a server holds: who has
// just sent events asks what they changed.
func (e *Explainer) awaitPublished(ctx context.Context) {
	if e.settings.NATS.URL == "" {
		return
	}
	log, err := e.js.Stream(ctx, e.in.Log)
	for begun := time.Now(); err == nil && time.Since(begun) < publishedWaitMax; time.Sleep(catchUpLookEvery) {
		marks, _ := sinks.Marks(ctx, e.js, e.out)
		if len(marks) > 0 && !slices.ContainsFunc(marks, func(m sinks.Mark) bool { return m.Position < log.CachedInfo().State.LastSeq }) {
			return
		}
		e.tellSeldom("what the log has now is not published yet")
	}
}

// tellSeldom tells how far the work is, every two seconds at most.
func (e *Explainer) tellSeldom(format string, args ...any) {
	if now := time.Now(); now.Sub(e.told) >= tellEvery {
		e.told = now
		e.tell(format, args...)
	}
}

func (e *Explainer) close() {
	if e.core != nil {
		e.core.Close()
		_ = e.source.Close() // which fails for files only
		e.core = nil
	}
}

// reach goes on to a place, from where it is or from a checkpoint that is nearer.
// No later place than last will be asked for.
func (e *Explainer) reach(ctx context.Context, place, last Place) error {
	saved, err := NearestCheckpoint(e.settings.State, e.config.Digest(), e.place.Position, place, e.tell)
	if err == nil && (e.core == nil || saved != nil) {
		err = e.start(ctx, saved, last)
	}
	if err != nil {
		return err
	}
	for {
		if !e.held {
			err := e.source.Next(ctx, &e.batch)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("explain: %w", err)
			}
		}
		if e.held = place.Passed(&e.batch); e.held {
			return nil
		}
		e.batch.Emit = false // an estimate would need every kernel
		e.core.Step(&e.batch)
		e.place = Place{Position: e.batch.Last, Time: e.batch.Time}
		e.tellSeldom("reading the log, position %d, log time %s", e.place.Position, e.place.Time)
	}
}

func (e *Explainer) start(ctx context.Context, saved *checkpoint.Checkpoint, last Place) (err error) {
	e.close()
	conf := e.config
	conf.CompactEvery = -1
	from := ingest.JetStreamConfig{Step: e.steps, Until: last.Position, UntilLast: last.Position == 0}
	e.place, e.held = Place{}, false
	if saved == nil {
		e.core, err = incremental.New(conf)
	} else {
		e.core, err = incremental.RestoreGraph(conf, saved.Sections)
		from.From, from.Identity = ResumeOf(saved.Manifest)
		e.place = Place{Position: from.From.Position, Time: from.From.Time}
		e.tell("begins at checkpoint %d", from.From.Position)
	}
	if err != nil {
		return config.Usage(err)
	}
	e.source, err = OpenLog(ctx, e.js, e.settings, from)
	if err != nil {
		e.core.Close()
		e.core = nil
		if saved == nil && errors.Is(err, ingest.ErrWrongHistory) {
			return config.Usagef("explain: the log cannot be read from its beginning, and no checkpoint of this configuration "+
				"is early enough; choose a later --from: %w", err)
		}
		return err
	}
	e.core.Limit(e.source.Limits())
	return nil
}

// NearestCheckpoint returns the newest intact checkpoint of a configuration in a state directory
// that lies after a position and not beyond a place, or nil.
func NearestCheckpoint(
	state, digest string, after event.Position, place Place, tell func(format string, args ...any),
) (*checkpoint.Checkpoint, error) {
	dir := checkpoint.Look(checkpoint.Disk{}, checkpointsIn(state))
	positions, err := dir.List()
	if err != nil {
		return nil, err
	}
	for _, p := range positions {
		if p <= uint64(after) || place.Position > 0 && p > uint64(place.Position) {
			continue
		}
		saved, err := dir.Read(p)
		if err != nil || saved.Manifest.Config != digest {
			tell("checkpoint %d is passed over: damaged, replaced, or of another configuration", p)
			continue
		}
		if place.Time == 0 || event.Time(saved.Manifest.LogTime) <= place.Time {
			return saved, nil
		}
	}
	return nil, nil
}

// tooFew returns the error of a question about the last change of a community without two
// estimates. Where it has none, the error names a similar community.
func (e *Explainer) tooFew(ctx context.Context, history *sinks.History, community, method string) error {
	latest, err := history.Latest(ctx, math.MaxUint64)
	var names []string
	for i := range latest {
		names = append(names, latest[i].Community)
	}
	if slices.Sort(names); err != nil || !slices.Contains(names, community) {
		return errors.Join(err, config.Usagef("explain: nothing was published of %q; %s", community, event.Nearest(community, slices.Compact(names))))
	}
	marks, err := sinks.Marks(ctx, e.js, e.out)
	for _, m := range marks {
		if m.Config != e.config.Digest() || m.Classes != nil && !slices.Equal(m.Classes, e.settings.Classes) {
			return config.Usagef("explain: the newest estimates are of configuration %s with classes %q, and this one is %s with %q; give the --config of the run",
				m.Config, m.Classes, e.config.Digest(), e.settings.Classes)
		}
	}
	return errors.Join(err, config.Usagef("explain: fewer than two estimates of %s by %s were published under this configuration; give --from and --to", community, method))
}

const tellEvery, publishedWaitMax = 2 * time.Second, 10 * time.Second

func (e *Explainer) unknown(err error, q Query) error {
	if !errors.Is(err, explain.ErrUnknown) {
		return err
	}
	return config.Usagef("explain: %q is not known at position %d; %s",
		q.Community, e.place.Position, event.Nearest(q.Community, e.core.View().CommunityNames()))
}

// Place is a position or a time of a log.
type Place = explain.Place

// ParsePlace reads the value of --from or --to.
func ParsePlace(flag, text string) (Place, error) {
	if text == "" {
		return Place{}, nil
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil && n > 0 {
		return Place{Position: event.Position(n)}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.UnixNano() == 0 || t.Year() < 1678 || t.Year() > 2261 { // what an event.Time holds
		return Place{}, config.Usagef("%s %q is neither a position, 1 or more, nor a time such as "+
			"2026-05-01T12:00:00Z", flag, text)
	}
	return Place{Time: event.Time(t.UnixNano())}, nil
}
