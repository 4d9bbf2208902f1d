package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/ingest/files"
	"gqlstream/lab/simulate"
	"gqlstream/pipeline/config"
)

type simulateCmd struct {
	simulate.Config
	serverFlags
	Out        string        `placeholder:"FILE" help:"${simulate_out}"`
	Rate       float64       `placeholder:"N" help:"${simulate_rate}"`
	Truth      string        `placeholder:"FILE" help:"${simulate_truth}"`
	Answers    string        `placeholder:"FILE" help:"${simulate_answers}"`
	TruthEvery time.Duration `default:"1s" help:"${simulate_truth_every}"`

	truth    *bufio.Writer // goes nowhere if no file is asked for
	truthDue event.Time
}

func (*simulateCmd) Help() string {
	return `Vertices arrive, edges come and go, opinions drift and jump. People post at their own
rates, and a fallible classifier predicts the author from each post, so predictions lag person by
person. Labels are answers: a small share of the people is asked once, a few others later, and a
change of mind makes a label old silently. --label-renew 1 simulates a panel whose labels are always
true, which does not exist in reality. The truth file has the true share of every class over time,
and the time of the last jump.

Examples:
  gqlstream simulate --vertices 20000 --duration 10m --seed 7 --out log.ndjson.zst --truth truth.csv
  gqlstream simulate --posts --out posts.ndjson.zst --truth truth.csv
  gqlstream simulate --nats nats://localhost:4222 --rate 2000 --duration 0 --truth truth.csv`
}

// BeforeReset sets the defaults of fields without a flag, before those of flags.
func (c *simulateCmd) BeforeReset() error {
	c.Config = simulate.DefaultConfig()
	return nil
}

// Run simulates into a file or a stream.
func (c *simulateCmd) Run(ctx context.Context, con console) (err error) {
	live := c.settings.NATS.URL != "" || c.State != ""
	if (c.Out == "") != live {
		return config.Usagef("simulate: want either --out FILE or --nats URL")
	}
	if c.Duration == 0 && !live {
		return config.Usagef("simulate: --duration 0 never ends; give --out a duration")
	}
	if c.TruthEvery <= 0 || !(c.Rate >= 0) {
		return config.Usagef("simulate: --truth-every must be more than 0 and --rate not below 0")
	}
	if c.Start.IsZero() {
		if c.Start = simulate.DefaultConfig().Start; live {
			c.Start = time.Now()
		}
	}
	simulation, err := simulate.New(c.Config)
	if err != nil {
		return config.Usage(err)
	}
	c.truth = bufio.NewWriter(io.Discard)
	if c.Truth != "" {
		file, err := os.Create(c.Truth)
		if err != nil {
			return err
		}
		con.atEnd(file.Close)
		c.truth.Reset(file)
	}
	fmt.Fprint(c.truth, "time,community,members")
	for k := range c.Classes {
		fmt.Fprintf(c.truth, ",p%d", k)
	}
	fmt.Fprintln(c.truth, ",jumped")
	if live {
		err = c.publish(ctx, con, simulation)
	} else {
		err = c.store(ctx, con, simulation)
	}
	return errors.Join(err, c.truth.Flush(), c.answer(simulation))
}

// store writes the events to the file.
func (c *simulateCmd) store(ctx context.Context, con console, s *simulate.Network) (err error) {
	log := files.NewLogWriter(con.Out)
	if c.Out != "-" {
		if log, err = files.CreateLog(c.Out); err != nil {
			return config.Usage(err)
		}
	}
	return errors.Join(c.writeSteps(ctx, con, s, log.Write), log.Close())
}

// publish sends the events to the server. An interrupt is a fine way to end it.
func (c *simulateCmd) publish(ctx context.Context, con console, s *simulate.Network) error {
	b, err := c.open(ctx, con)
	if err != nil {
		return err
	}
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
	err = c.writeSteps(ctx, con, s, func(b *event.Batch) error { return writer.write(ctx, b) })
	if ctx.Err() != nil {
		return nil
	}
	return errors.Join(err, writer.publisher.Flush(ctx))
}

// writeSteps hands every step of the simulation to write, and writes the truth that
// belongs to it.
func (c *simulateCmd) writeSteps(
	ctx context.Context, con console, s *simulate.Network, write func(*event.Batch) error,
) error {
	meter := newMeter(con.Err, "events")
	defer meter.show()
	_, err := readLog(ctx, s.Next, meter, func(b *event.Batch) ([]event.Refusal, error) {
		err := write(b)
		if err == nil && b.Emit && s.Now() >= c.truthDue {
			c.writeTruth(s)
		}
		return nil, err
	})
	return err
}

// answer writes the class of every vertex, if that is wanted.
func (c *simulateCmd) answer(s *simulate.Network) error {
	if c.Answers == "" {
		return nil
	}
	text := []byte("vertex,label\n")
	s.VisitClasses(func(v event.ID, class event.Class) {
		text = fmt.Appendf(text, "%v,%d\n", v, class)
	})
	return os.WriteFile(c.Answers, text, 0o644)
}

// writeTruth writes the truth of this moment as CSV. An error of writing shows at the end.
func (c *simulateCmd) writeTruth(s *simulate.Network) {
	c.truthDue = s.Now() + event.Time(c.TruthEvery)
	for _, r := range s.AppendTruth(nil) {
		fmt.Fprintf(c.truth, "%v,%s,%d", r.Time, r.Community, r.Members)
		for _, share := range r.Prevalence {
			fmt.Fprintf(c.truth, ",%v", share)
		}
		jumped := ""
		if r.Jumped != 0 {
			jumped = r.Jumped.String()
		}
		fmt.Fprintf(c.truth, ",%s\n", jumped)
	}
}
