package incremental

import (
	"encoding/json"
	"fmt"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/audit"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/neighborhood"
	"gqlstream/incremental/posterior"
	"gqlstream/incremental/tally"
	"gqlstream/quant"
)

// Restore returns the core whose state the sections are; their checksums have been
// verified. The configuration must have the digest of the one that saved them.
// From then on the core gives the same bits as one that never stopped.
func Restore(config Config, sections map[string][]byte) (*Core, error) {
	return restoreWith(config, sections, func(c *Core, state coreRow) error {
		if err := c.restoreScores(sections); err != nil {
			return err
		}
		c.position, c.time = state.Position, state.Time
		c.erasures = erasures{last: state.Erased, owed: int(state.Owed)}
		if state.Engine == "" {
			return nil
		}
		return c.restoreLive(state.Engine, sections)
	})
}

// RestoreGraph returns a cold core that holds the graph of a saved state and nothing else of it: no
// kernels, no tallies. Batches that do not emit keep it cold, so it costs what the graph costs
// however many communities it has. It is for looking at the graph along the log, not for going on.
// The number of classes must be that of the state; what else the configuration says about results
// may differ.
func RestoreGraph(config Config, sections map[string][]byte) (*Core, error) {
	return restoreWith(config, sections, func(*Core, coreRow) error { return nil })
}

// restoreWith returns a core with the graph of a saved state, once rest has brought the rest.
func restoreWith(config Config, sections map[string][]byte, rest func(*Core, coreRow) error) (*Core, error) {
	c, err := New(config)
	if err != nil {
		return nil, err
	}
	state, err := readRow[coreRow](sections, coreSection)
	if err == nil {
		err = c.restoreStore(state, sections)
	}
	if err == nil {
		err = rest(c, state)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("incremental: restore: %w", err)
	}
	return c, nil
}

// restoreLive makes the core warm: tallies are counted anew, the rest is read.
func (c *Core) restoreLive(engine string, sections map[string][]byte) error {
	view := c.store.View()
	if err := c.restoreClassifier(view, sections); err != nil {
		return err
	}
	c.tallies = tally.New(c.config.Classes, c.config.families())
	c.tallies.Rebuild(view, c.sums)
	c.audits = audit.New(c.config.Classes, view)
	var err error
	switch engine {
	case EnginePrimal:
		c.masses, err = c.restoreFields(view, sections)
	case EngineDual:
		c.masses, err = c.restoreShared(view, sections)
	default:
		err = fmt.Errorf("section %s: engine %q", coreSection, engine)
	}
	if err != nil {
		return err
	}
	if err := c.restorePosteriors(view, sections); err != nil {
		return err
	}
	return c.restoreCommunities(view, sections)
}

// restorePosteriors reads what save wrote and computes the posteriors of the epoch anew.
func (c *Core) restorePosteriors(view graphstore.View, sections map[string][]byte) error {
	if !c.config.readsPosterior() {
		return nil
	}
	epoch, err := readRow[posterior.Epoch](sections, posteriorSection)
	if err != nil {
		return err
	}
	p := &posteriors{core: c}
	c.posteriors = p
	if p.state, err = posterior.Restore(c.config.Classes, c.config.posteriors(), epoch, view, c.sums); err != nil {
		return fmt.Errorf("section %s: %w", posteriorSection, err)
	}
	parts, err := readRows[diffusion.DualState](sections, residualSection)
	if err != nil || len(parts) == 0 {
		return err
	}
	if p.residual, err = diffusion.RestoreDual(p.residualConfig(0), view, parts); err != nil {
		return fmt.Errorf("section %s: %w", residualSection, err)
	}
	p.countByClass(view)
	p.told[0], p.told[1] = quant.MeanResidual(p.byClass)
	p.listAll(view)
	return nil
}

// restoreCommunities reads what communityRows returned. Counting anew is no progress.
func (c *Core) restoreCommunities(view graphstore.View, sections map[string][]byte) error {
	rows, err := ownedRows[keptRow](c, sections, communitiesSection)
	if err != nil {
		return err
	}
	c.published = make([]publication, view.Communities())
	missing := make([]bool, len(c.published))
	for id := range missing {
		missing[id] = c.owns(graphstore.Community(id), view)
		c.tallies.SetProgress(graphstore.Community(id), tally.Progress{})
	}
	for _, row := range rows {
		missing[row.Community] = false
		c.published[row.Community].gate = row.gate
		c.flagged = append(c.flagged, graphstore.Community(row.Community))
		c.tallies.SetProgress(graphstore.Community(row.Community), row.Progress)
	}
	if id := slices.Index(missing, true); id >= 0 {
		return fmt.Errorf("section %s: community %d is missing", communitiesSection, id)
	}
	published, err := ownedRows[publishedRow](c, sections, publishedSection)
	if err != nil {
		return err
	}
	for i := range published {
		p := &published[i]
		if int(p.Place) >= len(c.config.Estimates) {
			return fmt.Errorf("section %s: estimate %d of community %d", publishedSection, p.Place, p.Community)
		}
		list := &c.published[p.Community].snapshots
		for len(*list) <= int(p.Place) {
			*list = append(*list, nil)
		}
		(*list)[p.Place] = &p.Snapshot
	}
	return nil
}

// readRow reads a section of one row.
func readRow[T any](sections map[string][]byte, name string) (row T, err error) {
	rows, err := readRows[T](sections, name)
	if err == nil && len(rows) != 1 {
		err = fmt.Errorf("section %s: %d rows, want one", name, len(rows))
	}
	if err != nil {
		return row, err
	}
	return rows[0], nil
}

// readRows reads a section of rows.
func readRows[T any](sections map[string][]byte, name string) ([]T, error) {
	data, ok := sections[name]
	if !ok {
		return nil, fmt.Errorf("section %s is missing", name)
	}
	rows, err := graphstore.ReadRows[T](data)
	if err != nil {
		return nil, fmt.Errorf("section %s: %w", name, err)
	}
	return rows, nil
}

// restoreStore takes the graph, and what was declared of its communities, over from the sections, and counts the
// neighbours' sums anew.
func (c *Core) restoreStore(state coreRow, sections map[string][]byte) error {
	c.selectedBy = nil // Unmarshal would add to the map of the configuration
	if err := json.Unmarshal([]byte(state.Selected), &c.selectedBy); err != nil {
		return fmt.Errorf("section %s: %w", coreSection, err)
	}
	store, err := graphstore.Load(c.config.store(), func(t graphstore.Table) ([]byte, error) {
		data, ok := sections[string(t)+tableSuffix]
		if !ok {
			return nil, fmt.Errorf("section %s%s is missing", t, tableSuffix)
		}
		return data, nil
	})
	if err != nil {
		return err
	}
	c.store.Release()
	c.store = store
	c.sums = neighborhood.Recount(store.View(), c.config.Classes, c.config.families().NeedsHardVotes())
	return nil
}
