package ingest

import (
	"context"
	"slices"
	"strconv"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/event"
)

// firstKey is the setting of a log that records how far it was purged: the first position that
// stays.
const firstKey = "gqlstream.first"

// RecordFirst records that the messages before a position are not needed. Call it before purging
// them, so that a beginning that the broker lost is not mistaken for a purged one.
func RecordFirst(
	ctx context.Context, js jetstream.JetStream, s jetstream.Stream, first uint64,
) error {
	return record(ctx, js, s, firstKey, strconv.FormatUint(first, 10))
}

// Holes returns the messages that a log lacks: lost by the broker, or deleted or purged outside
// gqlstream. Skipped messages do not count.
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
