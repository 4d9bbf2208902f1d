package pipeline

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/incremental/prequential"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/internal/request"
	"gqlstream/sinks/web"
)

// shownStatus is the status shown of a run. The main fold's goroutine owns it, except for the
// fields under mu.
type shownStatus struct {
	now web.Status
	// counts include the steps up to here, and their refusals are stored
	countedTo  event.Position
	estimates  uint64
	nearlyFull map[string]bool // by kind; see watchFill
	coverage   coverage
	confusion  seldom[web.Confusion]
	mu         sync.Mutex // guards the fields below
	last       web.Status
}

// restored is the status before the first step, which the page shows while none comes; see
// showIdle.
func (f *fold) restored() web.Status {
	view := f.core.View()
	s := web.Status{
		State: "running", Position: f.applied.Load(),
		Graph: web.Graph{Vertices: uint64(view.Present()), Edges: uint64(view.Edges())},
	}
	if at := f.core.Time(); at != 0 {
		s.LogTime = new(time.Unix(0, int64(at)).UTC())
	}
	return s
}

// statusOf returns the status of a run that has just opened its main fold.
func statusOf(main *fold) shownStatus {
	return shownStatus{nearlyFull: map[string]bool{}, last: main.restored()}
}

// showStep shows a step. took are the durations of estimating and publishing.
func (p *Pipeline) showStep(
	f *fold, b *event.Batch, result *incremental.Result, took [2]time.Duration,
) {
	read := f.source.Stats()
	view := f.core.View()
	s := &p.status.now
	configured := slices.ContainsFunc(b.Controls,
		func(c event.Control) bool { return c.Op == event.Configure })
	p.definitions.show(view, p.Page, p.log, configured)
	s.State, s.Message = "running", ""
	if read.Behind > catchingUp {
		s.State, s.Message = "replaying", fmt.Sprintf("%d messages behind", read.Behind)
	}
	s.Position, s.End = uint64(result.Position), uint64(result.Position)+read.Behind
	s.StepSeconds = (took[0] + took[1]).Seconds()
	s.Stages = []web.Stage{
		{Name: "core", Seconds: took[0].Seconds()},
		{Name: "publish", Seconds: took[1].Seconds()},
	}
	s.Graph = web.Graph{Vertices: uint64(view.Present()), Edges: uint64(view.Edges())}
	s.Evidence = p.status.coverage.count(view, result.Position, p.settings.Classes)
	s.Confusion = p.status.confusion.get(func() web.Confusion {
		counts := countConfusion(f.core, p.Config.MembersMin, len(p.settings.Classes))
		counts.Position = uint64(result.Position)
		return counts
	})
	s.Mismatches, s.Models = p.definitions.misses, modelsOf(f.core, p.settings.Classes)
	if result.Time != 0 {
		s.LogTime = new(time.Unix(0, int64(result.Time)).UTC())
	}
	s.Checkpoint = p.Checkpoints.newest()
	s.LeftOut = p.quarantine.LeftOut()
	if q := p.observed.refused.Load(); q != nil {
		s.Quarantine = *q
	}
	fills := view.Fills()
	if p.memory > 0 {
		fills = append(fills,
			graphstore.Fill{Kind: "memory-of-fields", Used: f.core.FieldBytes(), Max: p.memory})
	}
	s.Fills = p.status.watchFill(fills, p.log.Warn)
	p.status.mu.Lock()
	defer p.status.mu.Unlock()
	p.status.last = *s
	p.Page.Status(p.warned(*s))
}

// isNew reports whether a step is not counted yet: a fold that replaces a more advanced one repeats
// some steps. A step without messages ends at the position of the step before.
func (s *shownStatus) isNew(b *event.Batch) bool { return b.First > b.Last || b.Last > s.countedTo }

// count adds the counts of a step.
func (s *shownStatus) count(b *event.Batch, refused []event.Refusal, estimates int) {
	s.countedTo = max(s.countedTo, b.Last)
	now := &s.now
	now.Steps++
	s.estimates += uint64(estimates)
	now.Events, now.Late, now.Refused = counted(now.Events), counted(now.Late), counted(now.Refused)
	for kind := range event.Kind(event.Kinds) {
		now.Events[kind.String()] += uint64(b.Count(kind))
		if n := b.Late[kind]; n > 0 {
			now.Late[kind.String()] += uint64(n)
		}
	}
	for _, r := range refused {
		now.Refused[string(r.Reason)] += uint64(1 + r.More)
	}
}

// counted returns a copy of counts, because the page keeps the map that it is given.
func counted(counts map[string]uint64) map[string]uint64 {
	all := map[string]uint64{}
	maps.Copy(all, counts)
	return all
}

// sum adds the counts of a map.
func sum(counts map[string]uint64) (all uint64) {
	for _, n := range counts {
		all += n
	}
	return all
}

// warned adds warnings to a status: the log's time is ahead, which can happen without a step, or no
// events arrive.
func (p *Pipeline) warned(s web.Status) web.Status {
	if s.LogAhead = p.folds.main.Load().source.Stats().Ahead; s.LogAhead > aheadWarned {
		why := "the broker's clock leapt: it stands until that has caught up or a clock event " +
			"(gqlstream publish --clock) sets it right, and nothing expires meanwhile"
		if p.settings.Step.Time == "event" {
			why = "an event carries that time: nothing is estimated until others do"
		} else if s.LogAhead > aheadReady {
			s.State = "waiting"
		}
		s.Warning = fmt.Sprintf("the log's time is %v ahead, because %s",
			s.LogAhead.Round(time.Second), why)
	}
	if silence := p.observed.deployed.silence(time.Now()); silence != "" {
		s.Warning = strings.TrimPrefix(s.Warning+"; "+silence, "; ")
	}
	if s.Warning != "" {
		s.Message = strings.TrimPrefix(s.Message+"; "+s.Warning, "; ")
	}
	return s
}

// aheadWarned is how far the log's time may be ahead of the broker's before a warning.
const aheadWarned = 10 * time.Second

// aheadReady is the least lead, after a leap of the broker's clock, that makes the run not ready:
// events with times of their own may be refused because they have ended before the log's time.
const aheadReady = time.Minute

const statusEvery = time.Second

// watchStatus logs when a stream or follower gets into trouble and out of it, shows firing alerts
// and the quarantine, and reports long steps and an idle pipeline.
func (p *Pipeline) watchStatus(ctx context.Context) error {
	before := map[string]request.State{}
	var alertsDue, quarantineDue, progressDue, deploymentDue time.Time
	warning := ""
	return repeat(ctx, statusEvery, func() error {
		p.logStates(before)
		p.showIdle()
		p.showProgress(ctx, &progressDue)
		if p.Page != nil {
			p.Page.LogEnd(p.logEnd(ctx))
		}
		if now := time.Now(); now.After(alertsDue) {
			took := p.alerting.show()
			alertsDue = now.Add(max(alertsShownEvery, alertsShownShare*took))
		}
		if now := time.Now(); now.After(quarantineDue) {
			p.lookAtQuarantine(ctx)
			quarantineDue = now.Add(quarantineLookEvery)
		}
		if now := time.Now(); now.After(deploymentDue) {
			p.lookAtStreams(ctx)
			deploymentDue = now.Add(deploymentLookEvery)
		}
		if now := p.warned(web.Status{}).Warning; (now == "") != (warning == "") {
			p.log.Warn(cmp.Or(now, "no longer: "+warning))
			warning = now
		}
		return nil
	})
}

const quarantineLookEvery = 10 * time.Second

func (p *Pipeline) lookAtQuarantine(ctx context.Context) {
	// otherwise the failure is reported elsewhere
	if stream, err := p.Broker.JS.Stream(ctx, p.names.In.Quarantine); err == nil {
		has := stream.CachedInfo().State
		most := stream.CachedInfo().Config.MaxBytes
		p.observed.refused.Store(
			&web.Quarantine{
				Entries:  has.Msgs,
				Bytes:    has.Bytes,
				BytesMax: uint64(max(most, 0)),
				Removed:  has.LastSeq - has.Msgs,
			},
		)
	}
}

// showIdle repeats the status of a pipeline that waits for events and has no ticker, because its
// steps are cut by event time: it is well. Any other pipeline without steps lacks its ticks.
func (p *Pipeline) showIdle() {
	if p.ticker != nil || !p.folds.main.Load().idle.Load() || !p.Broker.NC.IsConnected() {
		return
	}
	p.status.mu.Lock()
	defer p.status.mu.Unlock()
	p.Page.Status(p.warned(p.status.last))
}

// conditions tell how the logs, the quarantine and the followers fare. Any goroutine may use them.
type conditions struct {
	log        string // name of the stream of the input log
	followers  *followers
	folds      *folds
	quarantine *ingest.QuarantineWriter
	ticker     *ingest.Ticker // nil if none is needed
	// since when the embedded server cannot write; nil: it can
	full atomic.Pointer[request.State]
}

// list returns the conditions of the input log, the output log, the quarantine and the followers.
func (c *conditions) list() (states []request.State) {
	states = append(c.followers.states(), c.folds.main.Load().outlets.states()...)
	states = append(states, c.quarantine.State())
	log := request.State{Name: c.log, Condition: request.Delivering}
	if c.ticker != nil {
		log = c.ticker.State()
	}
	if full := c.full.Load(); full != nil { // more precise than the ticker's state
		log = *full
	}
	return append(states, log)
}

// logStates logs the changes since before, and updates before.
func (p *Pipeline) logStates(before map[string]request.State) {
	for _, s := range p.conditions.list() {
		was := before[s.Name]
		before[s.Name] = s
		switch {
		case s.Condition == was.Condition ||
			was.Condition == "" && s.Condition == request.Delivering:
		case s.Condition == request.Delivering:
			p.log.Info("it goes on", "output", s.Name, "behind", s.Behind, "after",
				time.Since(was.Since).Round(time.Second))
		case s.Condition == request.Holding:
			p.log.Warn("the run waits", "for", s.Name, "reason", s.Reason)
		default:
			p.log.Warn("it fails and is tried again; its pending records stay",
				"output", s.Name, "reason", s.Reason, "behind", s.Behind)
		}
	}
}

// modelsOf lists the model versions of a core with their accuracy by class.
func modelsOf(core *incremental.Core, classes []string) (models []web.Model) {
	names := core.View().Versions()
	for _, v := range core.Judged() {
		m := web.Model{
			Version:  names[v.Version],
			Degraded: v.Degraded,
			Drift:    v.Drift / prequential.Threshold,
			Classes:  []web.ModelClass{},
		}
		for i := range v.Classes {
			c := &v.Classes[i]
			if c.Judged == 0 {
				continue
			}
			one := web.ModelClass{
				Class:    classes[i],
				Judged:   c.Judged,
				Accuracy: c.Accuracy,
				Brier:    c.Brier,
				LogScore: c.LogScore,
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

// catchingUp is the largest distance to the end of the stream, in messages, of a pipeline that
// calls itself running.
const catchingUp = 1000

// A long step is reported: first on the page, then in the program's log as well.
const (
	progressAfter    = 2 * time.Second
	progressLogEvery = 10 * time.Second
)

type stepUnderWay struct {
	begun  time.Time
	last   event.Position
	events int
	emits  bool
}

// showProgress reports a long step while the loop is busy. It logs when that is due.
func (p *Pipeline) showProgress(ctx context.Context, due *time.Time) {
	now, step := time.Now(), p.folds.main.Load().step.Load()
	if step == nil || now.Sub(step.begun) < progressAfter {
		return
	}
	what := map[bool]string{false: "applying", true: "applying and estimating"}[step.emits]
	text := fmt.Sprintf("%s %d events up to position %d, for %v so far",
		what, step.events, step.last, now.Sub(step.begun).Round(time.Second))
	if p.Page != nil {
		p.Page.Progress(text, p.logEnd(ctx))
	}
	if !now.Before(*due) {
		*due = now.Add(progressLogEvery)
		p.log.Info("a long step is under way", "what", text)
	}
}
