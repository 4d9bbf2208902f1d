// Package sinks writes estimates where others can see them: a stream and a bucket
// on a NATS server, JSON lines, and files of tables. A Sink gets the estimates of one emission, all
// of one position, sorted by community and method.
//
// What is promised after a crash, when a pipeline goes over old ground again:
//
//	NATS    each record once and in order. A record is stored only directly after
//	        the one that is known as the last of its community (compare-and-set on
//	        the sequence of the subject), and what is not newer than that is left
//	        out. Two instances cannot mix: the one that comes second to a record
//	        that differs gets ErrOtherWriter.
//	Latest  the newest record of each community and method; a position never goes
//	        back, whoever writes.
//	Lines   in a file each record once (see OpenLines); elsewhere at least once.
//	Parts   each record once, in files that the log alone decides (see Parts).
//
// A sink that is down, slow or refuses for long:
//
//	NATS, Latest  wait for the broker for as long as it takes, and the loop with them.
//	              The same broker holds the log, so that nothing comes in either. An
//	              error that cannot pass, such as ErrOtherWriter, ends the run;
//	              ErrLost makes it go on from a checkpoint.
//	behind Queue  Lines in a file, also of alerts, Parts, and whatever is not on that
//	              broker: emissions wait in a spool on the disk, of bounded bytes, and
//	              a goroutine delivers them. When the spool, or its disk, is full, the
//	              loop waits. Nothing is dropped.
//
// State says which of it is the case, for /readyz and the metrics.
//
// A sink behind a Queue implements Sink and, if Write returns before the records are
// safe, Sync; see Queue for what else it may. Its constructor takes the position from after which everything
// comes again; it must leave out what it has beyond that, or be allowed to repeat
// (with an id of position, community and method, say). Any error of Write or Sync is
// tried again for ever, by Sync, Close and a new Open: a sink that gives up on a record
// counts it and returns nil. Queue.Sync before a checkpoint and Queue.Last in its
// manifest make a restart neither repeat nor omit: an emission at or before a
// checkpoint is in the sink or in the spool, one after it is made again, the same
// bytes, and Write leaves out what the spool has had. A spool that has lost its end
// makes the run go back to a checkpoint before that.
//
// Positions count in a log; NATSConfig.Log names it, so that what an older log left
// is not mistaken for newer. Subjects and keys hold names as Token writes them.
// The broker may acknowledge estimates before they are on its disk (see
// ingest.EnsureStreams): they are derived from the log, which never is.
//
// Cost: an emission of 1,000 communities takes about 30 ms to the stream and as
// long to the bucket; records of one community wait for one another, others do not.
//
// Sinks have one owner each, and but for Queue no goroutines of their own. They do
// not decide what is published: suppression of small communities and the choice of
// communities to emit are the core's.
package sinks
