package pipeline

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gqlstream/incremental"
	"gqlstream/ingest/event"
	"gqlstream/sinks/web"
)

// confused returns a warm core of 200 people: each has a prediction and then a label. Those of even
// number are in the community "even", the first five in "few". All predictions
// change after the labels, in the same version. The counts are those of the labels' time.
func confused(t *testing.T) (core *incremental.Core, all, even web.Counts) {
	t.Helper()
	core, err := incremental.New(incremental.Config{Classes: 3})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(core.Close)
	r := rand.New(rand.NewPCG(1, 2))
	sure := func(class int) []uint32 {
		units := make([]uint32, 3)
		units[class] = event.One
		return units
	}
	all, even = web.NewCounts(3), web.NewCounts(3)
	hour := event.Time(time.Hour)
	first := event.Batch{Time: hour, First: 1, Last: 1, Emit: true}
	labels := event.Batch{Time: 900 * hour, First: 2, Last: 2, Emit: true}
	later := event.Batch{Time: 1000 * hour, First: 3, Last: 3, Emit: true}
	for i := range uint64(200) {
		id := event.NumberID(i)
		truth, said := r.IntN(3), r.IntN(3)
		first.Predictions = append(first.Predictions, event.Prediction{
			Vertex: id, Units: sure(said), Position: 1, Time: hour,
		})
		labels.Labels = append(labels.Labels, event.Label{
			Vertex: id, Class: event.Class(truth), Position: 2,
			Time: 2*hour + event.Time(i)*hour,
		})
		later.Predictions = append(later.Predictions, event.Prediction{
			Vertex: id, Units: sure(truth), Position: 3, Time: 1000 * hour,
		})
		all[truth][said]++
		member := event.Member{Community: "even", Vertex: id, Multiplicity: 1}
		if i%2 == 0 {
			even[truth][said]++
			first.Members = append(first.Members, member)
		}
		if member.Community = "few"; i < 5 {
			first.Members = append(first.Members, member)
		}
	}
	for _, b := range []*event.Batch{&first, &labels, &later} {
		if result := core.Step(b); len(result.Refused) > 0 {
			t.Fatal(result.Refused)
		}
	}
	return core, all, even
}

// The confusion must compare each label with the prediction of its time, over all, by
// community and by period, whatever the present predictions are.
func TestConfusionIsOfTheTimeOfTheLabel(t *testing.T) {
	core, all, even := confused(t)
	got := countConfusion(core, 0, 3)
	if fmt.Sprint(got.All) != fmt.Sprint(all) {
		t.Errorf("all: %v, want %v", got.All, all)
	}
	var names []string
	for _, c := range got.Communities {
		names = append(names, c.Community)
		if c.Community == "even" && fmt.Sprint(c.Counts) != fmt.Sprint(even) {
			t.Errorf("even: %v, want %v", c.Counts, even)
		}
	}
	if !slices.Equal(names, []string{"even", "few"}) {
		t.Errorf("communities %q, want those with most labels first", names)
	}
	sum := web.NewCounts(3)
	for i, p := range got.Periods {
		if i > 0 && !p.From.After(got.Periods[i-1].To) || p.To.Before(p.From) {
			t.Errorf("period %d is from %v to %v", i, p.From, p.To)
		}
		for truth, row := range p.Counts {
			for said, n := range row {
				sum[truth][said] += n
			}
		}
	}
	if len(got.Periods) < 4 || len(got.Periods) > periodsMost ||
		fmt.Sprint(sum) != fmt.Sprint(all) {
		t.Errorf("%d periods with %v, want %v", len(got.Periods), sum, all)
	}
}

// Under a privacy floor no community below it is listed, and no count tells of fewer people.
func TestConfusionKeepsThePrivacyFloor(t *testing.T) {
	core, _, _ := confused(t)
	const floor = 11
	got := countConfusion(core, floor, 3)
	counts := []web.Counts{got.All}
	for _, c := range got.Communities {
		if c.Community == "few" {
			t.Errorf("%s has five people: %v", c.Community, c.Counts)
		}
		counts = append(counts, c.Counts)
	}
	for _, p := range got.Periods {
		counts = append(counts, p.Counts)
	}
	for _, rows := range counts {
		for _, n := range slices.Concat(rows...) {
			if n%floor != 0 {
				t.Errorf("%d is no multiple of the floor", n)
			}
		}
	}
	if len(got.Communities) != 1 {
		t.Errorf("%d communities, want even alone", len(got.Communities))
	}
}

// The answer stays bounded, whatever the number of classes.
func TestConfusionIsBounded(t *testing.T) {
	for _, classes := range []int{2, 20, 256} {
		most := max(1, min(confusionCommunities, confusionCells/(classes*classes)))
		if cells := most * classes * classes; cells > max(confusionCells, classes*classes) {
			t.Errorf("%d classes: %d counts", classes, cells)
		}
	}
}
