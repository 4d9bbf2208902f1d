// Package event is the vocabulary of the input: seven kinds of event, the Batch that carries the
// events of one step through the pipeline, the reasons for refusing an event, and the limits on
// messages and files.
//
// Invariants of the events in a batch, which later stages trust:
//
//   - ids, names of communities, versions and attributes are 1 to 256 bytes of
//     UTF-8 (a version may be absent), and "42" is the integer 42;
//   - the weight of an edge that is not removed, and of a post, is a positive multiple of
//     WeightUnit up to WeightMax, and its ends differ;
//   - the units of a prediction or a post are K integers that sum to exactly One;
//   - classes lie in [0, K) or are NoClass, times within TimeMax of the epoch;
//   - a message is applied whole, except for the events listed in Refused, or not at all.
//
// Strings, units and configurations in a batch alias a message or memory of the batch: they are
// valid until the batch is reset, and code that keeps one longer copies it. A Batch has one owner
// at a time.
//
// The package reads and writes no bytes: the wire forms are in ingest/wire, files in ingest/files.
// It imports no other package of this project.
package event
