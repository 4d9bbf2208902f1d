// Package ingest delivers a log as steps: batches of whole messages in log order,
// from a JetStream stream or from another source of steps, such as files.
//
// A step ends where the cutter says, which looks at the log and at nothing else:
// not at timers, nor at how messages happened to be fetched. The same log
// therefore gives the same steps, live, in a replay, and after a restart from any
// step (Resume). Positions count messages from 1; a log's time is the broker's or
// that of its events (TimeMode) and never decreases.
//
// Invariant of JetStreamSource: the messages it delivers have consecutive
// positions of one stream. A gap, a trimmed beginning, a stream that was deleted,
// made anew or set back to an older copy is an error that matches ErrWrongHistory,
// before anything of the wrong history is delivered; an Identity in a checkpoint
// extends this over restarts. Lost connections, restarts of the broker and what the
// client drops from its buffers are repaired. There are no acknowledgements: state
// is a fold over the log, and whoever keeps the state keeps the position with it.
//
// Nothing that a producer can send stops the source. What does not decode is in
// Batch.Refused with its original bytes; a QuarantineWriter keeps a copy of each, once.
//
// Around the source: Publisher sends messages with a bounded window and repeats what
// the broker had no room for; Ticker puts time into the log, so that the last events
// before a pause are not left waiting. The server, the connection and the streams are
// package broker's.
//
// Cost, on one core with embedded server and decoding: 3 to 4 microseconds a message
// to consume, whatever it holds, so a single JSON event costs that and an event in an Arrow
// message of 4,096 about 0.1 microseconds. A batch keeps the payloads of its messages
// alive; StepConfig.BytesMax bounds them.
//
// The package applies nothing and keeps no graph. It does not make the order of
// events in time: late events come in their place in the log.
package ingest
