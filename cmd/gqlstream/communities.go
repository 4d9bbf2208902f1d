package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"gqlstream/graphstore"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/internal/tables"
	"gqlstream/lab/communities"
	"gqlstream/pipeline/config"
)

type communitiesCmd struct {
	Edges []string `type:"existingfile" placeholder:"FILE" help:"${communities_edges}"`
	Log   []string `type:"existingfile" placeholder:"FILE" help:"${communities_log}"`
	readingFlags
	Out        outFile `short:"o" required:"" placeholder:"FILE" help:"${communities_out}"`
	MinSize    int     `default:"11" placeholder:"N" help:"${communities_min_size}"`
	Resolution float64 `default:"1" placeholder:"X" help:"${communities_resolution}"`
	Seed       uint64  `default:"1" placeholder:"N" help:"${communities_seed}"`
	Prefix     string  `default:"c" placeholder:"TEXT" help:"${communities_prefix}"`
	refusedFlags
}

func (*communitiesCmd) Help() string {
	return `Finds sets of vertices with more edges inside than chance would give (the Leiden
method), writes a file of members for publish and estimate, and prints sizes and modularity. Labels
and predictions play no part. See docs/communities.md.

Examples:
  gqlstream communities --edges edges.csv.gz --out members.csv
  gqlstream communities --edges follows.csv --map src=follower,dst=followee --min-size 2 \
      --out members.csv
  gqlstream communities --log events.ndjson.zst --resolution 2 --prefix may- --out may.csv`
}

const (
	// passesMax bounds the passes of a search. The second gains about a hundredth of the
	// first and later ones less.
	passesMax = 10
	// passGainMin is the modularity that a pass must gain for another one to begin.
	passGainMin = 1e-4
	// largestShown bounds the communities in the printed table.
	largestShown = 10
)

// Run finds communities and writes their members.
func (c *communitiesCmd) Run(ctx context.Context, con console) error {
	switch {
	case len(c.Edges)+len(c.Log) == 0:
		return config.Usagef("communities: no files; give --edges or --log")
	case c.MinSize < 1:
		return config.Usagef("communities: --min-size is %d, want 1 or more", c.MinSize)
	}
	if _, err := tables.FormatOf(string(c.Out)); err != nil && c.Out != "-" {
		return config.Usagef("communities: --out %w, or -", err)
	}
	store, err := c.load(ctx, con)
	if err != nil {
		return err
	}
	defer store.Release()
	search, err := communities.NewSearch(store.View(), c.Resolution, c.Seed)
	if err != nil {
		return config.Usage(err)
	}
	begun := time.Now()
	for i, gain := 1, 1.0; i <= passesMax && gain > passGainMin; i++ {
		if ctx.Err() != nil {
			return fmt.Errorf("communities: interrupted; nothing is written: %w",
				context.Cause(ctx))
		}
		gain = search.Pass()
		fmt.Fprintf(con.Err, "pass %d: %s communities, modularity %.4f, after %v\n", i,
			grouped(search.Count()), search.Modularity(1),
			time.Since(begun).Round(10*time.Millisecond))
	}
	// the largest first, between equals that of the lower first vertex
	found := search.Communities()
	slices.SortStableFunc(found,
		func(a, b []graphstore.Vertex) int { return cmp.Compare(len(b), len(a)) })
	if largest := len(found[0]); largest < c.MinSize {
		return fmt.Errorf(
			"communities: the largest of %s communities has %d members; nothing is written "+
				"without --min-size %d or less",
			grouped(search.Count()), largest, largest)
	}
	found = slices.DeleteFunc(found,
		func(members []graphstore.Vertex) bool { return len(members) < c.MinSize })
	if err := c.write(con.Out, store.View(), found); err != nil {
		return err
	}
	return c.summarise(c.Out.beside(con), store.View(), search, found)
}

// load reads the graph. Rows that are refused fail the command unless flags allow them,
// because communities of a part of the graph look like those of all of it.
func (c *communitiesCmd) load(ctx context.Context, con console) (*graphstore.Store, error) {
	files := fileFlags{Edges: c.Edges, Log: c.Log, readingFlags: c.readingFlags}
	settings := config.Settings{}
	source, err := files.openFiles(con, &settings, ingest.StepConfig{Every: -1})
	if err != nil {
		return nil, err
	}
	defer source.Close() // not at the end of the search, which wants its memory
	store, err := graphstore.New(graphstore.Config{Classes: max(1, len(settings.Classes))})
	if err != nil {
		return nil, config.Usage(err)
	}
	err = errors.Join(c.readFiles(
		ctx,
		source,
		newMeter(con.Err, "events read"),
		func(b *event.Batch) ([]event.Refusal, error) {
			_, refused := store.Apply(b)
			return refused, nil
		},
	))
	if err != nil {
		store.Release()
		return nil, fmt.Errorf("communities: nothing is written: %w", err)
	}
	return store, nil
}

// name returns the name of the community i of n, with zeros that make the order of the
// names that of the sizes.
func (c *communitiesCmd) name(i, n int) string {
	return fmt.Sprintf("%s%0*d", c.Prefix, len(fmt.Sprint(n)), i+1)
}

// membership is a row of the file of members.
type membership struct{ Community, Vertex string }

// write writes the members to a file that appears whole or not at all, or to standard output.
func (c *communitiesCmd) write(
	out io.Writer,
	view graphstore.View,
	found [][]graphstore.Vertex,
) (err error) {
	records := graphstore.RowRecords(func(yield func(membership) bool) {
		for i, members := range found {
			name := c.name(i, len(found))
			for _, v := range members {
				if !yield(membership{name, view.ID(v).String()}) {
					return
				}
			}
		}
	})
	if c.Out == "-" {
		_, err = tables.Encode(out, tables.CSV, records)
	} else {
		_, err = tables.Export(string(c.Out), records)
	}
	return err
}

// summarise prints the communities found, and the vertices left out.
func (c *communitiesCmd) summarise(
	w io.Writer, view graphstore.View, search *communities.Search, found [][]graphstore.Vertex,
) error {
	kept := 0
	for _, members := range found {
		kept += len(members)
	}
	fmt.Fprintf(w,
		"%s vertices, %s edges, modularity %.4f\ncommunities of %d members or more: %s, with %s "+
			"vertices\n",
		grouped(view.Vertices()), grouped(view.Edges()), search.Modularity(1), c.MinSize,
		grouped(len(found)), grouped(kept))
	if small := search.Count() - len(found); small > 0 {
		left := view.Vertices() - kept
		fmt.Fprintf(w,
			"omitted: %s vertices (%.1f %%) in smaller communities (%s)\n",
			grouped(left), 100*float64(left)/float64(view.Vertices()), grouped(small))
	}
	fmt.Fprintf(w, "members: largest %s, median %s, smallest %s\n\n", grouped(len(found[0])),
		grouped(len(found[len(found)/2])), grouped(len(found[len(found)-1])))
	t := newTable(w)
	fmt.Fprintln(t, "community\tmembers\tmost connected")
	for i, members := range found[:min(len(found), largestShown)] {
		fmt.Fprintf(t, "%s\t%s\t%s\n",
			c.name(i, len(found)), grouped(len(members)), hubsOf(view, members))
	}
	if more := len(found) - largestShown; more > 0 {
		fmt.Fprintf(t, "and %s more\n", grouped(more))
	}
	return t.Flush()
}

// hubsOf returns the names of the three members of the highest degree: people recognise a
// community by them.
func hubsOf(view graphstore.View, members []graphstore.Vertex) string {
	byDegree := slices.Clone(members)
	slices.SortStableFunc(byDegree,
		func(a, b graphstore.Vertex) int { return cmp.Compare(view.Degree(b), view.Degree(a)) })
	var names []string
	for _, v := range byDegree[:min(3, len(byDegree))] {
		names = append(names, view.ID(v).String())
	}
	return strings.Join(names, ", ")
}
