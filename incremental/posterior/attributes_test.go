package posterior

import (
	"math"
	"strings"
	"testing"

	"gqlstream/ingest/event"
)

func TestFeaturesOfValues(t *testing.T) {
	number := func(x float64) event.Value {
		return event.Value{Kind: event.NumberValue, Number: x}
	}
	text := func(s string) event.Value { return event.Value{Kind: event.StringValue, Text: s} }
	age := Feature{Key: "age", Knots: []float64{0, 10, 10, 10, 40}}
	berlin := Feature{Key: "city", Value: text("Berlin"), Share: 0.25}
	for _, c := range []struct {
		of    Feature
		value event.Value
		want  float64
	}{
		{age, number(-5), -1},
		{age, number(0), -1},
		{age, number(5), -0.75},
		{age, number(10), 0}, // in the middle of those who are ten
		{age, number(25), 0.75},
		{age, number(40), 1},
		{age, number(1e300), 1},
		{age, text("old"), 0},
		{age, event.Value{}, 0},
		{berlin, text("Berlin"), 0.75},
		{berlin, text("Bonn"), -0.25},
		{berlin, event.Value{}, 0},
		{berlin, number(3), 0},
	} {
		if got := float64(c.of.of(c.value)) / featureUnit; math.Abs(got-c.want) > 1e-3 {
			t.Errorf("%s of %v is %v, want %v", c.of.Key, c.value, got, c.want)
		}
	}
}

// Members who all live in one city are far from the graph in this attribute, and a random sample in
// none.
func TestMembersOfOneValueAreApart(t *testing.T) {
	city := func(s string) event.Value { return event.Value{Kind: event.StringValue, Text: s} }
	e := &Epoch{
		Features: []Feature{
			{Key: "age", Knots: []float64{0, 1}},
			{Key: "city", Value: city("Berlin"), Share: 0.25},
			{Key: "city", Value: city("Bonn"), Share: 0.5},
		},
		FeatureMeans: []float64{0, 0, 0}, FeatureVariances: []float64{0.3, 0, 0},
	}
	if got := strings.Join(e.Attributes(), ", "); got != "age, city (2 values)" {
		t.Errorf("the epoch reads %s", got)
	}
	if got := e.Apart([]float64{0, 0.75, -0.5}, 1e6); math.Abs(got-math.Log(4)) > 1e-3 {
		t.Errorf("members from Berlin are %v apart, want log 4", got)
	}
	if got := e.Apart([]float64{0.5, 0, 0}, 1e6); math.Abs(got-0.25/0.6) > 1e-3 {
		t.Errorf("old members are %v apart, want 0.42", got)
	}
	if got := e.Apart([]float64{0.01, 0.005, -0.01}, 100); got > 0 {
		t.Errorf("members like all are %v apart", got)
	}
}
