package sinks

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"gqlstream/quant"
)

// EstimateSubject returns the subject of a community's estimates.
func EstimateSubject(community string) string { return "gqlest.estimate." + Token(community) }

// NATSConfig describes where estimates go on a NATS server.
type NATSConfig struct {
	Stream string // with the subjects gqlest.>; empty: GQL_ESTIMATES
	Bucket string // of the latest estimates; empty: gql_estimates

	// Log names the log that positions count in; the creation time of its stream
	// will do. What another log left is not compared with.
	Log string

	RetryFor time.Duration // while the broker is away or has no room; 0: as long as it takes, < 0: not at all
}

func (c NATSConfig) withDefaults() NATSConfig {
	if c.Stream == "" {
		c.Stream = "GQL_ESTIMATES"
	}
	if c.Bucket == "" {
		c.Bucket = "gql_estimates"
	}
	return c
}

// NATS appends estimates to a stream, each record exactly once: the broker stores
// a record only directly after the one that this sink knows as the last of its
// community, and after a restart what is not newer than that is left out. A second
// instance that publishes the same communities makes Write fail. It has one owner.
type NATS struct {
	subjects *subjects
}

// NewNATS returns a sink on nc.
func NewNATS(nc *nats.Conn, c NATSConfig) (*NATS, error) {
	c = c.withDefaults()
	s, err := newSubjects(nc, subjectsConfig{
		stream: c.Stream, log: c.Log, retryFor: c.RetryFor, everyRecord: true,
	})
	if err != nil {
		return nil, err
	}
	return &NATS{subjects: s}, nil
}

// Write implements Sink.
func (s *NATS) Write(ctx context.Context, estimates []quant.Estimate) error {
	var records []record
	ordinal := 0
	for i := range estimates {
		e := &estimates[i]
		if ordinal++; i == 0 || e.Community != estimates[i-1].Community {
			ordinal = 0
		}
		data, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("sinks: estimate of %q at %d: %w", e.Community, e.Position, err)
		}
		records = append(records, record{
			subject: EstimateSubject(e.Community), place: place{e.Position, ordinal}, data: data,
			id: Token(e.Community) + "|" + Token(e.Method) + "|" + strconv.FormatUint(e.Position, 10) + "|" +
				strconv.Itoa(ordinal),
		})
	}
	return s.subjects.write(ctx, records)
}

// Kept returns ErrLost if the broker has lost the newest records that it acknowledged.
// Write asks as well, when the broker has been away.
func (s *NATS) Kept(ctx context.Context) error { return s.subjects.kept(ctx) }

// State says whether the broker takes estimates.
func (s *NATS) State() State { return s.subjects.tracker.State(s.subjects.config.stream) }

// Close implements Sink. It leaves the connection open.
func (s *NATS) Close() error {
	s.subjects.close()
	return nil
}

// Latest keeps the newest estimate of each community and method in a bucket. A
// position never goes back, whoever writes. It has one owner.
type Latest struct {
	subjects *subjects
	bucket   string
}

// NewLatest returns a sink on nc.
func NewLatest(nc *nats.Conn, c NATSConfig) (*Latest, error) {
	c = c.withDefaults()
	s, err := newSubjects(nc, subjectsConfig{stream: "KV_" + c.Bucket, log: c.Log, retryFor: c.RetryFor})
	if err != nil {
		return nil, err
	}
	return &Latest{subjects: s, bucket: c.Bucket}, nil
}

// LatestKey returns the key of a community and a method in the bucket. A method
// that is configured several times has the keys n = 0, 1, ... in the order of the
// estimates.
func LatestKey(community, method string, n int) string {
	key := Token(community) + "." + Token(method)
	if n > 0 {
		key += "." + strconv.Itoa(n)
	}
	return key
}

// Write implements Sink.
func (s *Latest) Write(ctx context.Context, estimates []quant.Estimate) error {
	var records []record
	same := 0
	for i := range estimates {
		e := &estimates[i]
		if same++; i == 0 || e.Community != estimates[i-1].Community ||
			e.Method != estimates[i-1].Method {
			same = 0
		}
		data, err := json.Marshal(e)
		if err != nil {
			return fmt.Errorf("sinks: estimate of %q at %d: %w", e.Community, e.Position, err)
		}
		records = append(records, record{
			subject: "$KV." + s.bucket + "." + LatestKey(e.Community, e.Method, same),
			place:   place{position: e.Position}, data: data,
		})
	}
	return s.subjects.write(ctx, records)
}

// Kept is as that of NATS.
func (s *Latest) Kept(ctx context.Context) error { return s.subjects.kept(ctx) }

// State says whether the broker takes estimates.
func (s *Latest) State() State { return s.subjects.tracker.State(s.subjects.config.stream) }

// Close implements Sink. It leaves the connection open.
func (s *Latest) Close() error {
	s.subjects.close()
	return nil
}
