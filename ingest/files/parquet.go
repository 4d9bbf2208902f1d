package files

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet"
	"github.com/apache/arrow-go/v18/parquet/file"
	"github.com/apache/arrow-go/v18/parquet/pqarrow"

	"gqlstream/ingest/wire"
)

// parquetBatchRows is the number of rows that are read at a time.
const parquetBatchRows = 4096

// newParquetTable reads a Parquet file: only the wanted columns, a batch of rows at a time.
func newParquetTable(f *openedFile, c *columns) (t *recordTable, err error) {
	defer recoverDamage(&err)
	info, err := f.file.Stat()
	if err != nil {
		return nil, err
	}
	memory := allocatorOf(info.Size())
	source, err := file.NewParquetReader(f.file,
		file.WithReadProps(parquet.NewReaderProperties(memory)))
	if err != nil {
		return nil, fmt.Errorf("not a Parquet file: %w", err)
	}
	if err := checkStoredSchema(source); err != nil {
		return nil, err
	}
	if err := checkChunks(source, info.Size()); err != nil {
		return nil, err
	}
	reader, err := pqarrow.NewFileReader(source, pqarrow.ArrowReadProperties{}, memory)
	if err != nil {
		return nil, notOpened("a Parquet file", err)
	}
	b := &parquetBatches{left: source.NumRows(), memory: memory}
	f.release = b.release
	t = &recordTable{columns: c, load: b.next}
	t.slots, err = b.choose(reader, c)
	return t, err
}

// checkStoredSchema checks the Arrow schema that a Parquet file may hold before the reader believes
// its lengths, and asks for that much memory without a bound.
func checkStoredSchema(source *file.Reader) error {
	text := source.MetaData().KeyValueMetadata().FindValue("ARROW:schema")
	if text == nil {
		return nil
	}
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(*text, "="))
	if err != nil {
		return fmt.Errorf("damaged: its Arrow schema: %w", err)
	}
	const continuation = "\xff\xff\xff\xff" // which writers of 2019 left out
	if !strings.HasPrefix(string(data), continuation) {
		data = append([]byte(continuation), data...)
	}
	if err := wire.CheckArrowSchema(data); err != nil {
		return fmt.Errorf("damaged: its Arrow schema: %w", err)
	}
	return nil
}

// parquetBatches reads columns in parallel.
//
// The record readers of pqarrow open the columns in goroutines of their own, and stop at columns in
// several chunks. Here each column is opened and read separately: a panic on damaged bytes can then
// be recovered.
type parquetBatches struct {
	columns []*pqarrow.ColumnReader
	values  []arrow.Array // of the current rows, by column
	memory  boundedAllocator
	left    int64 // remaining rows according to the file
}

// choose opens the columns that are wanted and returns their slots.
func (b *parquetBatches) choose(reader *pqarrow.FileReader, c *columns) (wanted []int, err error) {
	schema, err := reader.Schema()
	if err != nil {
		return nil, err
	}
	if err := checkSchema(schema); err != nil {
		return nil, err
	}
	slots, err := setSchema(c, schema)
	if err != nil {
		return nil, err
	}
	for i, slot := range slots {
		if slot < 0 {
			continue
		}
		field := schema.Field(i)
		if !readableColumn(field.Type) {
			return nil, unread(field.Name, field.Type)
		}
		if !typeFits(&reader.Manifest.Fields[i]) {
			return nil, fmt.Errorf("column %s: damaged: it has columns of its own, and the "+
				"stored Arrow schema calls it %v", field.Name, field.Type)
		}
		column, err := reader.GetColumn(context.Background(),
			i) // i is a field, though its documentation says leaf
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", field.Name, err)
		}
		b.columns, wanted = append(b.columns, column), append(wanted, slot)
	}
	return wanted, nil
}

// typeFits reports whether a field with child columns has a nested type. The stored Arrow schema of
// a damaged file can name another type. For such a field the library returns neither a reader nor
// an error.
func typeFits(field *pqarrow.SchemaField) bool {
	t := field.Field.Type
	if extension, ok := t.(arrow.ExtensionType); ok {
		t = extension.StorageType()
	}
	if len(field.Children) > 0 && !arrow.IsNested(t.ID()) {
		return false
	}
	for i := range field.Children {
		if !typeFits(&field.Children[i]) {
			return false
		}
	}
	return true
}

// readableColumn reports whether values of a type fit into cells: scalars and lists of scalars.
func readableColumn(t arrow.DataType) bool {
	if list, ok := t.(arrow.ListLikeType); ok && t.ID() != arrow.MAP {
		t = list.Elem()
	}
	return !arrow.IsNested(t.ID())
}

// next returns the values of the next rows, valid until the next call. A column that ends before
// the others, or earlier than the file says, is an error.
func (b *parquetBatches) next() ([]arrow.Array, error) {
	b.releaseValues()
	rows := min(b.left, parquetBatchRows)
	if rows == 0 {
		return nil, io.EOF
	}
	for _, column := range b.columns {
		chunks, err := column.NextBatch(rows)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("column %s: %w%s", column.Field().Name, err, writerHelp(err))
		}
		if err != nil || int64(chunks.Len()) != rows {
			return nil, fmt.Errorf("column %s: damaged: it ends before the file does",
				column.Field().Name)
		}
		values := chunks.Chunk(0)
		if len(chunks.Chunks()) == 1 {
			values.Retain()
		} else {
			values, err = array.Concatenate(chunks.Chunks(), b.memory)
		}
		chunks.Release()
		if err != nil {
			return nil, fmt.Errorf("column %s: %w", column.Field().Name, err)
		}
		b.values = append(b.values, values)
	}
	b.left -= rows
	return b.values, nil
}

// writerHelp returns advice for writing a file after its compression or encoding could not be read.
func writerHelp(err error) string {
	if text := strings.ToLower(err.Error()); strings.Contains(text, "unimplemented") ||
		strings.Contains(text, "unsupported") || strings.Contains(text, "not supported") {
		return "; write the file with the compression zstd or snappy and the default encodings"
	}
	return ""
}

func (b *parquetBatches) releaseValues() {
	for _, a := range b.values {
		a.Release()
	}
	b.values = b.values[:0]
}

func (b *parquetBatches) release() {
	b.releaseValues()
	for _, column := range b.columns {
		column.Release()
	}
	b.columns = nil
}

// notOpened is the error of a file that the library could not begin to read.
func notOpened(what string, err error) error {
	if text := err.Error(); strings.Contains(text, "could not convert field type") ||
		strings.Contains(text, "not implemented") {
		return fmt.Errorf("a column has a type that is not read: write it as text (cast it to a "+
			"string) or as numbers of 64 bits: %w", err)
	}
	return fmt.Errorf("not %s: %w", what, err)
}

// setSchema assigns the columns of a schema. The error about a missing column names columns that
// have columns of their own, which are not read.
func setSchema(c *columns, schema *arrow.Schema) ([]int, error) {
	slots, err := c.setHeader(fieldNames(schema))
	lacks := columnsError("")
	if !errors.As(err, &lacks) {
		return slots, err
	}
	for _, field := range schema.Fields() {
		if inner, nested := field.Type.(*arrow.StructType); nested {
			var names []string
			for _, f := range inner.Fields() {
				names = append(names, f.Name)
			}
			return nil, lacks + columnsError(fmt.Sprintf("; %s has columns of its own, %s: write "+
				"these beside the others", field.Name, listNames(names)))
		}
	}
	return slots, err
}
