package pipeline

import (
	"context"
	"slices"
	"time"

	"gqlstream/group"
)

// How quickly a worker acts on a change of its group.
const (
	regroupEvery = 200 * time.Millisecond
	assignEvery  = 500 * time.Millisecond // followers, beside that: to end one, and to read another's state, may take seconds
)

// How the next fold is prepared.
const (
	// prepareMemory is how many times its live memory a worker must have to have the next fold beside its own:
	// twice, with what that is restored from and a checkpoint that is being written.
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

// watch follows the list of live workers. It ends the run when all shards of a worker that is drained are others'.
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

// regroup brings what is estimated and published here to what the order of the live workers says, and reports whether
// this worker has nothing more to do. A shard that is another worker's now is kept until that one says that it estimates
// it, so that there is no gap. It may be the slower one: what is missing it publishes.
func (m *membership) regroup(begin func(*fold)) (done bool) {
	places := m.member.Places(m.p.shards, m.copies)
	m.prepare(begin, places)
	live := m.p.main.Load().outlets.live()
	for _, one := range live {
		place := places[one.shard]
		one.gone.Store(place.Order < 0 && place.Served)
		one.rank.Store(int32(max(place.Order, 0)))
	}
	if next := m.p.beside.Load(); next != nil && next.opened.Load() {
		for _, one := range next.outlets.live() { // the main fold is the first for its own, and another worker for what is its again
			rank := places[one.shard].Order
			if rank < 0 || slices.ContainsFunc(live, func(o *outlet) bool { return o.shard == one.shard }) {
				rank = m.copies
			}
			one.rank.Store(int32(rank))
		}
	}
	drains := false
	m.member.Say(func(own *group.Presence) { drains = own.Drains })
	return drains && len(live) == 0
}

// sayPresence says what this worker estimates. One that stands still until its next fold has caught up, whose fold comes to
// what others have published already, or that is far behind, estimates nothing: others must not hand shards over to it.
func (m *membership) sayPresence() {
	main, shards := m.p.main.Load(), []int{}
	if !main.ended() && main.applied.Load() >= main.from.Position && main.source.Stats().Behind <= catchingUp {
		shards = main.outlets.shardsHere()
	}
	needs, taken := m.p.followers.slowest()
	m.member.Say(func(own *group.Presence) {
		own.Position, own.Page, own.Shards, own.Needs, own.Taken = main.applied.Load(), m.p.Page.URL(), shards, needs, taken
	})
}

// prepare begins the next fold where shards are this worker's that the main one does not have: beside all that it does have. It
// puts it in the place of that when it has caught up, and gives it up when it brings nothing that is needed any more. One that
// brings a part of it is not begun anew: what it lacks is the next one's.
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
		m.makeRoom(main)
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

// makeRoom ends the main fold before the next one begins, where there is no memory for two.
func (m *membership) makeRoom(main *fold) {
	most := machineMemory("")
	if main.ended() || most == 0 || prepareMemory*liveBytes() <= most {
		return
	}
	m.p.log.Warn("there is no memory for two folds: nothing is estimated here until the next one has caught up", "bytes", liveBytes(), "memory", most)
	m.end(main)
}

// replace puts the next fold in the place of the main one, which ends first.
func (m *membership) replace(next *fold) {
	main := m.p.main.Load()
	m.end(main)
	m.p.main.Store(next)
	m.p.beside.Store(nil)
	m.p.log.Info("other shards are estimated", "position", next.applied.Load(), "shards", next.config.Owned)
}

// mayReplace reports whether a fold has caught up with the main one, or that is far behind the log itself, where two folds
// would take twice as long.
func (f *fold) mayReplace(main *fold) bool {
	return f.level.Load() || f.applied.Load() >= main.applied.Load() || main.source.Stats().Behind > catchingUp
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
	return slices.DeleteFunc(slices.Clone(shards), func(shard int) bool { return slices.Contains(others, shard) })
}
