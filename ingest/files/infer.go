package files

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// inferClasses finds out what label classes files speak of. It never guesses which
// column of probabilities is which class:
//
//   - columns p_NAME name the classes, in the order of the first file that has them;
//   - columns p0 to p{K-1}, and lists of K probabilities, belong to the classes 0 to
//     K-1, which labels then call by these numbers;
//   - without probabilities, labels and predictions that are classes name them: whole
//     numbers are indices, and there are as many classes as the highest needs; other
//     names are classes in the order of the alphabet, which nothing depends on.
//
// Names of classes beside columns that name none are an error that says the two ways
// out. Files that speak of no class give the zero ClassSet. columns renames as in
// Config.
func inferClasses(inputs []Input, columns map[string]string) (event.ClassSet, error) {
	found := classFinder{names: map[string]string{}}
	for _, input := range inputs {
		if !input.Log && input.Kind != event.KindLabel && input.Kind != event.KindPrediction {
			continue
		}
		if err := found.read(input, columns); err != nil {
			return event.ClassSet{}, err
		}
	}
	return found.classes()
}

// classFinder collects what files say of classes.
type classFinder struct {
	names   map[string]string // of classes: the file that said it first
	highest int               // 1 + the highest index
	count   int               // of probabilities that do not name their class
	counted string            // the file that says so
	called  []string          // classes of the columns that name theirs
	caller  string            // the file that has them
}

// read reads the labels or predictions of a table, or both of a log.
func (f *classFinder) read(input Input, rename map[string]string) error {
	rows, err := openRows(input, &Config{Columns: rename}, nil)
	if err != nil {
		return err
	}
	defer rows.file.Close()
	columns := rows.columns
	if !input.Log && columns.header && columns.highest > 0 {
		return f.sawColumns(columns, input.Path) // no need to read the rows
	}
	ofLog := map[event.Kind]*jsonTable{}
	for _, kind := range []event.Kind{event.KindLabel, event.KindPrediction} {
		ofLog[kind] = &jsonTable{columns: newColumns(kind, nil, nil)}
	}
	for {
		err := rows.table.next(&rows.row)
		switch {
		case err == io.EOF && !input.Log && columns.called:
			return f.sawColumns(columns, input.Path) // keys of NDJSON
		case err == io.EOF:
			return nil
		case errors.As(err, new(*badRow)):
			continue // refused again when it counts
		case err == nil && input.Log:
			log := rows.table.(*jsonTable)
			kind, problem := log.kindOf(log.raw)
			table := ofLog[kind]
			if problem != nil || table == nil || table.parse(log.raw, &rows.row) != nil {
				continue
			}
			columns = table.columns
		}
		if err == nil {
			err = f.sawRow(columns, &rows.row, input.Path)
		}
		if err != nil {
			return fmt.Errorf("ingest: %s: after row %d: %w", input.Path, rows.table.place(), err)
		}
	}
}

// sawRow notes the class of a row, or the number of its probabilities.
func (f *classFinder) sawRow(c *columns, row *fileRow, path string) error {
	class := c.slot("label")
	if c.kind == event.KindPrediction {
		class = c.slot("class")
		if list := &row.cells[c.slot("probabilities")]; list.Kind == wire.ListCell {
			return f.sawCount(list.Count, path)
		}
		if c.highest > 0 {
			return f.sawColumns(c, path)
		}
	}
	return f.sawClass(&row.cells[class], path)
}

// sawColumns notes the columns of probabilities of a file.
func (f *classFinder) sawColumns(c *columns, path string) error {
	switch {
	case !c.called:
		return f.sawCount(c.highest, path)
	case c.numbered:
		return errors.New("some columns of probabilities are p0, p1, ... and some name their class")
	case f.caller == "" || f.caller == path:
		f.called, f.caller = c.classes, path
	case !slices.Equal(slices.Sorted(slices.Values(f.called)), slices.Sorted(slices.Values(c.classes))):
		return fmt.Errorf("probabilities of the classes %s, and in %s of %s: give the classes with --classes",
			strings.Join(c.classes, ","), f.caller, strings.Join(f.called, ","))
	}
	return nil
}

func (f *classFinder) sawCount(n int, path string) error {
	if f.count != 0 && f.count != n {
		return fmt.Errorf("%d probabilities, and %d in %s before: say how many classes there are",
			n, f.count, f.counted)
	}
	f.count, f.counted = n, path
	return nil
}

func (f *classFinder) sawClass(c *wire.Cell, path string) error {
	if n, ok := c.Whole(); ok {
		if n >= event.ClassesMax {
			return fmt.Errorf("class %d, there can be %d classes: name them in the configuration",
				n, event.ClassesMax)
		}
		f.highest = max(f.highest, int(n)+1)
		return nil
	}
	if c.Kind != wire.TextCell || c.Text == "-1" || c.Text == "-1.0" {
		return nil
	}
	if _, ok := f.names[c.Text]; !ok {
		if len(f.names) == event.ClassesMax {
			return fmt.Errorf("more than %d different classes, the last %s", event.ClassesMax, wire.Quote(c.Text))
		}
		f.names[string([]byte(c.Text))] = path
	}
	return nil
}

// classes draws the conclusion.
func (f *classFinder) classes() (event.ClassSet, error) {
	names := slices.Sorted(maps.Keys(f.names))
	var set event.ClassSet
	switch {
	case f.caller != "" && f.count > 0:
		return set, fmt.Errorf("ingest: %s names the class of each column of probabilities and %s does not: %s",
			f.caller, f.counted, twoWays(f.called))
	case f.caller != "" && f.highest > 0:
		return set, fmt.Errorf("ingest: %s names the classes %s, but some labels or predictions are indices up to %d: "+
			"use the names, or give --classes %s, by which 0 is %s", f.caller, strings.Join(f.called, ","),
			f.highest-1, strings.Join(f.called, ","), f.called[0])
	case f.caller != "":
		set = event.ClassSet{Count: len(f.called), Names: f.called}
	case len(names) == 0 && f.count > 0:
		return event.ClassSet{Count: f.count}, nil
	case len(names) == 0:
		return event.ClassSet{Count: f.highest}, nil
	case f.highest > 0:
		return set, fmt.Errorf("ingest: some classes are indices up to %d and some are names, "+
			"such as %s in %s: name the classes", f.highest-1, strconv.Quote(names[0]), f.names[names[0]])
	case f.count > 0:
		return set, fmt.Errorf("ingest: %d probabilities in %s do not say which class each is, and %s speaks of %s: %s",
			f.count, f.counted, f.names[names[0]], strconv.Quote(names[0]), twoWays(names))
	default:
		set = event.ClassSet{Count: len(names), Names: names}
	}
	return set, set.Validate()
}

// twoWays explains two ways to say which column of probabilities is which class.
func twoWays(names []string) string {
	const shown = 8
	columns := classPrefix + strings.Join(names[:min(len(names), shown)], ","+classPrefix)
	if len(names) > shown {
		columns += ",..."
	}
	return fmt.Sprintf("name the columns %s, or give --classes with the names in the order of p0, p1, ...", columns)
}
