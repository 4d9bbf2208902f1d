package files

import (
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/decimal256"
	"github.com/apache/arrow-go/v18/arrow/float16"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"

	"gqlstream/ingest/wire"
)

// Every type that other programs write for ids, classes, numbers and times is read with all its
// digits.
func TestTypesOfOtherPrograms(t *testing.T) {
	noon := time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)
	build := func(of arrow.DataType, fill func(array.Builder)) arrow.Array {
		b := array.NewBuilder(memory.DefaultAllocator, of)
		defer b.Release()
		fill(b)
		return b.NewArray()
	}
	tests := []struct {
		values arrow.Array
		want   wire.Cell
	}{
		{build(&arrow.Decimal128Type{Precision: 20}, func(b array.Builder) {
			b.(*array.Decimal128Builder).Append(decimal128.FromU64(1234567890123456789))
		}), wire.Cell{
			Kind: wire.UintCell, Integer: 1234567890123456789,
			Text: "1234567890123456789",
		}},
		{build(&arrow.Decimal128Type{Precision: 22, Scale: 2}, func(b array.Builder) {
			b.(*array.Decimal128Builder).Append(decimal128.FromI64(700))
		}), wire.Cell{Kind: wire.UintCell, Integer: 7, Text: "7"}},
		{build(&arrow.Decimal256Type{Precision: 40}, func(b array.Builder) {
			b.(*array.Decimal256Builder).Append(decimal256.FromI64(-1001234567890))
		}), wire.Cell{Kind: wire.NumberCell, Number: -1001234567890, Text: "-1001234567890"}},
		{build(arrow.PrimitiveTypes.Int64, func(b array.Builder) {
			b.(*array.Int64Builder).Append(-1001234567890)
		}), wire.Cell{Kind: wire.NumberCell, Number: -1001234567890, Text: "-1001234567890"}},
		{build(arrow.FixedWidthTypes.Float16, func(b array.Builder) {
			b.(*array.Float16Builder).Append(float16.New(1.5))
		}), wire.Cell{Kind: wire.NumberCell, Number: 1.5}},
		{build(arrow.BinaryTypes.StringView, func(b array.Builder) {
			b.(*array.StringViewBuilder).Append("a long name that is not inlined")
		}), wire.Cell{Kind: wire.TextCell, Text: "a long name that is not inlined"}},
		{
			build(
				arrow.RunEndEncodedOf(arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String),
				func(b array.Builder) {
					r := b.(*array.RunEndEncodedBuilder)
					r.Append(3)
					r.ValueBuilder().(*array.StringBuilder).Append("run")
				},
			),
			wire.Cell{Kind: wire.TextCell, Text: "run"},
		},
		{build(&arrow.TimestampType{Unit: arrow.Millisecond}, func(b array.Builder) {
			b.(*array.TimestampBuilder).Append(arrow.Timestamp(noon.UnixMilli()))
		}), wire.Cell{Kind: wire.TimeCell, Integer: uint64(noon.UnixNano()), Naive: true}},
		{
			build(
				&arrow.TimestampType{Unit: arrow.Nanosecond, TimeZone: "Europe/Berlin"},
				func(b array.Builder) {
					b.(*array.TimestampBuilder).Append(arrow.Timestamp(noon.UnixNano()))
				},
			),
			wire.Cell{Kind: wire.TimeCell, Integer: uint64(noon.UnixNano())},
		},
	}
	for _, test := range tests {
		var c wire.Cell
		if !readValue(test.values, 0, &c, new(fileRow)) {
			t.Errorf("%v is not read", test.values.DataType())
		}
		if c.Kind != test.want.Kind || c.Integer != test.want.Integer ||
			c.Number != test.want.Number ||
			c.Text != test.want.Text ||
			c.Naive != test.want.Naive ||
			!slices.Equal(c.List, test.want.List) {
			t.Errorf("%v: %+v, want %+v", test.values.DataType(), c, test.want)
		}
		test.values.Release()
	}
}
