package graphstore

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"
)

// Records returns a table as Arrow records. Those of vertices and of compacted neighbours are the
// store's own memory, so they are valid until the next Apply. The caller releases each.
func (w View) Records(t Table) []arrow.Record { return slices.Collect(w.s.table(t, nil).records) }

// Section is one table of a snapshot.
type Section struct {
	Table Table
	store *Store
}

// Lasts reports whether the section reads copies, so that it may be encoded at any later time.
func (s Section) Lasts() bool { return s.store.copied }

// Sections returns the tables as they stand, to compare them with those of a
// store that went through the same history. They must be encoded before the next
// Apply.
func (w View) Sections() []Section {
	sections := make([]Section, 0, len(Tables()))
	for _, t := range Tables() {
		sections = append(sections, Section{Table: t, store: w.s})
	}
	return sections
}

// Encode returns the table as an uncompressed Arrow IPC file. The bytes depend on the content of
// the store alone.
func (s Section) Encode() ([]byte, error) {
	table := s.store.table(s.Table, nil)
	data, err := encodeTable(table.records, table.size)
	if err != nil {
		return nil, fmt.Errorf("encode table %s: %w", s.Table, err)
	}
	return data, nil
}

// encodeTable returns records, which it releases, as an Arrow IPC file of about that size.
func encodeTable(records records, size int) (data []byte, err error) {
	var file *ipc.FileWriter
	var memory fileMemory
	memory.Grow(size)
	for record := range records {
		if file == nil {
			file, err = ipc.NewFileWriter(&memory, ipc.WithSchema(record.Schema()))
		}
		if err == nil {
			err = file.Write(record)
		}
		record.Release()
		if err != nil {
			return nil, err
		}
	}
	err = file.Close()
	return memory.Bytes(), err
}

// fileMemory is the output of the IPC writer, which needs only the position of a seeker.
type fileMemory struct{ bytes.Buffer }

// Seek returns the position. It does not move.
func (m *fileMemory) Seek(int64, int) (int64, error) { return int64(m.Len()), nil }

// readTable visits the rows of an encoded table, record by record. Records alias data or memory of
// the reader and are valid during the visit. The caller has verified the checksum of data: the IPC
// reader can crash on damaged bytes.
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
