package sinks

import (
	"context"

	"gqlstream/quant"
)

// Sink writes estimates somewhere durable or visible.
type Sink interface {
	// Write delivers the estimates of one emission, all of one position and sorted
	// by community and method. It returns when they are as durable as the sink
	// makes them. The slice belongs to the caller after the return.
	Write(ctx context.Context, estimates []quant.Estimate) error
	Close() error
}
