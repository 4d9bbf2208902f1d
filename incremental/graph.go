package incremental

import (
	"encoding/json"
	"fmt"

	"gqlstream/graphstore"
)

// RestoreGraph returns a cold core that holds the graph of a saved state and nothing else of it: no
// kernels, no tallies. Batches that do not emit keep it cold, so it costs what the graph costs
// however many communities it has. It is for looking at the graph along the log, not for going on.
// The number of classes must be that of the state; what else the configuration says about results
// may differ.
func RestoreGraph(config Config, sections map[string][]byte) (*Core, error) {
	c, err := New(config)
	if err != nil {
		return nil, err
	}
	state, err := readRow[coreRow](sections, coreSection)
	if err == nil {
		err = c.restoreStore(state, sections)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("incremental: restore: %w", err)
	}
	c.cool()
	return c, nil
}

// restoreStore takes the graph, and what was declared of its communities, over from the sections.
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
	return nil
}
