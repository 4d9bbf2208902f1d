package files

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// frame is one JSON value that holds a whole table, as pandas writes it with orient="split",
// "columns", "index" or "values", or an object with one list for each column.
type frame struct {
	outer, inner     []string // keys of the value, and of the first object inside
	objects, lists   int      // how many values of the keys are objects, and lists
	length           int      // of the first list
	uneven           bool     // lists have several lengths, or objects
	rowsOf, nameless bool     // the key "data", or the value itself, is a list of lists
}

// frameKeysMax bounds the keys that are remembered.
const frameKeysMax = 1 << 12

// startsNested reports whether a value is a list, or an object whose first member is one or is an
// object.
func startsNested(value []byte) bool {
	d := jsontext.NewDecoder(bytes.NewReader(value))
	if kind := d.PeekKind(); kind != '{' {
		return kind == '['
	}
	for range 2 {
		if _, err := d.ReadToken(); err != nil {
			return false
		}
	}
	return d.PeekKind() == '{' || d.PeekKind() == '['
}

// adviseFrame returns an error that says how to make a file of rows from a JSON file whose first
// value is a whole table, or nil.
func adviseFrame(path string, c *columns) error {
	file, err := openFile(path)
	if err != nil {
		return nil
	}
	defer file.Close()
	in := bufio.NewReader(file)
	skipMark(in)
	f := &frame{}
	d := jsontext.NewDecoder(in,
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if f.read(d) != nil {
		return nil
	}
	what, rows := f.rows(c)
	if what == "" {
		return nil
	}
	return fmt.Errorf("%s: write its rows to a file, and read that: %s", what, shell(path, rows))
}

// read reads the first value.
func (f *frame) read(d *jsontext.Decoder) error {
	begin, err := d.ReadToken()
	switch {
	case err != nil:
		return err
	case begin.Kind() == '[':
		if f.nameless = d.PeekKind() == '['; f.nameless {
			f.length, err = length(d)
		}
		return err
	}
	for begin.Kind() == '{' && d.PeekKind() != '}' {
		key, err := d.ReadToken()
		if err != nil {
			return err
		}
		if len(f.outer) < frameKeysMax {
			f.outer = append(f.outer, key.String())
		}
		if err := f.member(d, key.String()); err != nil {
			return err
		}
	}
	return nil
}

// member reads the value of a key.
func (f *frame) member(d *jsontext.Decoder, key string) error {
	switch d.PeekKind() {
	case '{':
		if f.objects++; f.objects > 1 {
			return d.SkipValue()
		}
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		for d.PeekKind() != '}' {
			name, err := d.ReadToken()
			if err != nil {
				return err
			}
			if len(f.inner) < frameKeysMax {
				f.inner = append(f.inner, name.String())
			}
			if err := d.SkipValue(); err != nil {
				return err
			}
		}
		_, err := d.ReadToken()
		return err
	case '[':
		if _, err := d.ReadToken(); err != nil {
			return err
		}
		f.rowsOf = f.rowsOf || key == "data" && d.PeekKind() == '['
		f.uneven = f.uneven || d.PeekKind() == '{' // a list of rows
		n, err := rest(d)
		if f.lists++; f.lists == 1 {
			f.length = n
		}
		f.uneven = f.uneven || n != f.length
		return err
	}
	return d.SkipValue()
}

// length reads a list and returns the number of its elements.
func length(d *jsontext.Decoder) (int, error) {
	if _, err := d.ReadToken(); err != nil {
		return 0, err
	}
	return rest(d)
}

// rest reads a list after its bracket and returns the number of its elements.
func rest(d *jsontext.Decoder) (n int, err error) {
	for ; d.PeekKind() != ']'; n++ {
		if err := d.SkipValue(); err != nil {
			return n, err
		}
	}
	_, err = d.ReadToken()
	return n, err
}

// rows describes the value, "" if it has no rows, and returns a statement of Python that prints its
// rows.
func (f *frame) rows(c *columns) (what, statement string) {
	const begin = "d=json.load(open(0)); "
	first := func(keys []string) string { return append(keys, "")[0] }
	switch n := len(f.outer); {
	case f.nameless:
		var names []string
		for _, known := range c.known {
			if known.Required && len(names) < f.length {
				names = append(names, "'"+known.Names[0]+"'")
			}
		}
		for len(names) < f.length && len(names) < columnsShown {
			names = append(names, fmt.Sprintf("'column%d'", len(names)+1))
		}
		list := strings.Join(names, ",")
		return "its rows are lists of values without names; with the names of the columns, in " +
				"their order, in place of " + list,
			"[print(json.dumps(dict(zip([" + list + "],r)))) for r in json.load(open(0))]"
	case f.rowsOf && slices.Contains(f.outer, "columns"):
		return "a table with its columns and data apart, as pandas writes it with orient=\"split\"",
			begin + "[print(json.dumps(dict(zip(d['columns'],r)))) for r in d['data']]"
	case n > 0 && f.objects == n && first(f.inner) == "0":
		return "a table with one object for each column, which pandas writes without " +
				"orient=\"records\"",
			begin + "[print(json.dumps({c:d[c][i] for c in d})) for i in next(iter(d.values()))]"
	case n > 0 && f.objects == n && first(f.outer) == "0":
		return "a table with one object for each index, as pandas writes it with orient=\"index\"",
			"[print(json.dumps(r)) for r in json.load(open(0)).values()]"
	case n > 1 && f.lists == n && !f.uneven:
		return "a table with one list for each column",
			begin + "[print(json.dumps(dict(zip(d,r)))) for r in zip(*d.values())]"
	}
	return "", ""
}
