// Package web shows a running pipeline: a page, an HTTP API and Prometheus
// metrics, all on one address.
//
// It keeps, per community and method, the latest estimate and the list's figures of the day before,
// and the last Status that the run loop pushed. Its sources are Write (it is a sink like the
// others) and Status; it asks the pipeline for nothing, so a slow reader can never hold up a step.
// Write copies and returns; a reader asks for the changes after a position, which costs O(changes).
// Records of the past are read from the output log, by Config.Records.
//
// Invariants. Readers see whole records: a stored record is never changed, only
// replaced. The position of the page never decreases.
//
// Security. Community names, flags and versions come from the stream and are
// hostile: they leave as JSON or through textContent, under a content security
// policy without inline code. The address is a loopback one unless a token and a
// certificate are given; every route checks the Host header against a list, so
// that DNS rebinding reaches nothing; only GET is served, and nothing changes
// state. Sizes, times and connections are bounded.
//
// Shares are between 0 and 1, classes are indices into Config.Classes, times are
// RFC 3339. "Updated" is the wall clock at Write; Estimate.Time is the log's.
//
// Reading the source: server.go starts and ends it; store.go and series.go keep
// records, status.go and alerts.go the rest of the state; api*.go answer; guard.go and
// connections.go refuse.
package web
