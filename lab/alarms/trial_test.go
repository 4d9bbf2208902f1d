package alarms

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"gqlstream/incremental"
	"gqlstream/ingest/event"
	"gqlstream/lab/simulate"
	"gqlstream/quant"
	"gqlstream/sinks/alerts"
)

// trial is a network, how it is estimated, and the rules that watch it.
type trial struct {
	Network simulate.Config
	Core    *incremental.Config // nil: predictions are counted, and nothing is estimated
	Alerts  alerts.Config
	Emit    time.Duration // of log time between two emissions; 0: at each tick

	// Act, if it is not nil, changes the network at the end of a tick.
	Act func(*simulate.Network)
	// See, if it is not nil, is shown the records of every emission.
	See func(now event.Time, records []quant.Estimate)
}

// move is a change of the share of a class of a community that truly happened.
type move struct {
	Community string
	Time      event.Time
	Size      float64 // of the class that moved most
	Members   int
}

// report is the result of a trial.
type report struct {
	Began, Ended event.Time
	Moves        []move
	Alarms       []alerts.Transition // beginnings alone
	Records      int
}

// runTrial runs a trial to the end of its network.
func runTrial(ctx context.Context, t trial) (*report, error) {
	network, err := simulate.New(t.Network)
	if err != nil {
		return nil, err
	}
	var reads reader = newCounter()
	if t.Core != nil {
		core, err := incremental.New(*t.Core)
		if err != nil {
			return nil, fmt.Errorf("alarms: %w", err)
		}
		reads = coreReader{core}
	}
	defer reads.close()
	engine, err := alerts.New(t.Alerts)
	if err != nil {
		return nil, fmt.Errorf("alarms: %w", err)
	}
	r := &run{
		trial: t, network: network, reads: reads, engine: engine,
		before: map[string]simulate.TruthRecord{},
	}
	r.report.Began = network.Now()
	var batch event.Batch
	for {
		switch err := network.Next(ctx, &batch); {
		case errors.Is(err, io.EOF):
			r.report.Ended = network.Now()
			return &r.report, nil
		case err != nil:
			return nil, err
		}
		r.step(&batch)
	}
}

// run is a trial that is under way.
type run struct {
	trial   trial
	network *simulate.Network
	reads   reader
	engine  *alerts.Engine
	report  report
	next    event.Time // emission
	truth   []simulate.TruthRecord
	before  map[string]simulate.TruthRecord // at the tick before
}

// step takes one batch through core and engine.
func (r *run) step(b *event.Batch) {
	tick := b.Emit
	if b.Emit = tick && b.Time >= r.next; b.Emit {
		r.next = b.Time + event.Time(r.trial.Emit)
	}
	emit := b.Emit
	records := r.reads.step(b)
	if emit {
		r.report.Records += len(records)
		if r.trial.See != nil {
			r.trial.See(b.Time, records)
		}
		moment := alerts.Moment{Position: uint64(b.Last), Time: int64(b.Time)}
		for _, one := range r.engine.Evaluate(moment, records) {
			if one.State == alerts.Firing {
				r.report.Alarms = append(r.report.Alarms, one)
			}
		}
	}
	if tick {
		r.look()
		if r.trial.Act != nil {
			r.trial.Act(r.network)
		}
	}
}

// look notes the moves of this tick.
func (r *run) look() {
	r.truth = r.network.AppendTruth(r.truth[:0])
	for _, t := range r.truth {
		before, known := r.before[t.Community]
		if known && t.Jumped != before.Jumped {
			size := 0.0
			for k, is := range t.Prevalence {
				if d := is - before.Prevalence[k]; math.Abs(d) > math.Abs(size) {
					size = d
				}
			}
			r.report.Moves = append(r.report.Moves, move{t.Community, t.Jumped, size, t.Members})
		}
		r.before[t.Community] = t
	}
}

// outcome is how a move was found.
type outcome struct {
	move
	Delay time.Duration // until the first alarm of it, -1: there was none
}

// judge returns for each move of at least so much whether an alarm of its community came within a
// time, and the alarms that no move explains: no move of their community came within that time
// before.
func (r *report) judge(
	least float64,
	within time.Duration,
) (found []outcome, others []alerts.Transition) {
	explained := make([]bool, len(r.Alarms))
	for _, m := range r.Moves {
		f := outcome{move: m, Delay: -1}
		for i, a := range r.Alarms {
			at, _ := time.Parse(time.RFC3339Nano, a.Time)
			after := time.Duration(event.Time(at.UnixNano()) - m.Time)
			if a.Community != m.Community && a.Community != simulate.Everyone || after < 0 ||
				after > within {
				continue
			}
			explained[i] = true
			if f.Delay < 0 && a.Community == m.Community {
				f.Delay = after
			}
		}
		if m.Size >= least || m.Size <= -least {
			found = append(found, f)
		}
	}
	for i, a := range r.Alarms {
		if !explained[i] {
			others = append(others, a)
		}
	}
	return found, others
}
