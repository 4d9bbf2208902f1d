package sinks

import (
	"context"
	"fmt"
	"time"

	"gqlstream/request"
)

// roomLookEvery is how often a writer that waits for a follower looks again.
const roomLookEvery = 200 * time.Millisecond

// awaitRoom waits until the broker can store a batch without discarding what the
// slowest follower has not taken yet.
func (w *Writer) awaitRoom(ctx context.Context, b *batch) error {
	if w.config.Needed == nil {
		return nil
	}
	if w.free -= int64(b.bytes()); w.free > 0 {
		return nil
	}
	for {
		follower, taken := w.config.Needed()
		if follower == "" {
			return nil
		}
		_, info, err := w.leader(ctx)
		if err != nil {
			return err
		}
		s, bytesMax := info.State, info.Config.MaxBytes
		w.free = max(bytesMax-int64(s.Bytes+b.bytes()), 0) / int64(max(w.config.Shards, 1)) // others publish meanwhile
		if bytesMax <= 0 || s.Msgs == 0 || w.free > 0 || taken >= s.LastSeq {
			return nil
		}
		over := s.Bytes + b.bytes() - uint64(bytesMax)
		discarded := over/(s.Bytes/s.Msgs+1) + batchMessagesMax // a batch more than the average says
		if taken >= s.FirstSeq+discarded {
			return nil
		}
		w.tracker.Hold(fmt.Sprintf("the stream is full, and %s has not taken message %d and those after it", follower, taken+1))
		if err := request.Pause(ctx, roomLookEvery); err != nil {
			return err
		}
	}
}
