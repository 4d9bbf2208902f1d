// Package broker starts, or connects to, the NATS server that keeps a pipeline's
// streams, and makes those streams.
//
// Open takes the configuration to a connection: StartEmbedded runs a server inside
// this process, behind a lock on its state directory, because two servers on one
// store destroy each other's data without an error; Connect joins an outside one.
// EnsureStreams makes the log in and the quarantine where they do
// not exist, and AuditStream refuses a log whose settings could drop or rewrite
// events.
//
// The embedded server syncs every message of the log before it acknowledges it. A
// server whose disk was full takes nothing any more, even when there is room again:
// Embedded.Again says when to start it anew.
//
// The package knows subjects and settings of streams, and nothing of what is in
// them: package ingest reads and writes events, package sinks estimates.
package broker
