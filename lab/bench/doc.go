// Package bench holds Go benchmarks that measure the whole project: time and memory of an edge,
// time of a restart, and the ratio of the true error to the certificate. Goals stand in
// bench_test.go; docs/performance.md says how to
// compare two builds.
//
// Every benchmark makes its data from a simulated network (package simulate); making it,
// and encoding it, is in no figure. One iteration is a whole measurement, so -benchtime 1x is
// enough, and -count gives benchstat its samples. Time per operation is not reported, because
// it holds the preparation too. Units that begin with us-cpu or s-cpu are processor time of the
// whole process, which other load on the machine stretches less than the time on the wall
// (caches are still shared).
//
// Live/K/C takes a whole run, from encoded messages to records that the broker has stored, for
// K classes and C communities; see live_test.go. One thing to compare with lives here and
// nowhere else: plain iteration, see certificate_test.go.
//
// Tests take every measurement on a tiny network, so that none of them rots; they assert no
// time.
package bench
