package files

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// inferClasses finds the label classes of files. It never guesses which column of probabilities is
// which class:
//
//   - columns p_NAME name the classes, in the order of the first file that has them;
//   - columns p0 to p{K-1}, and lists of K probabilities, belong to the classes 0 to
//     K-1, which labels then call by these numbers;
//   - without probabilities, labels and predictions that are classes name them: whole
//     numbers are indices, and there are as many classes as the highest needs; other
//     names are classes in the order of the alphabet, which nothing depends on.
//
// A label of -1 means "no label", unless the labels have -1 and at most one other value.
//
// A mix of names and numbers of classes is an error that gives the two ways out. Names in
// alphabetical order are an error if ordered is set. Files without classes give the zero ClassSet.
func inferClasses(config *Config) (event.ClassSet, error) {
	found := classFinder{
		names: map[string]string{}, values: map[string]bool{}, numbers: map[string]bool{},
		ordered: config.Ordered,
	}
	unknown := *config
	unknown.Classes = event.ClassSet{}
	for _, input := range config.Inputs {
		if !input.Log && !slices.Contains(classKinds, input.Kind) {
			continue
		}
		file, err := openStream(input, &unknown, nil)
		if err != nil {
			return event.ClassSet{}, err
		}
		if err = found.read(file); err != nil {
			err = fmt.Errorf("%s: after row %d: %w", input.Path, file.table.place(), err)
		}
		if err = errors.Join(err, file.file.Close()); err != nil {
			return event.ClassSet{}, err
		}
	}
	return found.classes()
}

// classKinds are the kinds of events with classes.
var classKinds = []event.Kind{event.KindLabel, event.KindPrediction, event.KindPost}

// classFinder collects the classes of files.
type classFinder struct {
	ordered  bool              // alphabetical order is not accepted
	names    map[string]string // by name of a class: the first file with it
	called   []string          // classes of columns p_NAME
	caller   string            // the file that has them
	count    int               // number of probabilities without names
	highest  int               // 1 + the highest index
	numberer string            // a file with one of these two
	values   map[string]bool   // some classes, as written
	numbers  map[string]bool   // classes that are indices, as written
	minus    string            // a file that has the class -1
}

// read reads a table of labels, predictions or posts, or a whole log.
func (f *classFinder) read(s *fileStream) error {
	path := s.input.Path
	isLog := s.input.Log
	columns := s.columns
	if !isLog && columns.header && columns.highest > 0 {
		return f.sawColumns(columns, path) // no need to read the rows
	}
	ofLog := map[event.Kind]*jsonTable{}
	for _, kind := range classKinds {
		ofLog[kind] = &jsonTable{columns: newColumns(kind, nil, nil)}
	}
	for {
		err := s.nextRow()
		switch {
		case err == io.EOF && !isLog && columns.highest > 0:
			return f.sawColumns(columns, path) // keys of NDJSON
		case err == io.EOF:
			return nil
		case errors.As(err, new(*event.Problem)):
			continue // it is refused when the rows are read for real
		case err != nil:
			return err
		case isLog:
			log := s.table.(*jsonTable)
			kind, problem := log.kindOf(log.raw)
			table := ofLog[kind]
			if problem != nil || table == nil || table.parse(log.raw, &s.row) != nil {
				continue
			}
			columns = table.columns
		}
		if err := f.sawRow(columns, &s.row, path); err != nil {
			return err
		}
	}
}

// sawRow records the class of a row, or the number of its probabilities. Probabilities in columns
// of their own are recorded at the end.
func (f *classFinder) sawRow(c *columns, row *fileRow, path string) error {
	if slot := c.slot("probabilities"); slot >= 0 && row.cells[slot].Kind == wire.ListCell {
		return f.sawCount(row.cells[slot].Count, path)
	}
	if slices.ContainsFunc(row.cells[c.base():], func(c wire.Cell) bool { return !c.Missing() }) {
		return nil
	}
	return f.sawClass(&row.cells[max(c.slot("label"), c.slot("class"))], path)
}

// sawColumns records the columns of probabilities of a file.
func (f *classFinder) sawColumns(c *columns, path string) error {
	switch {
	case !c.called:
		return f.sawCount(c.highest, path)
	case c.numbered:
		return errMixedColumns
	case f.caller == "":
		f.called, f.caller = c.classes, path
	case !slices.Equal(slices.Sorted(slices.Values(f.called)),
		slices.Sorted(slices.Values(c.classes))):
		return fmt.Errorf(
			"probabilities of the classes %s, and in %s of %s: give the classes with --classes",
			strings.Join(c.classes, ","), f.caller, strings.Join(f.called, ","))
	}
	return nil
}

func (f *classFinder) sawCount(n int, path string) error {
	if f.count != 0 && f.count != n {
		return fmt.Errorf("%d probabilities, and %d in %s before: give the number of classes",
			n, f.count, f.numberer)
	}
	f.count, f.numberer = n, path
	return nil
}

func (f *classFinder) sawClass(c *wire.Cell, path string) error {
	if c.Missing() {
		return nil
	}
	text := c.Text
	if c.Kind != wire.TextCell {
		text = c.String()
	}
	if text = strings.TrimSuffix(text, ".0"); text == "-1" {
		f.minus = cmp.Or(f.minus, path)
		return nil
	}
	if len(f.values) < 2 && !f.values[text] {
		f.values[strings.Clone(text)] = true
	}
	n, ok := c.Whole()
	if c.Kind == wire.BoolCell {
		n, ok = c.Integer, true // false is class 0 and true is class 1
	}
	if ok {
		if n >= event.ClassesMax {
			return fmt.Errorf("class %d, there can be %d classes: name them in the configuration",
				n, event.ClassesMax)
		}
		f.highest, f.numberer = max(f.highest, int(n)+1), cmp.Or(f.numberer, path)
		if !f.numbers[text] {
			f.numbers[strings.Clone(text)] = true
		}
		return nil
	}
	if c.Kind != wire.TextCell {
		return nil
	}
	if p := wire.CheckClassName(c.Text); p != nil {
		return p
	}
	if _, ok := f.names[c.Text]; !ok {
		if len(f.names) == event.ClassesMax {
			return fmt.Errorf("more than %d different classes, the last %s",
				event.ClassesMax, wire.Quote(c.Text))
		}
		f.names[strings.Clone(c.Text)] = path
	}
	return nil
}

// classes returns the result.
func (f *classFinder) classes() (set event.ClassSet, err error) {
	names := f.called
	namer := f.caller
	count := cmp.Or(f.count, f.highest)
	if namer != "" && f.count == 0 && !slices.ContainsFunc(
		slices.Collect(maps.Keys(f.numbers)), func(text string) bool {
			return !slices.Contains(names, text)
		}) {
		count = 0 // the columns of probabilities name these numbers
	}
	if namer == "" {
		names = slices.Sorted(maps.Keys(f.names))
	}
	if f.minus != "" && len(f.values) < 2 && !slices.Contains(names, "-1") {
		return set, f.onlyMinusOne()
	}
	switch {
	case len(names) == 0:
		return event.ClassSet{Count: count}, nil
	case count > 0:
		return set, fmt.Errorf(
			"classes are names in %s, such as %q, and numbers in %s, from 0 to %d: use "+
				"the names and "+
				"name the columns %s%s and so on, or give --classes with the names in the order "+
				"of the numbers",
			cmp.Or(namer, f.names[names[0]]),
			names[0],
			f.numberer,
			count-1,
			classPrefix,
			names[0],
		)
	case f.ordered && namer == "":
		return set, fmt.Errorf(
			"%s names a class %q, and no file says the order of the classes: "+
				"give --classes with all names in the order of the pipeline's, or --config with "+
				"its configuration",
			f.names[names[0]],
			names[0],
		)
	}
	set = event.ClassSet{Count: len(names), Names: names}
	return set, set.Validate()
}

// onlyMinusOne returns the error about labels whose -1 may or may not be a class.
func (f *classFinder) onlyMinusOne() error {
	for other := range f.values {
		return fmt.Errorf(
			"%s: the labels are -1 and %s only: if -1 is a class, give all classes in "+
				"their order, "+
				"--classes=-1,%s; if it means no label, remove these rows",
			f.minus, other, other,
		)
	}
	return fmt.Errorf("%s: all labels are -1, which means no label", f.minus)
}
