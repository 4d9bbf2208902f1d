package alerts

import (
	"encoding/json"
	"fmt"
	"math"
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
	if first.Alert != last.Alert || first.ID == last.ID || last.Since != first.Time || first.Class != "left" ||
		first.Reason != "low 0.31; low > 0.3, recovers at 0.25" ||
		first.Pipeline != "test" ||
		first.Method != "auto" {
		t.Errorf("transitions %+v\n%+v", first, last)
	}
}

func TestConditionMustHoldForItsTime(t *testing.T) {
	s := begin(t, rule(t, "high < 0.1", func(r *Rule) { r.For = 10 * time.Second }))
	s.want(0, one(record("x", 0.05, 0.01, 0)))
	s.want(5, one(record("x", 0.2, 0.01, 0)))
	s.want(6, one(record("x", 0.05, 0.01, 0)))
	if a := s.engine.Active(); len(a) != 1 || a[0].State != Pending ||
		!strings.HasPrefix(a[0].Now, "high 0.07; high < 0.1") {
		t.Errorf("active %+v", a)
	}
	s.want(15, nil)
	s.want(16, nil, fires) // by time alone: the estimate still stands
	s.want(17, one(record("x", 0.2, 0.01, 0)), ends)
}

func TestSuppressedEstimatesDecideNothing(t *testing.T) {
	for _, flag := range []string{"thin:1", "mixed-model", "model-switching", "new-posterior"} {
		s := begin(t, rule(t, "point > 0.5", func(r *Rule) { r.For = 4 * time.Second }))
		s.want(0, one(record("x", 0.9, 0.01, 0, flag)))
		s.want(5, nil)
		s.want(6, one(record("x", 0.9, 0.01, 0)))
		s.want(8, one(record("x", 0.9, 0.01, 0, flag))) // pending begins again
		s.want(9, one(record("x", 0.9, 0.01, 0)))
		s.want(12, nil)
		s.want(13, nil, fires)
		s.want(14, one(record("x", 0.1, 0.01, 0, flag)))
		s.want(15, one(record("x", 0.1, 0.01, 0)), ends)
	}
	s := begin(t, rule(t, "point > 0.5", func(r *Rule) { r.Suppress = []string{} }))
	s.want(0, one(record("x", 0.9, 0.01, 0, "thin:1")), fires)
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

// What is said of a community below the privacy floor must hold no figures.
func TestNothingIsToldOfASuppressedCommunity(t *testing.T) {
	s := begin(t, rule(t, "point > 0.5", func(r *Rule) { r.NoData = noDataAlert }))
	s.want(0, one(record("x", 0.123, 0.01, 0)))
	s.want(1, one(quant.Estimate{Community: "x", Suppressed: true}), fires)
	active := s.engine.Active()
	for _, x := range append([]Transition{active[0].Transition}, s.all...) {
		if x.Point != 0 || x.Low != 0 || x.High != 0 || x.Reason != "no data" {
			t.Errorf("%+v", x)
		}
	}
	if active[0].Now != "no data" {
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
	if !strings.HasPrefix(s.all[0].Reason, "change 0.15; change > 0.1 in 1m0s") {
		t.Errorf("reason %q", s.all[0].Reason)
	}
}

// What a change remembers must be bounded, and right, however often there are
// estimates.
func TestPastOfAChangeIsBoundedAndRight(t *testing.T) {
	r := rule(t, "change > 0.1", func(r *Rule) { r.Over = time.Minute }).WithDefaults()
	var d detector
	value := func(at int64) float64 { return float64(at%977) / 977 }
	for at := int64(0); at < 300*second; at += second / 8 {
		e := record("x", value(at), 0.01, 0)
		d.observe(&r, &e, 0, at)
		if len(d.Past) > changeCells+2 {
			t.Fatalf("%d samples", len(d.Past))
		}
		got, known := d.change(&r, at)
		cell := (at - 60*second) / second // the last before this cell
		if known != (cell > 0) {
			t.Fatalf("at %d: known %v", at, known)
		}
		if want := value(at) - value(cell*second-second/8); known && got != want {
			t.Fatalf("at %d: change %v, want %v", at, got, want)
		}
	}
}

func TestCUSUMAddsUpSmallChanges(t *testing.T) {
	s := begin(
		t,
		rule(t, "cusum", func(r *Rule) { r.Drift, r.Threshold, r.Every = 0.5, 4.2, time.Second }),
	)
	p := 0.3
	s.want(0, one(record("x", p, 0.02, 0.01)))
	for i := int64(1); i <= 8; i++ { // z = 1/√1.01, for a twentieth of se is noise: the sum grows by almost a half
		p += 0.01
		s.want(i, one(record("x", p, 0.02, 0.01)))
	}
	p += 0.01
	s.want(9, one(record("x", p, 0.02, 0.01)), fires)
	if !strings.HasPrefix(s.all[0].Reason, "cusum up 4.455, down 0") {
		t.Errorf("reason %q", s.all[0].Reason)
	}
	for i := int64(10); i < 18; i++ { // nothing moves: it falls by a half each time
		s.want(i, nil)
	}
	s.at(18) // nothing is left but rounding
	s.at(19)
	if len(s.all) != 2 || s.all[1].State != Resolved {
		t.Errorf("transitions %v", s.all)
	}
	s.want(20, one(record("x", p-0.2, 0.02, 0.01)), fires) // one step down, of 20 standard errors
}

// Many estimates between two evaluations add up to one step, and their errors to no more
// than those of two estimates that share nothing.
func TestCUSUMCountsEvaluationsNotEstimates(t *testing.T) {
	for _, c := range []struct{ se, want float64 }{
		{0.05, math.Sqrt(10*0.01*0.01 + 0.0025*0.0025)},
		{0.02, math.Sqrt(2*0.02*0.02 + 0.001*0.001)},
	} {
		s := begin(
			t,
			rule(
				t,
				"cusum",
				func(r *Rule) { r.Drift, r.Threshold, r.Every = 0.5, 40, 10*time.Second },
			),
		)
		p := 0.3
		for i := range int64(100) {
			p += 0.004
			s.at(i, record("x", p, c.se, 0.01))
		}
		d := &s.engine.list[0].Detector
		if want := 9 * (0.04/c.want - 0.5); math.Abs(d.Up-want) > 0.5 {
			t.Errorf("se %v: sum %v, want about %v", c.se, d.Up, want)
		}
	}
}

// A new model is no news of the community.
func TestNewModelVersionBeginsDetectorsAgain(t *testing.T) {
	change := rule(t, "change > 0.1", func(r *Rule) { r.Name, r.Over = "change", 10*time.Second })
	sum := rule(t, "cusum", func(r *Rule) { r.Name, r.Every = "sum", time.Second })
	s := begin(t, change, sum)
	for i := range int64(20) {
		s.want(i, one(record("x", 0.2, 0.01, 0.01)))
	}
	for i := int64(20); i < 40; i++ {
		e := record("x", 0.6, 0.01, 0.01)
		e.ModelVersion = "m2"
		s.want(i, one(e))
	}
}

// Nor are new coefficients of the posterior, however far they move an estimate; what moves
// afterwards is news.
func TestNewCoefficientsAreNoChange(t *testing.T) {
	change := rule(t, "change > 0.1", func(r *Rule) { r.Name, r.Over = "change", 10*time.Second })
	down := rule(t, "change < -0.1", func(r *Rule) { r.Name, r.Over = "down", 10*time.Second })
	sum := rule(t, "cusum", func(r *Rule) { r.Name, r.Every = "sum", time.Second })
	s := begin(t, change, down, sum)
	p := 0.2
	for i := range int64(60) {
		var flags []string
		if i%20 == 19 {
			p += 0.2
			flags = []string{"low-coverage", quant.FlagNewPosterior}
		}
		s.want(i, one(record("x", p, 0.01, 0.001, flags...)))
	}
	news := append(
		s.at(60, record("x", p, 0.01, 0.001)),
		s.at(61, record("x", p+0.15, 0.01, 0.001))...)
	if len(news) != 2 || !strings.HasPrefix(news[0], "change x left firing") ||
		!strings.HasPrefix(news[1], "sum x left firing") {
		t.Errorf("of a real change after new coefficients: %q", news)
	}
}

// The record with the flag is one that a change can begin at: it stands for some time, and the next one tells what moved.
func TestACUSUMBeginsAtNewCoefficients(t *testing.T) {
	s := begin(t, rule(t, "cusum", func(r *Rule) { r.Every = time.Second }))
	for i := range int64(20) {
		s.want(i, one(record("x", 0.2, 0.01, 0.001)))
	}
	s.want(20, one(record("x", 0.4, 0.01, 0.001, quant.FlagNewPosterior)))
	s.want(30, one(record("x", 0.55, 0.01, 0.001)), "r x left firing")
}

// Also where a community was below the privacy floor meanwhile, and its last point is hidden.
func TestCoefficientsFittedWhileACommunityWasHiddenAreNoChange(t *testing.T) {
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
		case i == 40:
			e.Flags = []string{quant.FlagNewPosterior}
		}
		s.want(i, one(e))
	}
}

func TestRulesThatChangeKeepWhatTheyCan(t *testing.T) {
	s := begin(t, rule(t, "point > 0.5", nil))
	s.want(
		0,
		[]quant.Estimate{record("x", 0.9, 0.01, 0), record("y", 0.9, 0.01, 0)},
		fires,
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
		0,
		[]quant.Estimate{record("x", 0.8, 0.01, 0), record("y", 0.8, 0.01, 0)},
		"b x left firing",
		"b y left firing",
		"a x left firing",
		"a x right firing",
		"a y left firing",
		"a y right firing",
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

// A rule whose alerts cannot fire must say why, and of which communities.
func TestSilentAlertsSayWhy(t *testing.T) {
	s := begin(t, rule(t, "point > 0.5", func(r *Rule) { r.Classes = nil }))
	below := quant.Estimate{Community: "hidden", Suppressed: true}
	estimates := []quant.Estimate{
		below,
		record("mixed", 0.9, 0.01, 0, "mixed-model", "thin:0"),
		record("sound", 0.4, 0.01, 0),
	}
	for i := range 7 {
		estimates = append(
			estimates,
			record(fmt.Sprint("thin-", i), 0.9, 0.01, 0, "low-coverage", "thin:0"),
		)
	}
	s.want(0, estimates, "r sound right firing")
	want := []Silence{
		{
			Why:         quant.FlagThin,
			Alerts:      14,
			Communities: 7,
			Examples:    []string{"thin-0", "thin-1", "thin-2", "thin-3", "thin-4"},
		},
		{Why: WhyNoData, Alerts: 2, Communities: 1, Examples: []string{"hidden"}},
		{Why: quant.FlagMixedModel, Alerts: 2, Communities: 1, Examples: []string{"mixed"}},
	}
	if diff := cmp.Diff(want, s.engine.Counts()[0].Silent, cmpopts.IgnoreUnexported(Silence{})); diff != "" {
		t.Errorf("silent (-want +got):\n%s", diff)
	}
	s.want(1, one(record("thin-0", 0.9, 0.01, 0)), "r thin-0 left firing")
	if got := s.engine.Counts()[0].Silent[0]; got.Communities != 6 || got.Examples[0] != "thin-1" {
		t.Errorf("after one of them has labels: %+v", got)
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
		`alerts[0] "": name`, `alerts[0] "": when: missing`, `alerts[1] "a": when: a share`, `alerts[2] "a": name: another`,
		"recover: 0.5 is beyond low > 0.3", `"green" is none of [left right]`, "over: needed by change",
		`method: "sis" is not published`, `alerts[4] "c": over`, "for, every, no_data or over is negative",
		"threshold -1", `"maybe" is none of`, "threshold and drift are of cusum", `no flag "thick"`, `labels: "class"`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
	for text, want := range map[string]string{
		"difference(a,b)>-0.1": "", "low difference(a, b) > 0": "", "difference(a) > 0": `there is no "difference(a)"`, "difference(a, a) > 0": "is not a condition",
		"low>0.3": "", "cusum": "", " change < -0.1 ": "", "low": "is not a condition", "lo > 1": `there is no "lo"`,
		"low > x": "not a number", "low > NaN": "not a number", "cusum < 3": "is not a condition", "cusum > 0": "above 0",
		"cusum drift .4 > 3": "", "change over 1h > .1": "", "change > .1 over 1h": "", "change over > 1": "want a duration", "over 1h > 1": "is not a condition",
		"low >= 1": "is not a condition",
	} {
		var r, again Rule
		err := r.ParseWhen(text)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v %v", text, r, err)
		}
		if err2 := again.ParseWhen(r.When.String()); err == nil &&
			(err2 != nil || again.When != r.When) {
			t.Errorf("%q reads back as %+v, %v", text, again, err2)
		}
	}
}

// What there is no room for must be counted once, not again with every reload.
// Alerts of communities that are gone must leave their room to others, and begin as new ones when the
// communities come back.
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
		0,
		[]quant.Estimate{record("gone", 0.5, 0.01, 0.01), record("here", 0.5, 0.01, 0.01)},
		"r gone left firing",
		"r here left firing",
		"named gone left firing",
		"named here left firing",
	)
	s.want(1, one(gone))
	s.want(8*day, nil) // what fires is not forgotten
	if got := named(); got != "1 1 4" {
		t.Errorf("while it fires: %s", got)
	}
	s.want(
		8*day+1,
		one(record("gone", 0.1, 0.01, 0.01)),
		"r gone left resolved",
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
		16*day,
		one(record("gone", 0.5, 0.01, 0.01)),
		"r gone left firing",
		"named gone left firing",
	)
	if got := named(); got != "0 0 4" {
		t.Errorf("when it comes back: %s", got)
	}
}

func TestAlertsWithoutRoomAreCountedOnce(t *testing.T) {
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
