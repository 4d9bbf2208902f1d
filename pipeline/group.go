package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"gqlstream/checkpoint"
	"gqlstream/config"
	"gqlstream/group"
	"gqlstream/incremental"
	"gqlstream/ingest/broker"
	"gqlstream/request"
	"gqlstream/sinks"
)

// How quickly a worker acts on a change of its group.
const (
	regroupAfter = 200 * time.Millisecond // several workers often begin or end together
	sayEvery     = 500 * time.Millisecond
	standInTurn  = 3 * sayEvery     // in which others hear that a worker starts again
	standInMax   = 10 * time.Second // for a turn, while nobody could publish for this worker
	handOverMax  = 10 * time.Second // in which another worker that estimates a shard may be the first to publish it
)

// Reasons for a run to end that are no failures.
var (
	errRegroup = errors.New("shards of another worker are this one's now")
	errDrained = errors.New("other workers have taken all shards over")
)

// membership is a worker's part in a group. It outlives the pipelines that Run opens one after
// the other. It is nil, and does nothing, in a run alone.
type membership struct {
	member      *group.Member
	store       *group.Store
	self        sinks.Identity
	copies      int
	checkpoints int
	saves       *checkpoints  // of the pipeline before; nil: there is none
	spare       []int         // shards that the next pipeline keeps, although they are another worker's
	handing     time.Time     // since when workers that stay estimate all spare shards; now, if they do not
	missing     time.Time     // since when shards of this worker are not estimated here; now, if all are
	next        *preparation  // of the next pipeline; nil: none is under way
	doubted     time.Time     // when a preparation was given up, because a worker was not dead
	woken       chan struct{} // capacity 1: a preparation is done
	log         *slog.Logger
	close       func() error
}

func joinGroup(ctx context.Context, settings config.Settings, o Options) (m *membership, err error) {
	if o.Group == "" {
		return nil, nil //nolint:nilnil // a run alone
	}
	if settings.NATS.URL == "" || o.Drain {
		return nil, config.Usagef("run: --group needs an outside server (--nats), and does not end when drained")
	}
	core, err := settings.Core()
	if err != nil {
		return nil, err
	}
	in, out, err := settings.Names()
	if err != nil {
		return nil, err
	}
	b, err := config.OpenBroker(settings, o.Log)
	if err != nil {
		return nil, err
	}
	m = &membership{self: identity(), copies: max(settings.Group.Copies, 1), log: o.Log, close: b.Close, woken: make(chan struct{}, 1)}
	defer func() {
		if err != nil {
			m.leave()
		}
	}()
	if in.Replicas, err = openLog(ctx, b, in); err != nil {
		return m, err
	}
	// Said before this worker waits for others of an older release to end, not after.
	if err = checkpoint.Look(checkpoint.Disk{}, checkpointsIn(settings.State)).CheckFormat(); err != nil {
		return m, err
	}
	worker := cmp.Or(o.Worker, m.self.Host+"-"+filepath.Base(settings.State))
	m.member, err = group.Join(ctx, group.Config{
		JS: b.JS, Bucket: group.Bucket(settings.NATS.Prefix, o.Group), Alive: out.Queries() + ".alive", Replicas: in.Replicas, Log: o.Log,
		Self: group.Presence{Worker: worker, Since: m.self.Since, Config: core.Digest(), Build: o.Version, Arch: architecture()},
	})
	if err != nil {
		return m, err
	}
	if m.store, err = m.member.OpenStore(ctx, max(core.Shards, 1)); err != nil {
		return m, err
	}
	for _, name := range m.store.Streams {
		stream, find := b.JS.Stream(ctx, name)
		if err = cmp.Or(err, find); err == nil {
			err = request.AuditReplicas(stream, in.Replicas)
		}
	}
	return m, err
}

func openLog(ctx context.Context, b *broker.Broker, in broker.StreamNames) (replicas int, err error) {
	if err := broker.EnsureStreams(ctx, b.JS, in); err != nil {
		return 0, err
	}
	log, err := broker.EnsureLog(ctx, b.JS, in)
	return log.Replicas, err
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

func identity() sinks.Identity {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return sinks.Identity{Host: host, PID: os.Getpid(), Since: time.Now().UTC()}
}

// leave ends the membership. Workers that do not hear of it miss the renewals.
func (m *membership) leave() {
	if m == nil {
		return
	}
	m.drop()
	var err error
	if m.member != nil {
		err = m.member.Leave()
	}
	if err = errors.Join(err, m.close()); err != nil {
		m.log.Warn("the group may not have heard that this worker has left", "reason", err)
	}
}

// leads reports whether this worker does what one of the group does at a time.
func (m *membership) leads(follower string) bool {
	return m == nil || m.member.Rank("follower "+follower) == 0
}

// owned lists the shards that a pipeline that is opened now shall estimate; nil: all.
func (m *membership) owned(shards int) []int {
	if m == nil {
		return nil
	}
	return m.mine(shards, true)
}

// mine lists the shards that this worker is to estimate; see Places of a member.
func (m *membership) mine(shards int, doubted bool) []int {
	owned := []int{}
	for shard, place := range m.member.Places(max(shards, 1), m.copies, doubted) {
		if place >= 0 || slices.Contains(m.spare, shard) {
			owned = append(owned, shard)
		}
	}
	return owned
}

// watchGroup follows the list of live workers. It ends the run when shards of others are this worker's now, or
// all of its own are others'.
func (p *Pipeline) watchGroup(ctx context.Context) error {
	ticker := time.NewTicker(sayEvery)
	defer ticker.Stop()
	for {
		if err := p.regroup(ctx); err != nil {
			return err
		}
		if err := p.assignFollowers(context.WithoutCancel(ctx)); err != nil {
			p.log.Warn("a follower is not taken over, and is tried again", "error", err)
		}
		p.sayPresence()
		select {
		case <-p.group.woken:
		case <-p.group.member.Changed:
			p.group.prepare(ctx, p)
			if err := request.Pause(ctx, regroupAfter); err != nil {
				return nil //nolint:nilerr // the run ends
			}
		case err := <-p.group.member.Disagreed:
			return err
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
	}
}

// regroup brings the outlets to what the order of the live workers says. Shards that are another
// worker's now are kept until that one publishes, so that there is no gap; but once others estimate all
// of them, for no longer than handOverMax: they may be slower for good, and publish what is missing.
func (p *Pipeline) regroup(ctx context.Context) error {
	live, m := p.outlets.live(), p.group
	others, staying, more := m.member.Estimated()
	var missing, urgent, waits bool
	m.spare = m.spare[:0]
	for shard, rank := range m.member.Places(p.outlets.shards, m.copies, true) {
		mine := rank >= 0
		i := slices.IndexFunc(live, func(o *outlet) bool { return o.shard == shard })
		if i < 0 {
			missing, urgent = missing || mine, urgent || rank == 0 && (m.copies == 1 || !others[shard] && !more)
			continue
		}
		if !mine {
			m.spare, rank = append(m.spare, shard), m.copies
		}
		live[i].rank.Store(int32(rank))
		live[i].spare.Store(!mine)
		waits = waits || !mine && !staying[shard]
	}
	if waits || len(m.spare) == 0 || m.handing.IsZero() {
		m.handing = time.Now()
	}
	for _, one := range live {
		one.gone.Store(one.gone.Load() || one.spare.Load() && time.Since(m.handing) > handOverMax)
	}
	drains := false
	m.member.Say(func(own *group.Presence) { drains = own.Drains })
	if !missing || m.missing.IsZero() {
		m.missing = time.Now()
	}
	prepared := m.prepare(ctx, p)
	switch {
	case missing && prepared && mayStartAgain(urgent, m.member.Rank("stand-in"), replaceable(live, others), time.Since(m.missing)):
		m.member.Say(func(own *group.Presence) { own.Shards = []int{} })
		p.Checkpoints.hurry()
		return errRegroup
	case drains && len(live) == 0:
		return errDrained
	}
	return nil
}

// mayStartAgain reports whether a worker may start again now, to estimate shards that nobody else
// estimates, or that others do as well. In the second case it waits for its turn, and until
// others can publish all that it publishes: workers that start again together leave a gap.
func mayStartAgain(urgent bool, turn int, replaceable bool, waited time.Duration) bool {
	return urgent || turn == 0 || replaceable && waited >= time.Duration(turn)*standInTurn || waited >= time.Duration(turn)*standInMax
}

// replaceable reports whether other workers estimate all shards that this one publishes.
func replaceable(live []*outlet, others map[int]bool) bool {
	return !slices.ContainsFunc(live, func(o *outlet) bool { return (o.rank.Load() == 0 || o.leads.Load()) && !others[o.shard] })
}

func (p *Pipeline) sayPresence() {
	shards := []int{}
	if p.applied.Load() >= p.beginAt.Position { // else others have published all that comes next
		shards = nil
		for _, one := range p.outlets.live() {
			shards = append(shards, one.shard)
		}
	}
	needs, taken := p.followers.slowest()
	p.group.member.Say(func(own *group.Presence) {
		own.Position, own.Page, own.Shards, own.Needs, own.Taken = p.applied.Load(), p.Page.URL(), shards, needs, taken
	})
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
	for shard := range p.outlets.shards {
		if _, own := c.Manifest.Watermarks[shard]; own {
			continue
		}
		part, err := p.group.fetchPart(ctx, c.Manifest.Config, c.Manifest.Position, group.Part(shard))
		if err != nil {
			p.log.Debug("a shard of another worker is not there yet", "shard", shard, "reason", err)
			continue
		}
		maps.Copy(c.Sections, part.Sections)
	}
}

// sharedName begins the names of what workers share of a configuration: of another format they share nothing.
func sharedName(config string) string { return fmt.Sprintf("%s.v%d", config, checkpoint.Format) }

// share compares a state with those of the other workers, and stores what they would need to take
// a shard over; ctx ends the storing of the graph, which is large. What does not come about is made
// good by the next checkpoint.
func (m *membership) share(ctx context.Context, c *checkpoint.Checkpoint) {
	shared, position, parts := sharedName(c.Manifest.Config), c.Manifest.Position, partsOf(c)
	m.checkpoints++
	graph := m.checkpoints%GraphEvery == 1 && m.member.Rank(group.GraphPart) == 0
	errs := make(chan error, len(parts))
	for name, part := range parts {
		go func() {
			storing, always := context.Background(), name != group.GraphPart
			if !always {
				storing = ctx
			}
			err := m.store.Compare(context.Background(), shared, position, name, checkpoint.Digest(part.Manifest.Sections))
			if err == nil && (always || graph) {
				err = m.store.Put(storing, shared, position, name, part)
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
	if err != nil && ctx.Err() == nil {
		m.log.Warn("other workers do not have this checkpoint", "position", position, "reason", err)
	}
}
