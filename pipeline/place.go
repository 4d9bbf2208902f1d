package pipeline

import (
	"strconv"
	"time"

	"gqlstream/config"
	"gqlstream/explain"
	"gqlstream/ingest/event"
)

// Place is a position or a time of a log.
type Place = explain.Place

// ParsePlace reads the value of --from or --to.
func ParsePlace(flag, text string) (Place, error) {
	if text == "" {
		return Place{}, nil
	}
	if n, err := strconv.ParseUint(text, 10, 64); err == nil && n > 0 {
		return Place{Position: event.Position(n)}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || t.UnixNano() == 0 {
		return Place{}, config.Usagef("%s %q is neither a position, 1 or more, nor a time such as "+
			"2026-05-01T12:00:00Z", flag, text)
	}
	return Place{Time: event.Time(t.UnixNano())}, nil
}
