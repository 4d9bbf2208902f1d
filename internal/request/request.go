// Package request bounds the wait for the answer to a request to a NATS server. The client library
// waits until a deadline even if the connection is lost. That is too long on a cluster: one server
// may die or be cut off while the others go on. Code that sends a repeatable request takes its
// context from here, and repeats the request when the context ends. A Feed reads a stream in order
// by such requests.
package request

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// AnswerWaitMax is how long to wait for the answer to one request.
const AnswerWaitMax = 3 * time.Second

// Context returns the context for one request. It ends after AnswerWaitMax, or when the connection
// has been replaced, since the answer would have come on the old one.
func Context(ctx context.Context, nc *nats.Conn) (context.Context, context.CancelFunc) {
	asking, cancel := context.WithTimeout(ctx, AnswerWaitMax)
	again := nc.StatusChanged(nats.CONNECTED)
	go func() {
		defer nc.RemoveStatusListener(again)
		select {
		case <-again:
			cancel()
		case <-asking.Done():
		}
	}()
	return asking, cancel
}

// ask sends a repeatable request, again and again until an answer comes; the first answer counts,
// even if it is an error. A cluster loses requests while it elects a leader: a single request would
// notice the new leader only after its whole timeout.
func ask[T any](
	ctx context.Context,
	every time.Duration,
	question func(context.Context) (T, error),
) (T, error) {
	type answer struct {
		value T
		err   error
	}
	ctx, cancel := context.WithTimeout(ctx, AnswerWaitMax)
	defer cancel()
	answers := make(chan answer, AnswerWaitMax/every+1)
	again := time.NewTicker(every)
	defer again.Stop()
	for {
		go func() {
			value, err := question(ctx)
			answers <- answer{value, err}
		}()
		select {
		case a := <-answers:
			return a.value, a.err
		case <-again.C:
		}
	}
}

// cluster repeats the first requests of a reader or writer of a stream.
type cluster struct{ jetstream.JetStream }

func (c cluster) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	return ask(ctx, AnswerWaitMax/6,
		func(ctx context.Context) (jetstream.Stream, error) {
			return c.JetStream.Stream(ctx, name)
		})
}

// CreateConsumer may create several consumers for a config without a name. Unused ones expire.
func (c cluster) CreateConsumer(
	ctx context.Context,
	stream string,
	config jetstream.ConsumerConfig,
) (jetstream.Consumer, error) {
	return ask(ctx, AnswerWaitMax/3, func(ctx context.Context) (jetstream.Consumer, error) {
		return c.JetStream.CreateConsumer(ctx, stream, config)
	})
}

// Pause waits for d, or until ctx ends, and then returns its error.
func Pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Silence counts consecutive requests without an answer. The answer that the cluster cannot decide
// now counts as a third of one: the server is cut off from the others, or all of them are electing.
type Silence int

// unanswered is one request without an answer.
const unanswered Silence = 3

// pongWaitMax is how long a server may take to answer a ping after a silence.
const pongWaitMax = 500 * time.Millisecond

// After records how a request ended. If there are several servers, it reconnects to another one
// when pings are not answered either, or after two silences in a row: a server that is cut off from
// its cluster answers pings, but reports late or never that it cannot decide. The next request
// notices problems of the connection.
func (s *Silence) After(nc *nats.Conn, err error) {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		if *s += unanswered; len(nc.Servers()) > 1 && nc.FlushTimeout(pongWaitMax) != nil {
			*s = 2 * unanswered
		}
	case errors.As(err, &api) &&
		api.ErrorCode == jetstream.ErrorCode(nats.JSErrCodeJetStreamNotAvailable):
		*s++
	default:
		*s = 0
	}
	if *s >= 2*unanswered && len(nc.Servers()) > 1 {
		*s = 0
		_ = nc.ForceReconnect()
	}
}

// How long Retry pauses: doubled each time. The pauses are short compared with an election, which
// takes seconds and ends without a notice.
const (
	retryWaitMin = 50 * time.Millisecond
	retryWaitMax = 500 * time.Millisecond
)

// Retry calls try until it succeeds or fails with a final error, and calls failed with every
// temporary one. If ctx ends meanwhile, it returns the error of ctx.
func Retry(ctx context.Context, nc *nats.Conn, try func() error, failed func(error)) error {
	var silence Silence
	for wait := retryWaitMin; ; wait = min(2*wait, retryWaitMax) {
		err := try()
		silence.After(nc, err)
		if err == nil || !Passes(err) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		failed(err)
		if err := Pause(ctx, wait); err != nil {
			return err
		}
	}
}

const codeDuplicateInProcess jetstream.ErrorCode = 10158

// DuplicateInProcess reports that a cluster has not decided yet whether it stores the first copy of
// a repeated message.
func DuplicateInProcess(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.ErrorCode == codeDuplicateInProcess
}

// passingCodes are error codes of a broker that can pass: an account has used its share, is busy
// (10167), a batch did not arrive whole, too many batches are in progress.
var passingCodes = []jetstream.ErrorCode{10002, 10167, 10176, 10210, codeDuplicateInProcess}

// passingErrors say that the broker is away, or not ready.
var passingErrors = []error{
	jetstream.ErrNoStreamResponse,
	jetstream.ErrAsyncPublishTimeout,
	jetstream.ErrJetStreamNotEnabled,
	nats.ErrNoResponders,
	nats.ErrTimeout,
	nats.ErrDisconnected,
	nats.ErrReconnectBufExceeded,
	context.DeadlineExceeded, // of a request
	context.Canceled,         // of a request
	net.ErrClosed,
}

// Passes reports whether an error can pass by itself: the broker is away, or cannot store anything
// now, for lack of space for example. A message that does not fit into the client's buffer is
// written at once, so it can meet the error of a connection that has just broken.
func Passes(err error) bool {
	var api *jetstream.APIError
	var connection *net.OpError
	var watching *nats.APIError // buckets are watched by way of the older interface
	return errors.As(err, &connection) ||
		errors.As(err, &watching) && watching.Code >= 500 ||
		errors.As(err, &api) && (api.Code >= 500 || slices.Contains(passingCodes, api.ErrorCode)) ||
		slices.ContainsFunc(passingErrors,
			func(passing error) bool { return errors.Is(err, passing) })
}
