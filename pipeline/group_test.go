package pipeline

import (
	"testing"
	"time"
)

// A worker that is to estimate shards that nobody else estimates must start again at once. One that
// only stands in waits for its turn, and until others can publish its shards, but not for ever: two
// that start again together would leave a gap.
func TestWorkersStartAgainOneAfterTheOther(t *testing.T) {
	for _, c := range []struct {
		what        string
		urgent      bool
		turn        int
		replaceable bool
		waited      time.Duration
		want        bool
	}{
		{"nobody else estimates it", true, 3, false, 0, true},
		{"stands in, first turn", false, 0, false, 0, true},
		{"stands in, second turn, at once", false, 1, true, 0, false},
		{"stands in, second turn, after the first one's", false, 1, true, standInTurn, true},
		{"stands in, third turn, too early", false, 2, true, standInTurn, false},
		{"alone has some shards", false, 1, false, standInTurn, false},
		{"alone has some shards for long", false, 1, false, standInMax, true},
		{"alone has some shards, later turn", false, 2, false, standInMax, false},
	} {
		if got := mayStartAgain(c.urgent, c.turn, c.replaceable, c.waited); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}
