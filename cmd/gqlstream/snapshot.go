package main

import (
	"cmp"
	"fmt"
	"iter"
	"path/filepath"
	"slices"

	"gqlstream/graphstore"
	"gqlstream/incremental/ask"
	"gqlstream/ingest/event"
	"gqlstream/internal/checkpoint"
	"gqlstream/internal/tables"
	"gqlstream/pipeline/config"
)

type snapshotCmd struct {
	List   snapshotListCmd   `cmd:"" help:"${snapshot_list}"`
	Export snapshotExportCmd `cmd:"" help:"Write the tables of a checkpoint as Parquet or CSV."`
}

func (*snapshotCmd) Help() string {
	return `A checkpoint is the whole state at one position of the log. Reading one changes nothing,
and may be done while run goes on.

Examples:
  gqlstream snapshot list
  gqlstream snapshot export --table edges --out edges.parquet`
}

// snapshotFlags choose a checkpoint. A process may be running on the directory:
// nothing in it is changed.
type snapshotFlags struct {
	State string `default:"gqlstream-state" placeholder:"DIR" help:"${snapshot_state} [${default}]"`
}

// open returns the checkpoints and their positions, the newest first, or that there are none.
func (f snapshotFlags) open() (*checkpoint.Dir, []uint64, error) {
	dir := checkpoint.Look(checkpoint.Disk{}, filepath.Join(f.State, "checkpoints"))
	positions, err := dir.List()
	if err == nil && len(positions) == 0 {
		err = config.Usagef(
			"snapshot: no checkpoint in %s; run writes one every checkpoint.every, "+
				"and at the end of --exit-when-drained",
			f.State,
		)
	}
	return dir, positions, err
}

type snapshotListCmd struct {
	snapshotFlags
}

func (*snapshotListCmd) Help() string {
	return `Lists the checkpoints, newest first. Each is read in full and verified. STATE is the
digest of the state, which gqlstream replay --digest prints too.

Example:
  gqlstream snapshot list --state gqlstream-state`
}

// Run lists checkpoints.
func (c *snapshotListCmd) Run(con console) error {
	dir, positions, err := c.open()
	if err != nil {
		return err
	}
	damaged := 0
	table := newTable(con.Out)
	fmt.Fprintln(table, "POSITION\tLOG TIME\tWRITTEN\tBYTES\tCONFIG\tSTATE\tINTACT")
	for _, p := range positions {
		read, err := dir.Read(p)
		if err != nil {
			damaged++
			fmt.Fprintf(table, "%d\t-\t-\t-\t-\t-\tno: %v\n", p, err)
			continue
		}
		m := read.Manifest
		bytes := int64(0)
		for _, s := range m.Sections {
			bytes += s.Bytes
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%d\t%s\t%s\tyes\n", m.Position, event.Time(m.LogTime),
			m.Written.Format("2006-01-02T15:04:05Z"), bytes, m.Config,
			checkpoint.Digest(m.Sections))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if damaged > 0 {
		return fmt.Errorf("snapshot: %d of %d checkpoints are damaged; a start takes the "+
			"newest intact one", damaged, len(positions))
	}
	return nil
}

// edgesTable is the table of edges by the names of their ends; the store itself
// keeps lists of neighbours.
const edgesTable = "edges"

type snapshotExportCmd struct {
	snapshotFlags
	Position uint64 `arg:"" optional:"" help:"Position of the checkpoint. [the newest]"`
	Table    string `default:"edges" placeholder:"NAME" help:"${snapshot_export_table}"`
	Out      string `short:"o" required:"" placeholder:"FILE" help:"${snapshot_export_out}"`
}

func (*snapshotExportCmd) Help() string {
	return `Writes one table of a checkpoint, after verifying all of it. The table edges has the
columns src, dst and weight. Numbers in columns named vertex, u and v are rows of the table
vertices.

Examples:
  gqlstream snapshot export --table edges --out edges.parquet
  gqlstream snapshot export --out graph.gexf
  gqlstream snapshot export --state gqlstream-state 120000 --table vertices --out vertices.csv`
}

// Run exports one table.
func (c *snapshotExportCmd) Run(con console) error {
	if _, err := tables.FormatOf(c.Out); err != nil && !isGEXF(c.Out) {
		return config.Usagef("snapshot export: --out %w", err)
	}
	table := graphstore.Table(c.Table)
	if c.Table != edgesTable && !slices.Contains(graphstore.Tables(), table) {
		return config.Usagef("snapshot export: table %q is not one of %s and %v",
			c.Table, edgesTable, graphstore.Tables())
	}
	dir, positions, err := c.open()
	if err != nil {
		return err
	}
	read, err := dir.Read(cmp.Or(c.Position, positions[0]))
	if err != nil {
		return err
	}
	store, k, err := ask.Load(read)
	if err != nil {
		return err
	}
	defer store.Release()
	view := store.View()
	if isGEXF(c.Out) {
		classes := event.ClassSet{Count: k, Names: read.Manifest.Classes}
		return c.exportGraph(con.Err, view, classes, read.Manifest.Position)
	}
	records := graphstore.RowRecords(edgesOf(view))
	if c.Table != edgesTable {
		records = slices.Values(view.Records(table))
	}
	rows, err := tables.Export(c.Out, records)
	if err != nil {
		return err
	}
	fmt.Fprintf(con.Err, "%s: %d rows of %s at position %d\n",
		c.Out, rows, c.Table, read.Manifest.Position)
	return nil
}

// namedEdge is one undirected edge with the names of its ends.
type namedEdge struct {
	Src, Dst string
	Weight   float64
}

// edgesOf visits every undirected edge once, by the number of its lower end.
func edgesOf(view graphstore.View) iter.Seq[namedEdge] {
	return func(yield func(namedEdge) bool) {
		for v := range graphstore.Vertex(view.Vertices()) {
			for u, weight := range view.EdgesOf(v) {
				if u > v &&
					!yield(
						namedEdge{
							Src:    view.ID(v).String(),
							Dst:    view.ID(u).String(),
							Weight: weight,
						},
					) {
					return
				}
			}
		}
	}
}
