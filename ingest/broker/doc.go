// Package broker starts, or connects to, the NATS server that holds a pipeline's streams, and
// creates those streams.
//
// Open turns the configuration into a connection. StartEmbedded runs a server inside this process
// and locks its state directory, because two servers on one store destroy each other's data without
// an error. Connect joins an outside server. EnsureStreams creates the input log and the quarantine
// if they do not exist. AuditStream refuses a log with settings that could drop or rewrite events.
//
// The embedded server syncs every message of the log before it acknowledges it. After its disk was
// full it accepts nothing any more, even when there is space again: WriteError reports this, and
// Room says when to restart the server.
//
// The package knows subjects and settings of streams, but not their content: package ingest reads
// and writes events, package sinks estimates.
package broker
