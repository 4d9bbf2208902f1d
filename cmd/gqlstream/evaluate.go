package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"gqlstream/evaluate"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
)

type evaluateCmd struct {
	fileFlags
	coreFlags
	Protocol    string   `default:"pps,bfs,rw" placeholder:"LIST" help:"Shifts to draw communities under: pps, bfs, rw, members, group:ATTRIBUTE. [${default}]"`
	Splits      int      `default:"5" help:"Random splits of the labels into calibration and hidden. [${default}]"`
	PerClass    int      `default:"10" help:"Communities per class and split of pps, bfs and rw. [${default}]"`
	Size        int      `default:"100" help:"Members of a community of pps, bfs and rw. [${default}]"`
	MembersMin  int      `default:"11" help:"Different members that a community must have. [${default}]"`
	Calibration float64  `default:"0.15" help:"Share of the labels that calibrate in a split; the others are hidden. [${default}]"`
	LabelSample string   `default:"uniform" placeholder:"NAME" help:"How the labels that calibrate are drawn: uniform, bfs, rw or degree. [${default}]"`
	Seed        uint64   `default:"1" help:"Of splits and draws. [${default}]"`
	Confidence  *float64 `placeholder:"X" help:"Of the intervals. [0.9]"`
	Format      string   `default:"markdown" enum:"markdown,json,csv" help:"markdown, json or csv. [${default}]"`
	Plots       string   `placeholder:"DIR" help:"Write pictures there, PNG and SVG: error, coverage, estimate against truth."`
	Outcomes    string   `placeholder:"FILE" help:"Write every estimate and its truth there, as CSV."`
}

// Help is the long help of the command.
func (*evaluateCmd) Help() string {
	return `Answers on your own labelled graph which method to use, and whether its interval can be believed.
Most labels are hidden, communities are drawn from the vertices behind them under known kinds of shift,
every method estimates them, and the estimates are held against the truth:

  pps          prior shift: class shares 1, 1/2, 1/3, ... over the classes in a random order
  bfs          the vertices nearest to a random one
  rw           where random walks of 10 steps from a random vertex end
  members      the communities of --members, --community and the configuration
  group:KEY    one community for each value of the vertex attribute KEY, of --vertices

Labels with the role train are never hidden, never calibrate and are never drawn: give that role to those
the classifier was trained on. --kernel takes a comma list too. Without --method and --config the methods
are ` + methodsEvaluate + `. The same files, flags and seed give the same report.

Examples:
  gqlstream evaluate --edges edges.csv.gz --labels labels.csv --predictions predictions.csv
  gqlstream evaluate --edges e.csv --labels l.csv --predictions p.csv --vertices v.csv \
      --protocol pps,group:language --method all --kernel ppr,constant --format csv --plots plots`
}

// methodsEvaluate are compared where no methods are asked for: those of the paper
// with soft predictions, and ours.
const methodsEvaluate = "mlpe,pcc,pacc,sis,nacc,sis-nacc,diff,ml,auto"

// toleranceEvaluate is the certificate of the kernels of an evaluation: errors of
// that size are far below those of the estimates, and a tighter one costs time.
const toleranceEvaluate = 1e-4

// Run evaluates.
func (c *evaluateCmd) Run(ctx context.Context, con console) error {
	if !c.any() {
		return usagef("evaluate: no files; give --edges, --labels and --predictions, or --log")
	}
	config, open, err := c.prepare()
	if err != nil {
		return err
	}
	if c.Plots != "" { // before the work, not after
		if err := os.MkdirAll(c.Plots, 0o755); err != nil {
			return usageError{err}
		}
	}
	progress := evaluateProgress{w: con.Err, begun: time.Now()}
	_, _, progress.terminal = terminalSize(con.Err)
	load := func(ctx context.Context, visit func(*event.Batch) error) error {
		return c.load(ctx, open, con.Err, visit)
	}
	report, err := evaluate.Run(ctx, config, load, progress.show)
	if err != nil {
		return err
	}
	progress.finish()
	if report.Refused > 0 {
		fmt.Fprintf(con.Err, "refused: %d events that the graph could not take\n", report.Refused)
		for _, r := range report.Examples {
			fmt.Fprintf(con.Err, "  row %d, %s: %s\n", r.Position, r.Kind, r.Detail)
		}
	}
	if err := report.Write(con.Out, c.Format); err != nil {
		return err
	}
	return c.writeFiles(report, con.Err)
}

// prepare settles the configuration. The files are opened because they may say the
// classes.
func (c *evaluateCmd) prepare() (evaluate.Config, *ingest.FileSource, error) {
	kernels := splitList(c.Kernel)
	flags := c.coreFlags
	flags.Kernel = ""
	if flags.Method == "" && flags.Config == "" {
		flags.Method = methodsEvaluate
	}
	settings, err := flags.settings()
	if err != nil {
		return evaluate.Config{}, nil, err
	}
	if settings.Tolerance == 0 {
		settings.Tolerance = toleranceEvaluate
	}
	if len(kernels) == 0 {
		settings.oneShot() // the kernel of the configuration or of the preset
		kernels = splitList(settings.Kernel)
	}
	settings.Kernel = ""
	for i := range settings.Estimates {
		err := overrideNumber(&settings.Estimates[i].Confidence, "--confidence", c.Confidence)
		if err != nil {
			return evaluate.Config{}, nil, err
		}
	}
	source, err := openFiles(&c.fileFlags, &settings, ingest.StepConfig{Every: -1})
	if err != nil {
		return evaluate.Config{}, nil, err
	}
	config := evaluate.Config{
		Kernels: kernels, Protocols: splitList(c.Protocol), Splits: c.Splits, PerClass: c.PerClass,
		Size: c.Size, MembersMin: c.MembersMin, Share: c.Calibration, Labels: c.LabelSample, Seed: c.Seed,
	}
	if config.Core, err = settings.core(); err == nil {
		if err = c.required(config); err == nil {
			err = config.Validate()
		}
	}
	if err != nil {
		source.Close()
		return config, nil, usageError{err}
	}
	return config, source, nil
}

// required reports flags that would be read as their default if they were zero.
func (c *evaluateCmd) required(config evaluate.Config) error {
	var errs []error
	for _, flag := range []struct {
		name string
		zero bool
	}{
		{"--splits", c.Splits == 0},
		{"--per-class", c.PerClass == 0},
		{"--size", c.Size == 0},
		{"--members-min", c.MembersMin == 0},
		{"--calibration", c.Calibration == 0},
		{"--protocol", len(config.Protocols) == 0},
	} {
		if flag.zero {
			errs = append(errs, fmt.Errorf("%s: nothing would be evaluated", flag.name))
		}
	}
	return errors.Join(errs...)
}

// load reads the files once and closes them.
func (*evaluateCmd) load(ctx context.Context, source *ingest.FileSource, diagnostics io.Writer,
	visit func(*event.Batch) error,
) (err error) {
	defer func() { err = errors.Join(err, source.Close()) }()
	var batch event.Batch
	var examples []event.Refusal
	for {
		err := source.Next(ctx, &batch)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		examples = append(examples, batch.Refused[:min(len(batch.Refused), examplesMax-len(examples))]...)
		if err := visit(&batch); err != nil {
			return err
		}
	}
	reportFiles(diagnostics, source.Log(), examples)
	return nil
}

func (c *evaluateCmd) writeFiles(report *evaluate.Report, diagnostics io.Writer) error {
	if c.Outcomes != "" {
		file, err := os.Create(c.Outcomes)
		if err != nil {
			return err
		}
		if err := errors.Join(report.WriteOutcomes(file), file.Close()); err != nil {
			return err
		}
	}
	if c.Plots == "" {
		return nil
	}
	paths, err := report.Plot(c.Plots)
	for _, path := range paths {
		fmt.Fprintln(diagnostics, "wrote", path)
	}
	return err
}

// splitList splits a comma list; spaces around the items do not count.
func splitList(list string) []string {
	var out []string
	for item := range strings.SplitSeq(list, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

// evaluateProgress says how far an evaluation has come.
type evaluateProgress struct {
	w            io.Writer
	terminal     bool
	begun, shown time.Time
	all          int
}

func (p *evaluateProgress) show(done, all int) {
	p.all = all
	now := time.Now()
	every := meterPlainEvery
	if p.terminal {
		every = meterTerminalEvery
	}
	if now.Sub(p.shown) < every {
		return
	}
	p.shown = now
	left := time.Duration(float64(now.Sub(p.begun)) * (1/(float64(done)/float64(all)) - 1)).Round(time.Second)
	line := fmt.Sprintf("%s of %s communities estimated, %v left", grouped(done), grouped(all), left)
	if p.terminal {
		fmt.Fprintf(p.w, "\r%s%s", line, clearLine)
		return
	}
	fmt.Fprintln(p.w, line)
}

func (p *evaluateProgress) finish() {
	start := ""
	if p.terminal {
		start = "\r" + clearLine
	}
	fmt.Fprintf(p.w, "%s%s communities estimated in %v\n", start, grouped(p.all), time.Since(p.begun).Round(10*time.Millisecond))
}
