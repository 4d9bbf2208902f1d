package tally

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"gqlstream/ingest/event"
)

// A gain must be the power of two of the formula, halve with each half-life, and be zero
// for labels that are too old.
func TestGainIsAPowerOfTwo(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		halfLife := uint64(1 + r.Int64N(int64(HalfLifeMax)))
		if r.IntN(2) == 0 {
			halfLife = 1 + halfLife%uint64(time.Hour)
		}
		landmark := uint64(r.Int64N(math.MaxInt64))
		at := event.Time(landmark) - event.Time(
			r.Float64()*min(float64(landmark), 50*float64(halfLife)),
		)
		got := gain(landmark, at, halfLife)
		age := float64(landmark-uint64(at)) / float64(halfLife)
		want := math.Exp2(-age)
		if age >= decayHalfLives {
			want = 0
		}
		if math.Abs(got-want) > 1e-9*want {
			t.Fatalf(
				"half-life %d, landmark %d, time %d: %g, want %g", halfLife, landmark, at, got,
				want,
			)
		}
	}
	if g := gain(100, 200, 7); g != 1 {
		t.Errorf("a label after the landmark weighs %v", g)
	}
}
