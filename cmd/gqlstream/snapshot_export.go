package main

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"gqlstream/config"
	"gqlstream/graphstore"
	"gqlstream/tables"
)

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
