package incremental

import (
	"fmt"
	"slices"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental/classifier"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/neighborhood"
	"gqlstream/incremental/prequential"
	"gqlstream/incremental/tally"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// Core is the state that is folded over the log. One goroutine owns it.
type Core struct {
	config  Config
	digest  string
	store   *graphstore.Store
	sums    *neighborhood.Sums
	tallies *tally.Tallies
	kernels []*kernel // by community
	warm    bool      // tallies and kernels follow every step

	dual    *diffusion.Dual // of a warm core that serves all communities from one; see engine.go
	credit  float64         // work that refreshes of second moments may do, in neighbours visited
	changes []diffusion.ValueChange
	planner plan
	density *propensity // of a warm core whose Density is ppr

	judged *prequential.Monitor // which needs no warm core

	enq   *classifier.Enq       // of a warm core whose Classifier is enq
	walks *classifier.Diffusion // of one whose Classifier is diffusion

	position event.Position
	time     event.Time
	erasures erasures
	solvers  []quant.Solver // one for each goroutine of an emission
}

// Result is what one step gave.
type Result struct {
	Position  event.Position
	Time      event.Time
	Events    int              // applied or refused, not counting what did not decode
	Refused   []event.Refusal  // by the store or the core; the batch holds the decoder's
	Estimates []quant.Estimate // by community, then in the order of the configuration
	Engine    string           // that keeps ppr kernels after the step: EnginePrimal or EngineDual
	Vacuumed  bool             // the store is in its canonical order: Save now or never
	Owed      bool             // Vacuumed, and an erasure waits for this checkpoint: save it
}

// New returns a cold core that has seen nothing.
func New(config Config) (*Core, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("incremental: %w", err)
	}
	config = config.WithDefaults()
	store, err := graphstore.New(config.store())
	if err != nil {
		return nil, fmt.Errorf("incremental: %w", err)
	}
	families := config.families()
	return &Core{
		config: config, digest: config.Digest(), store: store, judged: prequential.New(config.Classes),
		sums:    neighborhood.New(config.Classes, families.NeedsHardVotes()),
		tallies: tally.New(config.Classes, families),
	}, nil
}

// Step applies one batch and returns what it refused and, when the batch ends at
// an emission boundary, the estimates that moved. The batches of a core must be
// consecutive.
func (c *Core) Step(b *event.Batch) Result {
	view := c.store.View()
	coming := coming(view)
	delta, refused := c.store.Apply(b)
	c.announce(view, coming)
	c.judge(view, delta)
	votes := c.sums.Update(view, delta)
	crowded := false
	if c.warm {
		c.tallies.Update(view, delta, c.sums, votes)
		crowded = c.diffuse(view, delta)
	}
	c.classify(view, delta, b.Emit)
	switch {
	case crowded:
		c.change(view)
		c.addKernels(view)
	case c.dual != nil:
		c.followDual(view, delta)
	case c.warm:
		c.planner.note(len(delta.Edges), c.tallies.DropChanges())
	}
	before := c.time
	c.position, c.time = b.Last, b.Time
	result := Result{Position: b.Last, Time: b.Time, Events: b.Events(), Refused: refused}
	if b.Emit {
		c.warmUp(view)
		result.Estimates = c.estimate(view)
	}
	if refused := c.configure(b.Controls); len(refused) > 0 {
		result.Refused = append(slices.Clone(result.Refused), refused...)
	}
	if b.Checkpoint || c.vacuumDue(before) {
		c.store.Vacuum()
		result.Vacuumed = true
		if c.erasures.owed > 0 {
			c.erasures.owed--
			result.Owed = true
		}
	}
	c.erasures.note(b)
	result.Engine = c.engine()
	return result
}

// vacuumDue reports whether the log's time has crossed a multiple of VacuumEvery, or of
// erasureEvery after an erasure.
// The log decides when, because the order that a vacuum leaves shows in the last
// bits of the kernels.
func (c *Core) vacuumDue(before event.Time) bool {
	return crosses(before, c.time, c.config.VacuumEvery) || c.erasures.due(before, c.time, c.config.VacuumEvery)
}

// crosses reports whether a multiple of every, if it is positive, lies between two
// times of the log.
func crosses(before, now event.Time, every time.Duration) bool {
	return every > 0 && before > 0 && now/event.Time(every) > before/event.Time(every)
}

// Position returns the last position applied.
func (c *Core) Position() event.Position { return c.position }

// View reads the graph as the last step left it.
func (c *Core) View() graphstore.View { return c.store.View() }

// Close releases the store's memory.
func (c *Core) Close() { c.store.Release() }
