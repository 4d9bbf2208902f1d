// Package sinks keeps the output log: the stream of the estimates that a worker publishes, and the
// followers that turn that stream into files, alerts, charts and the latest values.
//
// A worker has one Writer. An emission is published as one atomic batch, or several of at most a
// thousand messages. Each batch begins with a mark on the subject of its shard. The mark is stored
// only directly after the last mark that its writer knew (a fence: no other writer's records can
// come between), names the writer (a heartbeat), and says up to which position the shard is
// complete (a watermark). After a restart the last mark shows which records have been published;
// nothing else is looked up. A second run with the same configuration is a standby: one of the two
// stores each emission, and neither ends. A run with another configuration is refused by name.
//
// A reader yields whole emissions, each once, ordered by position and shard. It skips messages of
// other programs with a warning. A Cursor says how far it has read, and recognises a stream that
// has lost its end.
//
// A Follower takes emissions and makes its output durable together with the cursor, so that the
// output holds each record once after a crash anywhere: the lines file and the parts remove rows
// beyond the cursor; Alerting evaluates again and omits transitions that the stream of alerts
// already has; Rollups does the same with the stream of history. A Runner feeds one follower. If
// the follower fails, on a full disk for example, the Runner reopens it after a pause and lets it
// catch up. The Writer waits for a follower only before the stream would discard records that it
// has not taken; its State names the follower. The bucket of latest values is not a follower but a
// copy that the broker makes.
//
// Names share one prefix. Subjects and keys contain the names of communities and methods in the
// form of Token. Positions count in the input log, whose identity is in every mark, record and
// position file, so that output of an older log is not mistaken for output of this one.
//
// Acknowledged means on the broker's disk if the broker always syncs, as the embedded one does.
// Other brokers can lose the end of the stream when a host loses power: the next emission or the
// next Audit notices that as ErrLost, and the run publishes the lost records again from a
// checkpoint.
//
// Cost: a thousand records are two batches and some ten syncs of the disk. Writer, readers and
// followers have one owner each; a Runner owns its follower.
package sinks
