package pipeline

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"gqlstream/incremental"
	"gqlstream/internal/checkpoint"
	"gqlstream/pipeline/group"
)

// partsOf divides a state into the part that all workers share and a part for each shard.
func partsOf(c *checkpoint.Checkpoint) map[string]*checkpoint.Checkpoint {
	parts := map[string]*checkpoint.Checkpoint{group.GraphPart: checkpoint.New(c.Manifest)}
	for shard := range c.Manifest.Watermarks {
		parts[group.Part(shard)] = checkpoint.New(c.Manifest)
	}
	for _, s := range c.Manifest.Sections {
		name := group.GraphPart
		if shard, ok := incremental.SectionShard(s.Name); ok {
			name = group.Part(shard)
		}
		// otherwise the shard has just been taken over by another worker
		if part := parts[name]; part != nil {
			part.Sections[s.Name] = c.Sections[s.Name]
			part.Manifest.Sections = append(part.Manifest.Sections, s)
		}
	}
	return parts
}

// fetchMax bounds a request for stored parts of other workers.
const fetchMax = 5 * time.Second

// fetchShards adds to a checkpoint the shards of other workers at its position, as far as they are
// stored.
func (m *membership) fetchShards(c *checkpoint.Checkpoint) {
	if m == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), fetchMax)
	defer cancel()
	if err := m.complete(ctx, c, allShards(m.shards)); err != nil {
		m.log.Debug("some shards of other workers are not there yet", "reason", err)
	}
}

// complete adds stored shards of other workers to a state, with their watermarks.
func (m *membership) complete(ctx context.Context, c *checkpoint.Checkpoint, shards []int) error {
	missing := slices.DeleteFunc(slices.Clone(shards),
		func(shard int) bool { _, has := c.Manifest.Watermarks[shard]; return has })
	parts := make([]*checkpoint.Checkpoint, len(missing))
	errs := make([]error, len(missing))
	var fetching sync.WaitGroup
	for i, shard := range missing {
		fetching.Go(func() {
			parts[i], errs[i] = m.fetchPart(ctx, c.Manifest.Config, c.Manifest.Position,
				group.Part(shard))
		})
	}
	fetching.Wait()
	all := map[int]uint64{}
	maps.Copy(all, c.Manifest.Watermarks)
	for i, shard := range missing {
		if errs[i] == nil {
			maps.Copy(c.Sections, parts[i].Sections)
			all[shard] = parts[i].Manifest.Watermarks[shard]
		}
	}
	c.Manifest.Watermarks = all
	return errors.Join(errs...)
}

// fetchPart returns a stored part of a state of another worker.
func (m *membership) fetchPart(
	ctx context.Context, config string, position uint64, part string,
) (*checkpoint.Checkpoint, error) {
	c := new(checkpoint.Checkpoint)
	return c, m.store.Get(ctx, sharedName(config), position, part, c)
}

// sharedName is the prefix of stored objects of a configuration; other versions of the tables have
// other prefixes.
func sharedName(config string) string {
	name := fmt.Sprintf("%s.v%d", config, checkpoint.Format)
	if checkpoint.Derived > 0 {
		name += fmt.Sprintf(".%d", checkpoint.Derived)
	}
	return name
}

// positions returns the positions of states that can be continued, in the order of trying: first
// with all shards, then with a graph, then of other versions, where only the core tables are read.
func (m *membership) positions(
	ctx context.Context, config string, local []uint64, shards []int,
) ([]uint64, error) {
	positions, err := m.store.Positions(ctx, sharedName(config), local, shards)
	if err != nil {
		return nil, err
	}
	others, err := m.store.Versions(ctx, config)
	for _, name := range others {
		if err == nil && name != sharedName(config) {
			var older []uint64
			older, err = m.store.Positions(ctx, name, nil, nil)
			positions = append(positions, older...)
		}
	}
	return positions, err
}

// fetchGraph returns the stored graph at a position, of this version or another one.
func (m *membership) fetchGraph(
	ctx context.Context, config string, position uint64,
) (c *checkpoint.Checkpoint, err error) {
	if c, err = m.fetchPart(ctx, config, position, group.GraphPart); err == nil {
		return c, nil
	}
	others, failed := m.store.Versions(ctx, config)
	for _, name := range others {
		c = new(checkpoint.Checkpoint)
		if m.store.Get(ctx, name, position, group.GraphPart, c) == nil && c.Manifest.Readable() {
			return c, nil
		}
	}
	return nil, errors.Join(err, failed)
}
