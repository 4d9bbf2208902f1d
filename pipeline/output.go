package pipeline

import (
	"context"

	"gqlstream/ingest"
	"gqlstream/sinks"
)

// output is the output log of a pipeline, with the quarantine.
type output struct {
	quarantine *ingest.QuarantineWriter
	streams    sinks.StreamsConfig
	reader     sinks.ReaderConfig
	rollups    *sinks.Rollups
	history    *sinks.History
}

func openOutput(ctx context.Context, b *base) (*output, error) {
	quarantine, err := ingest.NewQuarantineWriter(ctx, b.Broker.NC, b.names.In)
	if err != nil {
		return nil, err
	}
	streams := sinks.StreamsConfig{
		Names:    b.names.Out,
		Bytes:    int64(b.settings.Output.StreamBytesMax),
		Replicas: b.names.In.Replicas,
		Classes:  len(b.settings.Classes),
		Embedded: b.Broker.Embedded != nil,
	}
	return &output{
		quarantine: quarantine,
		streams:    streams,
		reader: sinks.ReaderConfig{
			Names:  b.names.Out,
			Shards: b.shards,
			Log:    b.logID,
			Report: b.log,
		},
		rollups: sinks.NewRollups(sinks.RollupsConfig{
			JS: b.Broker.JS, Streams: streams, Log: b.logID, State: b.historyState,
		}),
		history: sinks.NewHistory(b.Broker.JS, b.names.Out, b.logID),
	}, nil
}
