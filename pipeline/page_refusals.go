package pipeline

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/sinks/web"
)

// Of the newest entries of the quarantine the page seeks those of a reason, and shows so many bytes of an original.
const refusalsLookedAt, refusalOriginalsMax = 2000, 500

// newestRefusals returns the newest entries of the quarantine, of one reason unless that is
// empty, newest first.
func newestRefusals(ctx context.Context, js jetstream.JetStream, in broker.StreamNames, reason string, limit int) (list []web.QuarantineEntry, err error) {
	quarantine, err := ingest.OpenQuarantine(ctx, js, in)
	if err != nil {
		return nil, err
	}
	filter := ingest.QuarantineFilter{Reason: event.Reason(reason), Retried: true, Newest: refusalsLookedAt}
	err = quarantine.List(ctx, filter, func(e ingest.QuarantineEntry) error {
		list = append(list[max(0, len(list)+1-limit):], shownRefusal(e))
		return nil
	})
	slices.Reverse(list)
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
