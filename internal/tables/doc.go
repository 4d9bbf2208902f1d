// Package tables writes Arrow records as files that other programs read: Parquet, which is
// compressed with zstd, and CSV, where null is an empty field. A list of fixed length, such as
// probabilities, becomes the columns p0, p1, ..., since few readers know such lists.
//
// Export writes a table of any length as a file that appears whole or not at all; it holds one
// record at a time in memory. Encode is for package sinks, which makes a file durable and names it.
// It reads no file.
package tables
