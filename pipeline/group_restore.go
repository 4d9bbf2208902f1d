package pipeline

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"gqlstream/checkpoint"
	"gqlstream/group"
	"gqlstream/incremental"
	"gqlstream/ingest"
)

// restoreMember returns the core of a worker of a group as restore does: of the newest position
// of which there are the graph, here or in the group's store, and all shards of this worker, of
// which the log out is not behind.
func (p *Pipeline) restoreMember(ctx context.Context) (ingest.Resume, *ingest.Identity, error) {
	local, err := p.Checkpoints.Dir.List()
	if err != nil {
		return ingest.Resume{}, nil, err
	}
	stored, err := p.group.store.Positions(ctx, p.Config.Digest(), group.GraphPart)
	if err != nil {
		p.log.Warn("what other workers have stored cannot be listed", "error", err)
	}
	positions := slices.Concat(local, stored)
	slices.Sort(positions)
	positions = slices.Compact(positions)
	for _, position := range slices.Backward(positions) {
		m, sections, err := p.stateAt(ctx, position, slices.Contains(local, position))
		if err != nil {
			p.log.Info("another position is restored", "than", position, "because", err)
			continue
		}
		if p.Core, err = incremental.Restore(p.Config, sections); err != nil {
			return ingest.Resume{}, nil, fmt.Errorf("the checkpoint at position %d: %w", position, err)
		}
		p.log.Info("restored", "position", position, "shards", p.Config.Owned)
		at, identity := ResumeOf(m)
		return at, identity, nil
	}
	if len(positions) > 0 {
		p.log.Warn("no position has the graph and all shards of this worker; reading the log from its beginning", "shards", p.Config.Owned)
	}
	p.Core, err = incremental.New(p.Config)
	return ingest.Resume{}, nil, err
}

// stateAt returns the graph at a position with the shards of this worker.
func (p *Pipeline) stateAt(ctx context.Context, position uint64, local bool) (checkpoint.Manifest, map[string][]byte, error) {
	m, sections, err := p.graphAt(ctx, position, local)
	if err != nil {
		return m, nil, err
	}
	if m.Config != p.Config.Digest() {
		return m, nil, fmt.Errorf("it is of the configuration %s", m.Config)
	}
	for _, one := range p.outlets.each {
		watermark, have := m.Watermarks[one.shard]
		if !have {
			var header checkpoint.Manifest
			if err := p.fetchPart(ctx, position, group.Part(one.shard), &header, sections); err != nil {
				return m, nil, err
			}
			watermark = header.Watermarks[one.shard]
		}
		if now := one.writer.Published(); now < watermark {
			return m, nil, fmt.Errorf("shard %d was published up to %d then, and is up to %d now", one.shard, watermark, now)
		}
	}
	return m, sections, nil
}

// graphAt returns what this worker has at a position, or the graph that another one has stored.
func (p *Pipeline) graphAt(ctx context.Context, position uint64, local bool) (m checkpoint.Manifest, sections map[string][]byte, err error) {
	if local {
		c, err := p.Checkpoints.Dir.Read(position)
		if err == nil {
			return c.Manifest, c.Sections, nil
		}
		p.log.Warn("a damaged checkpoint is passed over", "position", position, "reason", err)
	}
	sections = map[string][]byte{}
	err = p.fetchPart(ctx, position, group.GraphPart, &m, sections)
	m.Watermarks = nil // the shards are parts of their own
	return m, sections, err
}

// fetchPart adds a part that a worker has stored to sections.
func (p *Pipeline) fetchPart(ctx context.Context, position uint64, part string, header *checkpoint.Manifest, sections map[string][]byte) error {
	data, err := p.group.store.Get(ctx, p.Config.Digest(), position, part)
	if err != nil {
		return err
	}
	bundle, err := group.DecodeBundle(data)
	if err == nil {
		err = json.Unmarshal(bundle.Header, header)
	}
	if err != nil {
		return err
	}
	for _, s := range bundle.Sections {
		sections[s.Name] = s.Data
	}
	return nil
}
