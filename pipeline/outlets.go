package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/incremental"
	"gqlstream/internal/request"
	"gqlstream/sinks"
)

// How a worker substitutes for another one.
const (
	// the second worker publishes an emission if the first has not done so after this time
	standInAfter  = 500 * time.Millisecond
	heldLookEvery = 50 * time.Millisecond
	heldMax       = 4096 // emissions of a shard that wait for the first worker
)

// outlet publishes the emissions of one shard. The first worker in the order for the shard
// publishes at once; the others hold their emissions, and publish them if the first has not done so
// after a while.
type outlet struct {
	shard int
	seen  atomic.Uint64 // the shard's watermark in the output log
	rank  atomic.Int32  // of this worker in the order for the shard
	gone  atomic.Bool   // another worker estimates it now, and this one no longer does

	disowned bool // the core has dropped the shard; owned by the loop

	mu     sync.Mutex // guards the fields below, which the loop and the watches share
	writer *sinks.Writer
	held   []heldEmission
}

type heldEmission struct {
	sinks.Emission
	since time.Time
}

// outlets holds one outlet for each shard that a worker estimates. The list never changes.
type outlets struct {
	shards      int // number of shards of the group
	each        []*outlet
	newest      atomic.Uint64 // sequence of the newest mark stored by others
	lastRecords atomic.Uint64 // newest position with records of any shard
}

// openOutlets opens an outlet for each of the shards owned, nil for all.
func openOutlets(
	ctx context.Context, js jetstream.JetStream, c sinks.WriterConfig, owned []int,
) (*outlets, error) {
	if owned == nil {
		owned = allShards(c.Shards)
	}
	o := &outlets{shards: c.Shards}
	c.Awaited = o.lastRecords.Load
	for _, shard := range owned {
		c.Shard = shard
		writer, err := sinks.NewWriter(ctx, js, c)
		if err != nil {
			return nil, err
		}
		o.each = append(o.each, &outlet{shard: shard, writer: writer})
	}
	return o, nil
}

// all lists the shards of the outlets.
func (o *outlets) all() (shards []int) {
	for _, one := range o.each {
		shards = append(shards, one.shard)
	}
	return shards
}

func allShards(shards int) (all []int) {
	for shard := range shards {
		all = append(all, shard)
	}
	return all
}

func (o *outlets) live() (list []*outlet) {
	for _, one := range o.each {
		if !one.gone.Load() {
			list = append(list, one)
		}
	}
	return list
}

// shardsHere lists the shards that no other worker has taken.
func (o *outlets) shardsHere() []int {
	shards := []int{}
	for _, one := range o.live() {
		shards = append(shards, one.shard)
	}
	return shards
}

func (o *outlets) sequence() uint64 {
	newest := o.newest.Load()
	for _, one := range o.each {
		newest = max(newest, one.writer.Sequence())
	}
	return newest
}

func (o *outlets) publish(ctx context.Context, e sinks.Emission) error {
	parts, live := divide(&e, o.shards), o.live()
	if len(e.Estimates) > 0 || len(e.Notes) > 0 || e.Cut { // of any shard
		o.speaks(e.Position)
	}
	errs := make([]error, len(live))
	var all sync.WaitGroup
	for i, one := range live {
		all.Go(func() { errs[i] = one.publish(ctx, parts[one.shard]) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("position %d: %w", e.Position, err)
	}
	return nil
}

// speaks records that some shard has records at a position.
func (o *outlets) speaks(position uint64) {
	for before := o.lastRecords.Load(); before < position; before = o.lastRecords.Load() {
		o.lastRecords.CompareAndSwap(before, position)
	}
}

// divide returns each shard's part of an emission.
func divide(e *sinks.Emission, shards int) []sinks.Emission {
	parts := make([]sinks.Emission, shards)
	for shard := range parts {
		parts[shard] = sinks.Emission{
			Position: e.Position,
			Digest:   e.Digest,
			Time:     e.Time,
			Cut:      e.Cut,
			Notes:    e.Notes,
		}
	}
	for _, record := range e.Estimates {
		part := &parts[incremental.ShardOf(record.Community, shards)]
		part.Estimates = append(part.Estimates, record)
	}
	return parts
}

// ShardHeartbeats decides for each shard which emissions are in the output log, for a replay
// without a broker.
type ShardHeartbeats []sinks.Heartbeats

// Publishes reports whether any shard publishes an emission. Call it for every emission, in order.
func (h ShardHeartbeats) Publishes(e *sinks.Emission) (publishes bool) {
	for shard, part := range divide(e, len(h)) {
		publishes = h[shard].Publishes(&part) || publishes
	}
	return publishes
}

// publish stores an emission, or holds it for a while in case the first worker does not.
func (o *outlet) publish(ctx context.Context, e sinks.Emission) error {
	for o.count() >= heldMax {
		if err := request.Pause(ctx, heldLookEvery); err != nil {
			return err
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.writer.Admit(&e) {
		return nil
	}
	o.held = append(o.held, heldEmission{e, time.Now()})
	return o.storeOverdue(ctx)
}

func (o *outlet) count() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.held)
}

// storeOverdue drops emissions that others have stored, and stores overdue ones.
func (o *outlet) storeOverdue(ctx context.Context) error {
	for len(o.held) > 0 && !o.gone.Load() {
		e := &o.held[0]
		if e.Position > max(o.seen.Load(), o.writer.Published()) {
			if time.Since(e.since) < time.Duration(o.rank.Load())*standInAfter {
				return nil
			}
			if err := o.writer.Store(ctx, e.Emission); err != nil {
				return err
			}
		}
		o.held[0] = heldEmission{}
		o.held = o.held[1:]
	}
	return nil
}

// awaitEmpty waits until no emission is held: everything estimated is in the output log.
func (o *outlets) awaitEmpty(ctx context.Context) error {
	for _, one := range o.live() {
		for !one.gone.Load() && one.count() > 0 {
			if err := request.Pause(ctx, heldLookEvery); err != nil {
				return err
			}
		}
	}
	return nil
}

// processMark records how far others have published a shard.
func (o *outlets) processMark(m sinks.Mark) {
	o.newest.Store(max(o.newest.Load(), m.Sequence))
	if m.Records > 0 || len(m.Notes) > 0 || m.Cut {
		o.speaks(m.Position)
	}
	for _, one := range o.live() {
		if one.shard == m.Shard {
			one.seen.Store(max(one.seen.Load(), m.Position))
		}
	}
}

// disown calls disown once for each shard that another worker has taken over.
func (o *outlets) disown(disown func(shard int)) {
	for _, one := range o.each {
		if one.gone.Load() && !one.disowned {
			one.disowned = true
			disown(one.shard)
		}
	}
}

// audit asks the broker whether it still has all acknowledged records. A substitute worker does not
// ask: others store and get acknowledgements.
func (o *outlets) audit(ctx context.Context) error {
	for _, one := range o.live() {
		if one.rank.Load() > 0 || one.count() > 0 { // a shard with held emissions is not complete
			continue
		}
		one.mu.Lock()
		err := one.writer.Audit(ctx)
		one.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// watermarks returns how far each shard of this worker is published.
func (o *outlets) watermarks() map[int]uint64 {
	all := map[int]uint64{}
	for _, one := range o.live() {
		one.mu.Lock()
		all[one.shard] = max(one.writer.Published(), one.seen.Load())
		one.mu.Unlock()
	}
	return all
}

func (o *outlets) states() (list []request.State) {
	for _, one := range o.live() {
		s := one.writer.State()
		if o.shards > 1 {
			s.Name = fmt.Sprintf("%s, shard %d", s.Name, one.shard)
		}
		list = append(list, s)
	}
	return list
}

// close records in the output log that this run has ended. If the broker is away, the marks of the
// run become stale by themselves.
func (o *outlets) close(log *slog.Logger) {
	for _, one := range o.live() {
		if one.rank.Load() > 0 {
			continue
		}
		if err := one.writer.Close(context.Background()); err != nil {
			log.Debug("the end of the run is not in the output log", "error", err)
		}
	}
}
