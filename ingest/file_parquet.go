package ingest

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/parquet"
	"github.com/apache/arrow/go/v17/parquet/file"
	"github.com/apache/arrow/go/v17/parquet/pqarrow"
)

// newParquetTable reads a Parquet file: only the columns that are wanted, a batch
// of rows at a time.
func newParquetTable(f *openedFile, c *columns) (t *recordTable, stop func(), err error) {
	defer recoverDamage(&err)
	stop = func() {}
	random, err := f.random()
	if err != nil {
		return nil, stop, err
	}
	source, err := file.NewParquetReader(random,
		file.WithReadProps(parquet.NewReaderProperties(fileAllocator)))
	if err != nil {
		return nil, stop, fmt.Errorf("not a Parquet file: %w", err)
	}
	reader, err := pqarrow.NewFileReader(source, pqarrow.ArrowReadProperties{BatchSize: fileBatchRows},
		fileAllocator)
	if err != nil {
		return nil, stop, fmt.Errorf("not a Parquet file: %w", err)
	}
	t = &recordTable{columns: c}
	leaves, err := t.choose(reader)
	if err != nil {
		return nil, stop, err
	}
	records, err := reader.GetRecordReader(context.Background(), leaves, nil)
	if err != nil {
		return nil, stop, err
	}
	t.load = loadParquet(records, source.NumRows())
	return t, records.Release, nil
}

// choose finds out which columns are wanted and returns their leaves.
func (t *recordTable) choose(reader *pqarrow.FileReader) ([]int, error) {
	schema, err := reader.Schema()
	if err != nil {
		return nil, err
	}
	slots, err := t.columns.setHeader(fieldNames(schema))
	if err != nil {
		return nil, err
	}
	var leaves []int
	for i, slot := range slots {
		if slot >= 0 {
			t.slots = append(t.slots, slot)
			leaves = appendLeaves(leaves, &reader.Manifest.Fields[i])
		}
	}
	return leaves, nil
}

func appendLeaves(leaves []int, field *pqarrow.SchemaField) []int {
	if len(field.Children) == 0 { // IsLeaf says yes to lists, too
		return append(leaves, field.ColIndex)
	}
	for i := range field.Children {
		leaves = appendLeaves(leaves, &field.Children[i])
	}
	return leaves
}

// loadParquet checks that the file holds as many rows as it says: a column that
// ends early is otherwise the end of the file.
func loadParquet(records pqarrow.RecordReader, want int64) func() (arrow.Record, error) {
	got := int64(0)
	return func() (arrow.Record, error) {
		if records.Next() {
			got += records.Record().NumRows()
			return records.Record(), nil
		}
		if err := records.Err(); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if got != want {
			return nil, fmt.Errorf("damaged: it has %d rows and says %d", got, want)
		}
		return nil, io.EOF
	}
}
