package alerts

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gqlstream/quant"
)

const fires, ends = "r x left firing", "r x left resolved"

func TestThresholdFiresAndRecoversElsewhere(t *testing.T) {
	back := 0.25
	s := begin(t, rule(t, "low > 0.3", func(r *Rule) { r.Recover = &back }))
	s.want(0, one(record("x", 0.35, 0.03, 0))) // low .29
	s.want(1, one(record("x", 0.37, 0.03, 0)), fires)
	s.want(2, one(record("x", 0.33, 0.03, 0))) // low .27, above the recovery
	s.want(3, nil)
	s.want(4, one(record("x", 0.30, 0.03, 0)), ends)
	s.want(5, one(record("x", 0.35, 0.03, 0))) // low .29: not above again
	first, last := s.all[0], s.all[1]
	if first.Alert != last.Alert || first.ID == last.ID || last.Since != first.Time ||
		first.Class != "left" ||
		first.Reason != "the low end of the interval is 31.0 %, the rule asks for above 30.0 %" ||
		last.Reason != "back: the low end of the interval is 24.0 %, not above 25.0 % any more" ||
		last.End != EndBack ||
		first.Text !=
			"left of x is 37.0 % (90 % interval 31.0 % to 43.0 %); "+first.Reason ||
		first.Pipeline != "test" ||
		first.Method != "auto" {
		t.Errorf("transitions %+v\n%+v", first, last)
	}
}

// Texts of an alert have the names for people, as the page does; its fields, which programs read,
// have those of the log.
func TestTextsHaveTheNamesForPeople(t *testing.T) {
	c := config(
		rule(t, "point > 0.5", nil),
		rule(t, "difference(x, y) > 0.1", func(r *Rule) { r.Name = "apart" }),
	)
	c.Display.Communities = map[string]string{"x": "Northern towns"}
	c.Display.Classes = map[string]string{"left": "in favour"}
	e, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	moment := Moment{Position: 1, Time: start}
	x, y := record("x", 0.6, 0.01, 0), record("y", 0.2, 0.01, 0)
	got := e.Evaluate(moment, []quant.Estimate{x, y})
	want := map[string]string{
		"r":     "in favour of Northern towns is 60.0 % ",
		"apart": "in favour of Northern towns less y is +40.0 points ",
	}
	if len(got) != len(want) {
		t.Fatalf("transitions %+v", got)
	}
	for _, x := range got {
		if !strings.HasPrefix(x.Text, want[x.Rule]) || x.Class != "left" ||
			x.Community != map[string]string{"r": "x", "apart": "difference(x, y)"}[x.Rule] {
			t.Errorf("%+v", x)
		}
	}
	if got := (Display{}).Class("0"); got != "class 0" {
		t.Errorf("class 0 is called %q", got)
	}
	saved := e.Save()
	if e, err = Restore(c, saved); err != nil {
		t.Fatal(err)
	}
	for _, a := range e.Active() {
		if !strings.HasPrefix(a.Now, want[a.Rule]) {
			t.Errorf("restored: now %q", a.Now)
		}
	}
}

func TestConditionMustHoldForItsTime(t *testing.T) {
	s := begin(t, rule(t, "high < 0.1", func(r *Rule) { r.For = 10 * time.Second }))
	s.want(0, one(record("x", 0.05, 0.01, 0)))
	s.want(5, one(record("x", 0.2, 0.01, 0)))
	s.want(6, one(record("x", 0.05, 0.01, 0)))
	if a := s.engine.Active(); len(a) != 1 || a[0].State != Pending ||
		!strings.Contains(
			a[0].Now,
			"the high end of the interval is 7.0 %, the rule asks for below 10.0 %",
		) {
		t.Errorf("active %+v", a)
	}
	s.want(15, nil)
	s.want(16, nil, fires) // by time alone: the estimate still stands
	s.want(17, one(record("x", 0.2, 0.01, 0)), ends)
}

func TestSuppressedEstimatesDecideNothing(t *testing.T) {
	for _, flag := range suppressDefault {
		s := begin(t, rule(t, "point > 0.5", nil))
		s.want(0, one(record("x", 0.9, 0.01, 0, flag)))
		s.want(6, one(record("x", 0.9, 0.01, 0)), fires)
		s.want(14, one(record("x", 0.1, 0.01, 0, flag)))
		if now := s.engine.Active()[0].Now; !strings.Contains(now, "suppressed while") ||
			!strings.Contains(now, flag) || strings.Contains(now, "no data") {
			t.Errorf("now %q", now)
		}
		s.want(15, one(record("x", 0.1, 0.01, 0)), ends)
	}
}

// No flag that says something of the calibration or of its labels keeps an alert silent.
func TestOnlyFlagsThatMakeAChangeMeaninglessSuppress(t *testing.T) {
	for _, doc := range quant.FlagDocs() {
		if slices.Contains(suppressDefault, doc.Name) || slices.Contains(standInFlags, doc.Name) {
			continue
		}
		s := begin(t, rule(t, "point > 0.5", nil))
		s.want(0, one(record("x", 0.9, 0.01, 0, doc.Name+":0")), fires)
	}
}

// For counts the time since the condition began to hold, including times without an
// estimate: no flag, no silence and no time without data restarts it. An estimate that does
// not meet the condition does.
func TestForCountsTimesWithoutEstimates(t *testing.T) {
	for name, between := range map[string][]quant.Estimate{
		"a flag that suppresses": one(record("x", 0.9, 0.01, 0, quant.FlagMixedModel)),
		"new coefficients":       one(record("x", 0.9, 0.01, 0, quant.FlagNewPosterior)),
		"few labels":             one(record("x", 0.9, 0.01, 0, "thin:0")),
		"no data":                one(record("x", 0.9, 0.01, 0, quant.FlagNoLabels)),
		"the privacy floor":      one(quant.Estimate{Community: "x", Suppressed: true}),
		"nothing":                nil,
	} {
		s := begin(t, rule(t, "point > 0.5", func(r *Rule) { r.For = 10 * time.Second }))
		s.want(0, one(record("x", 0.9, 0.01, 0)))
		s.want(7, between)
		s.want(9, nil)
		if got := s.at(12, record("x", 0.9, 0.01, 0)); len(s.all) != 1 {
			t.Errorf("%s: %v", name, got)
		}
	}
	s := begin(t, rule(t, "point > 0.5", func(r *Rule) { r.For = 10 * time.Second }))
	s.want(0, one(record("x", 0.9, 0.01, 0)))
	s.want(7, one(record("x", 0.1, 0.01, 0)))
	s.want(8, one(record("x", 0.9, 0.01, 0)))
	s.want(12, nil)
	s.want(18, nil, fires)
}

func TestNoDataFollowsItsPolicy(t *testing.T) {
	below := quant.Estimate{Community: "x", Suppressed: true, Flags: []string{quant.FlagBelowFloor}}
	empty := record("x", 0.1, 0.01, 0, quant.FlagNoMembers)
	for policy, want := range map[NoData][2]string{
		noDataKeep: {"", ends}, noDataAlert: {"", ends}, noDataOK: {ends, ""},
	} {
		for _, missing := range []quant.Estimate{below, empty} {
			s := begin(t, rule(t, "point > 0.5", func(r *Rule) { r.NoData = policy }))
			s.want(0, one(record("x", 0.9, 0.01, 0)), fires)
			s.want(1, one(missing), strings.Fields(want[0])...)
			_ = s
		}
	}
	s := begin(t, rule(t, "point > 0.5", func(r *Rule) { r.NoData = noDataAlert }))
	s.want(0, one(below), fires)
	if s.all[0].Reason != "no data" {
		t.Errorf("reason %q", s.all[0].Reason)
	}
	s.want(1, one(record("x", 0.1, 0.01, 0)), ends)
}

func TestSilenceIsNoData(t *testing.T) {
	s := begin(
		t,
		rule(
			t,
			"point > 0.5",
			func(r *Rule) { r.NoData, r.NoDataAfter = noDataAlert, 10*time.Second },
		),
	)
	s.want(0, one(record("x", 0.1, 0.01, 0)))
	s.want(9, nil)
	s.want(10, nil, fires)
	if s.all[0].Reason != "no estimate for 10s" {
		t.Errorf("reason %q", s.all[0].Reason)
	}
	s.want(11, one(record("x", 0.1, 0.01, 0)), ends)
}

// An alert about a community below the privacy floor must have no figures.
func TestAlertsOfASuppressedCommunityHaveNoFigures(t *testing.T) {
	s := begin(t, rule(t, "point > 0.5", func(r *Rule) { r.NoData = noDataAlert }))
	s.want(0, one(record("x", 0.123, 0.01, 0)))
	s.want(1, one(quant.Estimate{Community: "x", Suppressed: true}), fires)
	active := s.engine.Active()
	for _, x := range append([]Transition{active[0].Transition}, s.all...) {
		if x.Point != 0 || x.Low != 0 || x.High != 0 || x.Reason != "no data" ||
			x.Text != "left of x: no data" || x.Moved != 0 {
			t.Errorf("%+v", x)
		}
	}
	if active[0].Now != "left of x: no data" {
		t.Errorf("now %q", active[0].Now)
	}
}

// A community that a rule names is watched before it has an estimate.
func TestNamedCommunityWithoutEstimateHasNoData(t *testing.T) {
	s := begin(
		t,
		rule(
			t,
			"point > 0.5",
			func(r *Rule) { r.Communities, r.NoData = []string{"x", "y-*"}, noDataAlert },
		),
	)
	s.want(0, nil, fires)
}

func TestChangeComparesWithThePast(t *testing.T) {
	s := begin(t, rule(t, "change > 0.1", func(r *Rule) { r.Over = time.Minute }))
	for i := range int64(50) {
		s.want(i, one(record("x", 0.2, 0.01, 0)))
	}
	s.want(50, one(record("x", 0.35, 0.01, 0))) // not known a minute ago
	s.want(60, nil)
	s.want(61, nil, fires) // now it is: .2
	s.want(100, nil)
	s.want(111, nil, ends) // the past is .35 by itself
	if s.all[0].Reason != "+15.0 points in 1m, the rule asks for above +10.0 points" ||
		!strings.Contains(s.all[0].Text, "left of x is 35.0 % (90 % interval 33.0 % to 37.0 %), "+
			"moved +15.0 points since 2026-03-01 12:00:01 UTC; ") {
		t.Errorf("reason %q, text %q", s.all[0].Reason, s.all[0].Text)
	}
	if end := s.all[1]; end.End != EndWindow || !strings.HasPrefix(end.Reason, "window passed: ") ||
		end.Moved != s.all[0].Moved || end.From != s.all[0].From {
		t.Errorf("the end is %+v", end)
	}
}

// The memory of a change must be bounded, and right, however many estimates there are.
func TestPastOfAChangeIsBoundedAndRight(t *testing.T) {
	r := rule(t, "change > 0.1", func(r *Rule) { r.Over = time.Minute }).WithDefaults()
	var d detector
	before := map[string]quant.Estimate{}
	value := func(at int64) float64 { return float64(at%977) / 977 }
	for at := int64(0); at < 300*second; at += second / 8 {
		list := one(record("x", value(at), 0.01, 0))
		moves(before, list)
		d.observe(&r, &list[0], 0, at)
		if len(d.Past) > changeCells+2 {
			t.Fatalf("%d samples", len(d.Past))
		}
		got, _, known := d.change(&r, at)
		cell := (at - 60*second) / second // the last before this cell
		if known != (cell > 0) {
			t.Fatalf("at %d: known %v", at, known)
		}
		if want := value(at) - value(cell*second-second/8); known && math.Abs(got-want) > 1e-9 {
			t.Fatalf("at %d: change %v, want %v", at, got, want)
		}
	}
}

// wander feeds a script estimates that move by a normal step of sd each second, and returns the
// last share.
func (s *script) wander(seed uint64, seconds int64, share, sd float64) float64 {
	draw := rand.New(rand.NewPCG(seed, 11))
	until := s.second + seconds
	for s.second < until {
		share += sd * draw.NormFloat64()
		s.at(s.second+1, record("x", share, 0.02, sd))
	}
	return share
}

// A CUSUM must learn the usual movement of a series, be quiet while it goes on, and find a
// jump of some ten times as much at once, whatever the standard errors.
func TestCUSUMLearnsTheUsualMovement(t *testing.T) {
	for seed := range uint64(5) {
		for _, sd := range []float64{0.002, 0.005, 0.01} {
			s := begin(t, rule(t, "cusum", func(r *Rule) { r.Every = time.Second }))
			share := s.wander(seed, 600, 0.3, sd)
			if len(s.all) > 0 {
				t.Errorf("seed %d, sd %v: fires while nothing happens: %+v", seed, sd, s.all[0])
			}
			s.at(s.second+1, record("x", share+20*sd, 0.02, sd))
			if len(s.all) != 1 || s.all[0].State != Firing {
				t.Errorf("seed %d, sd %v: a jump of 20 times sd gives %d", seed, sd, len(s.all))
				continue
			}
			if x := s.all[0]; math.Abs(x.Moved-20*sd) > 6*sd || x.From == "" ||
				!strings.Contains(x.Text, ", moved +") {
				t.Errorf("seed %d, sd %v: %+v", seed, sd, x)
			}
			for range 200 {
				s.at(s.second + 1)
			}
			if len(s.all) != 2 || s.all[1].End != EndWindow {
				t.Errorf("seed %d, sd %v: it does not end by itself: %+v", seed, sd, s.all)
			}
		}
	}
}

// A change rule without a number gets its threshold from the alarm budget. It must be quiet during
// usual changes of a series, fire at a jump in either direction, and end when the jump is older
// than the window.
func TestAChangeWithoutANumberFiresBeyondTheUsual(t *testing.T) {
	for _, way := range []float64{1, -1} {
		s := begin(t, rule(t, "change over 1m", nil))
		share := s.wander(3, 3600, 0.3, 0.001)
		if len(s.all) > 0 {
			t.Fatalf("fires while nothing happens: %+v", s.all[0])
		}
		s.at(s.second+1, record("x", share+way*0.2, 0.02, 0.001))
		if len(s.all) != 1 || math.Abs(s.all[0].Moved-way*0.2) > 0.05 {
			t.Fatalf("a jump gives %+v", s.all)
		}
		s.wander(4, 100, share+way*0.2, 0.001)
		if len(s.all) != 2 || s.all[1].End != EndWindow {
			t.Errorf("it does not end by itself: %+v", s.all)
		}
	}
}

// New labels, new coefficients, another gamma and another model revise an estimate, however
// far. No rule on a change may fire at a revision, and none may miss a movement in the same
// record.
func TestRevisionsAreNoChange(t *testing.T) {
	rules := []Rule{
		rule(t, "change > 0.1", func(r *Rule) { r.Name, r.Over = "up", 10*time.Second }),
		rule(t, "change < -0.1", func(r *Rule) { r.Name, r.Over = "down", 10*time.Second }),
		rule(t, "change over 10s", func(r *Rule) { r.Name = "any" }),
		rule(t, "cusum", func(r *Rule) { r.Name, r.Every = "sum", time.Second }),
	}
	s := begin(t, rules...)
	share := 0.3
	for i := range int64(300) {
		share += []float64{0.0004, -0.0004}[i%2]
		e := record("x", share, 0.02, 0.0004)
		switch i % 40 {
		case 20:
			share += 0.25
			e = revised(record("x", share, 0.02, 0.0004, quant.FlagNewPosterior), 0.25)
		case 30:
			share -= 0.25
			e = revised(record("x", share, 0.02, 0.0004), -0.25)
		}
		if i > 200 {
			e.ModelVersion = "m2"
		}
		s.want(i, one(e))
	}
	jump := record("x", share+0.4, 0.02, 0.0004, quant.FlagNewPosterior)
	jump.Moved, jump.Revised = []float64{0.15, -0.15}, []float64{0.25, -0.25}
	s.want(300, one(jump), "up x left firing", "any x left firing", "sum x left firing")
	for _, x := range s.all {
		if math.Abs(x.Moved-0.15) > 0.002 {
			t.Errorf("%s moved by %v", x.Rule, x.Moved)
		}
	}
}

// A movement that happened while a community was below the privacy floor is none that an alert
// tells.
func TestAMovementWhileACommunityWasHiddenIsNoChange(t *testing.T) {
	up := rule(t, "change > 0.1", func(r *Rule) { r.Name, r.Over = "up", 10*time.Second })
	down := rule(t, "change < -0.1", func(r *Rule) { r.Name, r.Over = "down", 10*time.Second })
	s := begin(t, up, down)
	for i := range int64(60) {
		e := record("x", 0.4+float64(i/40)*0.3, 0.01, 0.001)
		switch {
		case i >= 36 && i < 40:
			e = quant.Estimate{
				Community:  "x",
				Suppressed: true,
				Flags:      []string{quant.FlagBelowFloor},
			}
		}
		s.want(i, one(e))
	}
}

func TestChangedRulesKeepTheirState(t *testing.T) {
	s := begin(t, rule(t, "point > 0.5", nil))
	s.want(
		0, []quant.Estimate{record("x", 0.9, 0.01, 0), record("y", 0.9, 0.01, 0)}, fires,
		"r y left firing",
	)
	configure := func(rules ...Rule) {
		t.Helper()
		if err := s.engine.Configure(config(rules...)); err != nil {
			t.Fatal(err)
		}
	}
	configure(rule(t, "point > 0.5", nil))
	s.want(1, nil)
	configure(rule(t, "point > 0.6", func(r *Rule) { r.Communities = []string{"x"} }))
	s.want(2, nil, "r y left resolved")
	configure(rule(t, "point > 0.95", func(r *Rule) { r.Communities = []string{"x"} }))
	s.want(3, nil, ends)
	configure(rule(t, "point > 0.7", nil))
	s.want(4, nil, fires) // the estimate stands
	configure()
	s.want(5, nil, ends)
	if last := s.all[len(s.all)-1]; last.Reason != "the rule was removed" {
		t.Errorf("reason %q", last.Reason)
	}
	if err := s.engine.Configure(config(Rule{Name: ""})); err == nil {
		t.Error("a rule without a name is taken")
	}
	s.want(6, one(record("x", 0.9, 0.01, 0)))
}

func TestTransitionsOfOneEmissionAreInOrder(t *testing.T) {
	b := rule(t, "point > 0.5", func(r *Rule) { r.Name = "b" })
	a := rule(t, "point > 0.1", func(r *Rule) { r.Name, r.Classes = "a", nil })
	s := begin(t, b, a)
	s.want(
		0, []quant.Estimate{record("x", 0.8, 0.01, 0), record("y", 0.8, 0.01, 0)},
		"b x left firing", "b y left firing", "a x left firing", "a x right firing",
		"a y left firing", "a y right firing",
	)
	ids := map[string]bool{}
	for _, x := range s.all {
		ids[x.ID] = true
		if _, err := json.Marshal(x); err != nil || len(x.ID) != 32 {
			t.Errorf("%+v: %v", x, err)
		}
	}
	if len(ids) != len(s.all) {
		t.Errorf("%d ids of %d transitions", len(ids), len(s.all))
	}
	if c := s.engine.Counts(); c[0].Firing != 2 || c[1].Firing != 4 || c[0].Rule != "b" {
		t.Errorf("counts %+v", c)
	}
}

// A rule that cannot fire must say why, and for which communities.
func TestSilentAlertsSayWhy(t *testing.T) {
	s := begin(t, rule(t, "point > 0.5", func(r *Rule) { r.Classes = nil }))
	below := quant.Estimate{Community: "hidden", Suppressed: true}
	estimates := []quant.Estimate{
		below,
		record("switching", 0.9, 0.01, 0, quant.FlagModelSwitching, "thin:0"),
		record("sound", 0.4, 0.01, 0),
	}
	for i := range 7 {
		estimates = append(
			estimates,
			record(fmt.Sprint("mixed-", i), 0.9, 0.01, 0, "low-coverage", "mixed-model"),
		)
	}
	s.want(0, estimates, "r sound right firing")
	want := []Silence{
		{
			Why:         quant.FlagMixedModel,
			Alerts:      14,
			Communities: 7,
			Examples:    []string{"mixed-0", "mixed-1", "mixed-2", "mixed-3", "mixed-4"},
		},
		{Why: WhyNoData, Alerts: 2, Communities: 1, Examples: []string{"hidden"}},
		{Why: quant.FlagModelSwitching, Alerts: 2, Communities: 1, Examples: []string{"switching"}},
	}
	if diff := cmp.Diff(want, s.engine.Counts()[0].Silent,
		cmpopts.IgnoreUnexported(Silence{})); diff != "" {
		t.Errorf("silent (-want +got):\n%s", diff)
	}
	s.want(1, one(record("mixed-0", 0.9, 0.01, 0)), "r mixed-0 left firing")
	if got := s.engine.Counts()[0].Silent[0]; got.Communities != 6 || got.Examples[0] != "mixed-1" {
		t.Errorf("after one of them is good: %+v", got)
	}
}

func TestMethodIsTheFirstOrTheOneNamed(t *testing.T) {
	r := rule(t, "point > 0.5", nil)
	p := rule(t, "point > 0.5", func(r *Rule) { r.Name, r.Method = "p", "pcc" })
	s := begin(t, r, p)
	pcc := record("x", 0.9, 0.01, 0)
	pcc.Method = "pcc"
	s.want(0, []quant.Estimate{record("x", 0.1, 0.01, 0), pcc}, "p x left firing")
	s.want(1, []quant.Estimate{{Community: "x", Suppressed: true}}) // without a method: keep
}

func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"x", "x", true},
		{"x", "xy", false},
		{"*", "", true},
		{"*", "a/b", true},
		{"city-*", "city-berlin", true},
		{"city-*", "city", false},
		{"*-de", "a-de-de", true},
		{"*-de", "a-dex", false},
		{"a*b*c", "axxbyyc", true},
		{"a*b*c", "axxcyyb", false},
		{"?", "ab", false},
		{"a?c", "abc", true},
		{`a\*`, "a*", true},
		{`a\*`, "ab", false},
		{`a\\*`, `a\b`, true},
		{"[ab]*", "[ab]c", true},
		{"[ab]*", "ac", false},
		{`\[ab]`, "[ab]", true},
		{"a/*", "a/b/c", true},
		{"a?c", "aéc", true},
		{"a??c", "aéc", false},
		{`a\`, `a\`, false},
		{"", "", true},
	} {
		if got := Matches(c.pattern, c.name); got != c.want {
			t.Errorf("Matches(%q, %q) = %v", c.pattern, c.name, got)
		}
	}
}

func TestMistakesInRulesAreNamedAllAtOnce(t *testing.T) {
	half, bad := 0.5, 2.0
	err := config(
		Rule{},
		rule(t, "low > 3", func(r *Rule) { r.Name = "a" }),
		rule(
			t,
			"low > 0.3",
			func(r *Rule) { r.Name, r.Recover, r.Classes = "a", &half, []string{"green"} },
		),
		rule(t, "change > 0.3", func(r *Rule) { r.Name, r.Method = "b", "sis" }),
		rule(
			t,
			"cusum",
			func(r *Rule) { r.Name, r.Over, r.Recover, r.For = "c", time.Hour, &bad, -1 },
		),
		rule(t, "cusum", func(r *Rule) { r.Name, r.Threshold, r.NoData = "d", -1, "maybe" }),
		rule(t, "point > 0.3", func(r *Rule) {
			r.Name, r.Drift, r.Suppress, r.Labels = "e", 1, []string{
				"thick",
			}, map[string]string{
				"class": "x",
			}
		}),
	).Validate()
	for _, want := range []string{
		`alerts.rules[0] "": name`, `alerts.rules[0] "": when: missing`,
		`alerts.rules[1] "a": when: a share`, `alerts.rules[2] "a": name: another`,
		"recover: 0.5 is beyond low > 0.3", `"green" is not one of [left right]`,
		"over: change needs a time",
		`method: "sis" is not published`, `alerts.rules[4] "c": over`,
		"for, every, no_data or over is negative",
		"threshold -1", `"maybe" is not one of`, "only cusum has threshold and drift",
		`no flag "thick"`, `labels: "class"`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
	for text, want := range map[string]string{
		"difference(a,b)>-0.1": "", "low difference(a, b) > 0": "",
		"difference(a) > 0":    `"difference(a)" is not one of`,
		"difference(a, a) > 0": "is not one of",
		"low>0.3":              "", "cusum": "", " change < -0.1 ": "", "low": "is not a condition",
		"lo > 1":  `"lo" is not one of`,
		"low > x": "not a number", "low > NaN": "not a number", "cusum < 3": "is not a condition",
		"cusum > 0":          "above 0",
		"cusum drift .4 > 3": "", "cusum drift .4": "as in cusum drift 0.5 > 8",
		"change over 1h > .1": "", "change > .1 over 1h": "",
		"change over > 1": "want a duration", "over 1h > 1": `"over" is not one of`,
		"change over 1h": "", "cusum difference(a, b)": "",
		"low >= 1": "is not a condition",
	} {
		var r, again Rule
		err := r.ParseWhen(text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v %v", text, r, err)
		}
		if err2 := again.ParseWhen(r.When.String()); err == nil &&
			(err2 != nil || again.When != r.When && r.Threshold == 0) {
			t.Errorf("%q reads back as %+v, %v", text, again, err2)
		}
	}
}

// An alert that is refused for lack of room must be counted once, not again at each reload. Alerts
// of communities that are gone must leave their room to others. If the communities come back, their
// alerts must start as new ones.
func TestAlertsOfCommunitiesThatAreGoneAreForgotten(t *testing.T) {
	s := begin(
		t,
		rule(t, "low > 0.3", nil),
		rule(
			t,
			"low > 0.4",
			func(r *Rule) { r.Name, r.Communities = "named", Patterns{"here", "gone"} },
		),
	)
	gone := record("gone", 0.5, 0.01, 0.01, quant.FlagNoMembers)
	named := func() string {
		return fmt.Sprint(
			s.engine.Counts()[0].NoData,
			s.engine.Counts()[1].NoData,
			len(s.engine.list),
		)
	}
	day := int64(24 * time.Hour / time.Second)
	s.want(
		0, []quant.Estimate{record("gone", 0.5, 0.01, 0.01), record("here", 0.5, 0.01, 0.01)},
		"r gone left firing", "r here left firing", "named gone left firing",
		"named here left firing",
	)
	s.want(1, one(gone))
	s.want(8*day, nil) // a firing alert is not forgotten
	if got := named(); got != "1 1 4" {
		t.Errorf("while it fires: %s", got)
	}
	s.want(
		8*day+1, one(record("gone", 0.1, 0.01, 0.01)), "r gone left resolved",
		"named gone left resolved",
	)
	s.want(8*day+2, one(gone))
	s.want(14*day, nil)
	if got := named(); got != "1 1 4" {
		t.Errorf("within a week: %s", got)
	}
	s.want(15*day+3, nil)
	if got := named(); got != "0 1 3" {
		t.Errorf("after a week: %s", got)
	}
	s.want(
		16*day, one(record("gone", 0.5, 0.01, 0.01)), "r gone left firing",
		"named gone left firing",
	)
	if got := named(); got != "0 0 4" {
		t.Errorf("when it comes back: %s", got)
	}
}

func TestAlertsBeyondTheLimitAreCountedOnce(t *testing.T) {
	const over = 10
	r := rule(t, "point > 0.5", func(r *Rule) { r.Communities = nil })
	s := begin(t, r)
	var list []quant.Estimate
	for i := range alertsMax + over {
		list = append(list, record(fmt.Sprintf("c%06d", i), 0.1, 0.01, 0))
	}
	for second := range int64(2) { // the first time all of them, then those without room
		s.want(second, list)
		if n := s.engine.Dropped; n != over {
			t.Errorf("%d are counted, want %d", n, over)
		}
		list = list[len(list)-over:]
		if err := s.engine.Configure(config(r)); err != nil {
			t.Fatal(err)
		}
	}
}
