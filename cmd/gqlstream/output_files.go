package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"gqlstream/ingest/event"
	"gqlstream/sinks"
)

// validate reports what is wrong with the files that estimates go to.
func (c outputConfig) validate() error {
	switch {
	case c.Every < 0:
		return fmt.Errorf("output.every: %v is negative", c.Every)
	case c.Parquet != "" && c.Arrow != "" && filepath.Clean(c.Parquet) == filepath.Clean(c.Arrow):
		return errors.New("output: parquet and arrow name one directory; each needs its own")
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

// openFiles opens standard output and the directories of parts, which go on where
// the core does. The file of estimates has a queue: see queuedSinks.
func (p *pipeline) openFiles(out io.Writer) error {
	output, from := p.settings.Output, uint64(p.core.Position())
	if output.File == "-" {
		p.sinks = append(p.sinks, sinks.NewLines(out))
	}
	for _, d := range []struct{ dir, format string }{{output.Parquet, "parquet"}, {output.Arrow, "arrow"}} {
		if d.dir == "" {
			continue
		}
		parts, err := sinks.OpenParts(sinks.PartsConfig{
			Dir: d.dir, Format: d.format, Every: output.Every, Log: p.logID, From: from,
		})
		if err != nil {
			return err
		}
		p.parts = append(p.parts, parts)
		p.sinks = append(p.sinks, parts)
		p.closers = append(p.closers, parts.Close)
	}
	return nil
}

// cutParts ends the parts where the log asks for a checkpoint.
func (p *pipeline) cutParts(b *event.Batch) error {
	if !b.Checkpoint {
		return nil
	}
	for _, parts := range p.parts {
		if err := parts.Cut(uint64(b.Last)); err != nil {
			return err
		}
	}
	return nil
}

// syncFiles puts the files without a queue on the disk, before a checkpoint at a position says that
// what they hold needs not come again.
func (p *pipeline) syncFiles(position event.Position) error {
	if p.alerts.lines != nil {
		if err := p.alerts.lines.Sync(); err != nil {
			return err
		}
	}
	for _, parts := range p.parts {
		if err := parts.Sync(uint64(position)); err != nil {
			return err
		}
	}
	return nil
}
