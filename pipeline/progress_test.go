package pipeline

import (
	"context"
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
		p := &stepProgress{log: slog.New(slog.NewTextHandler(&said, nil))}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.watch(ctx) }()
		p.underWay.Store(&stepUnderWay{begun: time.Now(), last: 7, events: 300, emits: true})
		for _, c := range []struct {
			after time.Duration
			lines int
		}{{1500 * time.Millisecond, 0}, {2 * time.Second, 1}, {5 * time.Second, 1}, {6 * time.Second, 2}} {
			time.Sleep(c.after)
			synctest.Wait()
			if n := strings.Count(said.String(), "\n"); n != c.lines {
				t.Fatalf("%d lines, want %d:\n%s", n, c.lines, said.String())
			}
		}
		if !strings.Contains(said.String(), "estimating 300 events up to position 7, for 2s so far") {
			t.Errorf("it says\n%s", said.String())
		}
		p.underWay.Store(nil)
		before := len(said.String())
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(said.String()) != before {
			t.Errorf("it speaks after the end:\n%s", said.String())
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}
