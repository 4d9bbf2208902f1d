// Package incremental is the core of gqlstream: one batch in, estimates out.
//
// Read Step first. It calls in this order: apply the batch to the store, which returns the exact
// changes; update the neighbours' sums and the tallies; let a built-in classifier predict, and
// update again; update the kernel masses; solve, if the batch ends an emission; and then apply
// configure events, compact, and request checkpoints after an erasure.
//
// A core is in one of three states.
//
//   - Cold: it stores events and the neighbours' sums only. New and RestoreGraph return a cold
//     core. A one-shot estimate and a long backfill use this state.
//   - Warm, with a dual: every step updates everything, and one structure has the kernel masses of
//     all communities. This is the state if no method weighs cells by the kernel, as with auto.
//   - Warm, with fields: the same, with a field for each community. This is the state if a method
//     weighs cells, or if the kernel is not ppr.
//
// The configuration decides between the last two. A core becomes warm at its first emission: it
// computes the state next to the graph completely, and solves for the dual or the fields.
//
// A configure event makes the core cold, because it replaces the communities. Restore returns a
// core in the saved state. Step does not know which structure has the masses: both implement the
// interface masses.
//
// The core is a pure function of its batches. It does no I/O, reads no clock, logs nothing, and
// starts no goroutine that outlives a call. The same batches give the same estimates bit for bit,
// for any GOMAXPROCS: each community is computed by one goroutine.
//
// The cost of a warm step depends on its changes. With fields every edge also costs a visit to
// every community, because it changes every field; with a dual it does not. An emission reads one
// byte a community to find those that moved.
package incremental
