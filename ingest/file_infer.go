package ingest

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"

	"gqlstream/ingest/event"
)

// InferClasses finds out what label classes files speak of. Predictions with
// probabilities say how many there are. Labels, and predictions that are classes,
// say their names: if all of them are whole numbers they are indices, and without
// probabilities there are as many classes as the highest needs; if not they are
// names, and classes are numbered in the order of the names. Files that speak of
// no class give the zero ClassSet. columns renames as in FileConfig.
func InferClasses(inputs []FileInput, columns map[string]string) (event.ClassSet, error) {
	found := classFinder{names: map[string]string{}}
	for _, input := range inputs {
		err := error(nil)
		switch {
		case input.Log:
			err = found.readLog(input)
		case input.Kind == event.KindLabel, input.Kind == event.KindPrediction:
			err = found.readTable(input, columns)
		}
		if err != nil {
			return event.ClassSet{}, err
		}
	}
	return found.classes()
}

// readableTwice refuses what is gone once it is read.
func readableTwice(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() && !info.IsDir() {
		return fmt.Errorf("ingest: %s is not a regular file and can be read only once: "+
			"say which classes there are", path)
	}
	return nil
}

// classFinder collects what files say of classes.
type classFinder struct {
	names   map[string]string // of classes: the file that said it first
	highest int               // 1 + the highest index
	count   int               // of probabilities
	counted string            // the file that says so
}

func (f *classFinder) readTable(input FileInput, rename map[string]string) error {
	if err := readableTwice(input.Path); err != nil {
		return err
	}
	rows, err := openRows(input, &FileConfig{Columns: rename}, nil)
	if err != nil {
		return err
	}
	defer rows.file.Close()
	if rows.columns.header && rows.columns.highest > 0 {
		return f.sawCount(rows.columns.highest, input.Path) // no need to read the rows
	}
	for {
		err := rows.table.next(&rows.row)
		if err == io.EOF {
			return nil
		}
		var bad *badRow
		if errors.As(err, &bad) {
			continue // refused again when it counts
		}
		if err == nil {
			err = f.sawRow(rows.columns, &rows.row, input.Path)
		}
		if err != nil {
			return fmt.Errorf("ingest: %s: after row %d: %w", input.Path, rows.table.place(), err)
		}
	}
}

// readLog reads the labels and predictions of a log.
func (f *classFinder) readLog(input FileInput) error {
	if err := readableTwice(input.Path); err != nil {
		return err
	}
	log, err := openLogRows(input, nil)
	if err != nil {
		return err
	}
	defer log.file.Close()
	tables := map[event.Kind]*jsonTable{}
	for _, kind := range []event.Kind{event.KindLabel, event.KindPrediction} {
		tables[kind] = &jsonTable{lines: log.lines, columns: newColumns(kind, nil)}
	}
	var row fileRow
	var text []byte
	for {
		line, err := log.line()
		if err == io.EOF {
			return nil
		}
		var bad *badRow
		if err != nil && !errors.As(err, &bad) {
			return fmt.Errorf("ingest: %s: after line %d: %w", input.Path, log.lines.line, err)
		}
		text = append(text[:0], line...)
		kind, payload, problem := log.scan.cutKind(text)
		table := tables[kind]
		if err != nil || problem != nil || table == nil || table.parse(payload, &row) != nil {
			continue
		}
		if err := f.sawRow(table.columns, &row, input.Path); err != nil {
			return fmt.Errorf("ingest: %s:%d: %w", input.Path, log.lines.line, err)
		}
	}
}

// sawRow notes the class of a row, or the number of its probabilities.
func (f *classFinder) sawRow(c *columns, row *fileRow, path string) error {
	class := labelClassSlot
	if c.kind == event.KindPrediction {
		class = predictionClassSlot
		if list := &row.cells[predictionListSlot]; list.kind == listCell {
			return f.sawCount(len(list.list), path)
		}
		if c.highest > 0 {
			return f.sawCount(c.highest, path)
		}
	}
	return f.sawClass(&row.cells[class], path)
}

func (f *classFinder) sawCount(n int, path string) error {
	if f.count != 0 && f.count != n {
		return fmt.Errorf("%d probabilities, and %d in %s before: say how many classes there are",
			n, f.count, f.counted)
	}
	f.count, f.counted = n, path
	return nil
}

func (f *classFinder) sawClass(c *cell, path string) error {
	if n, ok := c.whole(); ok {
		if n >= event.ClassesMax {
			return fmt.Errorf("class %d, there can be %d classes: name them in the configuration",
				n, event.ClassesMax)
		}
		f.highest = max(f.highest, int(n)+1)
		return nil
	}
	if c.kind != textCell || c.text == "-1" || c.text == "-1.0" {
		return nil
	}
	if _, ok := f.names[c.text]; !ok {
		if len(f.names) == event.ClassesMax {
			return fmt.Errorf("more than %d different classes, the last %s", event.ClassesMax, shortQuote(c.text))
		}
		f.names[string([]byte(c.text))] = path
	}
	return nil
}

// classes draws the conclusion.
func (f *classFinder) classes() (event.ClassSet, error) {
	names := slices.Sorted(maps.Keys(f.names))
	switch {
	case len(names) == 0 && f.count > 0:
		return event.ClassSet{Count: f.count}, nil
	case len(names) == 0:
		return event.ClassSet{Count: f.highest}, nil
	case f.highest > 0:
		return event.ClassSet{}, fmt.Errorf("ingest: some classes are indices up to %d and some are names, "+
			"such as %s in %s: name the classes", f.highest-1, strconv.Quote(names[0]), f.names[names[0]])
	case f.count > 0 && f.count != len(names):
		return event.ClassSet{}, fmt.Errorf("ingest: %d probabilities in %s, but labels have %d names: "+
			"name the classes, in the order of the probabilities", f.count, f.counted, len(names))
	}
	set := event.ClassSet{Count: len(names), Names: names}
	return set, set.Validate()
}
