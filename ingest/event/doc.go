// Package event keeps what can happen to a graph, and the wire forms in which it
// arrives: six kinds of event, and a Decoder that turns messages into a Batch.
//
// A message holds events of one kind, which its subject names, as JSON (one event
// or an array), as one JSON event a line, or as an Arrow stream. A message
// without a content type is an Arrow stream when it begins with the four bytes
// 0xff of one; else JSON; and when text follows the first JSON event, one event a
// line. docs/events.md is the reference for producers; the table fields is the
// part of it that the code shares.
//
// Invariants of what Decode appends, which later stages trust:
//
//   - ids, names of communities, versions and attributes are 1 to 256 bytes of
//     UTF-8 (a version may be absent), and "42" is the integer 42;
//   - the weight of an edge that is not removed is a positive multiple of
//     WeightUnit up to WeightMax, and its ends differ;
//   - the units of a prediction are K integers that sum to exactly One;
//   - classes lie in [0, K) or are NoClass, times within TimeMax of the epoch;
//   - a message is applied whole, but for events that Refused lists, or not at all.
//
// The decoders are strict and ours. JSON is RFC 8259 without a key twice, with
// bounded depth, and every field must be known. Arrow bytes never reach a general
// reader, which a few hostile bytes can make allocate without bound: flat.go walks
// the metadata and checks each offset before it follows it, arrow_column.go checks
// each buffer against the rows once when a record batch is bound, and only then
// are values read. Nothing is allocated by a size that the input states; what a
// small message can blow up to is bounded by EventsPerMessageLimit,
// UnitsPerMessageMax, AttributesPerMessage and a bound on refused rows.
//
// Strings and configurations alias the payload (by unsafe.String) or memory of
// the batch: they are valid until the batch is reset, and the payload must not be
// changed before. Who keeps one longer copies it.
//
// Cost, on one core of a small server: 100 to 250 ns for an event as JSON, 10 to
// 15 ns for an edge in Arrow with integer ids, no allocation per event once the
// batch has grown. A Decoder and a Batch have one owner at a time.
//
// The package does not read subjects from a broker, cut steps, know which vertices
// exist, or judge a configuration inside a control event.
package event
