// Package wire reads and writes the wire forms of events: a Decoder turns messages
// into an event.Batch, AppendJSON and Encode turn events into messages.
//
// A message holds events of one kind, which its subject names, as JSON (one event or an array), as
// NDJSON (one event a line), or as an Arrow stream. A message without a content type is an Arrow
// stream if it begins with the four bytes 0xff; else JSON; and NDJSON if text follows the first
// JSON event. docs/events.md is the reference for producers; it contains the table of fields.
//
// field_table.go describes each kind's fields once, for every form: names, columns of files, and a
// type that lists the accepted values of each form. A form turns its values into cells. set.go
// writes the value of a cell into an event of the batch, which record.go completes or removes
// again. get.go is the reverse, for both encoders. DecodeRow reads rows of files in the same way,
// for ingest/files.
//
// Decoding is strict. The grammar of JSON is that of the library jsontext: RFC 8259 without
// repeated keys and without halves of surrogate pairs; depth is bounded, and every field must be
// known. Arrow bytes never reach a general reader, which a few hostile bytes can make allocate
// without bound: flat.go walks the metadata and checks each offset before it follows it;
// arrow_batch.go checks each buffer against the rows once, when a record batch is bound; only then
// are values read. No allocation depends on a size stated by the input. arrow_file.go checks the
// messages of Arrow files, which a general reader reads after that. The expansion of a small
// message is bounded by event.EventsPerMessageLimit, event.UnitsPerMessageMax,
// event.AttributesPerMessage and a bound on refused rows.
//
// Strings and configurations alias the payload (by unsafe.String) or memory of
// the batch: they are valid until the batch is reset, and the payload must not be
// changed before.
//
// Cost, on one core of a small server: 0.5 to 1 microsecond for an event as JSON, 50 ns
// for an edge in Arrow with integer ids, no allocation per event once the batch has
// grown. A Decoder has one owner at a time.
//
// The package does not read subjects from a broker, cut steps, know which vertices exist, or check
// a configuration inside a control event.
package wire
