package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/incremental"
	"gqlstream/incremental/explain"
	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/internal/checkpoint"
	"gqlstream/pipeline/config"
	"gqlstream/quant"
	"gqlstream/sinks"
	"gqlstream/sinks/web"
)

// Explainer answers one question about estimates, from a log and its checkpoints. It holds a graph
// but no kernels, so it costs no more than the graph.
type Explainer struct {
	Config   incremental.Config
	Settings *config.Settings
	JS       jetstream.JetStream
	Named    int // number of changes to name for each cause
	// the privacy floor, which Config has too; 0: none
	Floor  int
	Report func(format string, args ...any) // receives progress reports
	Every  time.Duration                    // between two of them; 0: two seconds

	first, last event.Position // that the log is read from and to
	told        time.Time
	core        *incremental.Core // state of the log up to place; nil: none is open
	place       Place
	source      *ingest.JetStreamSource
	batch       event.Batch
	held        bool // batch lies beyond the last place reached
}

// Explain answers a question. Without a method it uses the first published one; without places, the
// newest estimate and the one before. A config.UsageError means that the question must be changed.
func (e *Explainer) Explain(ctx context.Context, q web.ExplainQuery) (*quant.Explanation, error) {
	defer e.close()
	from, err1 := ParsePlace("from", q.From)
	to, err2 := ParsePlace("to", q.To)
	switch {
	case cmp.Or(err1, err2) != nil:
		return nil, cmp.Or(err1, err2)
	case from.Position > 0 && to.Position > 0 && from.Position >= to.Position ||
		from.Time != 0 && to.Time != 0 && from.Time >= to.Time:
		return nil, config.Usagef("explain: from must lie before to")
	}
	e.told = time.Now()
	options := e.options(q.Method)
	published, err := e.inForce(ctx, q.Community, string(options.Method), &from, &to)
	if err != nil {
		return nil, err
	}
	if err := e.openAt(ctx, from, to); err != nil {
		return nil, err
	}
	core := e.Config
	core.SelectedBy = e.core.SelectedBy()
	walk, err := explain.Begin(ctx, e.core, e.place, explain.Options{
		Config:    core,
		Community: q.Community,
		Estimate:  options,
		Classes:   e.Settings.Classes,
		Named:     e.Named,
		SameFit: published[0] != nil && published[1] != nil &&
			published[0].Posterior == published[1].Posterior,
		Gamma:    gammas(published),
		Progress: func(done, most int) { e.reportSeldom("estimate %d of %d", done, most) },
	})
	if err != nil {
		return nil, e.unknown(err, q.Community)
	}
	defer walk.Close()
	if err := e.reach(ctx, to); err != nil {
		return nil, err
	}
	x, err := walk.To(ctx, e.core, e.place)
	if err != nil {
		return nil, e.unknown(err, q.Community)
	}
	for i, end := range []*quant.ExplanationEnd{&x.From, &x.To} {
		if e.Floor > 0 && end.BelowFloor {
			return nil,
				config.Usagef("explain: %s is below the privacy floor of %d people at position"+
					" %d, so nothing is published of it", q.Community, e.Floor, end.Position)
		}
		if p := published[i]; p != nil && p.Position == end.Position {
			end.Published, end.Certificate = p.Prevalence, p.Certificate
		}
	}
	e.hide(x)
	return x, nil
}

// gammas returns those of two published estimates.
func gammas(published [2]*quant.Estimate) (out [2]float64) {
	for i, e := range published {
		if e != nil {
			out[i] = e.Gamma
		}
	}
	return out
}

// openAt opens the log and reads it up to the first place. It returns an error unless the other
// place lies after that: a position and a time cannot be compared before.
func (e *Explainer) openAt(ctx context.Context, from, to Place) error {
	if err := e.start(ctx, from, to); err != nil {
		return err
	}
	if err := e.reach(ctx, from); err != nil {
		return err
	}
	if to.Position > 0 && to.Position <= e.place.Position ||
		to.Time != 0 && to.Time <= e.place.Time && e.place.Time != 0 {
		return config.Usagef("explain: from must lie before to; it is position %d",
			e.place.Position)
	}
	return nil
}

// hide removes from an explanation all that the privacy floor and the rounding of shares forbid.
func (e *Explainer) hide(x *quant.Explanation) {
	explain.HideFew(x, e.Floor)
	if e.Floor > 0 {
		incremental.RoundExplanation(x, e.Config.Round)
	}
	x.Settle()
}

func (e *Explainer) options(method string) quant.Options {
	for _, o := range e.Config.WithDefaults().Estimates {
		if method == "" || o.Method == quant.Method(method) {
			return o
		}
	}
	o := quant.DefaultOptions()
	o.Method = quant.Method(method)
	return o
}

// inForce looks up the records in force at both places and moves the places to them, because an
// explanation says why one record differs from another. Without records the places stay.
func (e *Explainer) inForce(
	ctx context.Context,
	community, method string,
	from, to *Place,
) (found [2]*quant.Estimate, err error) {
	in, out, err := e.Settings.Names()
	if err != nil {
		return found, err
	}
	log, err := e.JS.Stream(ctx, in.Log)
	if err != nil {
		return found, err
	}
	history := sinks.NewHistory(e.JS, out, broker.LogName(log))
	newest := *to == Place{}
	if newest {
		to.Position = math.MaxUint64
		e.awaitPublished(ctx, in, out)
	}
	for at, place := range slices.Backward([]*Place{from, to}) {
		before := at == 0 && *place == Place{}
		if before {
			*place = Place{Position: event.Position(found[1].Position) - 1}
		}
		record, ok, err := history.InForce(ctx, community, method, uint64(place.Position),
			time.Unix(0, int64(place.Time)))
		if err != nil {
			return found, err
		}
		ok = ok && record.Config == e.Config.Digest()
		switch {
		case !ok && (before || at == 1 && newest):
			return found, e.tooFew(ctx, history, out, community, method)
		case !ok:
			return [2]*quant.Estimate{}, nil
		}
		found[at] = &record
	}
	if found[0].Position == found[1].Position {
		return found, config.Usagef(
			"explain: %s has one estimate by %s from --from to --to, that of position %d; it did "+
				"not move",
			community, method, found[0].Position)
	}
	*from, *to = Place{
		Position: event.Position(found[0].Position),
	}, Place{
		Position: event.Position(found[1].Position),
	}
	return found, nil
}

// awaitPublished waits for a while until a worker has published the events that are in the log: a
// user has just sent events and asks about their effect.
func (e *Explainer) awaitPublished(ctx context.Context, in broker.StreamNames, out sinks.Names) {
	if e.Settings.NATS.URL == "" {
		return
	}
	log, err := e.JS.Stream(ctx, in.Log)
	for begun := time.Now(); err == nil &&
		time.Since(begun) < publishedWaitMax; time.Sleep(catchUpLookEvery) {
		marks, _ := sinks.Marks(ctx, e.JS, out)
		if len(marks) > 0 &&
			!slices.ContainsFunc(marks,
				func(m sinks.Mark) bool { return m.Position < log.CachedInfo().State.LastSeq }) {
			return
		}
		e.reportSeldom("the newest messages of the log are not published yet")
	}
}

// reportSeldom reports progress, not more often than Every.
func (e *Explainer) reportSeldom(format string, args ...any) {
	if now := time.Now(); now.Sub(e.told) >= cmp.Or(e.Every, reportEvery) {
		e.told = now
		e.Report(format, args...)
	}
}

func (e *Explainer) close() {
	if e.source != nil {
		_ = e.source.Close() // fails for files only
	}
	if e.core != nil {
		e.core.Close()
	}
}

// reach reads the log up to a place.
func (e *Explainer) reach(ctx context.Context, place Place) error {
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
		e.reportReading()
	}
}

// reportReading reports how much of the log is read. The end is that of the log if the question
// names a time.
func (e *Explainer) reportReading() {
	last := e.last
	if last == 0 {
		last = e.place.Position + event.Position(e.source.Stats().Behind)
	}
	done, all := float64(e.place.Position-e.first), float64(max(last, e.place.Position)-e.first)
	e.reportSeldom("reading the log, %.0f %%: position %d of %d, log time %s",
		100*done/max(all, 1), e.place.Position, max(last, e.place.Position), e.place.Time)
}

// start opens the log at the newest checkpoint before the first place, to read up to the last one.
func (e *Explainer) start(ctx context.Context, first, last Place) error {
	saved, err := NearestCheckpoint(e.Settings.State, e.Config.Digest(), first, e.Report)
	if err != nil {
		return err
	}
	e.first, e.last = 0, last.Position
	conf := e.Config
	conf.CompactEvery = -1
	// Steps are cut as in run, so that decisions at the end of a step, such as a switch of the
	// model, are the same.
	steps, err := e.Settings.Steps()
	if err != nil {
		return err
	}
	from := ingest.JetStreamConfig{Step: steps, Until: last.Position, UntilLast: last.Position == 0}
	if saved == nil {
		e.core, err = incremental.New(conf)
	} else {
		e.core, err = incremental.RestoreGraph(conf, saved.Sections)
		from.From, from.Identity = ResumeOf(saved.Manifest)
		e.place = Place{Position: from.From.Position, Time: from.From.Time}
		e.first = from.From.Position
		e.Report("begins at checkpoint %d", from.From.Position)
	}
	if err != nil {
		return config.Usage(err)
	}
	e.source, err = OpenLog(ctx, e.JS, e.Settings, from)
	if saved == nil && errors.Is(err, ingest.ErrWrongHistory) {
		return config.Usagef(
			"explain: the log cannot be read from its beginning, and no checkpoint of this "+
				"configuration "+
				"is early enough; choose a later --from: %w",
			err,
		)
	}
	if err == nil {
		e.core.Limit(e.source.Limits())
	}
	return err
}

// NearestCheckpoint returns the newest intact checkpoint of a configuration in a state directory
// that is not after a place, or nil.
func NearestCheckpoint(
	state, digest string,
	place Place,
	tell func(format string, args ...any),
) (*checkpoint.Checkpoint, error) {
	return checkpoint.Look(checkpoint.Disk{}, checkpointsIn(state)).
		LoadWhere(func(m *checkpoint.Manifest) bool {
			return m.Config == digest &&
				(place.Position == 0 || m.Position <= uint64(place.Position)) &&
				(place.Time == 0 || event.Time(m.LogTime) <= place.Time)
		}, func(damage error) { tell("a damaged checkpoint is ignored: %v", damage) })
}

// tooFew returns the error of a question about the last change of a community with fewer than two
// estimates. If it has none, the error names a similar community.
func (e *Explainer) tooFew(
	ctx context.Context, history *sinks.History, out sinks.Names, community, method string,
) error {
	latest, err := history.Latest(ctx, math.MaxUint64)
	var names []string
	for i := range latest {
		names = append(names, latest[i].Community)
	}
	if slices.Sort(names); err != nil || !slices.Contains(names, community) {
		return errors.Join(err, config.Usagef("explain: nothing was published of %q; %s",
			community, event.Nearest(community, slices.Compact(names))))
	}
	marks, err := sinks.Marks(ctx, e.JS, out)
	for _, m := range marks {
		if m.Config != e.Config.Digest() ||
			m.Classes != nil && !slices.Equal(m.Classes, e.Settings.Classes) {
			return config.Usagef(
				"explain: the newest estimates are of configuration %s with classes %q, and this "+
					"one is %s with %q; give the --config of the run",
				m.Config, m.Classes, e.Config.Digest(), e.Settings.Classes)
		}
	}
	return errors.Join(err, config.Usagef(
		"explain: fewer than two estimates of %s by %s were published under this configuration; "+
			"give --from and --to",
		community, method))
}

const reportEvery, publishedWaitMax = 2 * time.Second, 10 * time.Second

func (e *Explainer) unknown(err error, community string) error {
	if !errors.Is(err, explain.ErrUnknown) {
		return err
	}
	if e.place.Position == 0 && e.held {
		return config.Usagef("explain: --from lies before the log's first event, position %d at %s",
			e.batch.First, e.batch.Time)
	}
	return config.Usagef("explain: %q is not known at position %d; %s",
		community, e.place.Position, event.Nearest(community, e.core.View().CommunityNames()))
}
