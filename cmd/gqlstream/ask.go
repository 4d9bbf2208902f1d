package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"gqlstream/ask"
	"gqlstream/config"
	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
)

type askCmd struct {
	fileFlags
	refusedFlags
	snapshotFlags
	Config      string   `short:"c" type:"existingfile" placeholder:"FILE" help:"Configuration (YAML) of the pipeline, which names the classes."`
	Classes     string   `placeholder:"LIST" help:"Names of the classes in order, or how many there are."`
	Community   []string `required:"" placeholder:"NAME" help:"The community to label members of (repeatable)."`
	Count       int      `placeholder:"N" help:"Vertices to label."`
	TargetWidth float64  `placeholder:"X" help:"As many as it takes until the widest interval reaches X to either side."`
	Confidence  float64  `default:"0.9" placeholder:"X" help:"Of the intervals. [${default}]"`
	Seed        uint64   `default:"1" help:"The same state and seed draw the same vertices. [${default}]"`
	Out         string   `short:"o" default:"-" placeholder:"FILE" help:"Where the vertices go, - for standard output. [${default}]"`
	Format      string   `default:"csv" enum:"csv,ndjson" help:"csv or ndjson. [${default}]"`
	Publish     bool     `and:"publish" help:"Also publish the vertices to the stream GQL_ASK of --nats, where a labelling tool reads them."`
	NATS        string   `name:"nats" and:"publish" placeholder:"URL" help:"The server of --publish."`
}

// Help is the long help of the command.
func (*askCmd) Help() string {
	return `Says what labels of a community's members will buy, and then which members to label. They are drawn at
random, each with the probability pi in its row, so that the estimate from their labels rests on no
assumption. It reads the newest checkpoint of --state, or files as estimate does.

Fill in the column label and publish the file: gqlstream publish --labels FILE (--skip-refused
passes over rows without a label). Members that were labelled by an earlier draw are in the file with their label
and a new pi; publish them too. See docs/labels.md.

Examples:
  gqlstream ask --community berlin --count 50 --out berlin.csv
  gqlstream ask --community berlin --community ankara --target-width 0.1 --seed 7
  gqlstream ask --edges e.csv --labels l.csv --predictions p.csv --members m.csv --community berlin --count 50`
}

// Run draws.
func (c *askCmd) Run(ctx context.Context, con console) error {
	source, err := c.read(ctx, con.Err)
	if err != nil {
		return err
	}
	defer source.release()
	answer, err := ask.Ask(source.view, source.classes.K(), ask.Question{
		Communities: c.Community, Count: c.Count, TargetWidth: c.TargetWidth, Confidence: c.Confidence,
		Seed: c.Seed, Position: source.position,
	})
	if err != nil {
		return config.Usage(err)
	}
	summary := con.Out
	if c.Out == "-" {
		summary = con.Err // standard output is the rows alone
	}
	if err := c.summarise(summary, source, answer); err != nil {
		return err
	}
	if c.Publish {
		if err := c.publish(ctx, source, answer); err != nil {
			return err
		}
	}
	if c.Out == "-" {
		return c.write(con.Out, source, answer)
	}
	return writeWhole(c.Out, func(w io.Writer) error { return c.write(w, source, answer) })
}

// askSource is a graph to draw from, and what was last said about its communities.
type askSource struct {
	view     graphstore.View
	classes  event.ClassSet
	position event.Position
	sections map[string][]byte
	release  func()
}

// read reads files, or else the newest checkpoint.
func (c *askCmd) read(ctx context.Context, diagnostics io.Writer) (*askSource, error) {
	settings, err := (&config.CoreFlags{Config: c.Config, Classes: c.Classes}).Settings()
	if err != nil {
		return nil, err
	}
	if c.any() {
		return c.readFiles(ctx, settings, diagnostics)
	}
	read, store, err := c.load(0)
	if err != nil {
		return nil, err
	}
	k, err := graphstore.ClassesOf(read.Sections[string(graphstore.MetaTable)+".arrow"])
	if err != nil {
		return nil, err
	}
	classes := event.ClassSet{Count: k}
	if len(settings.Classes) == k {
		classes = settings.Classes.ClassSet()
	}
	return &askSource{store.View(), classes, event.Position(read.Manifest.Position), read.Sections, store.Release}, nil
}

// readFiles runs files through a core, whose estimates say which labels are missing.
func (c *askCmd) readFiles(ctx context.Context, settings config.Settings, diagnostics io.Writer) (*askSource, error) {
	setOneShotDefaults(&settings)
	core, _, err := c.drain(ctx, &settings, ingest.StepConfig{Every: -1}, &c.refusedFlags, diagnostics)
	if err != nil {
		return nil, err
	}
	sections, err := core.Sections()
	if err != nil {
		core.Close()
		return nil, err
	}
	s := &askSource{core.View(), settings.Classes.ClassSet(), core.Position(), map[string][]byte{}, core.Close}
	for _, section := range sections {
		s.sections[section.Name] = section.Data
	}
	return s, nil
}

// summarise prints what the labels buy, and which others would.
func (c *askCmd) summarise(w io.Writer, s *askSource, a *ask.Answer) error {
	out := bufio.NewWriter(w)
	for i, o := range a.Others {
		if i == 0 || o.Community != a.Others[i-1].Community {
			fmt.Fprintf(out, "%s:", o.Community)
		}
		fmt.Fprintf(out, " %d labels: ±%.2f;", o.Labels, o.HalfWidth)
		if i+1 == len(a.Others) || o.Community != a.Others[i+1].Community {
			fmt.Fprintln(out)
		}
	}
	fresh := 0
	for _, d := range a.Drawn {
		if d.Class == event.NoClass {
			fresh++
		}
	}
	fmt.Fprintf(out, "to label: %d vertices; labelled before: %d\n", fresh, len(a.Drawn)-fresh)
	for _, o := range a.Offers {
		fmt.Fprintf(out, "%s: %d labels, the widest %.0f %% interval is ±%.3f\n", o.Community, o.Labels, 100*c.Confidence, o.HalfWidth)
		id, _ := s.view.FindCommunity(o.Community)
		list, err := incremental.Snapshots(s.sections, id)
		if err != nil {
			return err
		}
		for i := range list[:min(1, len(list))] {
			if advice, ok := ask.Advise(&list[i]); ok {
				fmt.Fprintf(out, "  calibration: %.0f %% of the variance is from labels of class %s, of which %.0f count here; %d more near %s halve that part\n",
					100*advice.Share, s.classes.Name(event.Class(advice.Class)), advice.Effective, advice.More, o.Community)
			}
		}
	}
	return out.Flush()
}

// writeWhole writes a file that appears whole or not at all.
func writeWhole(path string, write func(io.Writer) error) error {
	temporary := path + ".tmp"
	file, err := os.Create(temporary)
	if err != nil {
		return err
	}
	if err = errors.Join(write(file), file.Close()); err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temporary))
	}
	return nil
}

// askRow is a vertex as publish reads it back.
type askRow struct {
	Vertex string  `json:"vertex"`
	Label  *string `json:"label"`
	Role   string  `json:"role"`
	Pi     float64 `json:"pi"`
}

func (s *askSource) rows(a *ask.Answer) (rows []askRow) {
	for _, d := range a.Drawn {
		row := askRow{Vertex: d.ID.String(), Role: event.Audit.String(), Pi: d.Pi}
		if d.Class != event.NoClass {
			name := s.classes.Name(d.Class)
			row.Label = &name
		}
		rows = append(rows, row)
	}
	return rows
}

func (c *askCmd) write(w io.Writer, s *askSource, a *ask.Answer) error {
	if c.Format == "ndjson" {
		encoder := json.NewEncoder(w)
		for _, row := range s.rows(a) {
			if err := encoder.Encode(row); err != nil {
				return err
			}
		}
		return nil
	}
	out := csv.NewWriter(w)
	_ = out.Write([]string{"vertex", "label", "role", "pi"}) // Error has it
	for _, row := range s.rows(a) {
		label := ""
		if row.Label != nil {
			label = *row.Label
		}
		_ = out.Write([]string{row.Vertex, label, row.Role, strconv.FormatFloat(row.Pi, 'g', 6, 64)})
	}
	out.Flush()
	return out.Error()
}
