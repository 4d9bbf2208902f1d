// Package group divides the shards of one pipeline among several workers.
//
// A Member writes its presence and configuration to a key-value bucket, every quarter of a second.
// The list of live workers decides the division of work: Rank orders the live workers for a named
// task, such as a shard, by rendezvous hashing. So all workers come to the same result without a
// leader or a table, and the death of a worker moves only its own tasks.
//
// Nothing here is needed for safety. Two workers that both believe they own a shard compute the
// same bytes, and the fence of the output log (package sinks) lets one copy in. So a member may be
// wrong for a while about the live workers: that costs duplicate work or a pause, but no record.
//
// A member judges death by its own renewals: a worker without a renewal while four of the member's
// own came back is dead. While the broker elects a leader no renewals come back, and no worker is
// declared dead. The judgement is early, because a mistake costs the others the work of a
// take-over, but no gap.
//
// A Store holds, by position of the log, the parts of a state that a worker needs to take a shard
// over, in an object bucket. It also has digests, by which workers notice that their states differ.
package group
