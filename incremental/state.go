package incremental

import (
	"bytes"
	"encoding"
	"fmt"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/neighborhood"
	"gqlstream/incremental/tally"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// Section is a part of a core's state: an Arrow IPC file.
type Section struct {
	Name string
	Data []byte
}

const (
	tableSuffix  = ".arrow"
	fieldPattern = "field-%05d.arrow" // by community

	coreSection       = "core.arrow"       // coreRow: one row
	kernelsSection    = "kernels.arrow"    // kernelRow: one for each community
	publishedSection  = "published.arrow"  // publishedRow: one for each estimate that can change
	classifierSection = "classifier.arrow" // partRow: its binary form

	dualSection    = "dual.arrow"    // partRow: the dual's binary form, of a core that has one
	spreadsSection = "spreads.arrow" // spreadRow: one for each community that was refreshed
)

// coreRow, kernelRow and publishedRow are what a core holds besides its graph and
// the vectors of its kernels. Neighbourhood sums and tallies are not in it: they
// are exact functions of the graph and of the kernels, and counting them anew gives
// the same bits. A new field is a new column; raise checkpoint.Format with it.
type coreRow struct {
	Position event.Position
	Time     event.Time
	Warm     bool
	Erased   event.Position // the last erasure, or 0
	Owed     uint32         // checkpoints that it waits for

	Dual      bool    // has a dual
	Tolerance float64 // of the dual
	Credit    float64 // for refreshes
	plan
}

type spreadRow struct {
	Community uint32
	tally.Spread
}

type kernelRow struct {
	Name           string
	tally.Progress        // since its last estimate
	Field          []byte // of the field, beside its vectors
	Version        uint32 // model version of the last estimates
}

type publishedRow struct {
	Community, Place uint32 // the estimate's place in the configuration
	quant.Snapshot
}

// partRow is a part of at most partBytes of a binary form.
type partRow struct{ State []byte }

const partBytes = 64 << 20

// Save returns the state of the core as it is after a step whose Result.Vacuumed
// is set: then a restored core and one that never stopped hold the same bytes. The
// sections are copies and may be written while the core goes on.
func (c *Core) Save() ([]Section, error) { return c.sections(c.store.Sections()) }

// Sections returns the state as it stands after any step, to compare it with
// another. Unlike Save it leaves the core alone; where Save is allowed both return
// the same bytes.
func (c *Core) Sections() ([]Section, error) { return c.sections(c.store.View().Sections()) }

func (c *Core) sections(tables []graphstore.Section) ([]Section, error) {
	var sections []Section
	add := func(name string, write func(*bytes.Buffer) error) error {
		var data bytes.Buffer
		err := write(&data)
		sections = append(sections, Section{name, data.Bytes()})
		return err
	}
	for _, table := range tables {
		err := add(string(table.Table)+tableSuffix, func(w *bytes.Buffer) error {
			_, err := table.WriteTo(w)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("incremental: save: %w", err)
		}
	}
	kernels, published, err := c.kernelRows(add)
	if err == nil {
		err = c.saveDensity(add)
	}
	if err == nil {
		err = add(judgedSection, c.writeJudged)
	}
	if err == nil && c.walks != nil {
		err = add(classifierSection, func(w *bytes.Buffer) error { return writeParts(w, c.walks) })
	}
	row := coreRow{
		Position: c.position, Time: c.time, Warm: c.warm, Credit: c.credit, plan: c.planner,
		Erased: c.erasures.last, Owed: uint32(c.erasures.owed),
	}
	if err == nil && c.dual != nil {
		row.Dual, row.Tolerance = true, c.dual.Tolerance()
		err = c.saveDual(add)
	}
	if err == nil {
		err = add(publishedSection, func(w *bytes.Buffer) error { return graphstore.WriteRows(w, published) })
	}
	if err == nil {
		err = add(kernelsSection, func(w *bytes.Buffer) error { return graphstore.WriteRows(w, kernels) })
	}
	if err == nil {
		err = add(coreSection, func(w *bytes.Buffer) error {
			return graphstore.WriteRows(w, []coreRow{row})
		})
	}
	if err != nil {
		return nil, fmt.Errorf("incremental: save: %w", err)
	}
	return sections, nil
}

// kernelRows adds the fields' vectors as sections and returns the rest of the
// communities' state.
func (c *Core) kernelRows(add func(string, func(*bytes.Buffer) error) error) (rows []kernelRow, published []publishedRow, err error) {
	for id, k := range c.kernels {
		row := kernelRow{
			Name: c.View().CommunityName(graphstore.Community(id)), Version: k.version,
			Progress: c.tallies.Progress(graphstore.Community(id)),
		}
		for i, s := range k.published {
			if s != nil {
				published = append(published, publishedRow{uint32(id), uint32(i), *s})
			}
		}
		if k.field != nil {
			vectors := k.field.State()
			row.Field = vectors.Rest
			err := add(fmt.Sprintf(fieldPattern, id), func(w *bytes.Buffer) error {
				return graphstore.WriteFloats(w, []graphstore.Floats{{Name: "z", Values: vectors.Z}, {Name: "r", Values: vectors.R}})
			})
			if err != nil {
				return nil, nil, err
			}
		}
		rows = append(rows, row)
	}
	return rows, published, nil
}

// writeParts writes a binary form as a section.
func writeParts(w *bytes.Buffer, of encoding.BinaryAppender) error {
	data, err := of.AppendBinary(nil)
	if err != nil {
		return err
	}
	var rows []partRow
	for part := range slices.Chunk(data, partBytes) {
		rows = append(rows, partRow{part})
	}
	return graphstore.WriteRows(w, rows)
}

// readParts reads it.
func readParts(sections map[string][]byte, name string) ([]byte, error) {
	rows, err := readRows[partRow](sections, name)
	if err != nil {
		return nil, err
	}
	var data []byte
	for _, row := range rows {
		data = append(data, row.State...)
	}
	return data, nil
}

// Restore returns the core whose state the sections are; their checksums have been
// verified. The configuration must have the digest of the one that saved them.
// From then on the core gives the same bits as one that never stopped.
func Restore(config Config, sections map[string][]byte) (*Core, error) {
	c, err := New(config)
	if err != nil {
		return nil, err
	}
	if err := c.restore(sections); err != nil {
		c.Close()
		return nil, fmt.Errorf("incremental: restore: %w", err)
	}
	return c, nil
}

func (c *Core) restore(sections map[string][]byte) error {
	core, err := readRows[coreRow](sections, coreSection)
	if err == nil && len(core) != 1 {
		err = fmt.Errorf("section %s: %d rows, want one", coreSection, len(core))
	}
	if err != nil {
		return err
	}
	kernels, err := c.readKernels(sections)
	if err != nil {
		return err
	}
	state := core[0]
	if err := c.restoreStore(sections); err != nil {
		return err
	}
	if err := c.restoreJudged(sections); err != nil {
		return err
	}
	c.position, c.time, c.warm = state.Position, state.Time, state.Warm
	c.erasures = erasures{last: state.Erased, owed: int(state.Owed)}
	view := c.store.View()
	families := c.config.families()
	if c.warm {
		if err := c.restoreClassifier(view, sections); err != nil {
			return err
		}
	}
	c.sums = neighborhood.Recount(view, c.config.Classes, families.NeedsHardVotes(), c.heard(view)...)
	if !c.warm {
		return nil
	}
	if len(kernels) != view.Communities() {
		return fmt.Errorf("kernels of %d communities, the graph has %d", len(kernels), view.Communities())
	}
	c.tallies.Rebuild(view, c.sums)
	c.credit, c.planner = state.Credit, state.plan
	if state.Dual {
		if err := c.restoreDual(state, view, sections); err != nil {
			return err
		}
	}
	if err := c.restoreDensity(view, sections); err != nil {
		return fmt.Errorf("density of labels: %w", err)
	}
	for id, community := range kernels {
		if err := c.restoreCommunity(graphstore.Community(id), community, view, sections); err != nil {
			return fmt.Errorf("community %s: %w", community.Name, err)
		}
	}
	return nil
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

// kernelState is a kernelRow with what was published of the community.
type kernelState struct {
	kernelRow
	published []*quant.Snapshot
}

func (c *Core) readKernels(sections map[string][]byte) ([]kernelState, error) {
	rows, err := readRows[kernelRow](sections, kernelsSection)
	if err != nil {
		return nil, err
	}
	published, err := readRows[publishedRow](sections, publishedSection)
	if err != nil {
		return nil, err
	}
	states := make([]kernelState, len(rows))
	for i, row := range rows {
		states[i].kernelRow = row
	}
	for i := range published {
		p := &published[i]
		if int(p.Community) >= len(states) || int(p.Place) >= len(c.config.Estimates) {
			return nil, fmt.Errorf("section %s: estimate %d of community %d", publishedSection, p.Place, p.Community)
		}
		list := &states[p.Community].published
		for len(*list) <= int(p.Place) {
			*list = append(*list, nil)
		}
		(*list)[p.Place] = &p.Snapshot
	}
	return states, nil
}

func (c *Core) restoreCommunity(id graphstore.Community, state kernelState, view graphstore.View, sections map[string][]byte) error {
	k := c.newKernel()
	k.published, k.version = state.published, state.Version
	c.kernels = append(c.kernels, k)
	defer c.tallies.SetProgress(id, state.Progress) // counting anew is no progress
	if len(state.Field) == 0 {
		return nil // computed anew when it is next needed, or served by the dual
	}
	columns, err := graphstore.ReadFloats(sections[fmt.Sprintf(fieldPattern, id)], "z", "r")
	if err != nil {
		return err
	}
	vectors := diffusion.State{Z: columns[0].Values, R: columns[1].Values, Rest: state.Field}
	if k.field, err = c.restoreFollower(view, vectors); err != nil {
		return err
	}
	c.tallies.RebuildKernel(id, view, c.sums, k.mass)
	return nil
}

func (c *Core) restoreFollower(view graphstore.View, state diffusion.State) (follower, error) {
	if c.layered() {
		return diffusion.RestoreLayered(c.config.layered(), view, state)
	}
	return diffusion.RestoreField(c.config.diffusion(), view, state)
}
