package pipeline

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/sinks/web"
)

// Bounds of what the page shows of the quarantine.
const (
	refusalsLookedAt    = 2000 // newest entries among which those of a reason are sought
	refusalOriginalsMax = 500  // bytes of an original
)

// newestRefusals returns the newest entries of the quarantine, of one reason unless that is
// empty, newest first.
func newestRefusals(ctx context.Context, js jetstream.JetStream, in broker.StreamNames, reason string, limit int) (list []web.QuarantineEntry, err error) {
	quarantine, err := ingest.OpenQuarantine(ctx, js, in)
	if err != nil {
		return nil, err
	}
	newest := make([]ingest.QuarantineEntry, 0, limit)
	filter := ingest.QuarantineFilter{Reason: event.Reason(reason), Retried: true, Newest: refusalsLookedAt}
	err = quarantine.List(ctx, filter, func(e ingest.QuarantineEntry) error {
		if len(newest) == limit {
			newest = append(newest[:0], newest[1:]...)
		}
		newest = append(newest, e)
		return nil
	})
	for i := len(newest) - 1; i >= 0; i-- {
		list = append(list, shownRefusal(newest[i]))
	}
	return list, err
}

// shownRefusal returns an entry as the page has it, with the beginning of the original
// where that is text.
func shownRefusal(e ingest.QuarantineEntry) web.QuarantineEntry {
	shown := web.QuarantineEntry{
		Entry: e.Sequence, Time: e.Time, Kind: e.Kind, Reason: string(e.Reason), Detail: e.Detail,
		Position: uint64(e.Position), Index: e.Index, Retried: e.Retried, Bytes: e.Bytes,
	}
	if utf8.Valid(e.Original) {
		shown.Original = strings.ToValidUTF8(string(e.Original[:min(len(e.Original), refusalOriginalsMax)]), "")
	}
	return shown
}
