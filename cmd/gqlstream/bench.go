package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"

	"gqlstream/bench"
	"gqlstream/config"
)

type benchCmd struct {
	Vertices int      `default:"168000" help:"Of the network."`
	Edges    int      `default:"6800000" help:"Of the network, undirected."`
	Seed     uint64   `default:"1" help:"Of the graph and of everything drawn."`
	Quick    bool     `help:"At most 10,000 vertices and 200,000 edges, and fewer repetitions: under a minute."`
	Only     []string `placeholder:"NAME,..." help:"Only these measures; see below."`
	JSON     bool     `name:"json" help:"One JSON object a row, instead of a table."`
	Dir      string   `type:"existingdir" placeholder:"DIR" help:"Where streams and checkpoints are written meanwhile. [the system's]"`
}

func (*benchCmd) Help() string {
	var names []string
	for _, m := range bench.Measures() {
		names = append(names, fmt.Sprintf("  %-14s %s", m.Name, m.What))
	}
	return `Measures this build on this machine against the goals of its design, on simulated networks. Goals are those
for the default sizes; where one depends on them, a smaller run leaves it open (null, "size" in the
table). A full run takes some minutes, 4 GB of memory and 2 GB of disk. See docs/performance.md.

Measures:
` + strings.Join(names, "\n") + `

Examples:
  gqlstream bench --only certificate
  gqlstream bench --quick
  gqlstream bench --only update,recompute
  gqlstream bench --quick --only live/10
  gqlstream bench --json > bench.ndjson`
}

// Run measures and prints.
func (c *benchCmd) Run(ctx context.Context, con console) error {
	measures, err := c.chosen()
	if err != nil {
		return err
	}
	conf := bench.Config{
		Vertices: c.Vertices, Edges: c.Edges, Seed: c.Seed, Quick: c.Quick, Dir: c.Dir, Progress: con.Err,
	}
	if c.Quick {
		conf.Vertices, conf.Edges = min(c.Vertices, bench.VerticesQuick), min(c.Edges, bench.EdgesQuick)
	}
	if err := conf.Validate(); err != nil {
		return config.Usage(err)
	}
	var rows []bench.Row
	encoder := json.NewEncoder(con.Out)
	encoder.SetEscapeHTML(false)
	var writing error
	err = bench.Run(ctx, conf, measures, func(r bench.Row) {
		rows = append(rows, r)
		if c.JSON && writing == nil {
			writing = encoder.Encode(r)
		}
	})
	if !c.JSON && len(rows) > 0 {
		writing = writeBench(con.Out, rows)
	}
	if err == nil {
		err = writing
	}
	return err
}

// chosen returns the measures that --only names, each or as a group of that name, in our order.
func (c *benchCmd) chosen() ([]bench.Measure, error) {
	list, named := bench.Measures(), map[string]bool{}
	list = slices.DeleteFunc(list, func(m bench.Measure) bool {
		is := func(name string) bool { return m.Name == name || strings.HasPrefix(m.Name, name+"/") }
		i := slices.IndexFunc(c.Only, is)
		if i >= 0 {
			named[c.Only[i]] = true
		}
		return i < 0 && len(c.Only) > 0
	})
	for _, name := range c.Only {
		if !named[name] {
			return nil, config.Usagef("bench: --only %s: there is no such measure, or it is named twice; --help lists them", name)
		}
	}
	return list, nil
}

// writeBench prints the rows as a table, and what belongs to them below.
func writeBench(out io.Writer, rows []bench.Row) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tVALUE\tUNIT\tGOAL\tMET\tREFERENCE")
	for _, r := range rows {
		met := "-"
		switch {
		case r.Met != nil:
			met = map[bool]string{true: "yes", false: "NO"}[*r.Met]
		case r.Goal != "":
			met = "size"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, benchNumber(r.Value), r.Unit, cmp.Or(r.Goal, "-"), met, cmp.Or(r.Reference, "-"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, r := range rows {
		if r.Note != "" {
			fmt.Fprintf(out, "%s: %s\n", r.Name, r.Note)
		}
	}
	return nil
}

// benchNumber prints three digits, or all before the point.
func benchNumber(x float64) string {
	if math.Abs(x) >= 100 {
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.3g", x)
}
