package incremental

import (
	"errors"
	"fmt"

	"gqlstream/graphstore"
	"gqlstream/incremental/classifier"
	"gqlstream/incremental/pairs"
	"gqlstream/incremental/prequential"
)

// RestoreTables returns a cold core from the core tables of a saved state alone, for a state whose
// derived tables are of another version, or of another configuration if reconfigured is set. It
// applies batches and emits nothing until the log has a recompute event: two cores that are
// restored from different positions before that event are equal after it, and also equal to a core
// that read the log from its beginning with this version and configuration.
//
// Under another configuration the number of classes must be that of the state. The communities of
// the configuration replace the restored ones at the recompute event. Decisions of the former
// configuration about the graph stand: refused events and expired assertions do not return.
func RestoreTables(config Config, sections map[string][]byte, reconfigured bool) (*Core, error) {
	c, _, err := restoreTables(config, sections)
	if err == nil && reconfigured && c.pairs.Len() > 0 && c.config.families().HardPair {
		c.Close()
		return nil, errNoMajorities
	}
	if err == nil {
		c.waits, c.reconfigured = true, reconfigured
	}
	return c, err
}

// errNoMajorities is returned if a new method reads data that the former configuration did not
// store.
var errNoMajorities = errors.New("the new methods need the majority class among the neighbours " +
	"of each label at its time, which only the whole log has")

// restoreTables returns a cold core with the core tables of a saved state, and the state's row.
func restoreTables(config Config, sections map[string][]byte) (*Core, coreRow, error) {
	c, state, err := restoreCold(config, sections)
	if err != nil {
		return nil, state, err
	}
	c.position, c.time = state.Position, state.Time
	c.erasures = erasures{last: state.Erased, owed: int(state.Owed)}
	scores, err := readRows[prequential.Row](sections, scoredSection)
	if err == nil {
		c.scores, err = prequential.Restore(config.Classes, scores)
	}
	if err != nil {
		c.Close()
		return nil, state, fmt.Errorf("restore: %w", err)
	}
	return c, state, nil
}

// RestoreGraph returns a cold core with the graph of a saved state, without kernels and tallies. It
// stays cold until a batch emits, so its cost does not depend on the number of communities. It
// serves readers of the graph along the log, not a run. The number of classes must be that of the
// state; other settings may differ.
func RestoreGraph(config Config, sections map[string][]byte) (*Core, error) {
	c, _, err := restoreCold(config, sections)
	return c, err
}

// restoreCold returns a cold core with the graph of a saved state, and the state's row.
func restoreCold(config Config, sections map[string][]byte) (*Core, coreRow, error) {
	c, err := New(config)
	if err != nil {
		return nil, coreRow{}, err
	}
	state, err := readRow[coreRow](sections, coreSection)
	if err == nil {
		err = c.restoreStore(state, sections)
	}
	if err != nil {
		c.Close()
		return nil, state, fmt.Errorf("restore: %w", err)
	}
	return c, state, nil
}

// Waits reports whether the core emits nothing before a recompute event.
func (c *Core) Waits() bool { return c.waits }

// recompute prepares for computing again all that follows from the graph. Predictions of the
// built-in classifier depend on when they were made, and with them its accuracy and the pairs of
// labels near them: where it is configured all three begin again.
func (c *Core) recompute() error {
	if c.reconfigured {
		if err := c.store.SetCommunities(c.config.Communities); err != nil {
			return err
		}
		c.selectedBy = c.config.SelectedBy
	}
	c.live = live{}
	if view := c.store.View(); c.config.Classifier != "" {
		c.scores = prequential.New(c.config.Classes)
		c.count(view, c.store.Derive(derived(view), classifier.Name))
		var err error
		c.pairs, err = pairs.Restore(c.config.Classes, c.config.families().HardPair,
			c.config.HalfLife, c.time, nil, view)
		if err != nil {
			return err
		}
	}
	c.waits, c.reconfigured = false, false
	return nil
}

// derived lists the predictions of the built-in classifier, to be removed.
func derived(view graphstore.View) (list []graphstore.Derived) {
	version, made := view.DerivedVersion(classifier.Name)
	for v := range graphstore.Vertex(view.Vertices()) {
		if made && view.Prediction(v) != nil && view.Version(v) == version {
			list = append(list, graphstore.Derived{V: v})
		}
	}
	return list
}
