package incremental

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"gqlstream/graphstore"
	"gqlstream/incremental/tally"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// Section is a part of a core's state: an Arrow IPC file.
type Section struct {
	Name  string
	Data  []byte
	write func(*bytes.Buffer) error // writes it, from copies; nil when Data is there
}

const (
	tableSuffix = ".arrow"

	coreSection        = "core.arrow"       // coreRow: one row
	communitiesSection = "kernels.arrow"    // keptRow: one for each community
	publishedSection   = "published.arrow"  // publishedRow: one for each estimate that can change
	classifierSection  = "classifier.arrow" // diffusion.DualState
)

// coreRow, keptRow and publishedRow are what a core holds besides its graph and
// its masses. Neighbourhood sums and tallies are not in it: they are exact functions of the
// graph and of the masses, and counting them anew gives the same bits. A new field is a
// new column; raise checkpoint.Format with it.
type coreRow struct {
	Position event.Position
	Time     event.Time
	Engine   string         // that keeps the masses; "": the core is cold
	Erased   event.Position // the last erasure, or 0
	Owed     uint32         // checkpoints that it waits for
	Selected string         // selectedBy as JSON, whose keys are in order
}

type keptRow struct {
	ofCommunity
	Name           string
	tally.Progress // since its last estimate
	gate           // since then, too
}

type publishedRow struct {
	ofCommunity
	Place uint32 // the estimate's place in the configuration
	quant.Snapshot
}

// Copy returns the state of the core as it is after a step whose Result.Compacted is set: then a
// restored core and one that never stopped hold the same bytes. What is large is copied and has
// still to be written by Encode, which may be called while the core goes on.
func (c *Core) Copy() ([]Section, error) { return c.sections(c.store.Sections()) }

// Encode writes the sections of Copy that are copies only.
func Encode(sections []Section) error {
	for i := range sections {
		if err := sections[i].encode(); err != nil {
			return err
		}
	}
	return nil
}

// encode writes a section that has still to be written.
func (s *Section) encode() error {
	if s.write == nil {
		return nil
	}
	var data bytes.Buffer
	if err := s.write(&data); err != nil {
		return fmt.Errorf("incremental: section %s: %w", s.Name, err)
	}
	s.Data, s.write = data.Bytes(), nil
	return nil
}

// Save returns what Copy does, encoded.
func (c *Core) Save() ([]Section, error) { return encoded(c.Copy()) }

// Sections returns the state as it stands after any step, to compare it with another. Unlike Save
// it leaves the core alone; where Save is allowed both return the same bytes.
func (c *Core) Sections() ([]Section, error) { return encoded(c.sections(c.store.View().Sections())) }

func encoded(sections []Section, err error) ([]Section, error) {
	if err == nil {
		err = Encode(sections)
	}
	return sections, err
}

// sections returns the state, of which all is written that is no copy.
func (c *Core) sections(tables []graphstore.Section) (list []Section, err error) {
	add := func(name string, copied bool, write func(*bytes.Buffer) error) {
		list = append(list, Section{Name: name, write: write})
		if err == nil && !copied {
			err = list[len(list)-1].encode()
		}
	}
	for _, table := range tables {
		add(string(table.Table)+tableSuffix, table.Lasts(), func(w *bytes.Buffer) error {
			_, err := table.WriteTo(w)
			return err
		})
	}
	selected, wrong := json.Marshal(c.selectedBy)
	if wrong != nil {
		panic(wrong) // strings cannot fail
	}
	row := coreRow{
		Position: c.position, Time: c.time, Erased: c.erasures.last, Owed: uint32(c.erasures.owed), Selected: string(selected),
	}
	add(scoredSection, false, rowsOf(c.scores.Rows()))
	if c.warm() {
		row.Engine = c.engine()
		c.saveLive(add)
	}
	add(coreSection, false, rowsOf([]coreRow{row}))
	return list, err
}

// rowsOf writes rows as a table.
func rowsOf[T any](rows []T) func(*bytes.Buffer) error {
	return func(w *bytes.Buffer) error { return graphstore.WriteRows(w, rows) }
}

// saveLive adds what a warm core holds.
func (c *Core) saveLive(add addSection) {
	if c.walks != nil {
		add(classifierSection, false, rowsOf(c.walks.State()))
	}
	c.masses.State(add)
	c.posteriors.save(add)
	communities, published := c.communityRows()
	addRows(c, add, communitiesSection, false, communities)
	addRows(c, add, publishedSection, true, published) // a snapshot never changes
}

// communityRows returns the state of the communities, beside their masses.
func (c *Core) communityRows() (rows []keptRow, published []publishedRow) {
	view := c.View()
	for id := range graphstore.Community(view.Communities()) {
		row := keptRow{ofCommunity: ofCommunity{uint32(id)}, Name: view.CommunityName(id), Progress: c.tallies.Progress(id)}
		if int(id) < len(c.published) {
			last := &c.published[id]
			row.gate = last.gate
			for i, s := range last.snapshots {
				if s != nil {
					published = append(published, publishedRow{ofCommunity{uint32(id)}, uint32(i), *s})
				}
			}
		}
		rows = append(rows, row)
	}
	return rows, published
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
