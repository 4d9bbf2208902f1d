package pipeline

import (
	"cmp"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"gqlstream/internal/checkpoint"
	"gqlstream/pipeline/group"
)

// membership is a worker's part in a group. It is nil, and does nothing, in a run without a group.
type membership struct {
	p           *Pipeline
	member      *group.Member
	store       *group.Store
	copies      int
	checkpoints int               // checkpoints passed to others
	position    uint64            // position of the last one
	digests     map[string]string // digests of its parts
}

// joinGroup returns when the live workers are known. Workers that miss the leave message notice the
// missing renewals.
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

// leads reports whether this worker has a task that one worker of the group does at a time.
func (m *membership) leads(follower string) bool {
	return m == nil || m.member.Rank("follower "+follower) == 0
}

// slowest returns the follower with the lowest position in the output log, on any worker of the
// group.
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

// GraphEvery says how often the graph, which is large, is stored for workers with an empty disk: at
// one in this many checkpoints. It is less than the number of stored positions of shards.
const GraphEvery = 8

// storeParts compares this worker's parts at the previous position with those that others have
// stored since, and stores the parts of a state that others would need to take a shard over.
// The next checkpoint makes up for failures.
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

// How quickly a worker reacts to a change of its group.
const (
	regroupEvery = 200 * time.Millisecond
	// for followers, in addition: ending one, and reading another's state, may take seconds
	assignEvery = 500 * time.Millisecond
)

// How the next fold is prepared.
const (
	// prepareMemory is how much memory a worker must have to run the next fold beside its own, as a
	// multiple of its live memory: two folds, the state that the next one is restored from, and a
	// checkpoint being written.
	prepareMemory = 4
	prepareAgain  = time.Second      // after a failure
	takeOverLasts = 10 * time.Second // no optional checkpoints are made for so long
)

// shardsOf lists the shards that a worker estimates, by its place for each.
func shardsOf(places []group.Place) []int {
	owned := []int{}
	for shard, place := range places {
		if place.Order >= 0 {
			owned = append(owned, shard)
		}
	}
	return owned
}

// watch follows the list of live workers. It ends the run once other workers have all shards of a
// draining worker.
func (m *membership) watch(ctx context.Context, begin func(*fold)) error {
	for {
		if m.regroup(begin) {
			return errDone
		}
		m.sayPresence()
		pause := regroupEvery
		if m.p.nextFold.Load() != nil {
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

// regroup assigns shards and followers according to the order of the live workers, and reports
// whether this worker has nothing more to do. It keeps a shard that now belongs to another worker
// until that one reports it, so that there is no gap. The new worker may be slower: it publishes
// what is missing.
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

// sayPresence reports the shards that this worker estimates. It reports none while it is waiting
// for its next fold to catch up, repeats records that others have published, or is far behind:
// others must not hand shards over to it then.
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

// prepare starts the next fold if this worker gets shards that the main fold lacks; the next fold
// has all of its shards. It replaces the main fold when it has caught up, and is dropped if its new
// shards are no longer needed. A fold that has only some of the needed shards is not restarted: a
// later one adds the rest.
func (m *membership) prepare(begin func(*fold), places []group.Place) {
	main, next := m.p.main.Load(), m.p.nextFold.Load()
	keeps := main.outlets.shardsHere()
	has := keeps
	if main.ended() {
		has = nil
	}
	lacks := without(slices.Concat(keeps, shardsOf(places)), has)
	switch {
	case next == nil && len(lacks) > 0:
		if !m.freeMemoryForNext(main, places) {
			return
		}
		owned := slices.Concat(keeps, without(lacks, keeps))
		slices.Sort(owned)
		m.p.log.Info("preparing to estimate other shards", "shards", owned)
		next = newFold(m.p.Config, m.p.shards, owned)
		m.p.nextFold.Store(next)
		begin(next)
	case next == nil:
	case next.ended() || len(without(lacks, next.config.Owned)) == len(lacks):
		if next.stop(); !next.ended() {
			return // restoring a core takes time
		}
		next.close()
		m.p.nextFold.Store(nil)
	case next.opened.Load() && (main.ended() || next.mayReplace(main)):
		m.replace(next)
	}
}

// freeMemoryForNext ends the main fold before the next one begins if there is not enough memory for
// two. If shards have copies, one worker after another does so. It reports whether the next fold
// may begin.
func (m *membership) freeMemoryForNext(main *fold, places []group.Place) bool {
	most := machineMemory("")
	if main.ended() || most == 0 || prepareMemory*liveBytes() <= most {
		return true
	}
	if m.copies > 1 &&
		slices.ContainsFunc(places, func(place group.Place) bool { return place.Awaited }) {
		return false
	}
	m.p.log.Warn("the memory is too small to prepare other shards beside the present ones: this "+
		"worker estimates nothing until the new shards have caught up",
		"bytes", liveBytes(), "memory", most)
	m.end(main)
	return true
}

// replace ends the main fold and puts the next one in its place.
func (m *membership) replace(next *fold) {
	main := m.p.main.Load()
	m.end(main)
	m.p.main.Store(next)
	m.p.nextFold.Store(nil)
	m.p.log.Info("other shards are estimated", "position", next.applied.Load(), "shards",
		next.config.Owned)
}

// mayReplace reports whether a fold has caught up with the main fold, or the main fold is far
// behind the log itself, where two folds would take twice as long.
func (f *fold) mayReplace(main *fold) bool {
	return f.waitsForMain.Load() || f.applied.Load() >= main.applied.Load() ||
		main.source.Stats().Behind > catchingUp
}

// end stops a fold, waits for its loop, and frees its resources.
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

// without returns the shards of one list that are not in another.
func without(shards, others []int) []int {
	return slices.DeleteFunc(slices.Clone(shards),
		func(shard int) bool { return slices.Contains(others, shard) })
}
