package incremental

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
	"gqlstream/ingest/event/eventtest"
	"gqlstream/quant"
)

// halfLifeOf returns half-lives that an eventtest history has few or many of, longer ones
// than any label lasts, or none.
func halfLifeOf(seed uint64) time.Duration {
	return []time.Duration{0, time.Minute, 0, 2 * time.Second, 0, 20 * time.Millisecond}[seed%6]
}

// decayed runs a history through a core, with label times from at. It returns the core and
// its last estimates.
func decayed(
	t *testing.T, seed uint64, halfLife time.Duration, at func(i int, l *event.Label),
) ([]quant.Estimate, *Core) {
	t.Helper()
	stream := eventtest.New(seed, eventtest.Config{Weighted: seed%2 == 0})
	config := allMethods(stream.Config.Classes)
	config.HalfLife, config.Engine = halfLife, EnginePrimal
	core := newCore(t, config)
	t.Cleanup(core.Close)
	core.HoldAges(Ages{}) // labels of members count in full, since these tests are of calibration
	var estimates []quant.Estimate
	labels := 0
	for i := range 12 {
		batch := stream.Next()
		for j := range batch.Labels {
			at(labels, &batch.Labels[j])
			labels++
		}
		batch.Emit = i == 11
		estimates = core.Step(batch).Estimates
	}
	return estimates, core
}

// Labels of one time must give the estimates that they give without a half-life. Where
// the confusion is singular, which of many solutions is found hangs on the last bit.
func TestLabelsOfOneTimeDoNotDecay(t *testing.T) {
	compared := 0
	for seed := range uint64(60) {
		same := func(_ int, l *event.Label) {
			l.Time = event.Time(1_600_000_000*time.Second) +
				event.Time(seed)
		}
		plain, _ := decayed(t, seed, 0, same)
		for _, halfLife := range []time.Duration{time.Millisecond, 720 * time.Hour} {
			aged, _ := decayed(t, seed, halfLife, same)
			if len(aged) != len(plain) {
				t.Fatalf(
					"seed %d: %d estimates, %d without a half-life", seed, len(aged), len(plain),
				)
			}
			for i := range plain {
				if strings.Contains(strings.Join(plain[i].Flags, " "), quant.FlagIllConditioned) {
					continue
				}
				compared++
				diff := cmp.Diff(plain[i], aged[i], within(1e-6), notConfig) +
					cmp.Diff(plain[i].Prevalence, aged[i].Prevalence, within(1e-9)) +
					cmp.Diff(plain[i].NEff, aged[i].NEff, within(1e-9))
				if diff != "" {
					t.Fatalf(
						"seed %d half-life %v: without (-) and with it (+):\n%s", seed, halfLife,
						diff,
					)
				}
			}
		}
	}
	if compared < 1000 {
		t.Fatalf("only %d estimates were compared", compared)
	}
}

// notConfig leaves out the digest of the configuration, which must differ, and the
// influence of coefficients, because the sign of an eigenvector depends on rounding.
var notConfig = cmpopts.IgnoreFields(quant.Estimate{}, "Config", "Influence")

// within lets numbers differ by a little. Errors are roots: theirs are those of rounding.
func within(share float64) cmp.Option {
	return cmp.Comparer(
		func(a, b float64) bool { return math.Abs(a-b) <= share*max(1, math.Abs(a)) },
	)
}

// With a half-life far below the time between two labels, only the newest label counts.
// Labelled members still count in full, see decayed.
func TestOnlyTheYoungestLabelCounts(t *testing.T) {
	for seed := range uint64(40) {
		each := func(i int, l *event.Label) {
			l.Time = event.Time(1_600_000_000+
				100*i) * event.Time(time.Second)
		}
		plain, _ := decayed(t, seed, 0, each)
		aged, core := decayed(t, seed, time.Second, each)
		if len(core.tallies.Rows()) == 0 {
			continue
		}
		for i := range aged {
			if aged[i].Labelled != plain[i].Labelled {
				t.Fatalf(
					"seed %d: %v labelled members, %v without a half-life", seed, aged[i].Labelled,
					plain[i].Labelled,
				)
			}
			if aged[i].Method != string(quant.MLPE) || aged[i].Members <= aged[i].Labelled {
				continue
			}
			total := 0.0
			for _, n := range aged[i].NEff {
				total += n
			}
			if math.Abs(total-1) > 1e-6 {
				t.Fatalf(
					"seed %d %s: n_eff %v, want one label", seed, aged[i].Community, aged[i].NEff,
				)
			}
		}
	}
}

// A half-life must not be taken where it cannot be kept.
func TestHalfLifeIsChecked(t *testing.T) {
	for text, change := range map[string]func(*Config){
		"want 0": func(c *Config) { c.HalfLife = -time.Hour },
		"to 175": func(c *Config) { c.HalfLife = 30 * 365 * 24 * time.Hour },
	} {
		config := Config{Classes: 2, HalfLife: time.Hour}
		change(&config)
		if err := config.Validate(); err == nil || !strings.Contains(err.Error(), text) ||
			!strings.Contains(err.Error(), "label_half_life") {
			t.Errorf("error %v, want one of label_half_life with %q", err, text)
		}
	}
	config := Config{Classes: 2, HalfLife: time.Hour}
	if err := config.Validate(); err != nil {
		t.Error(err)
	}
	if config.Digest() == (Config{Classes: 2}).Digest() {
		t.Error("a half-life does not show in the digest")
	}
}

// The effective numbers of labels must be those of the formula on the labels that stand,
// each as old as when it was last asserted.
func TestEffectiveLabelsAreThoseOfTheirAges(t *testing.T) {
	compared := 0
	for seed := range uint64(60) {
		halfLife := time.Duration(1+seed%7) * 10 * time.Second
		at := func(i int, l *event.Label) {
			l.Time = event.Time(1_600_000_000+
				i*i*7%300) * event.Time(time.Second)
		}
		estimates, core := decayed(t, seed, halfLife, at)
		view, one, square := core.View(), make([]float64, core.config.Classes), make(
			[]float64,
			core.config.Classes,
		)
		for v := range graphstore.Vertex(view.Vertices()) {
			label := view.Label(v)
			if label.Class == event.NoClass || label.Role != event.Calibrate ||
				view.Prediction(v) == nil {
				continue
			}
			age := time.Duration(event.Time(1_600_000_300*time.Second) - view.LabelTime(v))
			g := math.Exp2(-age.Seconds() / halfLife.Seconds())
			one[label.Class] += g
			square[label.Class] += g * g
		}
		for _, e := range estimates {
			if e.Method != string(quant.MLPE) || e.Members <= e.Labelled || e.Suppressed {
				continue
			}
			for i, n := range e.NEff {
				want := 0.0
				if square[i] > 0 {
					want = one[i] * one[i] / square[i]
				}
				if math.Abs(n-want) > 1e-6*max(1, want) {
					t.Fatalf(
						"seed %d half-life %v %s: n_eff %v of class %d, want %v", seed, halfLife,
						e.Community, n, i, want,
					)
				}
				compared++
			}
		}
	}
	if compared < 100 {
		t.Fatalf("only %d numbers were compared", compared)
	}
}
