package files

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/parquet/file"
)

// The claims of a damaged table are checked here, before the readers believe them: they ask for
// memory by a claimed length, count rows by it, and know nothing of rows that are left out.

// checkChunks checks that the column chunks of a Parquet file of a size lie inside it, and that
// they have the rows that the file claims.
func checkChunks(source *file.Reader, size int64) error {
	meta, rows := source.MetaData(), int64(0)
	for i := range source.NumRowGroups() {
		group := meta.RowGroup(i)
		if rows += group.NumRows(); group.NumRows() < 0 || rows < 0 {
			return fmt.Errorf("damaged: row group %d has %d rows", i, group.NumRows())
		}
		for j := range group.NumColumns() {
			chunk, err := group.ColumnChunk(j)
			if err != nil {
				return fmt.Errorf("damaged: row group %d: %w", i, err)
			}
			start, length := chunk.DataPageOffset(), chunk.TotalCompressedSize()
			if at := chunk.DictionaryPageOffset(); chunk.HasDictionaryPage() && at > 0 {
				start = min(start, at)
			}
			if start < 0 || length < 0 || start > size || length > size-start {
				return fmt.Errorf("damaged: column %s has pages outside the file",
					chunk.PathInSchema())
			}
			flat := meta.Schema.Column(j).MaxRepetitionLevel() == 0
			if flat && chunk.NumValues() != group.NumRows() {
				return fmt.Errorf("damaged: column %s has %d values in %d rows",
					chunk.PathInSchema(), chunk.NumValues(), group.NumRows())
			}
		}
	}
	if rows != source.NumRows() {
		return fmt.Errorf("damaged: %d rows in row groups, the file claims %d",
			rows, source.NumRows())
	}
	return nil
}

// decimalDigitsMax bounds the digits and the scale of a decimal. Text of a number has as many.
const decimalDigitsMax = 76

// checkType checks a type that a file claims.
func checkType(t arrow.DataType) error {
	switch of := t.(type) {
	case arrow.DecimalType:
		if p, s := of.GetPrecision(), of.GetScale(); p < 1 || p > decimalDigitsMax ||
			s < -decimalDigitsMax || s > decimalDigitsMax {
			return fmt.Errorf("damaged: a decimal of %d digits, %d of them after the point", p, s)
		}
	case *arrow.DictionaryType:
		return checkType(of.ValueType)
	case *arrow.RunEndEncodedType:
		return checkType(of.Encoded())
	case arrow.ExtensionType:
		return checkType(of.StorageType())
	case arrow.ListLikeType:
		return checkType(of.Elem())
	}
	return nil
}

// checkSchema checks the types of columns.
func checkSchema(schema *arrow.Schema) error {
	for _, field := range schema.Fields() {
		if err := checkType(field.Type); err != nil {
			return fmt.Errorf("column %s: %w", field.Name, err)
		}
	}
	return nil
}

// rowsWithoutValuesMax bounds the rows of a batch whose columns have no buffers that grow with
// them.
const rowsWithoutValuesMax = 1 << 20

// checkRows checks that columns have as many rows as they claim: a number is all that columns of
// nulls and run ends have of them.
func checkRows(values []arrow.Array, rows int) error {
	if rows <= rowsWithoutValuesMax {
		return nil
	}
	for _, a := range values {
		switch a.(type) {
		case *array.Null, *array.RunEndEncoded:
		default:
			return nil
		}
	}
	return fmt.Errorf("damaged: %d rows without values", rows)
}
