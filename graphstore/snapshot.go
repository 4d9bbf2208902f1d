package graphstore

import (
	"bytes"
	"fmt"
	"io"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"
)

// Records returns a table as Arrow records over one copy of its rows, which stays
// as it is whatever becomes of the store. The caller releases each.
func (w View) Records(t Table) []arrow.Record { return slices.Collect(w.s.table(t, nil).records) }

// Section is one table of a snapshot.
type Section struct {
	Table Table
	store *Store
}

// Lasts reports whether the section reads copies, so that it may be written at any time.
func (s Section) Lasts() bool { return s.store.copied }

// Sections returns the tables as they stand, to compare them with those of a
// store that went through the same history. They must be written before the next
// Apply.
func (w View) Sections() []Section {
	sections := make([]Section, 0, len(Tables()))
	for _, t := range Tables() {
		sections = append(sections, Section{Table: t, store: w.s})
	}
	return sections
}

// WriteTo writes the table as an uncompressed Arrow IPC file and returns how many
// bytes that took. The bytes depend on the content of the store alone.
func (s Section) WriteTo(w io.Writer) (int64, error) {
	n, err := writeTable(w, s.store.table(s.Table, nil).records)
	if err != nil {
		return n, fmt.Errorf("graphstore: write table %s: %w", s.Table, err)
	}
	return n, nil
}

// writeTable writes records as an Arrow IPC file, and releases them.
func writeTable(w io.Writer, records records) (n int64, err error) {
	counter := &countingWriter{w: w}
	var file *ipc.FileWriter
	for record := range records {
		if file == nil {
			file, err = ipc.NewFileWriter(counter, ipc.WithSchema(record.Schema()))
		}
		if err == nil {
			err = file.Write(record)
		}
		record.Release()
		if err != nil {
			return counter.n, err
		}
	}
	err = file.Close()
	return counter.n, err
}

// countingWriter is a writer that knows its position, which is all that the IPC
// writer wants of a seeker.
type countingWriter struct {
	w io.Writer
	n int64
}

// Write passes the bytes on and counts them.
func (c *countingWriter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// Seek tells the position and moves nowhere.
func (c *countingWriter) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekCurrent {
		return 0, fmt.Errorf("seek to %d from %d in a stream", offset, whence)
	}
	return c.n, nil
}

// readTable visits the rows of a table written by WriteTo, record by record. Records
// alias data or memory of the reader and are valid during the visit. data
// must be known to be undamaged: the IPC reader does not survive hostile bytes.
func readTable(t Table, data []byte, visit func(arrow.Record) error) error {
	file, err := ipc.NewFileReader(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("read table %s: %w", t, err)
	}
	defer file.Close()
	for i := range file.NumRecords() {
		record, err := file.RecordAt(i)
		if err == nil {
			err = visit(record)
			record.Release()
		}
		if err != nil {
			return fmt.Errorf("read table %s: %w", t, err)
		}
	}
	return nil
}

// hasColumn says whether a table written by WriteTo has a column.
func hasColumn(data []byte, name string) (bool, error) {
	file, err := ipc.NewFileReader(bytes.NewReader(data))
	if err != nil {
		return false, err
	}
	return file.Schema().HasField(name), file.Close()
}
