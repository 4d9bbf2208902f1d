// Package incremental is the core of gqlstream: one batch in, estimates out.
//
// Read Step first. Its order of calls is the design: apply the batch to the store, which says
// exactly what that changed; count the neighbours' sums and the tallies; let a built-in classifier
// predict, and count again; bring the kernel masses along; solve, if the batch ends an emission;
// and keep house (configure events, compaction, checkpoints after an erasure).
//
// A core is in one of three states.
//
//   - Cold: it stores events and keeps the neighbours' sums, and nothing else. New and
//     RestoreGraph return a cold core. A one-shot estimate and a long backfill want this.
//   - Warm, with a dual: everything follows every step, and one structure keeps the kernel masses
//     of all communities. So it is where no method weighs cells by the kernel, as with auto.
//   - Warm, with fields: the same, with a field for each community. So it is where a method weighs
//     cells, or the kernel is another one than ppr.
//
// The configuration decides between the last two. A core warms up at its first emission: it counts
// from nothing what lives next to the graph, and solves for the dual or the fields.
//
// A configure event that is carried out makes the core cold, since it replaces the
// communities. Restore goes straight to the state that was saved. Step does not know which
// structure keeps the masses: both are behind the interface masses.
//
// The core is a pure function of the batches it was given: it does no I/O, reads
// no clock, logs nothing, and starts no goroutine that outlives a call. The same
// batches give the same estimates bit for bit, whatever GOMAXPROCS: inside a step
// communities are handed to goroutines one by one, and each is computed by one.
//
// A warm step costs what it changed. With fields that includes a visit to every community
// for every edge, because every edge touches every field; with a dual it does not. An
// emission reads one byte a community to find those that moved.
package incremental
