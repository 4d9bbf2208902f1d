package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // for --timezone on machines without time zones

	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/ingest/files"
	"gqlstream/pipeline/config"
)

// fileFlags name the files that make a log. The extension decides the form: .csv,
// .tsv and .ndjson, alone or with .gz or .zst, .parquet, .arrow.
type fileFlags struct {
	Edges       []string `type:"existingfile" placeholder:"FILE" help:"${file_edges}"`
	Labels      []string `type:"existingfile" placeholder:"FILE" help:"${file_labels}"`
	Predictions []string `type:"existingfile" placeholder:"FILE" help:"${file_predictions}"`
	Posts       []string `type:"existingfile" placeholder:"FILE" help:"${file_posts}"`
	Members     []string `type:"existingfile" placeholder:"FILE" help:"${file_members}"`
	Vertices    []string `type:"existingfile" placeholder:"FILE" help:"${file_vertices}"`
	Log         []string `type:"existingfile" placeholder:"FILE" help:"${file_log}"`
	readingFlags
}

// readingFlags say how files are read.
type readingFlags struct {
	Map       map[string]string `placeholder:"OURS=THEIRS" mapsep:"," help:"${reading_map}"`
	Columns   []string          `sep:"none" placeholder:"LIST" help:"${reading_columns}"`
	Timezone  string            `placeholder:"ZONE" help:"${reading_timezone}"`
	NullWords bool              `help:"${reading_null_words}"`
	EdgesSum  bool              `help:"${reading_edges_sum}"`
}

// apply adds the flags to the files.
func (f *readingFlags) apply(conf *files.Config) error {
	conf.Columns, conf.Header = map[string]string{}, f.Columns
	conf.Words, conf.Sum = f.NullWords, f.EdgesSum
	for _, ours := range slices.Sorted(maps.Keys(f.Map)) {
		theirs := f.Map[ours]
		if before := conf.Columns[theirs]; before != "" {
			ours = before + "," + ours
		}
		conf.Columns[theirs] = ours
	}
	if f.Timezone != "" {
		zone, err := time.LoadLocation(f.Timezone)
		if err != nil || f.Timezone == "Local" {
			return config.Usagef(
				"--timezone %q: want the name of a time zone, such as Europe/Berlin or UTC",
				f.Timezone)
		}
		conf.Zone = zone
	}
	return nil
}

// outFile is where a result goes; - is standard output.
type outFile string

// Validate misses a directory before the work, not after.
func (o outFile) Validate() error {
	_, err := os.Stat(filepath.Dir(string(o)))
	return err
}

// beside returns where a summary goes: standard output, unless the result is there.
func (o outFile) beside(con console) io.Writer {
	if o == "-" {
		return con.Err
	}
	return con.Out
}

// any reports whether a file was given.
func (f *fileFlags) any() bool { return len(f.inputs()) > 0 }

// inputs returns the files in log order for rows without a time.
func (f *fileFlags) inputs() (inputs []files.Input) {
	for _, table := range []struct {
		kind  event.Kind
		paths []string
	}{
		{event.KindVertex, f.Vertices},
		{event.KindLabel, f.Labels},
		{event.KindPrediction, f.Predictions},
		{event.KindPost, f.Posts},
		{event.KindEdge, f.Edges},
		{event.KindMember, f.Members},
	} {
		for _, path := range table.paths {
			inputs = append(inputs, files.Input{Path: path, Kind: table.kind})
		}
	}
	for _, path := range f.Log {
		inputs = append(inputs, files.Input{Path: path, Log: true})
	}
	return inputs
}

// examplesMax bounds how many refused rows are shown.
const examplesMax = 5

// source opens the files, until the command ends.
func (f *fileFlags) source(con console, conf files.Config) (*files.Source, error) {
	conf.Inputs = f.inputs()
	if err := f.apply(&conf); err != nil {
		return nil, err
	}
	source, err := files.NewSource(conf)
	if err != nil {
		return nil, config.Usage(err)
	}
	con.atEnd(source.Close)
	return source, nil
}

// openFiles opens the files as a source. Classes that the settings do not name are those of the
// files.
func (f *fileFlags) openFiles(
	con console,
	settings *config.Settings,
	steps ingest.StepConfig,
) (*files.Source, error) {
	except := files.Exception{}
	var err error
	if except.Keys, except.Holds, err = settings.Evidence.Exception(); err != nil {
		return nil, config.Usage(err)
	}
	source, err := f.source(con, files.Config{
		Classes: settings.Classes.ClassSet(), Steps: steps, Except: except,
	})
	if err != nil {
		return nil, err
	}
	set := source.Classes()
	settings.Classes = nil
	for k := range set.K() {
		settings.Classes = append(settings.Classes, set.Name(event.Class(k)))
	}
	return source, nil
}

// refusals count the refused rows of a log: by reason, with the first examples, and by the stage
// that refused them.
type refusals struct {
	byReason map[event.Reason]int
	examples []event.Refusal
	further  int
}

// readLog hands every batch that next reads to visit, which returns the events that it refuses,
// until the end or until visit returns io.EOF. The meter says now and then how far it is.
func readLog(
	ctx context.Context, next func(context.Context, *event.Batch) error, meter *meter,
	visit func(*event.Batch) ([]event.Refusal, error),
) (r refusals, err error) {
	var batch event.Batch
	r.byReason = map[event.Reason]int{}
	for {
		var refused []event.Refusal
		if err = next(ctx, &batch); err == nil {
			refused, err = visit(&batch)
		}
		if errors.Is(err, io.EOF) && meter.count == 0 {
			fmt.Fprintln(meter.w, "there were no events")
		}
		if errors.Is(err, io.EOF) {
			return r, nil
		}
		if err != nil {
			return r, err
		}
		meter.add(batch.Events())
		r.further += len(refused)
		for _, x := range slices.Concat(batch.Refused, refused) {
			r.byReason[x.Reason] += 1 + x.More
			if len(r.examples) < examplesMax && x.Reason != event.SelfLoop {
				r.examples = append(r.examples, x)
			}
		}
	}
}

// readFiles does readLog and prints a summary of the rows, unless it is to be quiet, and of
// unused rows: warnings, self-loops, and refused rows by reason with the first examples. The
// error refused says that more rows were refused than the flags allow.
func (f *refusedFlags) readFiles(
	ctx context.Context, source *files.Source, meter *meter,
	visit func(*event.Batch) ([]event.Refusal, error),
) (refused, err error) {
	r, err := readLog(ctx, source.Next, meter, func(b *event.Batch) ([]event.Refusal, error) {
		refused, err := visit(b)
		for i := range refused { // a later stage does not know the file
			if path, line, known := source.Place(refused[i].Position); known {
				refused[i].Detail = fmt.Sprintf("%s:%d: %s", path, line, refused[i].Detail)
			}
		}
		return refused, err
	})
	if !f.Quiet {
		for _, line := range source.Summary() {
			fmt.Fprintln(meter.w, "read", line)
		}
	}
	for _, warning := range source.Warnings() {
		fmt.Fprintln(meter.w, "warning:", warning)
	}
	if n := r.byReason[event.SelfLoop]; n > 0 {
		fmt.Fprintf(meter.w, "left out: %d self-loops, which mean nothing here\n", n)
		delete(r.byReason, event.SelfLoop)
	}
	for _, reason := range slices.Sorted(maps.Keys(r.byReason)) {
		fmt.Fprintf(meter.w, "refused: %d rows, %s\n", r.byReason[reason], reason)
	}
	for _, x := range r.examples {
		fmt.Fprintf(meter.w, "  row %d, %s: %s\n", x.Position, x.Kind, strings.TrimSpace(x.Detail))
	}
	if err == nil {
		refused = f.check(source, r.further)
	}
	return refused, err
}

// refusedFlags say how many rows of files may be refused.
type refusedFlags struct {
	MaxRefused  string `placeholder:"N|P%" help:"${refused_max_refused}"`
	SkipRefused bool   `help:"${refused_skip_refused}"`
	Quiet       bool   `short:"q" help:"Print no summary of the files. Warnings remain."`
}

// allowed returns the number of rows that may be refused, out of all rows.
func (f *refusedFlags) allowed(rows int) (int, error) {
	if f.SkipRefused {
		return rows, nil
	}
	if f.MaxRefused == "" {
		return 0, nil
	}
	text, percent := strings.CutSuffix(f.MaxRefused, "%")
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 0) || percent && x > 100 || !percent && x != math.Trunc(x) {
		return 0, config.Usagef(
			"--max-refused: %q is neither a number of rows nor a share like 1%%",
			f.MaxRefused)
	}
	if percent {
		x = math.Floor(x / 100 * float64(rows))
	}
	return int(min(x, float64(rows))), nil
}

// check returns an error if too many rows were refused; further is the number refused by a later
// stage.
func (f *refusedFlags) check(log *files.Source, further int) error {
	rows, refused := 0, further
	for _, t := range log.Tallies() {
		if t.Refused > 0 && t.Refused+t.LeftOut == t.Rows {
			return fmt.Errorf("every row of %s was refused (%d)", t.Path, t.Refused)
		}
		if t.MinusOne > 0 && t.MinusOne+t.Blank+t.Refused == t.Rows {
			return fmt.Errorf("every label of %s is -1, which means no label; "+
				"if -1 is a class, name all classes, as in --classes=-1,0,1", t.Path)
		}
		rows, refused = rows+t.Rows, refused+t.Refused
	}
	allowed, err := f.allowed(rows)
	if err == nil && refused > allowed {
		err = fmt.Errorf(
			"%d of %d rows were refused; to go on without them, --max-refused N|P%% or "+
				"--skip-refused",
			refused, rows)
	}
	return err
}
