package evaluate

import (
	"bytes"
	"context"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/ingest/event"
	"gqlstream/quant"
)

// timedLog delivers a community with a predicted share of 0.3, and then, week by week,
// labels of people drawn at random. In the last week all labels are of class 1.
func timedLog(seed uint64, weeks, people, asked int) Load {
	return func(_ context.Context, visit func(*event.Batch) ([]event.Refusal, error)) error {
		r := rand.New(rand.NewPCG(seed, 1))
		start := event.Time(time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC).UnixNano())
		week := event.Time(7 * 24 * time.Hour)
		start -= start % week
		b := &event.Batch{First: 1, Last: 1, Time: start, Emit: true, EmitAll: true}
		for v := range people {
			units := []uint32{event.One, 0}
			if v*10 < people*3 {
				units = []uint32{0, event.One}
			}
			id := event.NumberID(uint64(v))
			b.Predictions = append(b.Predictions, event.Prediction{Vertex: id, Units: units})
			b.Members = append(b.Members, event.Member{Community: "c", Vertex: id, Multiplicity: 1})
		}
		if _, err := visit(b); err != nil {
			return err
		}
		for w := range weeks {
			at := start + event.Time(w)*week + week/2
			b := &event.Batch{First: event.Position(w + 2), Last: event.Position(w + 2), Time: at}
			for range asked {
				v := r.IntN(people)
				l := event.Label{Vertex: event.NumberID(uint64(v)), Time: at}
				if v*10 < people*3 || w == weeks-1 {
					l.Class = 1
				}
				b.Labels = append(b.Labels, l)
			}
			if _, err := visit(b); err != nil {
				return err
			}
		}
		return nil
	}
}

// Labels that agree with the estimate must show an error of about chance. Labels of a week
// in which the community moved without new predictions must show one far beyond chance.
func TestEachLabelIsPredictedBeforeItIsRead(t *testing.T) {
	plain := quant.DefaultOptions()
	plain.Method = "pcc"
	core := incremental.Config{Classes: 2, Estimates: []quant.Options{plain}}
	for seed := range uint64(5) {
		report, err := RunByTime(t.Context(), TimeConfig{
			Core: core, Period: 7 * 24 * time.Hour,
		}, timedLog(seed, 9, 1000, 100))
		if err != nil {
			t.Fatal(err)
		}
		if report.Labels != 900 || report.Unpredicted != 0 || len(report.Rows) != 10 {
			t.Fatalf("%d labels, %d rows", report.Labels, len(report.Rows))
		}
		for i, row := range report.Rows[:9] {
			moved := i == 8
			if row.Labels != 100 || moved != (row.Beyond > 0.5) ||
				!moved && row.Error > 4*row.Chance {
				t.Errorf("seed %d, week %d: %+v", seed, i, row)
			}
		}
		if all := report.Rows[9]; all.From != 0 || all.Labels != 900 || all.Compared != 9 {
			t.Errorf("seed %d: %+v", seed, all)
		}
		bins := 0
		for _, b := range report.Bins {
			bins += b.Labels
		}
		if bins != 1800 {
			t.Errorf("%d labels times classes are in bins", bins)
		}
	}
}

// Labels that came before any estimate are counted, and the written report can be read.
func TestTimeReportsAreWritten(t *testing.T) {
	core := incremental.Config{
		Classes: 2, Communities: []graphstore.Rule{{Name: "all", Kind: graphstore.Everyone}},
	}
	report, err := RunByTime(
		t.Context(), TimeConfig{Core: core, Period: time.Hour}, timedLog(1, 4, 300, 40),
	)
	if err != nil {
		t.Fatal(err)
	}
	for _, format := range []string{"markdown", "json"} {
		var out bytes.Buffer
		if err := report.Write(&out, format); err != nil ||
			!strings.Contains(out.String(), "auto") {
			t.Errorf("%s: %v\n%s", format, err, out.String())
		}
	}
	paths, err := report.Plot(t.TempDir())
	if err != nil || len(paths) != 6 || filepath.Base(paths[0]) != "time-error.png" {
		t.Errorf("%v: %v", paths, err)
	}
	for span, want := range map[time.Duration]time.Duration{
		60 * 24 * time.Hour: 7 * 24 * time.Hour, 10 * 24 * time.Hour: 24 * time.Hour,
		10 * time.Minute: time.Minute, 8 * time.Second: 2 * time.Second,
	} {
		if got := PeriodOf(span); got != want {
			t.Errorf("a log of %v has periods of %v, want %v", span, got, want)
		}
	}
}
