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
	return drain(source, func(*event.Batch) {})
}

// drain reads a source to its end.
func drain(source *Source, each func(*event.Batch)) error {
	for {
		var b event.Batch
		if err := source.Next(context.Background(), &b); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		each(&b)
	}
}

// Every row must have the values that its text alone has, or be refused as it is, and a refused
// row must not end the file.
func FuzzCSVRowsHaveTheirText(f *testing.F) {
	for _, seed := range []string{
		"a,b\n1,2\n", "a,b\n\n1,2", "a\n\"x\"\"y\"\n", "a\n\"two\nlines\"\nz\n",
		"\xef\xbb\xbfa\n1\n",
		"a,b\n\"open\n1,2\n", "a\nx\"y\nok\n", "a\n\"x\"y\nok\n", "a,b\n1\n1,2,3\n,\n",
		" a , b \n 1 ,\t2\n",
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

// If the reader accepts an object, encoding/json must accept it too, with the same texts and
// numbers. The reader must accept every flat object with distinct keys and no unpaired surrogates.
// encoding/json replaces unpaired surrogates by U+FFFD.
func FuzzJSONRowsReadAsEncodingJSON(f *testing.F) {
	for _, seed := range []string{
		`{"src":1,"dst":"b","weight":0.5}`, `{}`, `{"src":"a\u00e9\n","dst":null}`,
		`{"src":[1,2.5],"dst":{"a":[1]}}`,
		`{"src":1e3,"dst":-0}`, `{"src":01}`, `{"src":"\ud800"}`, `{"src":true,"dst":false,}`,
		`{"src":18446744073709551616}`,
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

// Every row of a file is applied, refused or left out: none is lost, and no input panics.
func FuzzRowsAreAccountedFor(f *testing.F) {
	for _, seed := range []string{
		"src,dst\na,b\nb,c\n", "vertex,label\na,1\nb,\nc,-1\nd,0\n", "# x\na b\nb c\n",
		"src;dst;weight\na;b;0,5\n",
		"src,dst,time\na,b,2024-05-01 12:00:00Z\nb,c,1714564800000\nc,d,x\n", "1,2\n3,4\n",
		"sep=;\nsrc;dst\n1;2\n",
		"src,dst\n1.2E+18,NaN\n-5,42.0\n1,1\n", "vertex,p0,p1\na,.5,.5\nb,-1e-9,1\nc,2,2\n",
		"% asym\n1 2 3 4\n",
	} {
		for kind := range byte(6) {
			f.Add([]byte(seed), kind)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte, kind byte) {
		if bytes.ContainsAny(data, "\"\r\x00") {
			return // a line may be no row then
		}
		for _, name := range []string{"x.csv", "x.txt", "x.ndjson"} {
			path := writeFile(t, name, data)
			for _, header := range [][]string{nil, {"src,dst", "labels=vertex,label"}} {
				kind := event.Kind(kind) % event.KindControl
				rows, _, _, err := account(t, path, Config{
					Inputs: []Input{{Path: path, Kind: kind}},
					Header: header, Classes: event.ClassSet{Count: 2},
				})
				skipped := lines(data) - rows
				if err == nil && skipped != 0 && headerOf(header, kind) != nil && name == "x.csv" &&
					!bytes.ContainsAny(data, "#%=") {
					t.Fatalf("%s: %d lines are not among the rows", path, skipped)
				}
			}
		}
	})
}

// lines returns how many lines of a text are not blank.
func lines(data []byte) (n int) {
	for line := range bytes.Lines(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))) {
		if len(bytes.TrimSuffix(line, []byte("\n"))) > 0 {
			n++
		}
	}
	return n
}
