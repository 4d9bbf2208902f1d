package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"gqlstream/config"
	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/ingest/files"
	"gqlstream/simulate"
)

type simulateCmd struct {
	simulate.Config
	serverFlags
	Out        string        `placeholder:"FILE" help:"Write the events to this file: .ndjson, .ndjson.gz or .ndjson.zst; - is standard output."`
	Rate       float64       `placeholder:"N" help:"With --nats, at most this many events a second; 0 is as fast as the server takes them."`
	Truth      string        `placeholder:"FILE" help:"Write the true prevalences to this CSV file."`
	Answers    string        `placeholder:"FILE" help:"Write the class that every vertex has at the end to this CSV file, as answers to gqlstream ask."`
	TruthEvery time.Duration `default:"1s" help:"Simulated time between two truths of a community."`
}

func (*simulateCmd) Help() string {
	return `Makes an evolving social network: vertices arrive, edges come and go, opinions drift and jump, a
fallible classifier predicts them, and of a small share they are known. Deterministic, with the truth known.

The truth file has the columns time,community,members,p0..p{K-1},jumped: the true share of every class at
that time, and when the community last jumped (empty before any).

Examples:
  gqlstream simulate --vertices 20000 --duration 10m --seed 7 --out log.ndjson.zst --truth truth.csv
  gqlstream simulate --nats nats://localhost:4222 --rate 2000 --duration 0 --truth truth.csv`
}

// BeforeReset gives what is no flag its default, before the flags get theirs.
func (c *simulateCmd) BeforeReset() error {
	c.Config = simulate.DefaultConfig()
	return nil
}

// Run simulates into a file or a stream.
func (c *simulateCmd) Run(ctx context.Context, con console) (err error) {
	if (c.Out == "") == (c.NATS == "") {
		return config.Usagef("simulate: want either --out FILE or --nats URL")
	}
	if c.Duration == 0 && c.NATS == "" {
		return config.Usagef("simulate: --duration 0 never ends; give --out a duration")
	}
	if c.TruthEvery <= 0 || c.Rate < 0 {
		return config.Usagef("simulate: --truth-every must be more than 0 and --rate not below 0")
	}
	if c.Start.IsZero() {
		if c.Start = simulate.DefaultConfig().Start; c.NATS != "" {
			c.Start = time.Now()
		}
	}
	simulation, err := simulate.New(c.Config)
	if err != nil {
		return config.Usage(err)
	}
	truth, err := newTruthLog(c.Truth, c.Classes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, truth.Close(), c.answer(simulation)) }()
	if c.NATS != "" {
		return c.publish(ctx, con, simulation, truth)
	}
	return c.store(ctx, con, simulation, truth)
}

// store writes the events to the file.
func (c *simulateCmd) store(ctx context.Context, con console, s *simulate.Network, truth *truthLog) (err error) {
	log := files.NewLogWriter(con.Out)
	if c.Out != "-" {
		if log, err = files.CreateLog(c.Out); err != nil {
			return config.Usage(err)
		}
	}
	return errors.Join(c.follow(ctx, con, s, truth, log.Write), log.Close())
}

// publish sends the events to the server. An interrupt is a fine way to end it.
func (c *simulateCmd) publish(ctx context.Context, con console, s *simulate.Network, truth *truthLog) (err error) {
	c.await(ctx, con.Err)
	b, err := c.open("", con)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if err := broker.EnsureStreams(ctx, b.JS, c.names); err != nil {
		return err
	}
	writer, err := newStreamWriter(b.NC, c.Rate, ingest.PublisherConfig{
		Stream: c.names.Log, Report: func(err error) { fmt.Fprintln(con.Err, "gqlstream:", err) },
	})
	if err != nil {
		return err
	}
	defer writer.publisher.Close()
	fmt.Fprintf(con.Err, "publishes to stream %s; Ctrl-C ends it\n", c.names.Log)
	err = c.follow(ctx, con, s, truth, func(b *event.Batch) error { return writer.write(ctx, b) })
	if ctx.Err() != nil {
		return nil
	}
	return errors.Join(err, writer.publisher.Flush(ctx))
}

// follow hands every step of the simulation to write, and writes the truth that
// belongs to it.
func (c *simulateCmd) follow(
	ctx context.Context, con console, s *simulate.Network, truth *truthLog, write func(*event.Batch) error,
) error {
	meter := newMeter(con.Err, "events")
	defer meter.show()
	var b event.Batch
	for {
		err := s.Next(ctx, &b)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := write(&b); err != nil {
			return err
		}
		if b.Emit {
			truth.follow(s, c.TruthEvery)
		}
		meter.add(b.Events())
	}
}

// answer writes the class of every vertex, if that is wanted.
func (c *simulateCmd) answer(s *simulate.Network) error {
	if c.Answers == "" {
		return nil
	}
	text := []byte("vertex,label\n")
	s.VisitClasses(func(v event.ID, class event.Class) { text = fmt.Appendf(text, "%v,%d\n", v, class) })
	return os.WriteFile(c.Answers, text, 0o644)
}

// truthLog writes true prevalences as CSV.
type truthLog struct {
	out  *bufio.Writer
	file io.Closer
	next event.Time
	all  []simulate.TruthRecord
}

// newTruthLog creates the file at path; an empty path gives a log that writes
// nothing.
func newTruthLog(path string, classes int) (*truthLog, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	t := &truthLog{out: bufio.NewWriter(file), file: file}
	t.out.WriteString("time,community,members")
	for k := range classes {
		fmt.Fprintf(t.out, ",p%d", k)
	}
	t.out.WriteString(",jumped\n")
	return t, nil
}

// follow writes the truth if it is due at the simulation's time. What cannot be written shows
// when the log is closed.
func (t *truthLog) follow(s *simulate.Network, every time.Duration) {
	if t == nil || s.Now() < t.next {
		return
	}
	t.next = s.Now() + event.Time(every)
	t.all = s.AppendTruth(t.all[:0])
	for _, r := range t.all {
		fmt.Fprintf(t.out, "%v,%s,%d", r.Time, r.Community, r.Members)
		for _, share := range r.Prevalence {
			fmt.Fprintf(t.out, ",%v", share)
		}
		jumped := ""
		if r.Jumped != 0 {
			jumped = r.Jumped.String()
		}
		fmt.Fprintf(t.out, ",%s\n", jumped)
	}
}

// Close writes out what is buffered.
func (t *truthLog) Close() error {
	if t == nil {
		return nil
	}
	return errors.Join(t.out.Flush(), t.file.Close())
}
