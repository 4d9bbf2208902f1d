package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"gqlstream/config"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/pipeline"
	"gqlstream/request"
	"gqlstream/simulate"
	"gqlstream/sinks"
)

type demoCmd struct {
	Duration    time.Duration `default:"5m" help:"Simulated time; 0 runs until interrupted."`
	Seed        uint64        `default:"1" help:"Same seed, same network and same opinions."`
	Speed       float64       `default:"1" help:"Simulated seconds in a second."`
	Vertices    int           `default:"20000" help:"Vertices at the end."`
	HTTP        string        `name:"http" default:"127.0.0.1:8090" help:"Where the page with charts is; off for none."`
	Communities int           `default:"12" help:"Tracked communities, besides everyone."`
}

func (*demoCmd) Help() string {
	return `Simulates an evolving social network whose opinions drift and jump, publishes its events to an embedded
NATS server, runs the pipeline on them, and shows for every community the true share of opinion 0, our
estimate with its 90 % interval, and what plain counting of the predictions gives. Ends with the mean
errors of both. Nothing is kept: state is in a temporary directory.

Example:
  gqlstream demo --duration 2m --seed 7`
}

// Times of the demo.
const (
	demoTruthEvery   = 500 * time.Millisecond // simulated, between two comparisons
	demoPaintEvery   = 250 * time.Millisecond
	demoReportEvery  = 10 * time.Second // where there is no terminal
	demoWarmUp       = 10 * time.Second // simulated: the first labels and predictions arrive
	demoSettleMax    = 5 * time.Second  // wall time for the pipeline to catch up at the end
	demoActivity     = 1000
	demoJumpEvery    = 30 * time.Second
	demoEmitEvery    = 500 * time.Millisecond
	demoAlertEvery   = time.Second
	demoPublishedMax = 64 // messages under way
)

// demo is the state that the simulation, the pipeline and the view share.
type demo struct {
	cmd        *demoCmd
	simulation *simulate.Network
	due        time.Duration // simulated time of the next truth
	view       io.Writer
	page       string // address of the page with charts; empty without one

	mu       sync.Mutex // guards all below
	board    *demoBoard
	stored   event.Position // published
	vertices int
	elapsed  time.Duration
	events   int
}

// Run shows the demo until its end or an interrupt.
func (c *demoCmd) Run(ctx context.Context, con console) (err error) {
	if c.Speed <= 0 {
		return config.Usagef("demo: --speed must be more than 0")
	}
	simulation, err := simulate.New(c.simulation())
	if err != nil {
		return config.Usage(err)
	}
	signal.Ignore(syscall.SIGPIPE) // a reader that goes away is an error, so that state is removed
	state, err := os.MkdirTemp("", "gqlstream-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(state)) }()
	d := &demo{cmd: c, simulation: simulation, view: con.Out, board: newDemoBoard(demoWarmUp)}
	p, err := pipeline.Open(ctx, c.settings(state), pipeline.Options{
		Out: con.Out, Log: slog.New(slog.DiscardHandler), Follow: map[string]pipeline.Take{"screen": d.take}, FreePort: true,
	})
	if err != nil {
		return err
	}
	if url := p.Page.URL(); url != "" {
		d.page = url
		if p.Taken != "" {
			d.page += " (" + p.Taken + " is taken)"
		}
	}
	return errors.Join(d.show(ctx, p), p.Close())
}

func (c *demoCmd) simulation() simulate.Config {
	s := simulate.DefaultConfig()
	s.Seed, s.Vertices, s.Communities, s.Duration = c.Seed, c.Vertices, c.Communities, c.Duration
	s.Activity, s.JumpEvery = demoActivity, demoJumpEvery
	return s
}

// settings are those of run with both methods, and everyone as a community.
func (c *demoCmd) settings(state string) config.Settings {
	return config.Settings{
		Pipeline: "demo", State: state, Classes: config.Classes{"0", "1"},
		Communities: []config.Community{{Name: simulate.Everyone, Everyone: true}},
		Estimates:   []config.Estimate{{Method: demoOurs}, {Method: demoPlain}},
		Step:        config.Step{EmitEvery: demoEmitEvery},
		HTTP:        config.HTTP{Listen: c.HTTP},
		Alerts: []config.Alert{
			{Name: "rise", Classes: config.NameList{"0"}, When: "change over 10s > 0.1", Recover: new(0.05), Every: demoAlertEvery},
			{Name: "fall", Classes: config.NameList{"0"}, When: "change over 10s < -0.1", Recover: new(-0.05), Every: demoAlertEvery},
		},
	}
}

// show runs pipeline, simulation and view together until the simulation ends or
// the user has seen enough, then prints the summary.
func (d *demo) show(ctx context.Context, p *pipeline.Pipeline) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wait sync.WaitGroup
	ended := make(chan error, 2)
	start := func(run func(context.Context) error) {
		wait.Go(func() {
			err := run(ctx)
			if ctx.Err() != nil {
				err = nil // told to stop
			}
			ended <- err
		})
	}
	start(p.Run)
	start(func(ctx context.Context) error { return d.simulate(ctx, p) })
	err := showUntil(ctx, d.view, demoPaintEvery, demoReportEvery, ended, func() ([]string, bool) { return d.frame().lines(), true })
	cancel()
	wait.Wait()
	last := d.frame()
	last.page, last.rows = "", nil // the page is gone by now
	_, failed := fmt.Fprintln(d.view, strings.Join(last.lines(), "\n"))
	return errors.Join(err, failed)
}

// simulate publishes the simulation's events at its speed, and returns when the
// pipeline has caught up with the last one.
func (d *demo) simulate(ctx context.Context, p *pipeline.Pipeline) error {
	writer, err := newStreamWriter(p.Broker.NC, 0, ingest.PublisherConfig{Pending: demoPublishedMax})
	if err != nil {
		return err
	}
	defer writer.publisher.Close()
	var begun time.Time
	for {
		err := d.tick(ctx, &writer)
		if errors.Is(err, io.EOF) {
			return d.settle(ctx)
		}
		if err != nil {
			return err
		}
		if begun.IsZero() { // the initial network is out: the clock starts
			begun = time.Now()
		}
		at := begun.Add(time.Duration(float64(d.simulation.Elapsed()) / d.cmd.Speed))
		if err := request.Pause(ctx, time.Until(at)); err != nil {
			return err
		}
	}
}

// tick publishes the events of one tick, and notes the truth when that is due.
func (d *demo) tick(ctx context.Context, writer *streamWriter) error {
	var batch event.Batch
	for !batch.Emit {
		if err := d.simulation.Next(ctx, &batch); err != nil {
			return err
		}
		if err := writer.write(ctx, &batch); err != nil {
			return err
		}
		d.count(&batch)
	}
	elapsed := d.simulation.Elapsed()
	if elapsed < d.due {
		return nil
	}
	d.due = elapsed + demoTruthEvery
	if err := writer.publisher.Flush(ctx); err != nil {
		return err
	}
	_, stored := writer.publisher.Stored()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stored = stored
	d.board.expect(demoTruth{position: stored, elapsed: elapsed, records: d.simulation.AppendTruth(nil)})
	return nil
}

func (d *demo) count(b *event.Batch) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.vertices += len(b.Vertices)
	d.events += b.Events()
	d.elapsed = d.simulation.Elapsed()
}

// settle waits until the pipeline has passed everything that was published.
func (d *demo) settle(ctx context.Context) error {
	for deadline := time.Now().Add(demoSettleMax); time.Now().Before(deadline); {
		d.mu.Lock()
		passed := d.board.position >= d.stored
		d.mu.Unlock()
		if passed {
			return nil
		}
		if err := request.Pause(ctx, demoPaintEvery); err != nil {
			return err
		}
	}
	return nil
}

// take takes published estimates over from the log out.
func (d *demo) take(_ context.Context, e *sinks.Stored) error {
	estimates, err := e.Estimates()
	if err != nil || len(estimates) == 0 {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.board.publish(event.Position(e.Position), estimates)
	return nil
}

// frame returns the picture of this moment.
func (d *demo) frame() demoFrame {
	d.mu.Lock()
	defer d.mu.Unlock()
	return demoFrame{
		elapsed: d.elapsed, total: d.cmd.Duration, vertices: d.vertices, events: d.events, page: d.page,
		lag:  int(d.stored) - int(min(d.board.position, d.stored)),
		rows: slices.Clone(d.board.rows), score: d.board.score,
	}
}
