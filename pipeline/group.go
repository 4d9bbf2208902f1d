package pipeline

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"

	"gqlstream/internal/checkpoint"
	"gqlstream/pipeline/group"
)

// membership is a worker's part in a group. It is nil, and does nothing, in a run without a group.
type membership struct {
	member      *group.Member
	store       *group.Store
	log         *slog.Logger
	shards      int
	copies      int
	checkpoints int               // checkpoints passed to others
	position    uint64            // position of the last one
	digests     map[string]string // digests of its parts
}

// joinGroup returns when the live workers are known. Workers that miss the leave message notice the
// missing renewals.
func joinGroup(
	ctx context.Context, plan *plan, in *input, o *Options, opened *closers,
) (*membership, error) {
	if o.Group == "" {
		return nil, nil //nolint:nilnil // a run without a group
	}
	self := plan.process
	member, err := group.Join(ctx, group.Config{
		JS:       in.Broker.JS,
		Bucket:   group.Bucket(plan.settings.NATS.Prefix, o.Group),
		Replicas: in.names.In.Replicas,
		Log:      plan.log,
		Self: group.Presence{
			Worker: cmp.Or(o.Worker, self.Host+"-"+filepath.Base(plan.settings.State)),
			Since:  self.Since,
			Config: plan.Config.Digest(),
			Build:  plan.version,
			Arch:   architecture(),
		},
	})
	if err != nil {
		return nil, err
	}
	opened.add(func() error {
		if err := member.Leave(); err != nil {
			plan.log.Warn("the group may not know yet that this worker has left", "reason", err)
		}
		return nil
	})
	store, err := member.OpenStore(ctx, plan.shards)
	return &membership{
		member: member,
		store:  store,
		log:    plan.log,
		shards: plan.shards,
		copies: max(plan.settings.Group.Copies, 1),
	}, err
}

// leads reports whether this worker has a task that one worker of the group does at a time.
func (m *membership) leads(follower string) bool {
	return m == nil || m.member.Rank("follower "+follower) == 0
}

// upload returns how checkpoints are passed to the other workers; nil without a group.
func (m *membership) upload() uploadState {
	if m == nil {
		return nil
	}
	return m.storeParts
}

// GraphEvery says how often the graph, which is large, is stored for workers with an empty disk: at
// one in this many checkpoints. It is less than the number of stored positions of shards.
const GraphEvery = 8

// storeParts compares this worker's parts at the previous position with the parts that others have
// stored since, and stores the parts of a state that others would need to take a shard over. The
// next checkpoint makes up for failures.
func (m *membership) storeParts(ctx context.Context, c *checkpoint.Checkpoint) {
	shared := sharedName(c.Manifest.Config)
	position := c.Manifest.Position
	parts := partsOf(c)
	m.checkpoints++
	graph := m.checkpoints%GraphEvery == 1 && m.member.Rank(group.GraphPart) == 0
	digests := map[string]string{}
	for name, part := range parts {
		digests[name] = checkpoint.Digest(part.Manifest.Sections)
	}
	var sharing sync.WaitGroup
	errs := make(chan error, m.shards+len(parts))
	for _, shard := range allShards(m.shards) {
		sharing.Go(func() {
			errs <- m.store.Compare(ctx, shared, m.position, group.Part(shard), m.digests)
		})
	}
	for name, part := range parts {
		if graph || name != group.GraphPart {
			sharing.Go(func() { errs <- m.store.Put(ctx, shared, position, name, part, digests) })
		}
	}
	sharing.Wait()
	close(errs)
	m.position, m.digests = position, digests
	var err error
	for one := range errs {
		err = errors.Join(err, one)
	}
	if graph && err == nil {
		err = m.store.Drop(ctx, shared)
	}
	if err != nil {
		m.log.Warn("other workers do not have this checkpoint", "position", position, "reason",
			err)
	}
}
