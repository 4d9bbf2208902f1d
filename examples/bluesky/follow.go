package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/coder/websocket"
)

const (
	batchEventsMax = 1000        // a batch is published when it has as many events
	batchWaitMax   = time.Second // or when its first frame is so old
	frameBytesMax  = 1 << 20     // a longer frame ends the connection
	pauseMax       = time.Minute // between two tries to connect
	// servers' clocks differ, so a new connection begins a bit earlier
	rewind = 5 * time.Second
	gapMin = 30 * time.Second // a later beginning than this after the cursor is reported
)

// follower reads a Jetstream server, over any number of connections, and publishes.
type follower struct {
	url        string
	translator translator
	stallMax   time.Duration // a connection that says nothing for so long is given up
	pauseMin   time.Duration // before the second try to connect; doubled up to pauseMax
	publish    func(context.Context, *batch) error
	save       func(cursor int64) error // everything before this time is published
	report     func(format string, args ...any)

	cursor  int64 // microseconds; 0 begins now
	begun   bool  // the connection has sent a frame
	refused int   // frames that could not be read
}

// errCursor is that of a server which does not take the cursor.
var errCursor = errors.New("the server rejects the cursor")

// follow reads until the context ends. Frames that could not be published are read again on the
// next connection, because the cursor stays behind it.
func (f *follower) follow(ctx context.Context) error {
	pause := f.pauseMin
	for {
		before := f.cursor
		err := f.read(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errCursor):
			f.report("%v, %s: continues with new events; events since then are not published",
				err, moment(f.cursor))
			f.cursor = 0
		case f.cursor != before:
			pause = f.pauseMin
		}
		f.report("connects again in about %v: %v", pause, err)
		timer := time.NewTimer(pause/2 + rand.N(pause)) // not all producers at the same moment
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		pause = min(2*pause, pauseMax)
	}
}

// read follows one connection until it ends.
func (f *follower) read(ctx context.Context) error {
	conn, err := f.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.CloseNow()
	frames := make(chan *frame, batchEventsMax)
	ended := make(chan struct{})
	reading, stop := context.WithCancel(ctx)
	var cause error // why the connection ended; set when ended is closed
	go func() {
		defer close(ended)
		cause = f.receive(reading, conn, frames)
	}()
	defer func() { stop(); <-ended }()
	b, tick := &batch{}, time.NewTicker(batchWaitMax)
	defer tick.Stop()
	f.begun = false
	for {
		full := false
		select {
		case received := <-frames:
			if err := f.add(b, received); err != nil {
				return err
			}
			full = b.events >= batchEventsMax
		case <-tick.C:
			full = true
		case <-ended:
			for len(frames) > 0 { // frames before the end count
				if err := f.add(b, <-frames); err != nil {
					return err
				}
			}
			return errors.Join(cause, f.flush(ctx, b))
		}
		if full {
			if err := f.flush(ctx, b); err != nil {
				return err
			}
			b = &batch{}
		}
	}
}

// add translates a frame. The first one of a connection shows whether the server still has the
// frames after the cursor; the very first one is the start if the cursor is lost.
func (f *follower) add(b *batch, received *frame) error {
	if !f.begun && f.cursor != 0 && received.TimeUS-f.cursor > gapMin.Microseconds() {
		f.report("no events between %s and %s are available",
			moment(f.cursor), moment(received.TimeUS))
	}
	f.begun = true
	if f.cursor == 0 {
		f.cursor = received.TimeUS
	}
	return f.translator.add(b, received)
}

// connect opens a connection at the cursor.
func (f *follower) connect(ctx context.Context) (*websocket.Conn, error) {
	address, err := url.Parse(f.url)
	if err != nil {
		return nil, err
	}
	query := address.Query()
	for _, collection := range []string{likes, reposts, posts} {
		query.Add("wantedCollections", collection)
	}
	if f.cursor != 0 {
		query.Set("cursor", strconv.FormatInt(f.cursor-rewind.Microseconds(), 10))
	}
	address.RawQuery = query.Encode()
	opening, cancel := context.WithTimeout(ctx, f.stallMax)
	defer cancel()
	conn, reply, err := websocket.Dial(opening, address.String(), nil)
	if err != nil {
		if reply != nil && reply.StatusCode == http.StatusBadRequest && f.cursor != 0 {
			return nil, errCursor
		}
		return nil, err
	}
	conn.SetReadLimit(frameBytesMax)
	return conn, nil
}

// receive hands over the frames of a connection until it ends or stalls.
func (f *follower) receive(ctx context.Context, conn *websocket.Conn, frames chan<- *frame) error {
	for {
		waiting, cancel := context.WithTimeoutCause(ctx, f.stallMax,
			fmt.Errorf("no message for %v", f.stallMax))
		_, text, err := conn.Read(waiting)
		if err != nil && waiting.Err() != nil {
			err = context.Cause(waiting)
		}
		cancel()
		if err != nil {
			return err
		}
		var received frame
		if err := json.Unmarshal(text, &received); err != nil || received.TimeUS <= 0 {
			if f.refused++; f.refused&(f.refused-1) == 0 { // the first, second, fourth, ...
				f.report("%d frames could not be read, the last: %.100q", f.refused, text)
			}
			continue
		}
		select {
		case frames <- &received:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// flush publishes a batch and then saves its cursor, so that a crash between the two sends
// it again.
func (f *follower) flush(ctx context.Context, b *batch) error {
	if b.through == 0 {
		return nil
	}
	if err := f.publish(ctx, b); err != nil {
		return err
	}
	f.cursor = max(f.cursor, b.through)
	return f.save(f.cursor)
}

// moment formats a time in microseconds.
func moment(us int64) string { return time.UnixMicro(us).UTC().Format(time.RFC3339) }
