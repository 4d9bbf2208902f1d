package files

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"
)

// newParquetTable reads a Parquet file: only the columns that are wanted, a batch
// of rows at a time.
func newParquetTable(f *openedFile, c *columns) (t *recordTable, err error) {
	defer recoverDamage(&err)
	random, err := f.random()
	if err != nil {
		return nil, err
	}
	source, err := file.NewParquetReader(random,
		file.WithReadProps(parquet.NewReaderProperties(fileAllocator)))
	if err != nil {
		return nil, fmt.Errorf("not a Parquet file: %w", err)
	}
	reader, err := pqarrow.NewFileReader(source,
		pqarrow.ArrowReadProperties{BatchSize: fileBatchRows}, fileAllocator)
	if err != nil {
		return nil, fmt.Errorf("not a Parquet file: %w", err)
	}
	t = &recordTable{columns: c}
	batches, err := t.choose(reader)
	f.stop = batches.release
	batches.left = source.NumRows()
	t.load = batches.next
	return t, err
}

// choose opens the columns that are wanted.
//
// The readers of whole records in pqarrow open the columns in goroutines of their
// own, and stop at columns in several chunks. Here each column is opened and read
// on its own: a panic about damaged bytes then stays where it can be recovered.
func (t *recordTable) choose(reader *pqarrow.FileReader) (*parquetBatches, error) {
	b := &parquetBatches{}
	schema, err := reader.Schema()
	if err != nil {
		return b, err
	}
	slots, err := t.columns.setHeader(fieldNames(schema))
	if err != nil {
		return b, err
	}
	groups := make([]int, reader.ParquetReader().NumRowGroups())
	for i := range groups {
		groups[i] = i
	}
	for i, slot := range slots {
		if slot < 0 {
			continue
		}
		if !readableColumn(schema.Field(i).Type) {
			return b, fmt.Errorf("column %s: values of type %v are not read",
				schema.Field(i).Name, schema.Field(i).Type)
		}
		leaves := map[int]bool{}
		includeLeaves(leaves, &reader.Manifest.Fields[i])
		column, err := reader.GetFieldReader(context.Background(), i, leaves, groups)
		if err != nil {
			return b, fmt.Errorf("column %s: %w", schema.Field(i).Name, err)
		}
		t.slots = append(t.slots, slot)
		b.columns = append(b.columns, column)
		b.fields = append(b.fields, schema.Field(i))
	}
	return b, nil
}

// readableColumn reports whether values of a type fit in cells: scalars and lists of scalars.
func readableColumn(t arrow.DataType) bool {
	if list, ok := t.(arrow.ListLikeType); ok && t.ID() != arrow.MAP {
		t = list.Elem()
	}
	return !arrow.IsNested(t.ID())
}

func includeLeaves(leaves map[int]bool, field *pqarrow.SchemaField) {
	if len(field.Children) == 0 { // IsLeaf says yes to lists, too
		leaves[field.ColIndex] = true
	}
	for i := range field.Children {
		includeLeaves(leaves, &field.Children[i])
	}
}

// parquetBatches reads columns side by side.
type parquetBatches struct {
	columns []*pqarrow.ColumnReader
	fields  []arrow.Field
	left    int64 // rows that are still to come, by the file's own account
	record  arrow.Record
}

// next returns the next rows. They are good until the next call. A column that
// ends before the others, or before the file says, is an error.
func (b *parquetBatches) next() (arrow.Record, error) {
	b.releaseRecord()
	rows := min(b.left, fileBatchRows)
	if rows == 0 {
		return nil, io.EOF
	}
	values := make([]arrow.Array, len(b.columns))
	defer func() {
		for _, a := range values {
			if a != nil {
				a.Release()
			}
		}
	}()
	for i, column := range b.columns {
		chunks, err := column.NextBatch(rows)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("column %s: %w", b.fields[i].Name, err)
		}
		if err != nil || int64(chunks.Len()) != rows {
			return nil, fmt.Errorf("column %s: damaged: it ends before the file does", b.fields[i].Name)
		}
		values[i], err = joined(chunks)
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", b.fields[i].Name, err)
		}
		b.fields[i].Type = values[i].DataType() // dictionaries may be read as their values
	}
	b.left -= rows
	b.record = array.NewRecord(arrow.NewSchema(b.fields, nil), values, rows)
	return b.record, nil
}

// joined returns all chunks as one array and releases them.
func joined(chunks *arrow.Chunked) (arrow.Array, error) {
	defer chunks.Release()
	if len(chunks.Chunks()) == 1 {
		a := chunks.Chunk(0)
		a.Retain()
		return a, nil
	}
	return array.Concatenate(chunks.Chunks(), fileAllocator)
}

func (b *parquetBatches) releaseRecord() {
	if b.record != nil {
		b.record.Release()
		b.record = nil
	}
}

func (b *parquetBatches) release() {
	b.releaseRecord()
	for _, column := range b.columns {
		column.Release()
	}
	b.columns = nil
}
