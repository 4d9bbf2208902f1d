package sinks

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/quant"
)

// RollupsConfig configures the follower that makes roll-ups of an output log.
type RollupsConfig struct {
	JS      jetstream.JetStream
	Streams StreamsConfig
	Log     string     // identity of the input log
	State   StateStore // keeps the roll-ups that are in no stream yet
}

// Rollups is a follower that summarises published records by minute, hour and day of log time, and
// stores the summaries in a stream for each, every one exactly once: unfinished ones are a function
// of the output log and are saved with the cursor, and roll-ups that a restart computes again are
// not stored again. Without a saved state it begins with the present content of the output log. Any
// goroutine may call Read.
type Rollups struct {
	config RollupsConfig

	mu    sync.Mutex
	state rollupState

	opened   chan struct{} // closed at the first Open
	openOnce sync.Once

	standby bool // another worker of a group stores and saves
	stored  [len(resolutions)]placedStream
	packer  *gzip.Writer
}

// rollupState is the saved state of roll-ups.
type rollupState struct {
	Minute int64     // of log time, of the newest emission; 0 before the first one
	Series []*rolled // sorted by community and method
}

// SetStandby leaves storing and saving to another worker of a group, or not. It must not be called
// while the roll-ups follow.
func (r *Rollups) SetStandby(standby bool) { r.standby = standby }

// NewRollups returns a follower that is not open yet.
func NewRollups(c RollupsConfig) *Rollups {
	r := &Rollups{config: c, opened: make(chan struct{}), packer: gzip.NewWriter(nil)}
	for i, row := range resolutions {
		r.stored[i] = placedStream{
			js:   c.JS,
			name: c.Streams.Names.historyStream(row.name),
			log:  c.Log,
		}
	}
	return r
}

// Open opens the follower, as a FollowConfig wants it.
func (r *Rollups) Open(ctx context.Context) (Follower, Cursor, error) {
	for i, row := range slices.Backward(resolutions[:]) {
		_, err := ensureStream(ctx, r.config.JS, r.config.Streams.history(row))
		if err == nil {
			err = r.stored[i].open(ctx)
		}
		if err != nil {
			return nil, Cursor{}, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.state = rollupState{}
	p, err := readState(ctx, r.config.State, r.config.Log)
	if err != nil && !errors.Is(err, os.ErrNotExist) && !errors.Is(err, ErrNotOurs) {
		return nil, Cursor{}, err // it is there, and cannot be read now
	}
	none := errors.Is(err, os.ErrNotExist)
	if err != nil || json.Unmarshal(p.State, &r.state) != nil {
		p = progress{}
		r.state = rollupState{} // the content of the output log is summarised again
	}
	if none && !r.standby { // before the first record, so that a start notices that it is lost
		if err := writeState(ctx, r.config.State, progress{Log: r.config.Log}); err != nil {
			return nil, Cursor{}, err
		}
	}
	r.openOnce.Do(func() { close(r.opened) })
	return r, p.Cursor, nil
}

// Take implements Follower.
func (r *Rollups) Take(ctx context.Context, e *Stored) error {
	if e.Time == 0 {
		return nil // a log without times has no minutes
	}
	estimates, err := e.Estimates()
	if err != nil {
		return err
	}
	r.mu.Lock()
	messages, err := r.advance(e.Time)
	r.add(estimates, e.Time)
	r.mu.Unlock()
	if r.standby {
		return err
	}
	for _, n := range NotesOf(e.Position, e.Time, e.Notes) {
		data, failed := json.Marshal(n)
		messages[notes], err = append(messages[notes],
			&nats.Msg{
				Subject: r.config.Streams.Names.noteSubject(),
				Data:    data,
			}), errors.Join(err, failed)
	}
	for i := range messages {
		if err == nil && len(messages[i]) > 0 {
			err = r.stored[i].append(ctx, e.Position, e.Cursor.Digest, messages[i])
		}
	}
	return err
}

// add adds the records of an emission. Suppressed records have no shares. Of a method that is
// configured twice, the first counts.
func (r *Rollups) add(estimates []quant.Estimate, at int64) {
	for i := range estimates {
		if e := &estimates[i]; !e.Suppressed && Ordinal(estimates, i) == 0 {
			r.of(e.Community, e.Method).add(e, at)
		}
	}
}

// advance returns the chunks that are complete, by resolution and in the order of community and
// method.
func (r *Rollups) advance(now int64) (messages [len(resolutions)][]*nats.Msg, err error) {
	minute := periodStart(now, resolutions[0].period)
	if minute < r.state.Minute {
		r.setClock(now)
	}
	if minute <= r.state.Minute {
		return messages, nil
	}
	r.state.Minute = minute
	for _, s := range r.state.Series {
		for i, row := range resolutions {
			chunk, ok := s.complete(i, now)
			if !ok {
				continue
			}
			data, err := r.pack(chunk)
			if err != nil {
				return messages, err
			}
			subject := r.config.Streams.Names.historySubject(row.name, s.Community, s.Method)
			messages[i] = append(messages[i], &nats.Msg{Subject: subject, Data: data})
		}
	}
	r.state.Series = slices.DeleteFunc(
		r.state.Series,
		func(s *rolled) bool { // communities come and go
			return !slices.ContainsFunc(s.Rollups[:],
				func(list []Rollup) bool { return len(list) > 0 })
		},
	)
	return messages, nil
}

// setClock follows log time to an earlier time, after a clock event: roll-ups of later periods that
// are in no chunk yet are dropped.
func (r *Rollups) setClock(now int64) {
	r.state.Minute = periodStart(now, resolutions[0].period)
	for _, s := range r.state.Series {
		s.setClock(now)
	}
}

// pack returns a chunk as JSON compressed with gzip: a broker reads a whole block to find a
// message, so the cost of a chart depends on the size of all others.
func (r *Rollups) pack(chunk rollupChunk) ([]byte, error) {
	var packed bytes.Buffer
	r.packer.Reset(&packed)
	err := errors.Join(json.NewEncoder(r.packer).Encode(chunk), r.packer.Close())
	return packed.Bytes(), err
}

// of returns the series of a community and a method, new if need be.
func (r *Rollups) of(community, method string) *rolled {
	at, found := r.find(community, method)
	if !found {
		s := &rolled{Community: strings.Clone(community), Method: strings.Clone(method)}
		r.state.Series = slices.Insert(r.state.Series, at, s)
	}
	return r.state.Series[at]
}

func (r *Rollups) find(community, method string) (at int, found bool) {
	return slices.BinarySearchFunc(r.state.Series, 0, func(s *rolled, _ int) int {
		return cmp.Or(strings.Compare(s.Community, community), strings.Compare(s.Method, method))
	})
}

// Sync implements Follower.
func (r *Rollups) Sync(ctx context.Context, taken Cursor) (Cursor, error) {
	if r.standby {
		return taken, nil
	}
	r.mu.Lock()
	state, err := json.Marshal(r.state)
	r.mu.Unlock()
	if err == nil {
		err = writeState(ctx, r.config.State,
			progress{Log: r.config.Log, Cursor: taken, State: state})
	}
	return taken, err
}

// Close implements Follower. Roll-ups can be opened again.
func (r *Rollups) Close() error { return nil }
