package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"gqlstream/checkpoint"
	"gqlstream/group"
	"gqlstream/incremental"
	"gqlstream/sinks"
)

// membership is a worker's part in a group. It is nil, and does nothing, in a run alone.
type membership struct {
	p           *Pipeline
	member      *group.Member
	store       *group.Store
	copies      int
	checkpoints int // that were given to others
}

// joinGroup returns when the workers that live are known. Those that do not hear of the end miss the renewals.
func (p *Pipeline) joinGroup(ctx context.Context, o Options) error {
	if o.Group == "" {
		return nil
	}
	self := p.writers.Writer
	member, err := group.Join(ctx, group.Config{
		JS: p.Broker.JS, Bucket: group.Bucket(p.settings.NATS.Prefix, o.Group), Replicas: p.names.In.Replicas, Log: p.log,
		Self: group.Presence{
			Worker: cmp.Or(o.Worker, self.Host+"-"+filepath.Base(p.settings.State)), Since: self.Since,
			Config: p.Config.Digest(), Build: p.version, Arch: architecture(),
		},
	})
	if err != nil {
		return err
	}
	p.closers = append(p.closers, func() error {
		if err := member.Leave(); err != nil {
			p.log.Warn("the group may not have heard that this worker has left", "reason", err)
		}
		return nil
	})
	p.group = &membership{member: member, copies: max(p.settings.Group.Copies, 1), p: p}
	p.group.store, err = member.OpenStore(ctx, p.shards)
	return err
}

// architecture names what decides the last bits of floating-point numbers beside the program.
func architecture() string {
	arch := runtime.GOARCH
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return arch
	}
	for _, s := range info.Settings {
		if s.Key == "GOAMD64" || s.Key == "GOARM64" {
			arch += " " + s.Value
		}
	}
	return arch
}

func identity(since time.Time) sinks.Identity {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return sinks.Identity{Host: host, PID: os.Getpid(), Since: cmp.Or(since, time.Now().UTC())}
}

// leads reports whether this worker does what one of the group does at a time.
func (m *membership) leads(follower string) bool {
	return m == nil || m.member.Rank("follower "+follower) == 0
}

// slowest returns the follower that has taken least of the log out, on any worker of the group.
func (p *Pipeline) slowest() (name string, taken uint64) {
	name, taken = p.followers.slowest()
	if p.group == nil {
		return name, taken
	}
	if other, at := p.group.member.Slowest(); other != "" && (name == "" || at < taken) {
		return other, at
	}
	return name, taken
}

// GraphEvery is the number of checkpoints to one of which the graph, which is large, is stored
// for workers with an empty disk. It is less than the number of which shards are kept.
const GraphEvery = 8

// partsOf divides a state into what all workers have alike and a part for each shard.
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
		if part := parts[name]; part != nil { // else of a shard that another worker has taken over a moment ago
			part.Sections[s.Name] = c.Sections[s.Name]
			part.Manifest.Sections = append(part.Manifest.Sections, s)
		}
	}
	return parts
}

// fetchMax is how long a question may wait for what other workers have stored.
const fetchMax = 5 * time.Second

// fetchShards adds to a checkpoint of a group's worker the shards of other workers at its position, as
// far as they have stored them yet.
func (p *Pipeline) fetchShards(c *checkpoint.Checkpoint) {
	if p.group == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), fetchMax)
	defer cancel()
	if err := p.group.complete(ctx, c, allShards(p.shards)); err != nil {
		p.log.Debug("some shards of other workers are not there yet", "reason", err)
	}
}

// complete adds to a state what others have stored of some shards, with their watermarks.
func (m *membership) complete(ctx context.Context, c *checkpoint.Checkpoint, shards []int) error {
	missing := slices.DeleteFunc(slices.Clone(shards), func(shard int) bool { _, has := c.Manifest.Watermarks[shard]; return has })
	parts, errs := make([]*checkpoint.Checkpoint, len(missing)), make([]error, len(missing))
	var fetching sync.WaitGroup
	for i, shard := range missing {
		fetching.Go(func() {
			parts[i], errs[i] = m.fetchPart(ctx, c.Manifest.Config, c.Manifest.Position, group.Part(shard))
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

// fetchPart returns a part of a state that another worker has stored.
func (m *membership) fetchPart(ctx context.Context, config string, position uint64, part string) (*checkpoint.Checkpoint, error) {
	c := new(checkpoint.Checkpoint)
	return c, m.store.Get(ctx, sharedName(config), position, part, c)
}

// sharedName begins the names of what workers share of a configuration: of another format they share nothing.
func sharedName(config string) string { return fmt.Sprintf("%s.v%d", config, checkpoint.Format) }

// share compares a state with those of the other workers, and stores what they would need to take
// a shard over. What does not come about is made good by the next checkpoint.
func (m *membership) share(ctx context.Context, c *checkpoint.Checkpoint) {
	shared, position, parts := sharedName(c.Manifest.Config), c.Manifest.Position, partsOf(c)
	m.checkpoints++
	graph := m.checkpoints%GraphEvery == 1 && m.member.Rank(group.GraphPart) == 0
	errs := make(chan error, len(parts))
	for name, part := range parts {
		go func() {
			err := m.store.Compare(ctx, shared, position, name, checkpoint.Digest(part.Manifest.Sections))
			if err == nil && (graph || name != group.GraphPart) {
				err = m.store.Put(ctx, shared, position, name, part)
			}
			errs <- err
		}()
	}
	var err error
	for range parts {
		err = errors.Join(err, <-errs)
	}
	if graph && err == nil {
		err = m.store.Drop(ctx, shared)
	}
	if err != nil {
		m.p.log.Warn("other workers do not have this checkpoint", "position", position, "reason", err)
	}
}
