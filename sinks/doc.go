// Package sinks keeps the log out: the stream in which a worker publishes what it
// estimates, and the followers that fold that stream into what people use.
//
// A worker has one Writer. An emission is published as one atomic batch, or several of
// at most a thousand messages, each of which begins with a mark on the subject of its
// shard. The mark is stored only directly after the one that its writer knew as the
// last (a fence: nobody else's records can come between), names the writer (a
// heartbeat), and says up to which position the shard is complete (a watermark).
// After a restart the last mark says what is published; nothing else is looked up. A
// second run with the same configuration is a standby: of each emission one of the two
// is stored, and neither ends. One with another configuration is refused by name.
//
// A reader yields whole emissions, each once and in the order (position, shard). What
// is no emission, such as a message of somebody else, is passed over with a warning. A
// Cursor says how far it is, and recognises a stream that has lost its end.
//
// A Follower takes emissions and makes them durable together with the cursor, so that its output
// holds each record once after a crash anywhere: the lines file and the parts cut back what is
// beyond the cursor, Alerting evaluates again and leaves out what the stream of alerts has, and so
// do Rollups with the stream of history. A Runner feeds one follower: one that fails, because its
// disk is full, say, is opened again after a pause and catches up, and nobody waits for it, unless
// the stream would discard what it has not taken; then the Writer waits, and its State says for
// whom. The bucket of latest values is no follower but a copy that the broker keeps.
//
// Names hang on one prefix. Subjects and keys hold the names of communities and methods
// as Token writes them. Positions count in the log in, whose identity every mark, record
// and position file has, so that what belongs to an older log is not mistaken.
//
// Acknowledged means on the broker's disk where that syncs always, as the embedded one
// does. Who acknowledges earlier can lose the end of the stream when a host loses power:
// that is noticed by the next emission or the next Audit, as ErrLost, and made again from
// a checkpoint.
//
// Cost: a thousand records are two batches and some ten syncs of the disk. Writer, readers
// and followers have one owner each; a Runner is the owner of its follower.
package sinks
