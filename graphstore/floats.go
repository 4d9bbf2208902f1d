package graphstore

import (
	"fmt"
	"io"
)

// Floats is a column of numbers beside the store's own tables: the vectors of a
// diffusion field, say. All columns of a table have the same length.
type Floats struct {
	Name   string
	Values []float64
}

// WriteFloats writes columns of one length as an uncompressed Arrow IPC file. It
// panics if there is no column or their lengths differ.
func WriteFloats(w io.Writer, columns []Floats) error {
	n := len(columns[0].Values)
	for _, c := range columns {
		if len(c.Values) != n {
			panic(fmt.Sprintf("graphstore: columns %q and %q have %d and %d values",
				columns[0].Name, c.Name, n, len(c.Values)))
		}
	}
	_, err := writeTable(w, func(visit func([]vector) error) error {
		return inChunks(n, func(from, to int) error {
			rows := make([]vector, len(columns))
			for i, c := range columns {
				rows[i] = vectorOf(c.Name, c.Values[from:to])
			}
			return visit(rows)
		})
	})
	if err != nil {
		return fmt.Errorf("graphstore: write columns: %w", err)
	}
	return nil
}

// ReadFloats reads what WriteFloats wrote, in bytes whose checksum the caller has
// verified: damaged ones can end the process. It returns the columns named, in
// that order.
func ReadFloats(data []byte, names ...string) ([]Floats, error) {
	out := make([]Floats, len(names))
	for i, name := range names {
		out[i].Name = name
	}
	err := readTable("columns", data, func(rows []vector) error {
		if len(rows) != len(names) {
			return fmt.Errorf("%d columns, want %d", len(rows), len(names))
		}
		for i := range rows {
			v := &rows[i]
			if v.name != names[i] || v.kind != f64Vector || v.nulls > 0 {
				return fmt.Errorf("column %d is %q, want numbers named %q", i, v.name, names[i])
			}
			if err := v.check(); err != nil {
				return err
			}
			out[i].Values = append(out[i].Values, elements[float64](v.data)[:v.rows]...)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("graphstore: %w", err)
	}
	return out, nil
}
