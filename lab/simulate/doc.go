// Package simulate makes an evolving social network with known true prevalences.
//
// A Network is an ingest source without a broker: vertices arrive, edges form and
// dissolve by group and opinion, opinions drift, churn and jump, a simulated
// classifier predicts, and some vertices are labelled. AppendTruth gives the true
// shares of every community at the time that the events have reached. The same
// configuration and seed give the same events byte for byte.
//
// Time is simulated: the package reads no clock and does no I/O.
package simulate
