package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
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
	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/sinks"
)

// How quickly a worker acts on a change of its group.
const (
	regroupAfter = 200 * time.Millisecond // several workers often begin or end together
	sayEvery     = 500 * time.Millisecond
	standInTurn  = 3 * sayEvery     // in which others hear that a worker starts again
	standInMax   = 10 * time.Second // for a turn, while nobody could publish for this worker
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
	spare       []int     // shards that the next pipeline keeps, although they are another worker's
	missing     time.Time // since when shards of this worker are not estimated here; now, if all are
	log         *slog.Logger
	close       func() error
}

// joinGroup takes part in the group that the options name, if they name one.
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
	in, _, err := settings.Names()
	if err != nil {
		return nil, err
	}
	b, err := config.OpenBroker(settings, o.Log)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			if m != nil && m.member != nil {
				err = errors.Join(err, m.member.Leave())
			}
			m, err = nil, errors.Join(err, b.Close())
		}
	}()
	if in.Replicas, err = openLog(ctx, b, in); err != nil {
		return nil, err
	}
	m = &membership{
		self: identity(), copies: max(settings.Group.Copies, 1),
		log: o.Log, close: b.Close,
	}
	worker := cmp.Or(o.Worker, m.self.Host+"-"+filepath.Base(settings.State))
	m.member, err = group.Join(ctx, group.Config{
		JS: b.JS, Bucket: group.Bucket(settings.NATS.Prefix, o.Group), Replicas: in.Replicas, Log: o.Log,
		Self: group.Presence{Worker: worker, Since: m.self.Since, Config: core.Digest(), Build: o.Version, Arch: architecture()},
	})
	if err != nil {
		return nil, err
	}
	m.store, err = m.member.OpenStore(ctx, max(core.Shards, 1))
	return m, err
}

// openLog makes the log in where it is missing, and returns how many servers keep it.
func openLog(ctx context.Context, b *broker.Broker, in broker.StreamNames) (replicas int, err error) {
	if err := broker.EnsureStreams(ctx, b.JS, in); err != nil {
		return 0, err
	}
	stream, err := b.JS.Stream(ctx, in.Log)
	if err != nil {
		return 0, err
	}
	return stream.CachedInfo().Config.Replicas, nil
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

// identity names this process, for outputs that only one process may write.
func identity() sinks.Identity {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return sinks.Identity{Host: host, PID: os.Getpid(), Since: time.Now().UTC()}
}

// leave ends the membership. Others who do not hear of it find out by themselves.
func (m *membership) leave() {
	if m == nil {
		return
	}
	if err := errors.Join(m.member.Leave(), m.close()); err != nil {
		m.log.Warn("the group may not have heard that this worker has left", "reason", err)
	}
}

// rank returns this worker's place in the order for a shard, and whether it is one of those who
// estimate it.
func (m *membership) rank(shard int) (rank int, mine bool) {
	rank = m.member.Rank("shard " + group.Part(shard))
	if rank < 0 || rank >= m.copies {
		return m.copies, false
	}
	return rank, true
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
	owned := []int{}
	for shard := range max(shards, 1) {
		if _, mine := m.rank(shard); mine || slices.Contains(m.spare, shard) {
			owned = append(owned, shard)
		}
	}
	return owned
}

// watchGroup follows who lives: it ends the run when shards of others are this worker's now, or
// all of its own are others'.
func (p *Pipeline) watchGroup(ctx context.Context) error {
	ticker := time.NewTicker(sayEvery)
	defer ticker.Stop()
	for {
		if err := p.regroup(); err != nil {
			return err
		}
		if err := p.assignFollowers(context.WithoutCancel(ctx)); err != nil {
			p.log.Warn("a follower is not taken over, and is tried again", "error", err)
		}
		p.sayPresence()
		select {
		case <-p.group.member.Changed:
			if err := ingest.Pause(ctx, regroupAfter); err != nil {
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
// worker's now are kept until that one publishes, so that there is no gap.
func (p *Pipeline) regroup() error {
	live, m := p.outlets.live(), p.group
	var missing, first bool
	m.spare = m.spare[:0]
	for shard := range p.outlets.shards {
		rank, mine := m.rank(shard)
		i := slices.IndexFunc(live, func(o *outlet) bool { return o.shard == shard })
		if i < 0 {
			missing, first = missing || mine, first || rank == 0
			continue
		}
		if !mine {
			m.spare = append(m.spare, shard)
		}
		live[i].rank.Store(int32(rank))
		live[i].spare.Store(!mine)
	}
	drains := false
	m.member.Say(func(own *group.Presence) { drains = own.Drains })
	if !missing || m.missing.IsZero() {
		m.missing = time.Now()
	}
	switch {
	case missing && mayStartAgain(first, m.member.Rank("stand-in"), m.replaceable(live), time.Since(m.missing)):
		m.member.Say(func(own *group.Presence) { own.Shards = nil })
		return errRegroup
	case drains && len(live) == 0:
		return errDrained
	}
	return nil
}

// mayStartAgain reports whether a worker may start again now, to estimate shards of which it is
// the first of the order, or only one who stands in. Who stands in waits for its turn, and until
// others can publish all that it publishes: workers that start again together leave a gap.
func mayStartAgain(first bool, turn int, replaceable bool, waited time.Duration) bool {
	return first || turn == 0 || replaceable && waited >= time.Duration(turn)*standInTurn || waited >= time.Duration(turn)*standInMax
}

// replaceable reports whether other workers estimate all shards that this one publishes.
func (m *membership) replaceable(live []*outlet) bool {
	others := m.member.Estimated()
	return !slices.ContainsFunc(live, func(o *outlet) bool { return o.rank.Load() == 0 && !others[o.shard] })
}

// sayPresence says with the next renewal how far this worker is.
func (p *Pipeline) sayPresence() {
	var shards []int
	for _, one := range p.outlets.live() {
		shards = append(shards, one.shard)
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

// graphEvery is the number of checkpoints to one of which the graph, which is large, is stored
// for workers with an empty disk. It is less than the number of which shards are kept.
const graphEvery = 8

// bundles divides a state into the parts that the group's store keeps.
func bundles(m checkpoint.Manifest, state []incremental.Section) (map[string]*group.Bundle, error) {
	header, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	parts := map[string]*group.Bundle{group.GraphPart: {Header: header}}
	for shard := range m.Watermarks {
		parts[group.Part(shard)] = &group.Bundle{Header: header}
	}
	for _, s := range state {
		part := group.GraphPart
		if shard, ok := incremental.SectionShard(s.Name); ok {
			part = group.Part(shard)
		}
		if parts[part] == nil {
			continue // of a shard that another worker has taken over a moment ago
		}
		parts[part].Sections = append(parts[part].Sections, group.BundleSection{Name: s.Name, Data: s.Data})
	}
	return parts, nil
}

// share compares a state with those of the other workers, and stores what they would need to take
// a shard over. What does not come about is made good by the next checkpoint.
func (m *membership) share(at checkpoint.Manifest, state []incremental.Section) {
	if err := m.shareState(context.Background(), at, state); err != nil {
		m.log.Warn("other workers do not have this checkpoint", "position", at.Position, "reason", err)
	}
}

func (m *membership) shareState(ctx context.Context, at checkpoint.Manifest, state []incremental.Section) error {
	parts, err := bundles(at, state)
	m.checkpoints++
	graph := m.checkpoints%graphEvery == 1 && m.member.Rank(group.GraphPart) == 0
	errs := make(chan error, len(parts))
	for name, part := range parts {
		go func() {
			err := m.store.Compare(ctx, at.Config, at.Position, name, part.Digest())
			if err == nil && (name != group.GraphPart || graph) {
				err = m.store.Put(ctx, at.Config, at.Position, name, part)
			}
			errs <- err
		}()
	}
	for range parts {
		err = errors.Join(err, <-errs)
	}
	if graph && err == nil {
		err = m.store.Drop(ctx, at.Config)
	}
	return err
}
