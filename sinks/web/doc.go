// Package web shows a running pipeline: a page, an HTTP API, server-sent
// events and Prometheus metrics, all on one address.
//
// It keeps, per community and method, the latest estimate and a bounded history,
// and the last Status that the run loop pushed. Its sources are Write (it is a
// sink like the others) and Status; it asks the pipeline for nothing, so a slow
// reader can never hold up a step. Write copies and returns; encoding and sending
// happen in the package's own goroutines.
//
// Invariants. Readers see whole records: a stored record is never changed, only
// replaced. Positions in one stream of server-sent events never decrease. When a
// stream, or the encoder, cannot keep up, intermediate values are left out and
// the newest one arrives: nothing waits for a client that is slow.
//
// History is thinned, not cut: a full series drops every second record of its
// older half (never the first of a model version), so that it reaches far back
// with the newest part whole. Config.History, when set, answers what is older.
//
// Security. Community names, flags and versions come from the stream and are
// hostile: they leave as JSON or through textContent, under a content security
// policy without inline code. The address is a loopback one unless a token and a
// certificate are given; every route checks the Host header against a list, so
// that DNS rebinding reaches nothing; only GET is served, and nothing changes
// state. Sizes, times, connections and streams are bounded.
//
// Shares are between 0 and 1, classes are indices into Config.Classes, times are
// RFC 3339. "Updated" is the wall clock at Write; Estimate.Time is the log's.
//
// Reading the source: server.go starts and ends it; store.go and series.go keep
// records; hub.go and stream.go send events; api*.go answer; guard.go and
// connections.go refuse.
package web
