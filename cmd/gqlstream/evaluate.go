package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/ingest/files"
	"gqlstream/lab/evaluate"
	"gqlstream/pipeline/config"
)

type evaluateCmd struct {
	fileFlags
	refusedFlags
	settingsFlags
	Options evaluateOptions `embed:""`

	Format string `default:"markdown" enum:"markdown,json" help:"${eval_format} [${default}]"`

	Plots  string        `placeholder:"DIR" help:"${evaluate_plots}"`
	ByTime bool          `help:"${evaluate_by_time}"`
	Period time.Duration `placeholder:"DURATION" help:"${evaluate_period}"`
}

// evaluateOptions has no method Validate, which would be called before the core is configured.
type evaluateOptions evaluate.Config

func (*evaluateCmd) Help() string {
	return `Hides most labels, draws communities from their vertices under known kinds of shift, and
compares the estimates of every method with the truth:

  pps          prior shift: class shares 1, 1/2, 1/3, ... over the classes in a random order
  cov          the same shares, of the predicted class
  degree       in proportion to the degree
  one          members of one class alone
  bfs          the vertices nearest to a random one
  rw           the ends of random walks of 10 steps from a random vertex
  members      the communities of --members, --community and the configuration
  group:KEY    one community for each value of the vertex attribute KEY, of --vertices

--by-time hides nothing: it reads a log in order and compares every label with the estimate before.

Give labels that trained the classifier the role train: they are never hidden. Without --method and
--config the methods are ` + methodsEvaluate + `. See docs/evaluate.md.

Examples:
  gqlstream evaluate --edges edges.csv.gz --labels labels.csv --predictions predictions.csv
  gqlstream evaluate --edges e.csv --labels l.csv --predictions p.csv --vertices v.csv \
      --protocol pps,group:language --method all --kernel constant --plots plots
  gqlstream evaluate --by-time --everyone --log events.ndjson.zst --period 24h --plots plots`
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
		return config.Usagef(
			"evaluate: no files; give --edges, --labels and --predictions, or --log")
	}
	if c.ByTime {
		return c.byTime(ctx, con)
	}
	conf, source, err := c.prepare(con)
	if err != nil {
		return err
	}
	if c.Plots != "" { // before the work, not after
		if err := os.MkdirAll(c.Plots, 0o755); err != nil {
			return config.Usage(err)
		}
	}
	progress := newMeter(con.Err, "communities estimated")
	// once
	load := func(ctx context.Context, visit func(*event.Batch) ([]event.Refusal, error)) error {
		refused, err := c.readFiles(ctx, source, newMeter(con.Err, "events read"), visit)
		return errors.Join(refused, err, source.Close()) // the memory is wanted
	}
	report, err := evaluate.Run(ctx, conf, load, func(done, all int) {
		progress.what = fmt.Sprintf("of %s communities estimated", grouped(all))
		progress.add(done - progress.count)
	})
	if err != nil {
		return err
	}
	progress.show()
	if err := report.Write(con.Out, c.Format); err != nil || c.Plots == "" {
		return err
	}
	paths, err := report.Plot(c.Plots)
	for _, path := range paths {
		fmt.Fprintln(con.Err, "wrote", path)
	}
	return err
}

// prepare completes the configuration. The files are opened because they may say the
// classes.
func (c *evaluateCmd) prepare(con console) (conf evaluate.Config, source *files.Source, err error) {
	conf = evaluate.Config(c.Options)
	flags := c.settingsFlags
	if flags.Method == "" && flags.Config == "" {
		flags.Method = methodsEvaluate
	}
	settings, err := flags.read()
	if err != nil {
		return conf, nil, err
	}
	settings.Tolerance = cmp.Or(settings.Tolerance, toleranceEvaluate)
	setOneShotDefaults(&settings)
	if source, err = c.openFiles(con, &settings, ingest.StepConfig{Every: -1}); err != nil {
		return conf, nil, err
	}
	if conf.Core, err = settings.Core(); err == nil {
		err = conf.Validate()
	}
	if err != nil {
		return conf, nil, config.Usage(err)
	}
	return conf, source, nil
}
