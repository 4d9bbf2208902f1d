// Package sinks writes estimates where others can see them: a stream and a bucket
// on a NATS server, and JSON lines. A Sink gets the estimates of one emission, all
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
//
// Positions count in a log; NATSConfig.Log names it, so that what an older log left
// is not mistaken for newer. Subjects and keys hold names as Token writes them.
// The broker may acknowledge estimates before they are on its disk (see
// ingest.EnsureStreams): they are derived from the log, which never is.
//
// Cost: an emission of 1,000 communities takes about 30 ms to the stream and as
// long to the bucket; records of one community wait for one another, others do not.
//
// Sinks have one owner each and no goroutines of their own. They do not decide what is
// published: suppression of small communities and the choice of communities to
// emit are the core's.
package sinks
