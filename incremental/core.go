package incremental

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental/neighborhood"
	"gqlstream/incremental/pairs"
	"gqlstream/incremental/prequential"
	"gqlstream/incremental/tally"
	"gqlstream/ingest/event"
	"gqlstream/quant"
	"gqlstream/quant/stats"
)

// Core is the state that is folded over the log. One goroutine owns it.
type Core struct {
	config Config
	digest string
	store  *graphstore.Store
	sums   *neighborhood.Sums
	pairs  *pairs.Pairs
	scores *prequential.Monitor // how right each model version has been
	live                        // the state of a warm core other than the graph; see warm.go

	position event.Position
	time     event.Time
	erasures erasures
	holds    []hold // of the next step; see HoldPair
	agesHeld bool   // ages do not follow the log's time; see HoldAges

	waits        bool // nothing is emitted until a recompute event; see RestoreTables
	reconfigured bool // that event replaces the communities by those of the configuration

	// selectedBy holds the selections that the configuration, or the last configure event,
	// declares.
	selectedBy map[string]stats.Selection
	solvers    []quant.Solver // one for each goroutine of an emission
}

// Result is the output of one step.
type Result struct {
	Position  event.Position
	Time      event.Time
	Events    int              // applied or refused, without undecodable messages
	Refused   []event.Refusal  // by the store or the core; the batch holds the decoder's
	Estimates []quant.Estimate // by community, then in the order of the configuration
	Behind    bool             // records are left for the next emission
	// the store is in its canonical order: Copy may be called until the next Step
	Compacted bool
	Owed      bool // Compacted, and an erasure waits for this checkpoint: save it
}

// New returns a cold core that has seen nothing.
func New(config Config) (*Core, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	config = config.WithDefaults()
	store, err := graphstore.New(config.store())
	if err != nil {
		return nil, err
	}
	core := &Core{
		config: config, digest: config.Digest(), store: store, selectedBy: config.SelectedBy,
		scores: prequential.New(config.Classes),
		sums:   neighborhood.New(config.Classes, config.families().HardPair),
		pairs:  pairs.New(config.Classes, config.families().HardPair),
	}
	core.pairs.LetAge(config.HalfLife, 0)
	return core, nil
}

// Step applies one batch and returns the refusals and, if the batch ends at an emission boundary,
// the estimates that moved. The batches of a core must be consecutive.
func (c *Core) Step(b *event.Batch) Result {
	view, before := c.store.View(), c.time
	delta, refused := c.apply(b, view)
	result := Result{Position: b.Last, Time: b.Time, Events: b.Events(), Refused: refused}
	setBack := b.SetsClock() && b.Time < before
	if setBack {
		c.live = live{} // warmed up from the graph again, as after a configure event
	}
	c.openStep(view)
	c.holdPairs(view)
	c.count(view, delta)
	if setBack {
		c.setClock(view, b.Time)
	}
	if c.scorePredictions(view, delta) {
		c.republishAll()
	}
	c.classify(view, delta, b.Emit)
	c.age(view)
	c.followMasses(view, delta)
	if b.Emit && !c.waits { // all workers compute the same from the recompute event on
		c.emit(b.EmitAll, before, view, &result)
	}
	c.carryOut(b, &result)
	c.compact(b, before, &result)
	return result
}

// emit makes the estimates that are due; all asks for those of all communities. before is the time
// of the last batch. The work is bounded while log time goes on steadily: a later emission makes
// the rest soon. After a leap of log time, as in a log without events for long, nothing is left
// over.
func (c *Core) emit(all bool, before event.Time, view graphstore.View, result *Result) {
	loading, wait := c.loadsHistory(all)
	c.loading = loading
	switch {
	case loading && wait:
		result.Behind = true
	case view.Communities() > 0: // a core stays cold until there is a community
		soon := before == 0 || c.time-before < event.Time(c.config.Emit.AtLeastEvery)
		c.prepareEmission(view, all)
		bounded := soon && !all && !c.config.Patient
		result.Estimates, result.Behind = c.estimate(view, all, bounded)
	}
}

// apply stores a batch and returns the changes. If it began or ended the roll-out of a model
// version, every record reports that.
func (c *Core) apply(b *event.Batch, view graphstore.View) (*graphstore.Delta, []event.Refusal) {
	incoming := incomingVersion(view)
	delta, refused := c.store.Apply(b)
	c.position, c.time = b.Last, b.Time
	if incomingVersion(view) != incoming {
		c.republishAll()
	}
	return delta, refused
}

// carryOut carries out the configure and recompute events of a batch, at the end of its step: a
// configure event replaces the communities that the configuration, or the one before it, defines.
// The core is cold afterwards and computes everything at the next emission. An event that cannot be
// carried out changes nothing and is refused.
func (c *Core) carryOut(b *event.Batch, result *Result) {
	for i, control := range b.Controls {
		var err error
		switch control.Op {
		case event.Configure:
			err = c.configure(control.Config)
		case event.Recompute:
			err = c.recompute()
		default:
			continue
		}
		if err != nil {
			result.Refused = slices.Clone(result.Refused) // the store reuses its own
			result.Refused = append(
				result.Refused,
				graphstore.RefusalOf(b, event.KindControl, i, event.BadConfig, err.Error()),
			)
			continue
		}
		c.live = live{}
	}
}

// configure replaces the configured communities.
func (c *Core) configure(config json.RawMessage) error {
	if c.config.DenyConfigure {
		return errors.New("control.configure is deny: only the configuration defines communities")
	}
	rules, selected, err := parseCommunities(config)
	if err == nil {
		err = c.store.SetCommunities(rules)
	}
	if err == nil {
		c.selectedBy = selected
	}
	return err
}

// compact puts the store into its canonical order if the batch or the log's time requires it. The
// log decides when, because the order that a compaction leaves shows in the last bits of the
// kernels.
func (c *Core) compact(b *event.Batch, before event.Time, result *Result) {
	every := c.config.CompactEvery
	if b.Checkpoint || crosses(before, c.time, every) || c.erasures.due(before, c.time, every) {
		c.store.Compact()
		c.age(c.store.View())
		if c.warm() {
			c.flush(c.store.View())
			c.tallies.TouchUnpublished()
		}
		result.Compacted = true
		if c.erasures.owed > 0 {
			c.erasures.owed--
			result.Owed = true
		}
	}
	c.erasures.record(b)
}

// crosses reports whether a multiple of every, if it is positive, lies between two
// times of the log.
func crosses(before, now event.Time, every time.Duration) bool {
	return every > 0 && before > 0 && now/event.Time(every) > before/event.Time(every)
}

// shardOf returns the shard of a community.
func (c *Core) shardOf(id graphstore.Community, view graphstore.View) int {
	return ShardOf(view.CommunityName(id), c.shards())
}

func (c *Core) shards() int { return max(c.config.Shards, 1) }

// owns reports whether this core estimates a community.
func (c *Core) owns(id graphstore.Community, view graphstore.View) bool {
	return c.config.Owned == nil || slices.Contains(c.config.Owned, c.shardOf(id, view))
}

// ownedShards lists the shards that this core estimates, in order; never nil, which is all.
func (c *Core) ownedShards() []int {
	list := []int{}
	for shard := range c.shards() {
		if c.config.Owned == nil || slices.Contains(c.config.Owned, shard) {
			list = append(list, shard)
		}
	}
	return list
}

// Disown ends the estimating of a shard, which another worker has taken over. The core cannot take
// it back; see Restore.
func (c *Core) Disown(shard int) {
	c.config.Owned = slices.DeleteFunc(c.ownedShards(), func(s int) bool { return s == shard })
}

// dropForeign removes the communities of other shards from a list of moved communities, and clears
// their progress, which nothing reads.
func (c *Core) dropForeign(
	moved []graphstore.Community, view graphstore.View,
) []graphstore.Community {
	if c.config.Owned == nil {
		return moved
	}
	return slices.DeleteFunc(moved, func(id graphstore.Community) bool {
		if c.owns(id, view) {
			return false
		}
		c.tallies.SetProgress(id, tally.Progress{})
		c.tallies.SetDropped(id, nil)
		return true
	})
}

// Limit sets the limits that the configuration leaves open. They decide refusals, so a log has them
// in its settings; see ingest.RecordLimits.
func (c *Core) Limit(l event.Limits) { c.store.Limit(c.config.Limits.Or(l)) }

// hold is the pair that a label is to have.
type hold struct {
	id   event.ID
	pair *pairs.Pair
}

// HoldPair gives the label of a vertex a frozen pair, or none if nil, with the next step. From the
// first call on the log decides about no pair.
func (c *Core) HoldPair(id event.ID, pair *pairs.Pair) { c.holds = append(c.holds, hold{id, pair}) }

// holdPairs carries HoldPair out for the vertices that there are.
func (c *Core) holdPairs(view graphstore.View) {
	for _, h := range c.holds {
		if v, known := view.Lookup(h.id); known {
			c.pairs.Hold(v, h.pair)
		}
	}
	c.holds = nil
}

// Pair returns the frozen pair of the label of v, nil where it reads the vertex as it is.
func (c *Core) Pair(v graphstore.Vertex) *pairs.Pair { return c.pairs.Frozen(v) }

// LabelsAge reports whether a label counts less the older it is.
func (c *Core) LabelsAge() bool { return c.config.HalfLife > 0 }

// Position returns the last position applied.
func (c *Core) Position() event.Position { return c.position }

// Time returns the log time after the last batch; 0 before any.
func (c *Core) Time() event.Time { return c.time }

// SelectedBy returns the declared selections of communities, by name; see Config.
func (c *Core) SelectedBy() map[string]stats.Selection { return c.selectedBy }

// View returns the graph after the last step.
func (c *Core) View() graphstore.View { return c.store.View() }

// Close releases the store's memory.
func (c *Core) Close() { c.store.Release() }

// After an erasure every earlier checkpoint must be deleted, and the newest checkpoint needs a
// second one in case of damage. So two checkpoints are due soon.
const (
	erasureCheckpoints = 2
	erasureEvery       = time.Minute // of log time between them at most, for any CompactEvery
)

// erasures counts the checkpoints that the last erasure still needs.
type erasures struct {
	last event.Position // of the last one; 0: there was none
	owed int            // checkpoints after it that are still to come
}

// record takes an erasure into account, also of a vertex that is not there: the log names it.
func (e *erasures) record(b *event.Batch) {
	for i := range b.Vertices {
		if b.Vertices[i].Erase {
			e.last, e.owed = b.Last, erasureCheckpoints
		}
	}
}

// due reports whether a checkpoint is due because of an erasure, when they are made
// every so often without one.
func (e *erasures) due(before, now event.Time, usual time.Duration) bool {
	return e.owed > 0 && (usual < 0 || usual > erasureEvery) && crosses(before, now, erasureEvery)
}

// Erased returns the position of the last erasure, 0 if there was none. A state at that position or
// later has no erased data.
func (c *Core) Erased() event.Position { return c.erasures.last }
