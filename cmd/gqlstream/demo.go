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

	"gonum.org/v1/gonum/floats"

	"gqlstream/config"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/pipeline"
	"gqlstream/quant"
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
	demoJumpWindow   = 10 * time.Second // for which a community is shown to have jumped
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
	board    demoBoard
	stored   event.Position // published
	vertices int
	elapsed  time.Duration
	events   int
}

// The demo compares two methods: ours, and plain counting of the predictions.
const (
	demoOurs  = "auto"
	demoPlain = "pcc"
)

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
	d := &demo{cmd: c, simulation: simulation, view: con.Out, board: demoBoard{latest: map[[2]string]quant.Estimate{}}}
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
			{Name: "rise", Classes: []string{"0"}, When: "change over 10s > 0.1", Recover: new(0.05), Every: demoAlertEvery},
			{Name: "fall", Classes: []string{"0"}, When: "change over 10s < -0.1", Recover: new(-0.05), Every: demoAlertEvery},
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
	err := showUntil(ctx, d.view, demoPaintEvery, demoReportEvery, ended, func() ([]string, bool) { return d.lines(true), true })
	cancel()
	wait.Wait()
	_, failed := fmt.Fprintln(d.view, strings.Join(d.lines(false), "\n"))
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
	d.board.truths = append(d.board.truths, demoTruth{position: stored, elapsed: elapsed, records: d.simulation.AppendTruth(nil)})
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

// lines lays out the picture of this moment: the mean errors so far, then the communities, while the
// pipeline and its page are there.
func (d *demo) lines(running bool) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	title := "gqlstream demo  " + clockText(d.elapsed)
	if d.cmd.Duration > 0 {
		title += " of " + clockText(d.cmd.Duration)
	}
	if d.page != "" && running {
		title += "  charts at " + d.page
	}
	lag := int(d.stored) - int(min(d.board.position, d.stored))
	lines := []string{title, fmt.Sprintf("%s vertices, %s events, %d messages behind", grouped(d.vertices), grouped(d.events), lag), ""}
	lines = append(lines, tabled(func(table io.Writer) {
		fmt.Fprintln(table, "mean absolute error, ours ("+demoOurs+")\t"+d.board.ours.text())
		fmt.Fprintln(table, "mean absolute error, plain counting ("+demoPlain+")\t"+d.board.plain.text())
		fmt.Fprintln(table, "truth in our interval\t"+d.board.covered.text())
	})...)
	if rows := d.board.rows(); running && len(rows) > 0 {
		lines = append(append(lines, ""), communityTable("0", "truth\tplain\t", rows)...)
	}
	return lines
}

func clockText(d time.Duration) string {
	s := int(d.Seconds())
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// demoTruth is the true state of the network at a position of the stream.
type demoTruth struct {
	position event.Position
	elapsed  time.Duration // simulated
	records  []simulate.TruthRecord
}

// demoBoard joins what is true with what is published, by position: an estimate at
// position p is held against the newest truth that p contains, so the time that
// the pipeline takes is not counted as an error of the method. A truth is
// scored at most once, with the estimates that stand when the pipeline passes it.
type demoBoard struct {
	truths   []demoTruth                  // that the pipeline has not passed yet, by position
	shown    demoTruth                    // the newest it has passed
	latest   map[[2]string]quant.Estimate // by community and method
	position event.Position               // of the pipeline

	ours, plain errorMean
	covered     errorMean // of the classes, how many lie in our interval
}

// publish takes estimates over, which are all of one position, and scores the newest truth that
// the pipeline has passed with them.
func (b *demoBoard) publish(position event.Position, estimates []quant.Estimate) {
	passed := 0
	for passed < len(b.truths) && b.truths[passed].position <= position {
		b.shown = b.truths[passed]
		passed++
	}
	b.truths = slices.Delete(b.truths, 0, passed)
	b.position = position
	for _, e := range estimates {
		b.latest[[2]string{e.Community, e.Method}] = e
	}
	if passed == 0 || b.shown.elapsed < demoWarmUp {
		return
	}
	for i := range b.shown.records {
		if ours, plain, known := b.both(&b.shown.records[i]); known {
			b.score(b.shown.records[i].Prevalence, ours, plain)
		}
	}
}

// both returns the estimates of a community, and whether there is one of each method.
func (b *demoBoard) both(truth *simulate.TruthRecord) (ours, plain quant.Estimate, known bool) {
	ours, okOurs := b.latest[[2]string{truth.Community, demoOurs}]
	plain, okPlain := b.latest[[2]string{truth.Community, demoPlain}]
	return ours, plain, okOurs && okPlain && !ours.Suppressed
}

func (b *demoBoard) score(truth []float64, ours, plain quant.Estimate) {
	k := float64(len(truth))
	b.ours.add(floats.Distance(ours.Prevalence, truth, 1) / k)
	b.plain.add(floats.Distance(plain.Prevalence, truth, 1) / k)
	for k := range ours.Low {
		hit := 0.0
		if ours.Low[k] <= truth[k] && truth[k] <= ours.High[k] {
			hit = 1
		}
		b.covered.add(hit)
	}
}

// rows returns the communities as they are shown: the share of class 0, its truth and its count.
func (b *demoBoard) rows() (rows []communityRow) {
	for i := range b.shown.records {
		truth := &b.shown.records[i]
		row := communityRow{name: truth.Community, members: truth.Members, further: fmt.Sprintf("%.3f", truth.Prevalence[0])}
		if ours, plain, known := b.both(truth); known {
			row.estimate = &ours
			row.further += fmt.Sprintf("\t%.3f", plain.Prevalence[0])
		} else {
			row.further += "\t"
		}
		if truth.Jumped != 0 && time.Duration(truth.Time-truth.Jumped) < demoJumpWindow {
			row.further += "\tjumped"
		}
		rows = append(rows, row)
	}
	return rows
}

// errorMean is a mean of absolute errors.
type errorMean struct {
	sum float64
	n   int
}

func (m *errorMean) add(x float64) { m.sum, m.n = m.sum+x, m.n+1 }

func (m *errorMean) text() string {
	if m.n == 0 {
		return "-"
	}
	return fmt.Sprintf("%.4f", m.sum/float64(m.n))
}
