package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

type estimateCmd struct {
	fileFlags
	coreFlags
	Rules        string   `type:"existingfile" placeholder:"FILE" help:"Communities in YAML, as in a configuration: by rule, ego network, attribute or everyone."`
	Confidence   *float64 `placeholder:"X" help:"Of the intervals. [0.9]"`
	Simultaneous bool     `help:"Intervals that hold together for all classes."`
	Format       string   `default:"table" enum:"table,json" help:"table for reading, json for one object a line."`
}

// Help is the long help of the command.
func (*estimateCmd) Help() string {
	return `Reads files, runs them through the core that serves live streams, and prints one estimate for each
community and method. Without --classes the number of classes is that of the prediction columns. The
presets reference and paper bring their own kernels, truncated and lazy. No privacy floor applies.
Without predictions a built-in classifier makes them from labels and edges: --classifier enq or
diffusion. Predictions that are given win.

--rules tries definitions of communities on files before they go into a configuration: a file with the
key communities alone. Rules read the attributes of --vertices; see docs/communities.md.

Examples:
  gqlstream estimate --edges edges.csv.gz --labels labels.csv --predictions predictions.csv --members members.csv
  gqlstream estimate --edges e.parquet --labels l.csv --predictions p.csv --everyone --method all --format json
  gqlstream estimate --edges e.csv --labels l.csv --members m.csv --classes 2 --classifier enq
  gqlstream estimate --edges e.csv --labels l.csv --predictions p.csv --vertices v.csv --rules rules.yaml`
}

// toleranceOneShot is the certificate of one-shot estimates.
const toleranceOneShot = 1e-6

// Run estimates once.
func (c *estimateCmd) Run(ctx context.Context, con console) (err error) {
	if !c.any() {
		return usagef("estimate: no files; give --edges, --labels, --predictions and --members, or --log")
	}
	settings, err := c.settings()
	if err != nil {
		return err
	}
	late, err := settings.Late.policy()
	if err != nil {
		return usageError{err}
	}
	source, err := openFiles(&c.fileFlags, &settings, ingest.StepConfig{Every: -1, Late: late})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	config, err := settings.core()
	if err != nil {
		return err
	}
	core, err := incremental.New(config)
	if err != nil {
		return usageError{err}
	}
	defer core.Close()
	estimates, err := drain(ctx, source, core, con.Err)
	if err != nil {
		return err
	}
	warnOfRules(con.Err, core.View())
	if len(estimates) == 0 {
		return usagef("estimate: no community; give --members FILE, --rules FILE, --everyone or --community NAME=KEY:VALUE")
	}
	if c.Format == "json" {
		return writeLines(con.Out, estimates)
	}
	return writeTable(con.Out, estimates, settings.Classes)
}

// settings merges the flags over the defaults of a one-shot estimate.
func (c *estimateCmd) settings() (fileConfig, error) {
	settings, err := c.coreFlags.settings()
	if err != nil {
		return settings, err
	}
	if settings.Communities, err = addRules(settings.Communities, c.Rules); err != nil {
		return settings, err
	}
	settings.oneShot()
	for i := range settings.Estimates {
		e := &settings.Estimates[i]
		if err := overrideNumber(&e.Confidence, "--confidence", c.Confidence); err != nil {
			return settings, err
		}
		e.Simultaneous = e.Simultaneous || c.Simultaneous
	}
	return settings, nil
}

// oneShot fills in what differs where everything is computed once, on the user's
// own files: a tight certificate, no privacy floor, and the kernel of the preset.
func (c *fileConfig) oneShot() {
	none := 0
	c.Privacy.MembersMin = &none
	if c.Tolerance == 0 {
		c.Tolerance = toleranceOneShot
	}
	if c.Kernel == "" && len(c.Estimates) > 0 {
		switch quant.Preset(c.Estimates[0].Preset) {
		case quant.Reference:
			c.Kernel = "truncated"
		case quant.Paper:
			c.Kernel = "lazy"
		}
	}
}

// openFiles opens the files as a source and settles the classes: those of the
// settings, or what the files speak of.
func openFiles(files *fileFlags, settings *fileConfig, steps ingest.StepConfig) (*ingest.FileSource, error) {
	config := ingest.FileConfig{Inputs: files.inputs(), Columns: files.columns(), Steps: steps}
	if len(settings.Classes) > 0 {
		config.Classes = settings.Classes.set()
	}
	source, err := ingest.NewFileSource(config)
	if err != nil {
		return nil, usageError{err}
	}
	settings.Classes = classNames(source.Log().Classes())
	return source, nil
}

func classNames(set event.ClassSet) classList {
	var names classList
	for k := range set.K() {
		names = append(names, set.Name(event.Class(k)))
	}
	return names
}

// drain runs a finite source through the core and returns the last estimates of every
// community that there is at its end.
func drain(ctx context.Context, source *ingest.FileSource, core *incremental.Core, diagnostics io.Writer) ([]quant.Estimate, error) {
	var batch event.Batch
	var examples []event.Refusal
	latest := map[string][]quant.Estimate{}
	for {
		err := source.Next(ctx, &batch)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		result := core.Step(&batch)
		for _, refused := range [][]event.Refusal{batch.Refused, result.Refused} {
			examples = append(examples, refused[:min(len(refused), examplesMax-len(examples))]...)
		}
		emitted := map[string][]quant.Estimate{}
		for _, e := range result.Estimates {
			emitted[e.Community] = append(emitted[e.Community], e)
		}
		maps.Copy(latest, emitted)
	}
	reportFiles(diagnostics, source.Log(), examples)
	return ofPresent(core.View(), latest), nil
}

// ofPresent returns the estimates of the communities that there are, by name.
func ofPresent(view graphstore.View, latest map[string][]quant.Estimate) []quant.Estimate {
	var names []string
	for id := range graphstore.Community(view.Communities()) {
		if !view.Retired(id) {
			names = append(names, view.CommunityName(id))
		}
	}
	slices.Sort(names)
	var estimates []quant.Estimate
	for _, name := range names {
		estimates = append(estimates, latest[name]...)
	}
	return estimates
}

func writeLines(w io.Writer, estimates []quant.Estimate) error {
	encoder := json.NewEncoder(w)
	for i := range estimates {
		if err := encoder.Encode(&estimates[i]); err != nil {
			return err
		}
	}
	return nil
}

// writeTable writes estimates for people: a column for each class, the interval
// in brackets.
func writeTable(w io.Writer, estimates []quant.Estimate, classes []string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "community\tmethod\tmembers\t%s\tflags\n", strings.Join(classes, "\t"))
	for _, e := range estimates {
		fmt.Fprintf(t, "%s\t%s\t%g", e.Community, e.Method, e.Members)
		for i, q := range e.Prevalence {
			fmt.Fprintf(t, "\t%.3f", q)
			if len(e.Low) > i {
				fmt.Fprintf(t, " [%.3f, %.3f]", e.Low[i], e.High[i])
			}
		}
		fmt.Fprintf(t, "\t%s\n", strings.Join(e.Flags, " "))
	}
	return t.Flush()
}
