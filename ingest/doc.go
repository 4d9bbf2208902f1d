// Package ingest delivers a log as steps: batches of whole messages in log order,
// from a JetStream stream or from another source of steps, such as files.
//
// The cutter decides where steps end. It reads the log alone, no timers and no fetch sizes. So the
// same log gives the same steps, live, in a replay, and after a restart from any step (Resume).
// Positions count messages from 1. A log's time is the broker's or that of its events (TimeMode),
// and never decreases.
//
// Invariant of JetStreamSource: the messages it delivers have consecutive positions of one stream.
// A gap, a trimmed beginning, or a stream that was deleted, replaced or set back to an older copy
// is an error that matches ErrWrongHistory, returned before anything of the wrong history is
// delivered. An Identity in a checkpoint extends this over restarts. Lost connections, restarts of
// the broker and messages that the client drops from its buffers are repaired. There are no
// acknowledgements: state is a fold over the log, and each state is stored with its position.
//
// No message of a producer can stop the source. A message that does not decode is in Batch.Refused
// with its original bytes; a QuarantineWriter stores a copy of each refusal once.
//
// Publisher sends messages with a bounded window and repeats those that the broker had no space
// for. Ticker puts time into the log, so that the last events before a pause do not wait for later
// ones. Package broker provides the server, the connection and the streams.
//
// Cost, on one core with the embedded server and decoding: 3 to 4 microseconds to consume a message
// of any size, so that much for a single JSON event, and 0.1 microseconds for an event in an Arrow
// message of 4,096. A batch keeps the payloads of its messages in memory; StepConfig.BytesMax
// bounds them.
//
// The package applies no events and holds no graph. It does not sort events by time: a late event
// comes at its place in the log.
package ingest
