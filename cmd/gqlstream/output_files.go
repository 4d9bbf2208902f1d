package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"gqlstream/quant"
	"gqlstream/sinks"
)

// printed is standard output, which may be a pipe that nobody reads.
type printed struct {
	lines   *sinks.Lines
	tracker sinks.Tracker
}

func (p *printed) Write(ctx context.Context, estimates []quant.Estimate) error {
	p.tracker.Hold("nobody reads it")
	defer p.tracker.Release()
	return p.lines.Write(ctx, estimates)
}

// printWaitMin is how long a write to standard output takes that is worth a word.
const printWaitMin = time.Second

// State reports whether the loop waits for the reader.
func (p *printed) State() sinks.State {
	s := p.tracker.State("stdout")
	if s.Condition == sinks.Holding && time.Since(s.Since) < printWaitMin {
		return sinks.State{Name: s.Name, Condition: sinks.Delivering}
	}
	return s
}

func (p *printed) Close() error { return p.lines.Close() }

// validate reports what is wrong with the files that estimates go to.
func (c outputConfig) validate() error {
	switch {
	case c.Every < 0:
		return fmt.Errorf("output.every: %v is negative", c.Every)
	case c.Parquet != "" && c.Arrow != "" && filepath.Clean(c.Parquet) == filepath.Clean(c.Arrow):
		return errors.New("output: parquet and arrow name one directory; each needs its own")
	case c.Alerts == "-":
		return errors.New("output.alerts: want a file; standard output is for estimates")
	case c.Alerts != "" && filepath.Clean(c.Alerts) == filepath.Clean(c.File):
		return errors.New("output: file and alerts name one file; each needs its own")
	}
	return nil
}

// alsoTo names the files for the greeting.
func (c outputConfig) alsoTo() (text string) {
	switch c.File {
	case "":
	case "-":
		text = ", standard output"
	default:
		text = ", " + c.File
	}
	for _, dir := range []string{c.Parquet, c.Arrow} {
		if dir != "" {
			text += ", files in " + dir
		}
	}
	return text
}
