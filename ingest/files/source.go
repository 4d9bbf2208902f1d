package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// Input is one file of a log: a table of events of one kind, or a whole log (see LogWriter).
type Input struct {
	Path string
	Kind event.Kind // of a table
	Log  bool       // it is a log: its lines name their kinds
}

// Config lists the files of a log and how to read them.
//
// A table is CSV, TSV, NDJSON, Parquet or Arrow by its extension; the first three
// may be compressed. Its columns are
//
//	edges        src, dst [, weight] [, time] [, op] [, ttl]
//	labels       vertex, label [, role] [, pi] [, time] [, ttl]    a null or -1 is no label
//	predictions  vertex, p0, p1, ... [, version] [, time] [, ttl]
//	             vertex, class [, version] [, time] [, ttl]
//	posts        author, p0, p1, ... [, time] [, reply_to] [, repost_of] [, id] [, version]
//	             [, weight] [, ttl]; or class in place of p0, p1, ...
//	members      community, vertex [, multiplicity] [, op] [, time]
//	vertices     vertex [, erase] [, time], and every other column an attribute
//
// where ts is also read as time, id as vertex, class as label, and the weight of a member as its
// multiplicity. Other columns are ignored, with a warning. In a vertices table of CSV a value that
// reads as a JSON number or boolean is one; an empty value, like a null elsewhere, says nothing. A
// log can remove an attribute.
//
// The rows without a time come first in the log, in the order of Inputs and of their rows. A good
// order is vertices, labels, predictions, posts, edges, members, logs: a core that reads them
// estimates nothing, and is fast, until it has the whole graph. The rows with a time follow in the
// order of time, then in the order above. A table that is not in the order of time is read into
// memory and sorted, which takes about 100 bytes a row; any table with times is read twice. The
// lines of a log stay in their order: each counts as no earlier than the one before.
type Config struct {
	Inputs []Input
	// Columns renames columns: the file's name to ours; the name "" lists fields that no column
	// fills.
	Columns map[string]string
	// columns of text files without a line of names: src,dst or edges=src,dst
	Header  []string
	Words   bool           // NA, null, NaN and their like are text, not a missing value
	Zone    *time.Location // for times without a zone, which are refused otherwise
	Sum     bool           // repeated edges add up their weights
	Except  Exception      // the reader of the log skips the evidence of these vertices
	Classes event.ClassSet // none: inferClasses
	// Ordered: classes will be referred to by number, so names that no column p_NAME orders are an
	// error.
	Ordered bool
	Steps   ingest.StepConfig // Time is always EventTime

	Version string // model version of predictions in tables without one
}

// Validate reports every violation at once.
func (c Config) Validate() error {
	errs := []error{c.Steps.Validate()}
	if len(c.Inputs) == 0 {
		errs = append(errs, errors.New("no files to read"))
	}
	kinds := []event.Kind{}
	for _, input := range c.Inputs {
		format, _, err := formatOf(input.Path)
		switch {
		case err != nil:
			errs = append(errs, err)
		case input.Log && format != ndjsonFile:
			errs = append(errs, fmt.Errorf("%s: a log is .ndjson or .jsonl", input.Path))
		case !input.Log && input.Kind >= event.KindControl:
			errs = append(errs,
				fmt.Errorf("%s: no table holds %v events", input.Path, input.Kind))
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

// Source delivers files as steps. The position of an event is the number of its row in the merged
// log, from 1. The position of a refusal is the row's line in its file, which the detail names. The
// log's time is the largest event time so far.
type Source struct {
	config   Config
	decoder  *wire.Decoder
	inputs   []*fileStream // in log order
	position event.Position
	places   []rowPlace // of the rows of the last batch
	survey   *survey
	// sum of the weights of each edge so far; nil: weights do not add up
	sums   map[[2]event.ID]float64
	cutter *ingest.Cutter
	err    error // final
}

// NewSource opens the files and, where rows must be sorted, reads them.
func NewSource(config Config) (*Source, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if config.Classes.K() == 0 {
		classes, err := inferClasses(&config)
		if err != nil {
			return nil, config.withOtherColumns(err)
		}
		config.Classes = classes
	}
	config.Steps.Time = ingest.EventTime
	s := &Source{
		config: config,
		survey: newSurvey(config.Except),
		cutter: ingest.NewCutter(config.Steps, ingest.Resume{}),
	}
	classes := config.Classes
	if classes.K() == 0 {
		classes.Count = 1 // no file has classes
	}
	var err error
	if s.decoder, err = wire.NewDecoder(classes); err != nil {
		return nil, err
	}
	s.decoder.SetZone(config.Zone)
	if config.Sum {
		s.sums = map[[2]event.ID]float64{}
	}
	for _, input := range config.Inputs {
		in, err := s.open(input)
		if err != nil {
			s.Close()
			return nil, config.withOtherColumns(err)
		}
		s.inputs = append(s.inputs, in)
	}
	return s, nil
}

// open opens a file so that its rows come in log order. A table with times is read once beforehand,
// to its end or to the first time that goes back.
func (s *Source) open(input Input) (*fileStream, error) {
	in, err := openStream(input, &s.config, s.decoder)
	if err != nil || !in.mayHaveTimes() {
		return in, err
	}
	for err == nil && !in.unsorted {
		err = in.fill(aheadRows)
	}
	unsorted := in.unsorted
	in.file.Close()
	s.decoder.SetZone(s.config.Zone) // nothing has been guessed yet
	if err != nil && err != io.EOF {
		return nil, err
	}
	if in, err = openStream(input, &s.config, s.decoder); err != nil || !unsorted {
		return in, err
	}
	if err = in.fill(math.MaxInt); err != nil {
		in.file.Close()
		return nil, err
	}
	slices.SortStableFunc(in.entries, func(a, b fileEntry) int { return cmp.Compare(a.key, b.key) })
	return in, nil
}

// Next implements ingest.Source.
func (s *Source) Next(ctx context.Context, b *event.Batch) error {
	s.cutter.Begin(b)
	s.places = s.places[:0]
	if s.err == nil {
		s.err = s.fill(ctx, b)
	}
	return s.err
}

// Close closes the files.
func (s *Source) Close() error {
	var errs []error
	for _, in := range s.inputs {
		errs = append(errs, in.file.Close())
	}
	s.inputs = nil
	return errors.Join(errs...)
}

func (s *Source) fill(ctx context.Context, b *event.Batch) error {
	for {
		if ctx.Err() != nil {
			return fmt.Errorf("after row %d: %w", s.position, context.Cause(ctx))
		}
		in, err := s.peek()
		if err == io.EOF && s.cutter.Finish() {
			b.EmitAll = true // no later event can come
			return nil
		}
		if err != nil {
			return err
		}
		before := b.Counts()
		in.copyHead(b, s.position+1)
		s.refuseLate(in.head(), b)
		u := ingest.UnitSince(before, b, ingest.EventTime)
		u.Position = s.position + 1
		taken, complete := s.cutter.Offer(u)
		if taken {
			s.position++
			s.taken(in, b, before)
		} else {
			b.Rollback(before)
		}
		if complete {
			return nil
		}
	}
}

// rowPlace is the file and line of a row.
type rowPlace struct {
	in   *fileStream
	line int64
}

// taken updates the counts after the head of in was appended to b.
func (s *Source) taken(in *fileStream, b *event.Batch, before event.Counts) {
	e := in.head()
	s.places = append(s.places, rowPlace{in, e.place})
	if b.Count(e.kind) > before.Count[e.kind] {
		if e.kind == event.KindEdge && s.sums != nil {
			s.addUp(&b.Edges[b.Count(e.kind)-1])
		}
		s.survey.addLast(b, e.kind)
	}
	in.count(b.Refused[before.Refused:])
}

// addUp replaces the weight of an edge by the sum of all its weights so far.
func (s *Source) addUp(e *event.Edge) {
	ends := [2]event.ID{e.Src, e.Dst}
	if e.Dst.Number < e.Src.Number || e.Dst.Number == e.Src.Number && e.Dst.Name < e.Src.Name {
		ends[0], ends[1] = e.Dst, e.Src
	}
	if e.Remove {
		delete(s.sums, ends)
		return
	}
	sum, known := s.sums[ends]
	if e.Weight = min(sum+e.Weight, event.WeightMax); !known {
		ends[0].Name, ends[1].Name = strings.Clone(ends[0].Name), strings.Clone(ends[1].Name)
	}
	s.sums[ends] = e.Weight
}

// Place returns the file and the line, or row, of an event of the last batch.
func (s *Source) Place(at event.Position) (path string, line int64, known bool) {
	i := int(at) - int(s.position) + len(s.places) - 1
	if i < 0 || i >= len(s.places) {
		return "", 0, false
	}
	return s.places[i].in.tally.Path, s.places[i].line, true
}

// peek returns the input with the next row of the log, or io.EOF.
func (s *Source) peek() (*fileStream, error) {
	var first *fileStream
	for _, in := range s.inputs {
		if in.next == len(in.entries) {
			if err := in.fill(aheadRows); err == io.EOF {
				continue
			} else if err != nil {
				return nil, err
			}
		}
		if first == nil || in.head().key < first.head().key {
			first = in
		}
	}
	if first == nil {
		return nil, io.EOF
	}
	return first, nil
}

// refuseLate counts the last event of b if it is late, and turns it into a refusal if the policy
// says so.
func (s *Source) refuseLate(e *fileEntry, b *event.Batch) {
	late := s.config.Steps.Late
	now := s.cutter.Now(0)
	last := b.Count(e.kind) - 1
	if e.index < 0 || late.After == 0 {
		return
	}
	at, t := b.Stamp(e.kind, last)
	if !late.IsLate(e.kind, t, now) {
		return
	}
	if p := late.Problem(b, e.kind, t, now); p != nil {
		original := wire.AppendJSON(nil, b, e.kind, last)
		b.Truncate(e.kind, last)
		b.Refused = append(b.Refused, event.Refusal{
			Position: at, Kind: e.kind, Reason: p.Reason, Detail: p.Detail(), Original: original,
		})
	}
}

// count counts the head of in and its refusals.
func (s *fileStream) count(refused []event.Refusal) {
	s.next++
	s.tally.Rows++
	for _, r := range refused {
		if r.Reason == event.SelfLoop || r.Reason == event.Late {
			s.tally.LeftOut++
		} else {
			s.tally.Refused++
		}
	}
}

// Classes returns the label classes, as configured or inferred.
func (s *Source) Classes() event.ClassSet { return s.config.Classes }

// Tally counts the rows of one file that were read and refused so far.
type Tally struct {
	Path    string
	Rows    int
	Refused int // wrong rows
	// LeftOut counts rows without meaning here: self-loops, which every log of interactions has,
	// late rows, and the three below.
	LeftOut int

	Blank    int // labels that are empty
	MinusOne int // labels of -1 that mean "no label"
	Names    int // lines of names among the rows

	BlankAttributes int // attributes that are empty, of rows that say something else
	Rounded         int // attributes that are floats beyond 2^53
}

// Tallies returns the tally of each file.
func (s *Source) Tallies() (all []Tally) {
	for _, in := range s.inputs {
		all = append(all, in.tally)
	}
	return all
}
