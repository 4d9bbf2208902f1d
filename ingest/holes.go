package ingest

import (
	"context"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/event"
)

// firstKey is where the settings of a log say up to where it was purged: the first position that
// stays.
const firstKey = "gqlstream.first"

// RecordFirst records that messages before a position are not needed, before they are purged, so
// that no beginning that a broker has lost is taken for a purged one.
func RecordFirst(
	ctx context.Context,
	js jetstream.JetStream,
	s jetstream.Stream,
	first uint64,
) error {
	return record(ctx, js, s, firstKey, strconv.FormatUint(first, 10))
}

// Holes returns what a log lacks: messages that the broker lost, or that somebody deleted or purged
// by other means than ours. Those that the log says are passed over do not count.
func Holes(ctx context.Context, s jetstream.Stream) (holes []Range, err error) {
	info, err := s.Info(ctx)
	if err != nil {
		return nil, err
	}
	begins, _ := strconv.ParseUint(info.Config.Metadata[firstKey], 10, 64)
	if begins = max(begins, 1); info.State.FirstSeq > begins {
		holes = append(holes,
			Range{event.Position(begins), event.Position(info.State.FirstSeq - 1)})
	}
	if info.State.NumDeleted > 0 {
		if info, err = s.Info(ctx, jetstream.WithDeletedDetails(true)); err != nil {
			return nil, err
		}
		for _, sequence := range info.State.Deleted {
			last := len(holes) - 1
			if last >= 0 && holes[last].Last+1 == event.Position(sequence) {
				holes[last].Last++
				continue
			}
			holes = append(holes, Range{event.Position(sequence), event.Position(sequence)})
		}
	}
	if len(holes) == 0 {
		return nil, nil
	}
	skipped, err := skippedMessages(s.CachedInfo().Config)
	return slices.DeleteFunc(holes, skipped.has), err
}
