package alarms

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gqlstream/incremental"
	"gqlstream/ingest/event"
	"gqlstream/lab/simulate"
	"gqlstream/quant"
	"gqlstream/sinks/alerts"
)

// rules are the default rules, of two classes for one: the other one mirrors it.
func rules(t testing.TB, classes int) alerts.Config {
	c := alerts.Config{Methods: []string{"auto"}}
	for k := range classes {
		c.Classes = append(c.Classes, fmt.Sprint(k))
	}
	for _, when := range []string{"cusum", "change over 24h"} {
		r := alerts.Rule{Name: when, Drift: -1}
		if classes == 2 {
			r.Classes = alerts.Patterns{"0"}
		}
		if when != "cusum" {
			r.Every = 10 * time.Minute
		}
		if err := r.ParseWhen(when); err != nil {
			t.Fatal(err)
		}
		c.Rules = append(c.Rules, r)
	}
	return c
}

// core is the configuration of the whole product.
func core() *incremental.Config {
	return &incremental.Config{
		Classes: 2, CompactEvery: time.Hour, Estimates: []quant.Options{quant.DefaultOptions()},
		Emit: incremental.Emit{Threshold: 0.1, AtLeastEvery: 10 * time.Second},
	}
}

// quietNetwork is one of 100 communities. People change sides in pairs, and no share moves.
// Each person posts at a personal rate, every second day in the mean. A classifier that is
// right in three of four cases predicts the same of a person until the person changes
// sides. Labels are collected once and trickle in; people join, leave and make contacts.
func quietNetwork(seed uint64, people int, duration time.Duration) simulate.Config {
	n, p := simulate.DefaultConfig(), float64(people)
	n.Seed, n.Vertices, n.Communities, n.InitialShare = seed, people, 100, 0.95
	n.Activity, n.PostRate, n.LabelRate = 2e-6*p, 5e-6*p, 1e-7*p
	n.Duration, n.StepEvery, n.StepEventsMax = duration, time.Minute, 1<<20
	n.Drift, n.JumpEvery, n.Churn = 0, 0, 0.002
	return n
}

// world is the events in a network: quiet days, then ten-point moves of each community in turn.
type world struct {
	Seed    uint64
	People  int
	Quiet   time.Duration
	Debates bool // four times a day all members of a community post within a minute, and say
	// the same as before
	Steady bool // nobody is asked at once, and the model stays
	Own    bool // a change shows at the next post of each; else all post at once

	Classes     int // 0: two
	Communities int // 0: 100
	// Posts says that events are posts, which weigh less with age, in place of predictions and
	// edges.
	Posts bool
}

const (
	debatesEvery = 6 * time.Hour
	movesEvery   = 30 * time.Minute
	moveShare    = 0.1
	// ownWithin is how long after a move alarms are of it. The window of a change passes in
	// between.
	ownWithin = 5 * 24 * time.Hour
	within    = 26 * time.Hour
)

// trial lets the world happen. While it is quiet, 200 people are asked at once, twice, and another
// model takes over.
func (w world) trial(t testing.TB, communities int) trial {
	moves := time.Duration(communities+1) * movesEvery
	after := time.Hour
	if w.Own {
		after = ownWithin
	}
	n := quietNetwork(w.Seed, w.People, w.Quiet+moves+after)
	n.Classes, n.Posts = cmp.Or(w.Classes, 2), w.Posts
	n.Communities = cmp.Or(w.Communities, n.Communities)
	rng, moved := rand.New(rand.NewPCG(w.Seed, 17)), 0
	return trial{
		Network: n, Alerts: rules(t, n.Classes),
		Act: func(s *simulate.Network) {
			at := s.Elapsed()
			if at >= w.Quiet {
				if at > w.Quiet && at%movesEvery == 0 && moved < communities {
					s.Shift(moved, moveShare)
					if !w.Own {
						s.Speak(moved, time.Minute)
					}
					moved++
				}
				return
			}
			if w.Debates && at > 0 && at%debatesEvery == 0 {
				s.Speak(rng.IntN(communities), time.Minute)
			}
			switch {
			case w.Steady:
			case at == w.Quiet/3, at == w.Quiet*2/3:
				s.Ask(200)
			case at == w.Quiet*5/6:
				s.Retrain("simulated-2", 0.75, 2*time.Hour)
			}
		},
	}
}

// sizes divide communities by their members.
var sizes = []int{0, 100, 200, 400, 800, 1600, math.MaxInt}

// row is the measurements of communities of one size.
type row struct {
	moves, soon, later int
	delays             []time.Duration
	evidence           []float64 // standard errors that the first minutes after each move hold
}

// outcomes are the measurements of several worlds.
type outcomes struct {
	months float64
	alarms map[string]int      // false ones, by rule
	rows   []row               // by size
	core   *incremental.Config // of the product; nil: predictions are counted
}

// soon is within a minute of the predictions that carry a move: they come in the minute after it.
const soon = 2 * time.Minute

// add runs a world and adds its results.
func (o *outcomes) add(t testing.TB, w world) {
	t.Helper()
	tr := w.trial(t, cmp.Or(w.Communities, 100))
	if tr.Core = o.core; tr.Core != nil {
		tr.Core.Classes = tr.Network.Classes
	}
	counts := map[string]*evidence{}
	tr.See = func(now event.Time, records []quant.Estimate) {
		for i := range records {
			e := &records[i]
			if counts[e.Community] == nil {
				counts[e.Community] = &evidence{}
			}
			counts[e.Community].add(now, e)
		}
	}
	report, err := runTrial(t.Context(), tr)
	if err != nil {
		t.Fatal(err)
	}
	most, span := within, soon
	if w.Own {
		most, span = ownWithin, ownWithin
	}
	found, others := report.judge(moveShare/2, most)
	for _, a := range others {
		t.Logf("seed %d, %d people: %s: %s: %s", w.Seed, w.People, a.Time, a.Rule, a.Text)
		o.alarms[a.Rule]++
	}
	o.months += w.Quiet.Hours() / 24 / 30
	if o.rows == nil {
		o.rows = make([]row, len(sizes)-1)
	}
	for _, f := range found {
		at, _ := slices.BinarySearch(sizes, f.Members+1)
		r := &o.rows[at-1]
		r.moves++
		r.evidence = append(r.evidence, counts[f.Community].after(f.Time, span))
		if f.Delay < 0 {
			continue
		}
		r.delays = append(r.delays, f.Delay)
		if r.later++; f.Delay <= soon {
			r.soon++
		}
	}
}

// evidence holds how the count of a community moved, by record and class.
type evidence struct {
	at             []event.Time
	moved, squares [][]float64
}

func (e *evidence) add(now event.Time, r *quant.Estimate) {
	if len(r.Counted) == 0 {
		return
	}
	e.at = append(e.at, now)
	e.moved = append(e.moved, r.Counted)
	e.squares = append(e.squares, r.SECounted)
}

// after returns how far the count moved in a time, in standard errors of the class that moved most.
func (e *evidence) after(from event.Time, by time.Duration) (most float64) {
	if len(e.at) == 0 {
		return 0
	}
	for k := range e.moved[0] {
		moved, squares := 0.0, 0.0
		for i, at := range e.at {
			if at > from && at <= from+event.Time(by) {
				moved += e.moved[i][k]
				squares += e.squares[i][k] * e.squares[i][k]
			}
		}
		if squares > 0 {
			most = max(most, math.Abs(moved)/math.Sqrt(squares))
		}
	}
	return most
}

// median returns the middle of a list, 0 of none.
func median[T float64 | time.Duration](list []T) (middle T) {
	if len(list) == 0 {
		return middle
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// sizeText names the communities of a row.
func sizeText(at int) string {
	switch {
	case at == 0:
		return fmt.Sprintf("under %d", sizes[1])
	case at == len(sizes)-2:
		return fmt.Sprintf("%d and more", sizes[at])
	}
	return fmt.Sprintf("%d to %d", sizes[at], sizes[at+1]-1)
}
