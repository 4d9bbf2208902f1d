package pipeline

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"gqlstream/ingest/event"
	"gqlstream/sinks/web"
)

// A step that takes long says so: first to the page, then in the log as well.
const (
	progressLookEvery = time.Second
	progressAfter     = 2 * time.Second
	progressLogEvery  = 10 * time.Second
)

type stepUnderWay struct {
	begun  time.Time
	last   event.Position
	events int
	emits  bool
}

func (s *stepUnderWay) text(now time.Time) string {
	what := map[bool]string{false: "applying", true: "applying and estimating"}[s.emits]
	return fmt.Sprintf("%s %d events up to position %d, for %v so far", what, s.events, s.last, now.Sub(s.begun).Round(time.Second))
}

// stepProgress knows the step that the loop takes, and speaks of one that takes long, while
// the loop cannot.
type stepProgress struct {
	underWay atomic.Pointer[stepUnderWay] // nil between two steps
	page     *web.Server                  // nil: the log alone
	end      func(context.Context) uint64 // of the stream; 0: it does not answer
	log      *slog.Logger
}

func (p *stepProgress) watch(ctx context.Context) error {
	var logged time.Time
	return repeat(ctx, progressLookEvery, func() error {
		now, step := time.Now(), p.underWay.Load()
		if step == nil || now.Sub(step.begun) < progressAfter {
			return nil
		}
		text := step.text(now)
		if p.page != nil {
			p.page.LogEnd(p.end(ctx))
			p.page.Progress(text)
		}
		if now.Sub(logged) >= progressLogEvery {
			logged = now
			p.log.Info("a long step is under way", "what", text)
		}
		return nil
	})
}
