//go:build browser

package browser

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"gqlstream/internal/request"
	"gqlstream/quant"
	"gqlstream/sinks"
	"gqlstream/sinks/web"
	"gqlstream/sinks/web/webtest"
)

var fiveClasses = []string{"left", "centre-left", "centre", "centre-right", "right"}

// logs are the output logs of the servers of serve.
var logs sync.Map

// publish writes estimates, and keeps them for charts.
func publish(t testing.TB, s *web.Server, list []quant.Estimate) {
	t.Helper()
	if log, ok := logs.Load(s); ok {
		log.(*webtest.Log).Add(list...)
	}
	s.Write(list)
}

// answering returns a configuration that answers the remaining questions from an output log, or
// with nothing.
func answering(c web.Config, log *webtest.Log) web.Config {
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	if c.Records == nil {
		c.Records = log.Read
	}
	if c.InForce == nil {
		c.InForce = log.InForce
	}
	if c.Rollups == nil {
		c.Rollups = func(context.Context, sinks.RollupQuery) (sinks.RollupAnswer,
			error,
		) {
			return sinks.RollupAnswer{}, nil
		}
	}
	if c.Quarantine == nil {
		c.Quarantine = func(context.Context, string, int) ([]web.QuarantineEntry,
			error,
		) {
			return nil, nil
		}
	}
	if c.Explain == nil {
		c.Explain = func(
			context.Context, web.ExplainQuery, func(string),
		) (*quant.Explanation, error) {
			return nil, &web.Refusal{Code: 409, Message: "nothing is explained here"}
		}
	}
	return c
}

// serve starts a server that ends with the test.
func serve(t testing.TB, c web.Config) *web.Server {
	t.Helper()
	log := &webtest.Log{}
	c = answering(c, log)
	s, err := web.New(c)
	if err != nil {
		t.Fatal(err)
	}
	logs.Store(s, log)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// filled starts a server that has seen rounds of a demo.
func filled(t testing.TB, d *demo, rounds int) *web.Server {
	t.Helper()
	s := serve(
		t,
		web.Config{Pipeline: "opinion", Classes: d.classes, Version: "test", Sinks: someSinks},
	)
	d.at = time.Now().Add(-time.Duration(rounds) * d.step)
	for range rounds {
		write(t, s, d)
	}
	s.Status(d.status())
	return s
}

// someSinks are followers, one of them held up and one without a state.
func someSinks() []request.State {
	return []request.State{
		{Name: "GQL_ESTIMATES", Condition: request.Delivering},
		{
			Name: "parquet", Condition: request.Holding, Since: time.Now(),
			Reason:  "no space left on device",
			Follows: true, Behind: 412, Position: 90_000,
		},
	}
}

func write(t testing.TB, s *web.Server, d *demo) {
	t.Helper()
	publish(t, s, d.next(0, len(d.names)))
}

// Every page must fit in light, dark and on a phone, with a silent console. With
// SCREENSHOTS=dir the test leaves pictures for people to look at.
func TestPagesFitEveryWidth(t *testing.T) {
	d := newDemo(200, fiveClasses, 15*time.Second)
	d.switchAt = 150
	s := filled(t, d, 240)
	feed(t, s, d)
	for _, size := range []struct {
		name, scheme  string
		width, height int
	}{
		{"light", "light", 1280, 860},
		{"dark", "dark", 1280, 860},
		{"wide", "light", 1440, 860},
		{"phone", "light", 400, 860},
		{"phone-dark", "dark", 400, 860},
	} {
		t.Run(size.name, func(t *testing.T) {
			p := open(t, size.width, size.height, size.scheme)
			p.visit(s.URL())
			p.until("rows", `document.querySelectorAll(".rows .name[href]").length > 5`)
			p.fits()
			p.axe()
			p.shot("communities-" + size.name)
			p.visit(s.URL() + "#/c/Lyon%20cycling")
			p.until(
				"a chart",
				`document.querySelector(".u-wrap canvas") && document.querySelectorAll("tbody `+
					`tr").length === 5`,
			)
			p.fits()
			p.axe()
			p.shot("detail-" + size.name)
			p.tallShot("detail-tall-"+size.name, size.width)
			p.visit(s.URL() + "#/pipeline")
			p.until("two samples", `document.querySelectorAll(".u-wrap canvas").length === 2`)
			p.until(
				"the sinks",
				`document.querySelector(".pipeline-page").innerText.includes("no space left on `+
					`device")`,
			)
			p.fits()
			p.axe()
			p.until(
				"labels that hardly meet an edge",
				`document.querySelector(".pipeline-page").innerText
				.includes("4,000, 1,999 with an edge: are the ids the same")`,
			)
			p.shot("pipeline-" + size.name)
			p.tallShot("pipeline-tall-"+size.name, size.width)
			p.quiet()
		})
	}
}

// Flags in the list must be readable, two in a row and how many more there are.
func TestFlagsInTheListAreWhole(t *testing.T) {
	s := serve(t, web.Config{Classes: twoClasses})
	for i, flags := range [][]string{
		{quant.FlagUnsupported + ":0", quant.FlagLowCoverage, quant.FlagShift + ":0"},
		{quant.FlagDrift, quant.FlagClustered, quant.FlagThin + ":0", quant.FlagNewPosterior},
		{quant.FlagModelSwitching, quant.FlagOldEvidence, quant.FlagShift + ":1"},
		{quant.FlagThin + ":1"},
		{quant.FlagShift + ":0", quant.FlagNewPosterior},
	} {
		e := one(fmt.Sprint("town ", i), uint64(1+i), 0.4)
		e.Flags = flags
		put(t, s, e)
	}
	s.Status(running(9))
	for _, width := range []int{1280, 1440, 1100, 900, 400} {
		for _, scheme := range []string{"light", "dark"} {
			p := open(t, width, 700, scheme)
			p.visit(s.URL())
			p.until("the flags", `document.querySelectorAll(".rows .chip-rest").length === 3`)
			if cut := eval[string](p, cutChips); cut != "" {
				t.Errorf("%d px: flags are cut: %s", width, cut)
			}
			p.fits()
			p.shot(fmt.Sprintf("flags-%d-%s", width, scheme))
			p.quiet()
		}
	}
}

// cutChips are the flags in the list that cannot be read whole.
const cutChips = `[...document.querySelectorAll(".rows .chip")].filter((c) => {
	const chip = c.getBoundingClientRect(), cell = c.closest(".chips").getBoundingClientRect();
	return c.scrollWidth > c.clientWidth || chip.bottom > cell.bottom + 1 ||
		chip.right > cell.right + 1 ||
		cell.bottom > c.closest(".row").getBoundingClientRect().bottom;
}).map((c) => c.innerText).join(", ")`

// feed writes and reports once a second until the test ends.
func feed(t testing.TB, s *web.Server, d *demo) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				publish(t, s, d.next(0, len(d.names)))
				s.Status(d.status())
			case <-stop:
				return
			}
		}
	}()
	t.Cleanup(func() { close(stop); <-stopped })
}
