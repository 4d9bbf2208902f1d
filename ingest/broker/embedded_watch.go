package broker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	embeddedLookEvery = time.Second
	embeddedRoomMin   = 16 << 20 // bytes that can be written before the server is to be started again
)

// Waiting says that a writer, or a ticker, waits for the broker; the zero Reason, that it does not.
type Waiting struct {
	Reason  string
	Since   time.Time
	Retries uint64 // failed attempts since the beginning
}

// watched is what is known of a server that cannot write.
type watched struct {
	mu      sync.Mutex
	waiting Waiting

	again  chan struct{} // closed when the server is to be started again
	cancel context.CancelFunc
	done   chan struct{}
}

// Waiting says since when the server takes nothing, and why, if it does not. Any
// goroutine may call it.
func (w *watched) Waiting() Waiting {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.waiting
}

// Again is closed when the server could not write and there is room again. It takes
// nothing before it is closed and started anew: what it has acknowledged of streams in
// AsyncPersistMode may be lost, so that who has published to those must see what they
// hold.
func (w *watched) Again() <-chan struct{} { return w.again }

func (e *Embedded) startWatch(c EmbeddedConfig) {
	var ctx context.Context
	ctx, e.cancel = context.WithCancel(context.Background())
	e.again, e.done = make(chan struct{}), make(chan struct{})
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	go e.watch(ctx, cmp.Or(c.lookEvery, embeddedLookEvery), filepath.Join(c.Dir, storeDir, "room.tmp"))
}

func (e *Embedded) stopWatch() {
	if e.done != nil {
		e.cancel()
		<-e.done
	}
}

// watch waits until the server cannot write, and then until there is room. The server
// keeps such an error for its life.
func (e *Embedded) watch(ctx context.Context, every time.Duration, scratch string) {
	defer close(e.done)
	_ = os.Remove(scratch) // of a process that was killed
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		reason := writeError(e.server)
		if reason == "" {
			continue
		}
		e.note(reason)
		if hasRoom(scratch) == nil {
			close(e.again)
			return
		}
	}
}

// note keeps what Waiting returns, and tells it once.
func (e *Embedded) note(reason string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.waiting.Reason == "" {
		e.waiting = Waiting{Reason: reason, Since: time.Now()}
		e.log.Error("the embedded server cannot write, and takes nothing until there is room",
			"bytes", embeddedRoomMin, "reason", reason)
	}
}

// writeError returns the first error of writing that the server has kept.
func writeError(s *server.Server) string {
	if !s.JetStreamEnabled() {
		return "it has turned its store off"
	}
	for _, e := range s.Healthz(&server.HealthzOptions{Details: true}).Errors {
		if e.Type == server.HealthzErrorStream && strings.Contains(e.Error, "write error") {
			return e.Error
		}
	}
	return ""
}

// hasRoom reports why not much can be written.
func hasRoom(scratch string) error {
	file, err := os.Create(scratch)
	if err != nil {
		return err
	}
	defer os.Remove(scratch)
	block := make([]byte, 1<<20) // written, since a disk can take a size that it has no room for
	for n := 0; n < embeddedRoomMin && err == nil; n += len(block) {
		_, err = file.Write(block)
	}
	return errors.Join(err, file.Sync(), file.Close())
}
