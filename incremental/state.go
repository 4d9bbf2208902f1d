package incremental

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gqlstream/graphstore"
	"gqlstream/incremental/classifier"
	"gqlstream/incremental/diffusion"
	"gqlstream/incremental/neighborhood"
	"gqlstream/incremental/pairs"
	"gqlstream/incremental/posterior"
	"gqlstream/incremental/tally"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// Section is a part of a core's state: an Arrow IPC file.
type Section struct {
	Name   string
	Data   []byte
	encode func() ([]byte, error) // returns Data, from copies; nil when it is there
}

const (
	tableSuffix = ".arrow"

	coreSection        = "core.arrow"       // coreRow: one row
	communitiesSection = "kernels.arrow"    // progressRow: one for each community; an old name
	publishedSection   = "published.arrow"  // publishedRow: one for each estimate that can change
	classifierSection  = "classifier.arrow" // diffusion.DualState
	scoredSection      = "judged.arrow"     // prequential.Row: one for each version; an old name
	pairsSection       = "pairs.arrow"      // pairs.Row: one for each frozen pair
)

// coreRow, progressRow and publishedRow are the state of a core other than its graph and its
// masses. Neighbourhood sums and tallies are not in it: they are exact functions of the graph and
// of the masses, and another count gives the same bits. coreRow is a core table: a new field has
// the tag added, and raises checkpoint.Format. The others are derived: a new field raises
// checkpoint.Derived.
type coreRow struct {
	Position event.Position
	Time     event.Time
	Engine   string         // that keeps the masses; "": the core is cold
	Erased   event.Position // the last erasure, or 0
	Owed     uint32         // checkpoints that it waits for
	Selected string         // selectedBy as JSON, with sorted keys
}

type progressRow struct {
	ofCommunity
	tally.Progress                     // since its last record
	gate                               // of that record
	Dropped        []graphstore.Vertex // members; see tally.Tallies.Dropped
}

type publishedRow struct {
	ofCommunity
	Place uint32 // the estimate's place in the configuration
	quant.Snapshot
	drift
}

// Copy returns the state of the core after a step with Result.Compacted: then a restored core and
// one without a restart have the same bytes. Large tables are copied; Encode encodes them later,
// also while the core continues.
func (c *Core) Copy() ([]Section, error) { return c.sections(c.store.Sections()) }

// Encode writes the sections of Copy that are copies only.
func Encode(sections []Section) (err error) {
	for i := range sections {
		s := &sections[i]
		if s.encode == nil {
			continue
		}
		if s.Data, err = s.encode(); err != nil {
			return fmt.Errorf("section %s: %w", s.Name, err)
		}
		s.encode = nil
	}
	return nil
}

// Sections returns the state after any step, for comparison with another. Unlike Copy it leaves the
// core alone; where Copy is allowed both have the same bytes.
func (c *Core) Sections() ([]Section, error) {
	list, err := c.sections(c.store.View().Sections())
	return list, errors.Join(err, Encode(list))
}

// sections returns the state; all parts but the copies are encoded.
func (c *Core) sections(tables []graphstore.Section) (list []Section, err error) {
	add := func(name string, copied bool, encode func() ([]byte, error)) {
		list = append(list, Section{Name: name, encode: encode})
		if err == nil && !copied {
			err = Encode(list[len(list)-1:])
		}
	}
	for _, table := range tables {
		add(string(table.Table)+tableSuffix, table.Lasts(), table.Encode)
	}
	selected, wrong := json.Marshal(c.selectedBy)
	if wrong != nil {
		panic(wrong) // strings cannot fail
	}
	row := coreRow{
		Position: c.position, Time: c.time, Erased: c.erasures.last, Owed: uint32(c.erasures.owed),
		Selected: string(selected),
	}
	add(scoredSection, false, rowsOf(c.scores.Rows()))
	add(pairsSection, false, rowsOf(c.pairs.Rows()))
	if c.warm() {
		row.Engine = c.engine()
		if c.walks != nil {
			add(classifierSection, false, rowsOf(c.walks.State()))
		}
		c.kernels.State(add)
		c.posteriors.save(add)
		communities, published := c.communityRows()
		addRows(c, add, communitiesSection, false, communities)
		addRows(c, add, publishedSection, true, published) // a snapshot never changes
	}
	add(coreSection, false, rowsOf([]coreRow{row}))
	return list, err
}

// rowsOf encodes rows as a table.
func rowsOf[T any](rows []T) func() ([]byte, error) {
	return func() ([]byte, error) { return graphstore.EncodeRows(rows) }
}

// communityRows returns the state of the communities without their masses.
func (c *Core) communityRows() (rows []progressRow, published []publishedRow) {
	view := c.View()
	for id := range graphstore.Community(view.Communities()) {
		row := progressRow{
			ofCommunity: ofCommunity{uint32(id)},
			Progress:    c.tallies.Progress(id), Dropped: c.tallies.Dropped(id),
		}
		if int(id) < len(c.published) {
			last := &c.published[id]
			row.gate = last.gate
			for i, s := range last.snapshots {
				if s != nil {
					published = append(
						published,
						publishedRow{ofCommunity{uint32(id)}, uint32(i), *s, last.drifts[i]},
					)
				}
			}
		}
		rows = append(rows, row)
	}
	return rows, published
}

// Restore returns a core from the sections of its state; their checksums have been verified. The
// configuration must have the digest of the one that saved them. From then on the core gives the
// same bits as one without a restart.
func Restore(config Config, sections map[string][]byte) (*Core, error) {
	c, state, err := restoreTables(config, sections)
	if err == nil && state.Engine != "" {
		if err = c.restoreLive(state.Engine, sections); err != nil {
			c.Close()
			return nil, fmt.Errorf("restore: %w", err)
		}
	}
	return c, err
}

// restoreLive makes the core warm: tallies are counted again, the rest is read.
func (c *Core) restoreLive(engine string, sections map[string][]byte) (err error) {
	view := c.store.View()
	if c.config.Classifier != "" {
		parts, err := readRows[diffusion.DualState](sections, classifierSection)
		if err == nil {
			c.walks, err = classifier.Restore(c.config.Classes, view, parts)
		}
		if err != nil {
			return err
		}
	}
	c.tallies = tally.New(c.config.Classes, c.config.families(), view, c.sums, c.pairs)
	switch engine {
	case EnginePrimal:
		c.kernels, err = restoreFields(c, view, sections)
	case EngineDual:
		c.kernels, err = restoreShared(c, view, sections)
	default:
		err = fmt.Errorf("section %s: engine %q", coreSection, engine)
	}
	if err == nil {
		err = c.restorePosteriors(view, sections)
	}
	if err == nil {
		err = c.restoreCommunities(view, sections)
	}
	return err
}

// restorePosteriors reads the saved epoch and computes its posteriors again.
func (c *Core) restorePosteriors(view graphstore.View, sections map[string][]byte) error {
	if !c.config.readsPosterior() {
		return nil
	}
	epoch, err := readRow[posterior.Epoch](sections, posteriorSection)
	if err != nil {
		return err
	}
	if len(epoch.Prior) > 0 {
		epoch.Features, err = readRows[posterior.Feature](sections, featuresSection)
		if err != nil {
			return err
		}
	}
	p := &posteriors{core: c}
	c.posteriors = p
	p.state, err = posterior.Restore(c.config.Classes, c.config.LabelsDrawn, c.pairs,
		c.tallies.Rows, epoch, view, c.sums)
	if err != nil {
		return fmt.Errorf("section %s: %w", posteriorSection, err)
	}
	p.countResiduals(view)
	p.touchedAt[0], p.touchedAt[1] = p.byClass.Mean()
	return nil
}

// restoreCommunities reads the rows of communityRows. The count of a restart is no movement.
func (c *Core) restoreCommunities(view graphstore.View, sections map[string][]byte) error {
	rows, err := ownedRows[progressRow](c, sections, communitiesSection)
	if err != nil {
		return err
	}
	c.published = make([]publication, view.Communities())
	owned := 0
	for id := range graphstore.Community(view.Communities()) {
		c.tallies.SetProgress(id, tally.Progress{})
		if c.owns(id, view) {
			owned++
		}
	}
	if len(rows) != owned {
		return fmt.Errorf("section %s: %d communities, want "+
			"%d", communitiesSection, len(rows), owned)
	}
	for _, row := range rows {
		c.published[row.Community].gate = row.gate
		c.tallies.SetProgress(graphstore.Community(row.Community), row.Progress)
		c.tallies.SetDropped(graphstore.Community(row.Community), row.Dropped)
	}
	published, err := ownedRows[publishedRow](c, sections, publishedSection)
	if err != nil {
		return err
	}
	for i := range published {
		p := &published[i]
		if int(p.Place) >= len(c.config.Estimates) {
			return fmt.Errorf("section %s: estimate %d of community "+
				"%d", publishedSection, p.Place, p.Community)
		}
		last := &c.published[p.Community]
		if last.snapshots == nil {
			last.snapshots = make([]*quant.Snapshot, len(c.config.Estimates))
			last.drifts = make([]drift, len(c.config.Estimates))
		}
		last.snapshots[p.Place], last.drifts[p.Place] = &p.Snapshot, p.drift
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

// restoreStore reads the graph, its pairs and the declared selections of communities from the
// sections, and counts the neighbours' sums.
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
	keepHard := c.config.families().HardPair
	at := massesAt(store.View(), state.Time)
	c.sums = neighborhood.Recount(store.View(), c.config.Classes, keepHard, at)
	rows, err := readRows[pairs.Row](sections, pairsSection)
	if err == nil {
		c.pairs, err = pairs.Restore(c.config.Classes, keepHard, c.config.HalfLife, state.Time,
			rows, store.View())
	}
	if err != nil {
		return fmt.Errorf("section %s: %w", pairsSection, err)
	}
	return nil
}

// Snapshots returns the last estimates of a community from saved sections of any shard, in the
// order of the configuration; none if none was published.
func Snapshots(sections map[string][]byte, id graphstore.Community) ([]quant.Snapshot, error) {
	var list []quant.Snapshot
	for _, name := range slices.Sorted(maps.Keys(sections)) {
		if !strings.HasSuffix(name, publishedSection) {
			continue
		}
		rows, err := readRows[publishedRow](sections, name)
		if err != nil {
			return nil, err
		}
		for _, row := range rows {
			if row.Community == uint32(id) {
				list = append(list, row.Snapshot)
			}
		}
	}
	return list, nil
}
