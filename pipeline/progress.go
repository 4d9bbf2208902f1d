package pipeline

import (
	"context"
	"fmt"
	"time"

	"gqlstream/ingest/event"
)

// A step that takes long says so: first to the page, then in the log as well.
const (
	progressLookEvery = time.Second
	progressAfter     = 2 * time.Second
	progressLogEvery  = 10 * time.Second
)

// stepUnderWay is what is known of a step before it is done.
type stepUnderWay struct {
	begun  time.Time
	last   event.Position
	events int
	emits  bool
}

// text says what the step is doing.
func (s *stepUnderWay) text(now time.Time) string {
	what := "applying"
	if s.emits {
		what = "applying and estimating"
	}
	return fmt.Sprintf("%s %d events up to position %d, for %v so far", what, s.events, s.last, now.Sub(s.begun).Round(time.Second))
}

// watchSteps speaks of a step that takes long, while the loop cannot.
func (p *Pipeline) watchSteps(ctx context.Context) error {
	ticker := time.NewTicker(progressLookEvery)
	defer ticker.Stop()
	var logged time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			step := p.underWay.Load()
			if step == nil || now.Sub(step.begun) < progressAfter {
				continue
			}
			text := step.text(now)
			if p.Page != nil {
				p.Page.Progress(text)
			}
			if now.Sub(logged) >= progressLogEvery {
				logged = now
				p.log.Info("a long step is under way", "what", text)
			}
		}
	}
}
