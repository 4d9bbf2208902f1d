// Package wire reads and writes the wire forms of events: a Decoder turns messages
// into an event.Batch, AppendJSON and Encode turn events into messages.
//
// A message holds events of one kind, which its subject names, as JSON (one event
// or an array), as one JSON event a line, or as an Arrow stream. A message
// without a content type is an Arrow stream when it begins with the four bytes
// 0xff of one; else JSON; and when text follows the first JSON event, one event a
// line. docs/events.md is the reference for producers; the table fields is the
// part of it that the code shares.
//
// fields.go describes each kind's fields once, for every form: names, columns of files, and a type
// that says which values of which form it accepts. A form turns its values into cells; set.go puts
// the value of a cell in its place in an event of the batch, which record.go completes or takes out
// again. get.go is the way back, for both encoders. DecodeRow is the same way for the rows of
// files, which ingest/files reads.
//
// Decoding is strict. The grammar of JSON is that of the library jsontext: RFC 8259
// without a key twice and without halves of surrogate pairs; depth is bounded and every
// field must be known. Arrow bytes never reach a general reader, which a few hostile
// bytes can make allocate without bound: flat.go walks the metadata and checks each
// offset before it follows it, arrow_batch.go checks each buffer against the rows once
// when a record batch is bound, and only then are values read. Nothing is allocated by a
// size that the input states; what a small message can blow up to is bounded by
// event.EventsPerMessageLimit, event.UnitsPerMessageMax, event.AttributesPerMessage and
// a bound on refused rows.
//
// Strings and configurations alias the payload (by unsafe.String) or memory of
// the batch: they are valid until the batch is reset, and the payload must not be
// changed before.
//
// Cost, on one core of a small server: 0.5 to 1 microsecond for an event as JSON, 50 ns
// for an edge in Arrow with integer ids, no allocation per event once the batch has
// grown. A Decoder has one owner at a time.
//
// The package does not read subjects from a broker, cut steps, know which vertices
// exist, or judge a configuration inside a control event.
package wire
