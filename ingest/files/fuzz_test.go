package files

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// readQuietly reads a file of edges and returns the error of opening or reading.
func readQuietly(path string) error {
	return readConfigQuietly(Config{Inputs: []Input{{Path: path, Kind: event.KindEdge}}})
}

func readConfigQuietly(config Config) error {
	source, err := NewSource(config)
	if err != nil {
		return err
	}
	defer source.Close()
	for {
		var b event.Batch
		if err := source.Next(context.Background(), &b); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// Every row must have the values that its text alone has, or be refused as it is, and a refused
// row must not end the file.
func FuzzCSVRowsHaveTheirText(f *testing.F) {
	for _, seed := range []string{
		"a,b\n1,2\n", "a,b\n\n1,2", "a\n\"x\"\"y\"\n", "a\n\"two\nlines\"\nz\n", "\xef\xbb\xbfa\n1\n",
		"a,b\n\"open\n1,2\n", "a\nx\"y\nok\n", "a\n\"x\"y\nok\n", "a,b\n1\n1,2,3\n,\n", " a , b \n 1 ,\t2\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.ContainsRune(data, '\r') {
			return
		}
		table := newCSVRows(bytes.NewReader(data), ',', false)
		for row := 0; ; row++ {
			record, err := table.record()
			if err == io.EOF {
				return
			}
			alone := csv.NewReader(bytes.NewReader(table.text()))
			alone.FieldsPerRecord = -1
			expected, wantErr := alone.Read()
			if bad := new(event.Problem); err != nil && (wantErr == nil || !errors.As(err, &bad)) {
				t.Fatalf("row %d %q: %v, alone %v", row, table.text(), err, wantErr)
			} else if err == nil && !slices.Equal(record, expected) {
				t.Fatalf("row %d %q: %q, alone %q", row, table.text(), record, expected)
			}
		}
	})
}

// flat reports whether no value is an object or an array.
func flat(values map[string]any) bool {
	for _, x := range values {
		switch x.(type) {
		case map[string]any, []any:
			return false
		}
	}
	return true
}

// What the reader takes for an object, encoding/json must too, with the same text
// and numbers; and the reader must take every flat object of distinct keys without halves of surrogate
// pairs, which encoding/json makes U+FFFD of.
func FuzzJSONRowsReadAsEncodingJSON(f *testing.F) {
	for _, seed := range []string{
		`{"src":1,"dst":"b","weight":0.5}`, `{}`, `{"src":"a\u00e9\n","dst":null}`, `{"src":[1,2.5],"dst":{"a":[1]}}`,
		`{"src":1e3,"dst":-0}`, `{"src":01}`, `{"src":"\ud800"}`, `{"src":true,"dst":false,}`, `{"src":18446744073709551616}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if strings.ContainsAny(text, "\n\r") {
			return
		}
		table := &jsonTable{columns: newColumns(event.KindEdge, nil, nil)}
		var row fileRow
		err := table.parse([]byte(text), &row)
		var want map[string]any
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		valid := json.Valid([]byte(text)) && d.Decode(&want) == nil && want != nil
		if err == nil && !valid {
			t.Fatalf("%q was read, encoding/json refuses it", text)
		}
		if err != nil {
			if valid && utf8.ValidString(text) && flat(want) &&
				!strings.Contains(err.Error(), "given twice") &&
				!strings.Contains(err.Error(), "surrogate pair") {
				t.Fatalf("%q was refused, encoding/json reads it: %v", text, err)
			}
			return
		}
		for slot, column := range wire.Columns(event.KindEdge) {
			c := &row.cells[slot]
			if s, ok := want[column.Names[0]].(string); ok && column.Names[0] != "time" &&
				(c.Kind != wire.TextCell || c.Text != s) {
				t.Fatalf("%q: %s is %v, want %q", text, column.Names[0], c, s)
			}
		}
	})
}
