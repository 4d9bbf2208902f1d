package pipeline

import (
	"math"
	"strconv"
	"time"

	"gqlstream/incremental/explain"
	"gqlstream/ingest/event"
	"gqlstream/pipeline/config"
)

// Place is a position or a time of a log.
type Place = explain.Place

// earliest and latest bound the times that an event can have.
const earliest, latest = event.Time(math.MinInt64 + 1), event.Time(math.MaxInt64)

// positionMax bounds the positions that a question may name, as the API does.
const positionMax = 1<<53 - 1

// ParsePlace reads the value of --from or --to. A time before or after all times that an event can
// have is the earliest or latest of them.
func ParsePlace(flag, text string) (Place, error) {
	if text == "" {
		return Place{}, nil
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil && n > 0 && n <= positionMax {
		return Place{Position: event.Position(n)}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	switch {
	case err != nil:
		return Place{}, config.Usagef("%s %q is neither a position, 1 or more, nor a time such as "+
			"2026-05-01T12:00:00Z", flag, text)
	case t.Before(time.Unix(0, int64(earliest))):
		return Place{Time: earliest}, nil
	case t.After(time.Unix(0, int64(latest))):
		return Place{Time: latest}, nil
	case t.UnixNano() == 0: // which a place has for none
		return Place{Time: 1}, nil
	}
	return Place{Time: event.Time(t.UnixNano())}, nil
}
