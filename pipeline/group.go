package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"gqlstream/incremental"
	"gqlstream/internal/checkpoint"
	"gqlstream/pipeline/group"
)

// membership is a worker's part in a group. It is nil, and does nothing, in a run alone.
type membership struct {
	p           *Pipeline
	member      *group.Member
	store       *group.Store
	copies      int
	checkpoints int               // that were given to others
	position    uint64            // of the last one
	digests     map[string]string // of its parts
}

// joinGroup returns when the workers that live are known. Those that do not hear of the end miss
// the renewals.
func (p *Pipeline) joinGroup(ctx context.Context, o Options) error {
	if o.Group == "" {
		return nil
	}
	self := p.writers.Writer
	member, err := group.Join(ctx, group.Config{
		JS:       p.Broker.JS,
		Bucket:   group.Bucket(p.settings.NATS.Prefix, o.Group),
		Replicas: p.names.In.Replicas,
		Log:      p.log,
		Self: group.Presence{
			Worker: cmp.Or(o.Worker, self.Host+"-"+filepath.Base(p.settings.State)),
			Since:  self.Since,
			Config: p.Config.Digest(),
			Build:  p.version,
			Arch:   architecture(),
		},
	})
	if err != nil {
		return err
	}
	p.closers = append(p.closers, func() error {
		if err := member.Leave(); err != nil {
			p.log.Warn("the group may not know yet that this worker has left", "reason", err)
		}
		return nil
	})
	p.group = &membership{member: member, copies: max(p.settings.Group.Copies, 1), p: p}
	p.group.store, err = member.OpenStore(ctx, p.shards)
	return err
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
		// else of a shard that another worker has taken over a moment ago
		if part := parts[name]; part != nil {
			part.Sections[s.Name] = c.Sections[s.Name]
			part.Manifest.Sections = append(part.Manifest.Sections, s)
		}
	}
	return parts
}

// fetchMax is how long a question may wait for what other workers have stored.
const fetchMax = 5 * time.Second

// fetchShards adds to a checkpoint of a group's worker the shards of other workers at its position,
// as far as they have stored them yet.
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

// fetchPart returns a part of a state that another worker has stored.
func (m *membership) fetchPart(
	ctx context.Context, config string, position uint64, part string,
) (*checkpoint.Checkpoint, error) {
	c := new(checkpoint.Checkpoint)
	return c, m.store.Get(ctx, sharedName(config), position, part, c)
}

// sharedName begins the names of what workers share of a configuration: of another format they
// share nothing.
func sharedName(config string) string { return fmt.Sprintf("%s.v%d", config, checkpoint.Format) }

// share compares what this worker had at the position before with what others have stored since,
// and stores of a state what they would need to take a shard over. What does not come about is made
// good by the next checkpoint.
func (m *membership) share(ctx context.Context, c *checkpoint.Checkpoint) {
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
	errs := make(chan error, m.p.shards+len(parts))
	for _, shard := range allShards(m.p.shards) {
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
		m.p.log.Warn("other workers do not have this checkpoint", "position", position, "reason",
			err)
	}
}

// How quickly a worker acts on a change of its group.
const (
	regroupEvery = 200 * time.Millisecond
	// followers, beside that: to end one, and to read another's state, may take seconds
	assignEvery = 500 * time.Millisecond
)

// How the next fold is prepared.
const (
	// prepareMemory is how many times its live memory a worker must have to have the next fold
	// beside its own: twice, with what that is restored from and a checkpoint that is being
	// written.
	prepareMemory = 4
	prepareAgain  = time.Second      // after something went wrong with it
	takeOverLasts = 10 * time.Second // in which no checkpoint is made that can be left out
)

// mine lists the shards that a worker is to estimate by its places for each.
func mine(places []group.Place) []int {
	owned := []int{}
	for shard, place := range places {
		if place.Order >= 0 {
			owned = append(owned, shard)
		}
	}
	return owned
}

// watch follows the list of live workers. It ends the run when all shards of a worker that is
// drained are others'.
func (m *membership) watch(ctx context.Context, begin func(*fold)) error {
	for {
		if m.regroup(begin) {
			return errDone
		}
		m.sayPresence()
		pause := regroupEvery
		if m.p.beside.Load() != nil {
			pause = catchUpLookEvery
		}
		select {
		case err := <-m.member.Disagreed:
			return err
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// regroup brings what is estimated and published here to what the order of the live workers says,
// and reports whether this worker has nothing more to do. A shard that is another worker's now is
// kept until that one says that it estimates it, so that there is no gap. It may be the slower one:
// what is missing it publishes.
func (m *membership) regroup(begin func(*fold)) (done bool) {
	places := m.member.Places(m.p.shards, m.copies)
	m.prepare(begin, places)
	live := m.p.main.Load().outlets.live()
	for _, one := range live {
		place := places[one.shard]
		one.gone.Store(place.Order < 0 && place.Served)
		one.rank.Store(int32(max(place.Order, 0)))
	}
	drains := false
	m.member.Say(func(own *group.Presence) { drains = own.Drains })
	return drains && len(live) == 0
}

// sayPresence says what this worker estimates. One that stands still until its next fold has caught
// up, whose fold comes to what others have published already, or that is far behind, estimates
// nothing: others must not hand shards over to it.
func (m *membership) sayPresence() {
	main, shards := m.p.main.Load(), []int{}
	if !main.ended() && main.applied.Load() >= main.from.Position &&
		main.source.Stats().Behind <= catchingUp {
		shards = main.outlets.shardsHere()
	}
	needs, taken := m.p.followers.slowest()
	m.member.Say(func(own *group.Presence) {
		own.Position = main.applied.Load()
		own.Page = m.p.Page.URL()
		own.Shards = shards
		own.Needs = needs
		own.Taken = taken
	})
}

// prepare begins the next fold where shards are this worker's that the main one does not have:
// beside all that it does have. It puts it in the place of that when it has caught up, and gives it
// up when it brings nothing that is needed any more. One that brings a part of it is not begun
// anew: what it lacks is the next one's.
func (m *membership) prepare(begin func(*fold), places []group.Place) {
	main, next := m.p.main.Load(), m.p.beside.Load()
	keeps := main.outlets.shardsHere()
	has := keeps
	if main.ended() {
		has = nil
	}
	lacks := without(slices.Concat(keeps, mine(places)), has)
	switch {
	case next == nil && len(lacks) > 0:
		if !m.makeRoom(main, places) {
			return
		}
		owned := slices.Concat(keeps, without(lacks, keeps))
		slices.Sort(owned)
		m.p.log.Info("preparing to estimate other shards", "shards", owned)
		next = newFold(m.p, owned)
		m.p.beside.Store(next)
		begin(next)
	case next == nil:
	case next.ended() || len(without(lacks, next.config.Owned)) == len(lacks):
		if next.stop(); !next.ended() {
			return // a core that is being restored takes its time
		}
		next.close()
		m.p.beside.Store(nil)
	case next.opened.Load() && (main.ended() || next.mayReplace(main)):
		m.replace(next)
	}
}

// makeRoom ends the main fold before the next one begins, where there is no memory for two: one
// worker after another where shards have copies. It reports whether the next one may begin.
func (m *membership) makeRoom(main *fold, places []group.Place) bool {
	most := machineMemory("")
	if main.ended() || most == 0 || prepareMemory*liveBytes() <= most {
		return true
	}
	if m.copies > 1 &&
		slices.ContainsFunc(places, func(place group.Place) bool { return place.Awaited }) {
		return false
	}
	m.p.log.Warn("the memory is too small for two folds: nothing is estimated here until the "+
		"next one has caught up", "bytes", liveBytes(), "memory", most)
	m.end(main)
	return true
}

// replace puts the next fold in the place of the main one, which ends first.
func (m *membership) replace(next *fold) {
	main := m.p.main.Load()
	m.end(main)
	m.p.main.Store(next)
	m.p.beside.Store(nil)
	m.p.log.Info("other shards are estimated", "position", next.applied.Load(), "shards",
		next.config.Owned)
}

// mayReplace reports whether a fold has caught up with the main one, or that is far behind the log
// itself, where two folds would take twice as long.
func (f *fold) mayReplace(main *fold) bool {
	return f.level.Load() || f.applied.Load() >= main.applied.Load() ||
		main.source.Stats().Behind > catchingUp
}

// end stops a fold, waits for its loop, and frees what it holds.
func (m *membership) end(f *fold) {
	f.stop()
	<-f.done
	f.close()
}

func (f *fold) ended() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// without returns the shards of a list that are not in another one.
func without(shards, others []int) []int {
	return slices.DeleteFunc(slices.Clone(shards),
		func(shard int) bool { return slices.Contains(others, shard) })
}
