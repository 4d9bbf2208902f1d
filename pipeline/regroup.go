package pipeline

import (
	"context"
	"slices"
	"time"

	"gqlstream/pipeline/group"
)

// How quickly a worker reacts to a change of its group.
const (
	regroupEvery = 200 * time.Millisecond
	// for followers, in addition: ending one, and reading another's state, may take seconds
	assignEvery = 500 * time.Millisecond
)

// How the next fold is prepared.
const (
	// prepareMemory is the memory that a worker needs to run two folds, as a multiple of its live
	// memory: two folds, the state that the next one is restored from, and a checkpoint being
	// written.
	prepareMemory = 4
	prepareAgain  = time.Second      // after a failure
	takeOverLasts = 10 * time.Second // no optional checkpoints are made for so long
)

// shardsOf lists the shards that a worker estimates, by its place for each.
func shardsOf(places []group.Duty) []int {
	owned := []int{}
	for shard, place := range places {
		if place.Order >= 0 {
			owned = append(owned, shard)
		}
	}
	return owned
}

// watchGroup follows the list of live workers. It ends the run once other workers have all shards
// of a draining worker.
func (p *Pipeline) watchGroup(ctx context.Context, begin func(*fold)) error {
	for {
		if p.regroup(begin) {
			return errDone
		}
		p.sayPresence()
		pause := regroupEvery
		if p.folds.next.Load() != nil {
			pause = catchUpLookEvery
		}
		select {
		case err := <-p.group.member.Disagreed:
			return err
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// regroup assigns shards according to the order of the live workers, and reports
// whether this worker has nothing more to do. It keeps a shard that now belongs to another worker
// until that one reports it, so that there is no gap. The new worker may be slower: it publishes
// the missing records.
func (p *Pipeline) regroup(begin func(*fold)) (done bool) {
	places := p.group.member.Places(p.shards, p.group.copies)
	p.prepare(begin, places)
	live := p.folds.main.Load().outlets.live()
	for _, one := range live {
		place := places[one.shard]
		one.gone.Store(place.Order < 0 && place.Served)
		one.rank.Store(int32(max(place.Order, 0)))
	}
	drains := false
	p.group.member.Say(func(own *group.Presence) { drains = own.Drains })
	return drains && len(live) == 0
}

// sayPresence reports the shards that this worker estimates. It reports none while it is waiting
// for its next fold to catch up, repeats records that others have published, or is far behind:
// others must not hand shards over to it then.
func (p *Pipeline) sayPresence() {
	main, shards := p.folds.main.Load(), []int{}
	if !main.ended() && main.applied.Load() >= main.outputEnd.Position &&
		main.source.Stats().Behind <= catchingUp {
		shards = main.outlets.shardsHere()
	}
	needs, taken := p.followers.slowest()
	p.group.member.Say(func(own *group.Presence) {
		own.Position = main.applied.Load()
		own.Page = p.Page.URL()
		own.Shards = shards
		own.Needs = needs
		own.Taken = taken
	})
}

// prepare starts the next fold if this worker gets shards that the main fold lacks; the next fold
// has all of its shards. It replaces the main fold when it has caught up, and is dropped if its new
// shards are no longer needed. A fold that has only some of the needed shards is not restarted: a
// later one adds the rest.
func (p *Pipeline) prepare(begin func(*fold), places []group.Duty) {
	main, next := p.folds.main.Load(), p.folds.next.Load()
	keeps := main.outlets.shardsHere()
	has := keeps
	if main.ended() {
		has = nil
	}
	lacks := without(slices.Concat(keeps, shardsOf(places)), has)
	switch {
	case next == nil && len(lacks) > 0:
		if !p.freeMemoryForNext(main, places) {
			return
		}
		owned := slices.Concat(keeps, without(lacks, keeps))
		slices.Sort(owned)
		p.log.Info("preparing to estimate other shards", "shards", owned)
		next = newFold(p.Config, owned)
		p.folds.next.Store(next)
		begin(next)
	case next == nil:
	case next.ended() || len(without(lacks, next.config.Owned)) == len(lacks):
		if next.stop(); !next.ended() {
			return // restoring a core takes time
		}
		next.close()
		p.folds.next.Store(nil)
	case next.opened.Load() && (main.ended() || next.mayReplace(main)):
		p.replace(next)
	}
}

// freeMemoryForNext ends the main fold before the next one begins if there is not enough memory for
// two. If shards have copies, one worker after another does so. It reports whether the next fold
// may begin.
func (p *Pipeline) freeMemoryForNext(main *fold, places []group.Duty) bool {
	most := machineMemory("")
	if main.ended() || most == 0 || prepareMemory*liveBytes() <= most {
		return true
	}
	if p.group.copies > 1 &&
		slices.ContainsFunc(places, func(place group.Duty) bool { return place.Awaited }) {
		return false
	}
	p.log.Warn("the memory is too small to prepare other shards beside the present ones: this "+
		"worker estimates nothing until the new shards have caught up",
		"bytes", liveBytes(), "memory", most)
	main.end()
	return true
}

// replace ends the main fold and puts the next one in its place.
func (p *Pipeline) replace(next *fold) {
	main := p.folds.main.Load()
	main.end()
	p.folds.main.Store(next)
	p.folds.next.Store(nil)
	p.log.Info("other shards are estimated", "position", next.applied.Load(), "shards",
		next.config.Owned)
}

// mayReplace reports whether a fold has caught up with the main fold, or the main fold is far
// behind the log itself, where two folds would take twice as long.
func (f *fold) mayReplace(main *fold) bool {
	return f.waitsForMain.Load() || f.applied.Load() >= main.applied.Load() ||
		main.source.Stats().Behind > catchingUp
}

// end stops a fold, waits for its loop, and frees its resources.
func (f *fold) end() {
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
