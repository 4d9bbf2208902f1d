package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
)

// Input is one file of a log: the rows of a table, which are events of one
// kind, or a whole log (see LogWriter).
type Input struct {
	Path string
	Kind event.Kind // of a table
	Log  bool       // it is a log: its lines say their kinds
}

// Config says which files make a log, and how.
//
// A table is CSV, TSV, NDJSON, Parquet or Arrow by its extension; the first three
// may be compressed. Its columns are
//
//	edges        src, dst [, weight] [, time] [, op] [, ttl]
//	labels       vertex, label [, role] [, pi] [, time] [, ttl]    a null or -1 is no label
//	predictions  vertex, p0, p1, ... [, version] [, time] [, ttl]
//	             vertex, class [, version] [, time] [, ttl]
//	members      community, vertex [, multiplicity] [, op] [, time]
//	vertices     vertex [, erase] [, time], and every other column an attribute
//
// where ts is read as time, id as vertex, class as label and the weight of a
// member as its multiplicity. Other columns are ignored, with a warning. In a
// vertices table of CSV a value that reads as a JSON number or boolean is one, and
// an empty value, as a null elsewhere, removes the attribute.
//
// The log holds the rows without a time first: vertices, labels, predictions,
// edges, members, logs, each in the order of the files and of their rows: a core that
// reads them estimates nothing, and is fast, until it has the whole graph. The
// rows with a time follow in its order; at the same time, in the order above. A
// table whose rows are not in the order of time is read into memory and sorted,
// which takes about 100 bytes a row; any table with times is read twice. The lines
// of a log stay in their order: each counts as no earlier than the one before.
type Config struct {
	Inputs  []Input
	Columns map[string]string // renames columns: the file's name to ours
	Classes event.ClassSet    // none: inferClasses
	Steps   ingest.StepConfig // Time is always EventTime

	Version string // model version of predictions in tables that name none
}

// Validate reports every violation at once.
func (c Config) Validate() error {
	errs := []error{c.Steps.Validate()}
	if len(c.Inputs) == 0 {
		errs = append(errs, errors.New("ingest: no files to read"))
	}
	kinds := []event.Kind{}
	for _, input := range c.Inputs {
		format, _, err := formatOf(input.Path)
		switch {
		case err != nil:
			errs = append(errs, err)
		case input.Log && format != ndjsonFile:
			errs = append(errs, fmt.Errorf("ingest: %s: a log is .ndjson or .jsonl", input.Path))
		case !input.Log && !slices.Contains(tableKinds[:], input.Kind):
			errs = append(errs, fmt.Errorf("ingest: %s: no table holds %v events", input.Path, input.Kind))
		case !input.Log:
			kinds = append(kinds, input.Kind)
		}
	}
	if len(c.Classes.Names) > 0 || c.Classes.Count != 0 {
		errs = append(errs, c.Classes.Validate())
	}
	if len(kinds) > 0 {
		errs = append(errs, checkRename(c.Columns, kinds))
	}
	return errors.Join(errs...)
}

// tableKinds are the kinds of tables, in the order in which a log holds them.
var tableKinds = [...]event.Kind{
	event.KindVertex, event.KindLabel, event.KindPrediction, event.KindEdge, event.KindMember,
}

// Source delivers files as steps. The position of an event is the number of
// its row in the merged log, from 1; that of a refusal is the row's line in its
// file, which the detail names. The log's time is the largest event time so far.
type Source struct {
	config   Config
	inputs   []*fileStream // in the order of the log
	position event.Position
	refused  map[event.Reason]int
	cutter   *ingest.Cutter
	err      error // final
}

// NewSource opens the files and, where rows must be sorted, reads them.
func NewSource(config Config) (*Source, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if config.Classes.K() == 0 {
		classes, err := inferClasses(config.Inputs, config.Columns)
		if err != nil {
			return nil, err
		}
		config.Classes = classes
	}
	config.Steps.Time = ingest.EventTime
	s := &Source{config: config, refused: map[event.Reason]int{}, cutter: ingest.NewCutter(config.Steps, ingest.Resume{})}
	for _, input := range inLogOrder(config.Inputs) {
		in, err := s.open(input)
		if err != nil {
			s.Close()
			return nil, err
		}
		s.inputs = append(s.inputs, in)
	}
	return s, nil
}

// Next implements ingest.Source.
func (s *Source) Next(ctx context.Context, b *event.Batch) error {
	s.cutter.Begin(b)
	if s.err == nil {
		s.err = s.fill(ctx, b)
	}
	return s.err
}

// Close closes the files.
func (s *Source) Close() error {
	var errs []error
	for _, in := range s.inputs {
		errs = append(errs, in.close())
	}
	s.inputs = nil
	return errors.Join(errs...)
}

// ctxEvery is the number of rows between two looks at the context.
const ctxEvery = 1024

func (s *Source) fill(ctx context.Context, b *event.Batch) error {
	for n := 0; ; n++ {
		if n%ctxEvery == 0 && ctx.Err() != nil {
			return fmt.Errorf("ingest: after row %d: %w", s.position, context.Cause(ctx))
		}
		in, err := s.peek()
		if err == io.EOF {
			if s.cutter.Finish() {
				b.EmitAll = true // nothing follows that could be waited for
				return nil
			}
			return io.EOF
		}
		if err != nil {
			return err
		}
		u, now := in.unit(s.position+1), s.cutter.Now(0)
		taken, complete := s.cutter.Offer(u)
		if taken {
			s.takeInTime(in, b, now)
		}
		if complete {
			return nil
		}
	}
}
