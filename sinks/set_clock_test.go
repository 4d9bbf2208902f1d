package sinks

import (
	"math"
	"slices"
	"testing"
	"time"

	"gqlstream/quant"
)

// After a clock event the unfinished roll-ups must hold only records that are not later than the
// event. Later records must go into the roll-ups of their own periods.
func TestRollupsFollowAClockEvent(t *testing.T) {
	begun := time.Date(2026, 5, 1, 12, 0, 30, 0, time.UTC).UnixNano()
	r := NewRollups(RollupsConfig{Streams: StreamsConfig{Names: DefaultNames()}})
	shares := 0.0
	put := func(at int64, share float64) {
		t.Helper()
		if _, err := r.advance(at); err != nil {
			t.Fatal(err)
		}
		one := estimate("a", "auto", 1)
		one.Prevalence = []float64{share, 1 - share}
		r.add([]quant.Estimate{one}, at)
	}
	for i := range int64(20) {
		put(begun+i*int64(10*time.Second), .1)
		shares += .1
	}
	for range 5 {
		put(begun+int64(25*time.Hour), .9) // the clock leaps, and log time stands
	}
	for i := range int64(20) {
		put(begun+int64(200+10*i)*int64(time.Second), .3)
		shares += .3
	}
	s := r.state.Series[0]
	for i, row := range resolutions {
		now := begun + 390*int64(time.Second)
		for j, one := range s.Rollups[i] {
			if one.Time.UnixNano() > now || j > 0 && !s.Rollups[i][j-1].Time.Before(one.Time) {
				t.Errorf("%s: %v follows %v", row.name, one.Time, s.Rollups[i][max(j-1, 0)].Time)
			}
		}
	}
	day := s.Rollups[len(resolutions)-1]
	if one := day[len(day)-1]; len(day) != 1 || one.Count != 40 ||
		math.Abs(one.Mean[0]-shares/40) > 2e-6 {
		t.Errorf(
			"%d days, the last has %d records of mean %v; want 1 of 40 and %v", len(day), one.Count,
			one.Mean, shares/40,
		)
	}
}

// After a clock event an idle shard writes its marks as often as before.
func TestHeartbeatsFollowAClockEvent(t *testing.T) {
	var beats Heartbeats
	second := int64(time.Second)
	published := func(at int64) bool { return beats.Publishes(&Emission{Time: at}) }
	for at := 100 * second; at < 110*second; at += second {
		published(at)
	}
	published(100_000 * second)
	var at []int64
	for now := 111 * second; now < 120*second; now += second {
		if published(now) {
			at = append(at, now/second)
		}
	}
	if want := []int64{113, 115, 118}; !slices.Equal(at, want) {
		t.Errorf("marks at %v, want %v", at, want)
	}
}
