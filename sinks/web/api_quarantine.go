package web

import (
	"context"
	"net/http"
	"time"
)

const (
	quarantineDefault = 20
	quarantineMax     = 100
)

// QuarantineEntry is a message, or an event of one, that was refused.
type QuarantineEntry struct {
	Entry    uint64    `json:"entry"` // its number, as commands take it
	Time     time.Time `json:"time"`  // when it was refused
	Kind     string    `json:"kind"`
	Reason   string    `json:"reason"`
	Detail   string    `json:"detail"`
	Position uint64    `json:"position"` // in the log
	Index    int       `json:"index"`    // of the event in its message; -1: all of it
	Retried  bool      `json:"retried"`
	Bytes    int       `json:"bytes"`    // of the original
	Original string    `json:"original"` // its beginning, where it is text
}

func askQuarantine(ctx context.Context, v *view, q *asked) (any, error) {
	limit := q.number("limit", quarantineDefault, 1, quarantineMax)
	switch {
	case q.err != nil:
		return nil, q.err
	case v.config.Quarantine == nil:
		return nil, refuse(http.StatusNotFound, "this server does not show the quarantine")
	}
	entries, err := v.config.Quarantine(ctx, q.query.Get("reason"), limit)
	return map[string]any{"entries": append([]QuarantineEntry{}, entries...)}, err
}
