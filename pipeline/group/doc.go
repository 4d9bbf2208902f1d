// Package group lets several workers divide the shards of one pipeline among them.
//
// A Member says in a key-value bucket, every quarter of a second, that it lives and what it runs.
// The list of live workers decides the division of work: Rank orders the live workers for anything
// that has a name, a shard say, by rendezvous hashing, so that all of them come to the same answer
// without a leader and without a table, and a worker that dies moves only what it had.
//
// Nothing here is needed for safety. Two workers that believe that a shard is theirs compute the
// same bytes, and the fence of the log out (package sinks) lets one copy in. So a member may be
// wrong for a while about the workers that live: it costs work done twice, or a pause, and no
// record.
//
// Death is judged by the member's own renewals: a worker that was not heard of while four of them
// came back is dead. While the broker elects a leader nobody's renewals come back, and nobody dies.
// It is judged early, because a mistake costs the others the work of a take-over, and no gap.
//
// A Store keeps, by position of the log, what a worker needs to take a shard over, in an object
// bucket, with the digests by which workers find that their states are not the same.
package group
