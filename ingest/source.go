package ingest

import (
	"context"

	"gqlstream/ingest/event"
)

// Source delivers a log as steps.
type Source interface {
	// Next resets b and fills it with the next step. It returns io.EOF, with an
	// empty batch, after the last step of a finite source. b stays valid until the
	// next call. An error that is not io.EOF names the position and is final.
	Next(ctx context.Context, b *event.Batch) error
	Close() error
}
