// Package incremental is the core of gqlstream: one batch in, estimates out.
//
// Read Step first. Its order of calls is the design: the store says exactly what
// the batch changed, the neighbourhood sums, the kernels and the tallies follow
// that change, and at an emission boundary the communities whose statistics moved
// are solved and published.
//
// The core is a pure function of the batches it was given: it does no I/O, reads
// no clock, logs nothing, and starts no goroutine that outlives a call. The same
// batches give the same estimates bit for bit, whatever GOMAXPROCS: inside a step
// communities are shared out among goroutines, and each is computed by one.
//
// A core starts cold: it stores events without following them, and computes
// everything from nothing at the first emission, which is how a one-shot estimate
// works and what a long backfill wants. From then on it is warm and every step
// costs what it changed.
package incremental
