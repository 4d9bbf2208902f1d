// Package bench measures the project against the goals of its design: what an
// edge costs, what a byte of it costs, how long a restart takes, how far the true
// error stays below the certificate.
//
// A measure makes what it needs from a simulated network (package simulate) and returns
// a row: a figure, its unit, the goal, what others have reported. A ratio is
// taken within one run, the two sides in turns (A B A B), and is the ratio of their
// medians, so that a busy machine slows both alike. Figures of one core are
// processor time of the process, which a load stretches less than the
// time on the wall (caches are still shared); figures of the whole pipeline are
// time on the wall. Units say which: "us cpu", "s wall".
//
// The rows live/K/C take a whole run, from encoded messages to records that the
// broker has stored, for K classes and C communities; see live.go. One thing to
// compare with lives here and nowhere else: plain iteration, see certificate.go.
//
// The package times nothing in tests and asserts no time. It does not know the
// command line.
package bench
