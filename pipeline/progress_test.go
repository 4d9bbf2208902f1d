package pipeline

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// sayings keeps a log that one goroutine writes and another one reads.
type sayings struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *sayings) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(b)
}

func (s *sayings) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// A step that takes long must be spoken of in the log, not at once and not every second.
func TestALongStepIsSpokenOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var said sayings
		p := unopened(slog.NewTextHandler(&said, nil))
		main := newFold(p.Config, nil)
		p.folds.main.Store(main)
		var due time.Time
		main.step.Store(&stepUnderWay{begun: time.Now(), last: 7, events: 300, emits: true})
		look := func(seconds int) (lines int) {
			for range seconds {
				p.showProgress(t.Context(), &due)
				time.Sleep(time.Second)
			}
			return strings.Count(said.String(), "\n")
		}
		for _, c := range []struct{ seconds, lines int }{{2, 0}, {1, 1}, {9, 1}, {1, 2}} {
			if n := look(c.seconds); n != c.lines {
				t.Fatalf("%d lines, want %d:\n%s", n, c.lines, said.String())
			}
		}
		if !strings.Contains(
			said.String(),
			"estimating 300 events up to position 7, for 2s so far",
		) {
			t.Errorf("it says\n%s", said.String())
		}
		main.step.Store(nil)
		if n := look(60); n != 2 {
			t.Errorf("it speaks after the end:\n%s", said.String())
		}
	})
}
