package incremental

import (
	"bytes"
	"encoding"
	"encoding/json"
	"fmt"
	"slices"

	"gqlstream/graphstore"
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
	tableSuffix = ".arrow"

	coreSection        = "core.arrow"       // coreRow: one row
	communitiesSection = "kernels.arrow"    // communityRow: one for each community
	publishedSection   = "published.arrow"  // publishedRow: one for each estimate that can change
	classifierSection  = "classifier.arrow" // partRow: its binary form
)

// coreRow, communityRow and publishedRow are what a core holds besides its graph and
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

	Republish bool // every record is due
}

type communityRow struct {
	Community      uint32
	Name           string
	tally.Progress // since its last estimate
	gate           // since then, too
}

type publishedRow struct {
	Community, Place uint32 // the estimate's place in the configuration
	quant.Snapshot
}

func communityOf(r *communityRow) uint32 { return r.Community }

func publishedCommunity(r *publishedRow) uint32 { return r.Community }

// partRow is a part of at most partBytes of a binary form.
type partRow struct{ State []byte }

const partBytes = 64 << 20

// Save returns the state of the core as it is after a step whose Result.Compacted
// is set: then a restored core and one that never stopped hold the same bytes. The
// sections are copies and may be written while the core goes on.
func (c *Core) Save() ([]Section, error) { return c.sections(c.store.Sections()) }

// Sections returns the state as it stands after any step, to compare it with another. Unlike Save
// it leaves the core alone; where Save is allowed both return the same bytes.
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
	row := coreRow{Position: c.position, Time: c.time, Erased: c.erasures.last, Owed: uint32(c.erasures.owed)}
	if selected, err := json.Marshal(c.selectedBy); err != nil {
		panic(err) // strings cannot fail
	} else {
		row.Selected = string(selected)
	}
	err := add(scoredSection, c.writeScores)
	if err == nil && c.warm() {
		row.Engine, row.Republish = c.engine(), c.republish
		err = c.saveLive(add)
	}
	if err == nil {
		err = add(coreSection, func(w *bytes.Buffer) error { return graphstore.WriteRows(w, []coreRow{row}) })
	}
	if err != nil {
		return nil, fmt.Errorf("incremental: save: %w", err)
	}
	return sections, nil
}

// saveLive adds what a warm core holds.
func (c *Core) saveLive(add addSection) error {
	if c.walks != nil {
		err := add(classifierSection, func(w *bytes.Buffer) error { return writeParts(w, c.walks) })
		if err != nil {
			return err
		}
	}
	if err := c.masses.State(add); err != nil {
		return err
	}
	if err := c.posteriors.save(add); err != nil {
		return err
	}
	communities, published := c.communityRows()
	if err := addRows(c, add, communitiesSection, communities, communityOf); err != nil {
		return err
	}
	return addRows(c, add, publishedSection, published, publishedCommunity)
}

// communityRows returns the state of the communities, beside their masses.
func (c *Core) communityRows() (rows []communityRow, published []publishedRow) {
	view := c.View()
	for id := range graphstore.Community(view.Communities()) {
		row := communityRow{Community: uint32(id), Name: view.CommunityName(id), Progress: c.tallies.Progress(id)}
		if int(id) < len(c.published) {
			last := &c.published[id]
			row.gate = last.gate
			for i, s := range last.snapshots {
				if s != nil {
					published = append(published, publishedRow{uint32(id), uint32(i), *s})
				}
			}
		}
		rows = append(rows, row)
	}
	return rows, published
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
