package incremental

import (
	"fmt"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/tally"
)

type spreadRow struct {
	ofCommunity
	tally.Spread
}

const (
	dualSection    = "dual.arrow"    // diffusion.DualState
	sharedSection  = "shared.arrow"  // measured: one row
	signsSection   = "signs.arrow"   // diffusion.RelaxationState: none between two sketches
	spreadsSection = "spreads.arrow" // spreadRow: one for each community of a shard that has one
)

// State implements kernels.
func (d *sharedDual) State(add addSection) {
	add(dualSection, false, rowsOf(d.dual.State()))
	add(sharedSection, false, rowsOf([]measured{d.measured}))
	add(signsSection, true, rowsOf(d.signs.State()))
	var rows []spreadRow
	for id := range graphstore.Community(d.core.View().Communities()) {
		if spread := d.core.tallies.Spread(id); spread != nil {
			rows = append(rows, spreadRow{ofCommunity{uint32(id)}, *spread})
		}
	}
	addRows(d.core, add, spreadsSection, false, rows)
}

// restoreShared reads the output of State; the tallies have been counted again.
func restoreShared(c *Core, view graphstore.View, sections map[string][]byte) (*sharedDual, error) {
	measured, err := readRow[measured](sections, sharedSection)
	if err != nil {
		return nil, err
	}
	parts, err := readRows[diffusion.DualState](sections, dualSection)
	if err != nil {
		return nil, err
	}
	d := &sharedDual{core: c, scale: c.config.residualScale(), measured: measured}
	config := diffusion.Config{Alpha: c.config.Alpha, Functions: c.config.functions()}
	if d.dual, err = diffusion.RestoreDual(config, view, parts); err != nil {
		return nil, err
	}
	signs, err := readRows[diffusion.RelaxationState](sections, signsSection)
	if err != nil {
		return nil, err
	}
	if d.signs, err = diffusion.RestoreRelaxation(c.config.Alpha, view, signs); err != nil {
		return nil, err
	}
	rows, err := ownedRows[spreadRow](c, sections, spreadsSection)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		id := graphstore.Community(rows[i].Community)
		if !c.tallies.SetSpread(id, &rows[i].Spread) {
			return nil, fmt.Errorf("section %s: second moments of community %d do not fit",
				spreadsSection, id)
		}
	}
	return d, nil
}
