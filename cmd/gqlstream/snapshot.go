package main

import (
	"cmp"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"gqlstream/ask"
	"gqlstream/checkpoint"
	"gqlstream/config"
	"gqlstream/graphstore"
	"gqlstream/incremental/diffusion"
	"gqlstream/ingest/event"
	"gqlstream/tables"
)

type snapshotCmd struct {
	List   snapshotListCmd   `cmd:"" help:"List the checkpoints of a state directory and verify each."`
	Export snapshotExportCmd `cmd:"" help:"Write the tables of a checkpoint as Parquet, CSV or Arrow."`
}

func (*snapshotCmd) Help() string {
	return `A checkpoint is the whole state at one position of the log. Reading one changes nothing, and may be done
while run goes on.

Examples:
  gqlstream snapshot list
  gqlstream snapshot export --table scores --out scores.parquet`
}

// snapshotFlags choose a checkpoint. A process may be running on the directory:
// nothing in it is changed.
type snapshotFlags struct {
	State string `placeholder:"DIR" help:"State directory of gqlstream run. [gqlstream-state]"`
}

func (f snapshotFlags) dir() *checkpoint.Dir {
	return checkpoint.Look(checkpoint.Disk{}, filepath.Join(cmp.Or(f.State, config.StateDefault), "checkpoints"))
}

// load reads the checkpoint at a position, the newest for 0, and its graph.
func (f snapshotFlags) load(position uint64) (*checkpoint.Checkpoint, *graphstore.Store, error) {
	dir := f.dir()
	positions, err := dir.List()
	if err == nil && len(positions) == 0 {
		err = f.none()
	}
	if err != nil {
		return nil, nil, err
	}
	read, err := dir.Read(cmp.Or(position, positions[0]))
	if err != nil {
		return nil, nil, err
	}
	store, _, err := ask.Load(read)
	return read, store, err
}

// none is the error of a state directory without checkpoints.
func (f snapshotFlags) none() error {
	return config.Usagef("snapshot: there is no checkpoint in %s; run writes them every checkpoint.every, "+
		"and at the end of --exit-when-drained", cmp.Or(f.State, config.StateDefault))
}

type snapshotListCmd struct {
	snapshotFlags
}

func (*snapshotListCmd) Help() string {
	return `Lists the checkpoints, newest first. Each is read in full and verified. STATE is the digest of the
state, which gqlstream replay --digest prints too.

Example:
  gqlstream snapshot list --state gqlstream-state`
}

// Run lists checkpoints.
func (c *snapshotListCmd) Run(con console) error {
	dir := c.dir()
	positions, err := dir.List()
	if err != nil {
		return err
	}
	aside, err := dir.SetAside()
	if err != nil {
		return err
	}
	for _, name := range aside {
		fmt.Fprintf(con.Err, "%s was damaged and set aside by an earlier start; it may be removed\n", name)
	}
	if len(positions) == 0 {
		return c.none()
	}
	damaged := 0
	table := tabwriter.NewWriter(con.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "POSITION\tLOG TIME\tWRITTEN\tBYTES\tCONFIG\tSTATE\tINTACT")
	for _, p := range positions {
		read, err := dir.Read(p)
		if err != nil {
			damaged++
			fmt.Fprintf(table, "%d\t-\t-\t-\t-\t-\tno: %v\n", p, err)
			continue
		}
		m := read.Manifest
		fmt.Fprintf(table, "%d\t%s\t%s\t%d\t%s\t%s\tyes\n", m.Position, event.Time(m.LogTime),
			m.Written.Format("2006-01-02T15:04:05Z"), bytesOf(m), m.Config, checkpoint.Digest(m.Sections))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if damaged > 0 {
		return fmt.Errorf("snapshot: %d of %d checkpoints are damaged; a start sets them aside and takes the "+
			"newest intact one", damaged, len(positions))
	}
	return nil
}

func bytesOf(m checkpoint.Manifest) (n int64) {
	for _, s := range m.Sections {
		n += s.Bytes
	}
	return n
}

// edgesTable is the table of edges by the names of their ends; the store itself
// keeps lists of neighbours.
const edgesTable = "edges"

// scoresTable is the table of the kernels, as shares by names.
const scoresTable = "scores"

type snapshotExportCmd struct {
	snapshotFlags
	Position uint64  `arg:"" optional:"" help:"Position of the checkpoint. [the newest]"`
	Table    string  `required:"" placeholder:"NAME" help:"edges, scores, vertices, adjacency, attributes, communities, members, versions, expiry, pending, audits or meta."`
	Format   string  `placeholder:"FORM" help:"parquet, csv or arrow. [by the extension of --out]"`
	Out      string  `short:"o" required:"" placeholder:"FILE" help:"File to write; it appears whole or not at all."`
	Alpha    float64 `default:"0.1" placeholder:"A" help:"Teleport probability of the kernel of scores."`

	Community []string `placeholder:"NAME" help:"Of scores: only those of this community (repeatable)."`
	Top       int      `placeholder:"N" help:"Of scores: only the N largest of each community."`
}

func (*snapshotExportCmd) Help() string {
	return `Writes one table of a checkpoint, after verifying all of it. The table edges has the columns src, dst
and weight. The table scores has the columns community, vertex and score: how likely a walk from the
community ends at the vertex, where that is not zero, by the kernel ppr with --alpha: up to a row for each pair
of them, unless --community and --top say which. Numbers in columns
named vertex, u and v are rows of the table vertices.

Examples:
  gqlstream snapshot export --table edges --out edges.parquet
  gqlstream snapshot export --table scores --top 100 --out scores.csv
  gqlstream snapshot export --state gqlstream-state 120000 --table vertices --out vertices.csv`
}

// Run exports one table.
func (c *snapshotExportCmd) Run(con console) error {
	format := cmp.Or(c.Format, tables.FormatOf(c.Out))
	if !slices.Contains(tables.Formats, format) {
		return config.Usagef("snapshot export: %q is none of %s; name one with --format", format, strings.Join(tables.Formats, ", "))
	}
	if c.Table != scoresTable && len(c.Community)+c.Top != 0 || c.Top < 0 {
		return config.Usagef("snapshot export: --community and --top N choose among the rows of --table %s", scoresTable)
	}
	table := graphstore.Table(c.Table)
	if c.Table != edgesTable && c.Table != scoresTable && !slices.Contains(graphstore.Tables(), table) {
		return config.Usagef("snapshot export: there is no table %q; there are %s, %s and %v", c.Table, edgesTable, scoresTable, graphstore.Tables())
	}
	read, store, err := c.load(c.Position)
	if err != nil {
		return err
	}
	defer store.Release()
	view := store.View()
	rows, err := c.export(format, view, newMeter(con.Err, "rows"))
	if err != nil {
		return err
	}
	fmt.Fprintf(con.Err, "%s: %d rows of %s at position %d\n", c.Out, rows, c.Table, read.Manifest.Position)
	return nil
}

func (c *snapshotExportCmd) export(format string, view graphstore.View, progress *meter) (int64, error) {
	switch c.Table {
	case edgesTable:
		return tables.Export(c.Out, format, graphstore.RowRecords(edgesOf(view)))
	case scoresTable:
		scores, err := c.scoresOf(view, progress)
		if err != nil {
			return 0, err
		}
		return tables.Export(c.Out, format, graphstore.RowRecords(scores))
	}
	return tables.Export(c.Out, format, slices.Values(view.Records(graphstore.Table(c.Table))))
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
				if u > v && !yield(namedEdge{Src: view.ID(v).String(), Dst: view.ID(u).String(), Weight: weight}) {
					return
				}
			}
		}
	}
}

// scoreTolerance bounds the certificate of scores.
const scoreTolerance = 1e-3

// score is the probability that a walk from a community ends at a vertex.
type score struct {
	Community, Vertex string
	Score             float64
}

// scoresOf visits the kernel of every community that has members without a label: the
// share of its walks that end at a vertex, where that is positive. Kernels are computed
// here, because a checkpoint need not hold one for each community.
func (c *snapshotExportCmd) scoresOf(view graphstore.View, progress *meter) (iter.Seq[score], error) {
	conf := diffusion.Config{Alpha: c.Alpha, Tolerance: scoreTolerance}
	if _, err := diffusion.NewField(conf); err != nil {
		return nil, config.Usagef("snapshot export: --alpha: %w", err)
	}
	for _, name := range c.Community {
		if _, ok := view.FindCommunity(name); !ok {
			return nil, config.Usagef("snapshot export: there is no community %q in this checkpoint", name)
		}
	}
	return func(yield func(score) bool) {
		for id := range graphstore.Community(view.Communities()) {
			sources := diffusion.Sources(id, view)
			if view.Retired(id) || len(sources) == 0 || len(c.Community) > 0 && !slices.Contains(c.Community, view.CommunityName(id)) {
				continue
			}
			field, _ := diffusion.NewField(conf) // it was validated
			field.Solve(view, sources, scoreTolerance)
			sum := 0.0
			for v := range graphstore.Vertex(view.Vertices()) {
				sum += max(field.Mass(v), 0)
			}
			var list []graphstore.Vertex
			for v := range graphstore.Vertex(view.Vertices()) {
				if field.Mass(v) > 0 && !view.Erased(v) {
					list = append(list, v)
				}
			}
			if c.Top > 0 {
				slices.SortStableFunc(list, func(a, b graphstore.Vertex) int { return cmp.Compare(field.Mass(b), field.Mass(a)) })
				list = list[:min(len(list), c.Top)]
			}
			for _, v := range list {
				if !yield(score{view.CommunityName(id), view.ID(v).String(), field.Mass(v) / sum}) {
					return
				}
			}
			progress.add(len(list), float64(id+1)/float64(view.Communities()))
		}
	}, nil
}
