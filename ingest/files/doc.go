// Package files reads files as a log: tables in CSV, NDJSON, Parquet and Arrow, each with events of
// one kind, and logs, with events of all kinds. A Source merges them and cuts them into steps.
// LogWriter writes events as a log.
//
// A row that cannot be an event becomes a refusal that names file, line and column,
// and the rows after it are read. A file that cannot be read on is an error.
//
// The files are the user's own. Parquet and Arrow files go through general readers; their panics on
// damaged bytes become errors here, and their allocations are bounded. Input from strangers goes
// through ingest/wire instead.
package files
