package request

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// JetStream returns the JetStream of a domain; empty: that of the server. On a cluster it repeats the
// questions with which a reader or a writer of a stream begins.
func JetStream(nc *nats.Conn, domain string, options ...jetstream.JetStreamOpt) (js jetstream.JetStream, err error) {
	several := len(nc.Servers()) > 1
	if several { // a stream that elects its leader says nothing, and is asked again
		options = append(options, jetstream.WithDefaultTimeout(AnswerWaitMax))
	}
	if js, err = jetstream.New(nc, options...); domain != "" {
		js, err = jetstream.NewWithDomain(nc, domain, options...)
	}
	if several && err == nil {
		js = cluster{js}
	}
	return js, err
}

// EnsureStream creates a stream, or returns the one of that name as it is. The broker reserves what
// a stream may grow to; where it has not that much, the limit becomes smaller.
func EnsureStream(ctx context.Context, js jetstream.JetStream, c jetstream.StreamConfig) (jetstream.Stream, error) {
	stream, err := js.Stream(ctx, c.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		stream, err = js.CreateStream(ctx, c)
		for NoSpace(err) && c.MaxBytes >= 8<<20 {
			c.MaxBytes /= 8 // not all that is left: the log needs room
			stream, err = js.CreateStream(ctx, c)
		}
		if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) { // another process was first
			stream, err = js.Stream(ctx, c.Name)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("stream %s: %w", c.Name, err)
	}
	return stream, nil
}

// AuditReplicas refuses a stream that fewer servers keep than shall. It does not add any, because whom
// a cluster moves data to is an operator's decision.
func AuditReplicas(stream jetstream.Stream, least int) error {
	c := stream.CachedInfo().Config
	if c.Replicas >= least {
		return nil
	}
	return fmt.Errorf("stream %s is kept by %d server, nats.replicas wants %d: nats stream edit %s --replicas %d",
		c.Name, c.Replicas, least, c.Name, least)
}

// noSpaceCodes are answers of a broker that cannot store what is sent, or reserve what a stream may grow to.
var noSpaceCodes = []jetstream.ErrorCode{10023, 10047, 10077}

// NoSpace reports whether a broker has no room.
func NoSpace(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && slices.Contains(noSpaceCodes, api.ErrorCode)
}
