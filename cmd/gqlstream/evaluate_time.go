package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/lab/evaluate"
	"gqlstream/pipeline/config"
)

// methodsByTime are compared over time where no methods are asked for.
const methodsByTime = "auto,pcc"

// emissionsPerPeriod are the emissions in a period where the configuration does not say.
const emissionsPerPeriod = 20

// byTime predicts each label before it is read, and reports on it by period.
func (c *evaluateCmd) byTime(ctx context.Context, con console) error {
	flags := c.settingsFlags
	if flags.Method == "" && flags.Config == "" {
		flags.Method = methodsByTime
	}
	settings, err := flags.read()
	if err != nil {
		return err
	}
	attributes := settings.Evidence.Attributes
	setOneShotDefaults(&settings)
	settings.Evidence.Attributes = attributes // as a run reads them
	span, err := c.span(ctx, con, settings)
	if err != nil {
		return err
	}
	period := c.Period
	if period <= 0 {
		period = evaluate.PeriodOf(span)
	}
	steps := ingest.StepConfig{EmitEvery: settings.Step.EmitEvery}
	if steps.EmitEvery == 0 {
		steps.EmitEvery = max(period/emissionsPerPeriod, time.Millisecond)
	}
	steps.Every = steps.EmitEvery
	source, err := c.openFiles(con, &settings, steps)
	if err != nil {
		return err
	}
	core, err := settings.Core()
	if err != nil {
		return config.Usage(err)
	}
	load := func(ctx context.Context, visit func(*event.Batch) ([]event.Refusal, error)) error {
		refused, err := c.readFiles(ctx, source, newMeter(con.Err, "events read"), visit)
		return errors.Join(refused, err)
	}
	report, err := evaluate.RunByTime(ctx, evaluate.TimeConfig{Core: core, Period: period}, load)
	if err != nil {
		return err
	}
	if err := report.Write(con.Out, c.Format); err != nil || c.Plots == "" {
		return err
	}
	if err := os.MkdirAll(c.Plots, 0o755); err != nil {
		return config.Usage(err)
	}
	paths, err := report.Plot(c.Plots)
	for _, path := range paths {
		fmt.Fprintln(con.Err, "wrote", path)
	}
	return err
}

// span reads the files once and returns how long their log is.
func (c *evaluateCmd) span(
	ctx context.Context, con console, settings config.Settings,
) (time.Duration, error) {
	source, err := c.openFiles(con, &settings, ingest.StepConfig{})
	if err != nil {
		return 0, err
	}
	defer source.Close()
	first, last := event.Time(0), event.Time(0)
	var b event.Batch
	for {
		err := source.Next(ctx, &b)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		if first == 0 {
			first = b.Time
		}
		last = max(last, b.Time)
	}
	if first == last {
		return 0, config.Usagef("evaluate: --by-time needs events with different times")
	}
	return time.Duration(last - first), nil
}
