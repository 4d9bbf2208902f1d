// Package tables writes Arrow records as files that other programs read: Parquet, Arrow
// IPC and CSV. Parquet is compressed with zstd; in Parquet and CSV a list of fixed
// length, such as probabilities, becomes the columns p0, p1, ..., since few readers
// know such lists.
//
// Export writes a table of any length as a file that appears whole or not at all; it
// holds one record at a time in memory. Write and Rows are for files of one record, which
// the caller makes durable and gives their name. Records and builders are released in the
// file in which they are made. It reads no Arrow but its own: bytes from elsewhere never
// come here.
package tables
