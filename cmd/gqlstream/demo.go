package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/internal/request"
	"gqlstream/lab/simulate"
	"gqlstream/pipeline"
	"gqlstream/pipeline/config"
	"gqlstream/quant"
	"gqlstream/sinks"
	"gqlstream/sinks/web"
)

type demoCmd struct {
	Duration    time.Duration `default:"5m" help:"Simulated time; 0 runs until interrupted."`
	Seed        uint64        `default:"1" help:"Same seed, same network and same opinions."`
	Speed       float64       `default:"1" help:"Simulated seconds in a second."`
	Vertices    int           `default:"20000" help:"Vertices at the end."`
	HTTP        string        `name:"http" default:"127.0.0.1:8090" help:"${demo_http}"`
	Communities int           `default:"12" help:"Number of communities; everyone is added."`
}

func (*demoCmd) Help() string {
	return `Runs the pipeline on a simulated network whose opinions drift and jump, and shows for
every community the true share of opinion 0, the estimate with its 90 % interval, and the plain
count of the predictions. Ends with the mean errors of both. Keeps nothing.

Example:
  gqlstream demo --duration 2m --seed 7`
}

// Times of the demo.
const (
	demoTruthEvery   = 500 * time.Millisecond // simulated, between two comparisons
	demoPaintEvery   = 250 * time.Millisecond
	demoReportEvery  = 10 * time.Second // where there is no terminal
	demoWarmUp       = 10 * time.Second // simulated: the first labels and predictions arrive
	demoJumpWindow   = 10 * time.Second // a community is marked as jumped for so long
	demoActivity     = 1000
	demoJumpEvery    = 30 * time.Second
	demoEmitEvery    = 500 * time.Millisecond
	demoAlertEvery   = time.Second
	demoPublishedMax = 64 // messages under way
)

// The demo compares two methods: ours, and plain counting of the predictions.
const (
	demoOurs  = "auto"
	demoPlain = "pcc"
)

// demo compares each published share with the truth of the moment of its arrival, so delay
// counts as error, as for a user.
type demo struct {
	cmd        *demoCmd
	simulation *simulate.Network
	due        time.Duration // simulated time of the next comparison
	page       string        // address of the page with charts; empty without one

	mu      sync.Mutex // guards all below, which simulation, pipeline and view share
	truth   []simulate.TruthRecord
	latest  map[[2]string]quant.Estimate // by community and method
	elapsed time.Duration                // simulated

	ours, plain []float64 // errors
	covered     []float64 // 1 for each class that lies in our interval, 0 for each that does not
}

// Run shows the demo until its end or an interrupt.
func (c *demoCmd) Run(ctx context.Context, con console) (err error) {
	if !(c.Speed > 0) {
		return config.Usagef("demo: --speed must be more than 0")
	}
	s := simulate.DefaultConfig()
	s.Seed = c.Seed
	s.Vertices = c.Vertices
	s.Communities = c.Communities
	s.Duration = c.Duration
	s.Start = time.Now() // ages of labels follow the log's times, which are those of arrival
	s.Activity, s.JumpEvery = demoActivity, demoJumpEvery
	simulation, err := simulate.New(s)
	if err != nil {
		return config.Usage(err)
	}
	signal.Ignore(syscall.SIGPIPE) // a reader that goes away is an error, so that state is removed
	state, err := os.MkdirTemp("", "gqlstream-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(state)) }()
	d := &demo{cmd: c, simulation: simulation, latest: map[[2]string]quant.Estimate{}}
	p, err := pipeline.Open(ctx, c.settings(state), pipeline.Options{
		Out:      con.Out,
		Log:      slog.New(slog.DiscardHandler),
		Follow:   map[string]pipeline.TakeFunc{"screen": d.receive},
		FreePort: true,
	})
	if err != nil {
		return err
	}
	if d.page = p.Page.URL(); d.page != "" && p.Taken != "" {
		d.page += " (" + p.Taken + " is taken)"
	}
	return errors.Join(d.show(ctx, p, con.Out), p.Close())
}

// settings are those of run with both methods, and everyone as a community.
func (c *demoCmd) settings(state string) config.Settings {
	return config.Settings{
		Pipeline: "demo", State: state, Classes: config.Classes{"0", "1"},
		Communities: []config.Community{{Name: simulate.Everyone, Everyone: true}},
		Estimates:   []config.Estimate{{Method: demoOurs}, {Method: demoPlain}},
		Step:        config.Step{EmitEvery: demoEmitEvery},
		HTTP:        web.HTTP{Listen: c.HTTP},
		Alerts: config.Alerts{Rules: []config.Alert{
			{
				Name:    "rise",
				Classes: []string{"0"},
				When:    "change over 10s > 0.1",
				Recover: new(0.05),
				Every:   demoAlertEvery,
			},
			{
				Name:    "fall",
				Classes: []string{"0"},
				When:    "change over 10s < -0.1",
				Recover: new(-0.05),
				Every:   demoAlertEvery,
			},
		}},
	}
}

// show runs pipeline, simulation and view together until the simulation ends or
// the user has seen enough, then prints the summary.
func (d *demo) show(ctx context.Context, p *pipeline.Pipeline, view io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var wait sync.WaitGroup
	ended := make(chan error, 2)
	for _, run := range []func(context.Context) error{
		p.Run, func(ctx context.Context) error { return d.simulate(ctx, p) },
	} {
		wait.Go(func() {
			err := run(ctx)
			if ctx.Err() != nil {
				err = nil // told to stop
			}
			ended <- err
		})
	}
	err := showUntil(ctx, view, demoPaintEvery, demoReportEvery, ended,
		func() ([]string, bool) { return d.lines(true), true })
	cancel()
	wait.Wait()
	_, failed := fmt.Fprintln(view, strings.Join(d.lines(false), "\n"))
	return errors.Join(err, failed)
}

// simulate publishes the simulation's events at its speed.
func (d *demo) simulate(ctx context.Context, p *pipeline.Pipeline) error {
	writer, err := newStreamWriter(p.Broker.NC, 0,
		ingest.PublisherConfig{Pending: demoPublishedMax})
	if err != nil {
		return err
	}
	defer writer.publisher.Close()
	var begun time.Time
	_, err = readLog(
		ctx,
		d.simulation.Next,
		newMeter(io.Discard, ""),
		func(b *event.Batch) ([]event.Refusal, error) {
			if err := writer.write(ctx, b); err != nil || !b.Emit {
				return nil, err
			}
			elapsed := d.simulation.Elapsed()
			if elapsed >= d.due {
				d.due = elapsed + demoTruthEvery
				d.compare(elapsed, d.simulation.AppendTruth(nil))
			}
			if begun.IsZero() { // the initial network is out: the clock starts
				begun = time.Now()
			}
			at := begun.Add(time.Duration(float64(elapsed) / d.cmd.Speed))
			return nil, request.Pause(ctx, time.Until(at))
		},
	)
	return err
}

// receive takes published estimates over from the output log.
func (d *demo) receive(_ context.Context, e *sinks.Stored) error {
	estimates, err := e.Estimates()
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range estimates {
		d.latest[[2]string{e.Community, e.Method}] = e
	}
	return err
}

// compare takes the truth of a moment over, and holds the latest estimates against it.
func (d *demo) compare(elapsed time.Duration, truth []simulate.TruthRecord) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.elapsed, d.truth = elapsed, truth
	if elapsed < demoWarmUp {
		return
	}
	for _, t := range truth {
		if ours, plain, known := d.both(t.Community); known {
			d.score(t.Prevalence, ours, plain)
		}
	}
}

// both returns the estimates of a community, and whether there is one of each method.
func (d *demo) both(community string) (ours, plain quant.Estimate, known bool) {
	ours, okOurs := d.latest[[2]string{community, demoOurs}]
	plain, okPlain := d.latest[[2]string{community, demoPlain}]
	return ours, plain, okOurs && okPlain && !ours.Suppressed
}

func (d *demo) score(truth []float64, ours, plain quant.Estimate) {
	d.ours = append(d.ours, floats.Distance(ours.Prevalence, truth, 1)/float64(len(truth)))
	d.plain = append(d.plain, floats.Distance(plain.Prevalence, truth, 1)/float64(len(truth)))
	for k := range ours.Low {
		hit := 0.0
		if ours.Low[k] <= truth[k] && truth[k] <= ours.High[k] {
			hit = 1
		}
		d.covered = append(d.covered, hit)
	}
}

// lines lays out the picture of this moment: the mean errors so far, then the communities with the
// share of class 0, its truth and its count, while the pipeline and its page are there.
func (d *demo) lines(running bool) []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	title := fmt.Sprint("gqlstream demo  ", d.elapsed.Truncate(time.Second))
	if d.cmd.Duration > 0 {
		title += fmt.Sprint(" of ", d.cmd.Duration)
	}
	if d.page != "" && running {
		title += "  charts at " + d.page
	}
	lines := append([]string{title, ""}, tabled(func(table io.Writer) {
		fmt.Fprintf(table, "mean absolute error, ours (%s)\t%s\n", demoOurs, meanText(d.ours))
		fmt.Fprintf(table, "mean absolute error, plain counting (%s)\t%s\n",
			demoPlain, meanText(d.plain))
		fmt.Fprintf(table, "truth in our interval\t%s\n", meanText(d.covered))
	})...)
	if !running || len(d.truth) == 0 {
		return lines
	}
	var rows []communityRow
	for _, truth := range d.truth {
		row := communityRow{
			name:    truth.Community,
			members: truth.Members,
			further: fmt.Sprintf("%.3f\t", truth.Prevalence[0]),
		}
		if ours, plain, known := d.both(truth.Community); known {
			row.estimate = &ours
			row.further += fmt.Sprintf("%.3f", plain.Prevalence[0])
		}
		if truth.Jumped != 0 && time.Duration(truth.Time-truth.Jumped) < demoJumpWindow {
			row.further += "\tjumped"
		}
		rows = append(rows, row)
	}
	return append(append(lines, ""), communityTable("0", "truth\tplain\t", rows)...)
}

func meanText(values []float64) string {
	if len(values) == 0 {
		return "-"
	}
	return fmt.Sprintf("%.4f", stat.Mean(values, nil))
}
