package files

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// decodeLine appends the event of the last line of a log to b, and returns its kind and time, or an
// *event.Problem. The event is valid until b is reset.
func (s *fileStream) decodeLine(t *jsonTable, b *event.Batch) (event.Kind, event.Time, error) {
	kind, problem := t.kindOf(t.raw)
	if problem != nil {
		return kind, 0, problem
	}
	before := b.Counts()
	kept := bytes.Clone(t.raw) // its events alias it
	err := s.decoder.Decode(
		wire.Message{Kind: kind, ContentType: wire.JSON, SaysKind: true, Payload: kept}, b)
	if len(b.Refused) > before.Refused {
		refused := b.Refused[before.Refused]
		b.Rollback(before)
		err = event.Problemf(refused.Reason, "%s", refused.Detail)
	}
	if err != nil {
		return kind, 0, err
	}
	_, at := b.Stamp(kind, before.Count[kind])
	return kind, at, nil
}

// kindPrefix is the beginning of the lines of LogWriter.
var kindPrefix = []byte(`{"kind":"`)

// wantKind lists the valid kinds, for messages.
var wantKind = "want " + strings.Join(event.KindNames(), ", ")

// kindOf returns the kind of the event on a line.
func (t *jsonTable) kindOf(line []byte) (event.Kind, *event.Problem) {
	if rest, ok := bytes.CutPrefix(line, kindPrefix); ok {
		name, _, _ := bytes.Cut(rest, []byte(`"`))
		if kind, known := event.ParseKind(string(name)); known {
			return kind, nil
		}
	}
	var c wire.Cell
	all := func(string) bool { return true }
	p := t.object.Read(line, all, func(key string) *wire.Cell {
		if key == "kind" {
			return &c
		}
		return nil
	})
	kind, known := event.ParseKind(c.Text)
	switch {
	case p != nil:
	case c.Kind != wire.TextCell:
		p = event.Problemf(event.MissingField, `no member "kind": %s`, wantKind)
	case !known:
		p = event.Problemf(event.UnknownKind, "kind %s: %s", wire.Quote(c.Text), wantKind)
	default:
		return kind, nil
	}
	return event.KindControl, p
}

// LogWriter writes events of all kinds as NDJSON that Config reads as a log: each line is an event
// as on the wire, with its kind first,
//
//	{"kind":"edge","src":1,"dst":2,"time":"2026-01-01T00:00:00Z"}
//
// Classes are indices. It is owned by one goroutine.
type LogWriter struct {
	w      *bufio.Writer
	path   string
	line   []byte
	closes []io.Closer // innermost first
}

// NewLogWriter returns a writer to w. Close flushes it and leaves w open.
func NewLogWriter(w io.Writer) *LogWriter {
	return &LogWriter{w: bufio.NewWriterSize(w, 1<<16), path: "log"}
}

// CreateLog creates the file at path, which ends in .ndjson or .jsonl, or in one
// of these and .gz or .zst.
func CreateLog(path string) (*LogWriter, error) {
	format, packed, err := formatOf(path)
	if err != nil {
		return nil, err
	}
	if format != ndjsonFile {
		return nil, fmt.Errorf("%s: a log is .ndjson or .jsonl", path)
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	l := NewLogWriter(file)
	l.path, l.closes = path, []io.Closer{file}
	var z io.WriteCloser
	switch packed {
	case "":
		return l, nil
	case "gzip":
		z = gzip.NewWriter(file)
	case "zstd":
		// an error would concern the options
		z, _ = zstd.NewWriter(file, zstd.WithEncoderConcurrency(1))
	}
	l.w.Reset(z)
	l.closes = []io.Closer{z, file}
	return l, nil
}

// Write writes the events of b in the order of their positions. Events of one position are ordered
// by kind (logKinds), then as in b.
func (l *LogWriter) Write(b *event.Batch) error {
	for _, run := range Runs(b) {
		for i := run.From; i < run.To; i++ {
			l.line = append(
				append(append(l.line[:0], kindPrefix...), run.Kind.String()...),
				`",`...)
			at := len(l.line)
			l.line = wire.AppendJSON(l.line, b, run.Kind, i)
			l.line = append(l.line[:at], l.line[at+1:]...) // drop the event's own opening brace
			if _, err := l.w.Write(append(l.line, '\n')); err != nil {
				return fmt.Errorf("write %s: %w", l.path, err)
			}
		}
	}
	return nil
}

// logKinds is the order of kinds within one position of a log.
var logKinds = event.EachKindOnce(
	event.KindVertex, event.KindLabel, event.KindPrediction, event.KindPost,
	event.KindEdge, event.KindMember, event.KindControl,
)

// Run is the events [From, To) of a kind, which are consecutive in a log.
type Run struct {
	Kind     event.Kind
	From, To int
}

// Runs returns the events of a batch in the order of their positions, with consecutive events of
// one kind as one run. Positions must rise within each kind.
func Runs(b *event.Batch) (runs []Run) {
	position := func(r Run) event.Position {
		p, _ := b.Stamp(r.Kind, r.From)
		return p
	}
	for _, kind := range logKinds {
		for i := range b.Count(kind) {
			runs = append(runs, Run{kind, i, i + 1})
		}
	}
	slices.SortStableFunc(runs, func(x, y Run) int { return cmp.Compare(position(x), position(y)) })
	joined := runs[:0]
	for _, r := range runs {
		if n := len(joined); n > 0 && joined[n-1].Kind == r.Kind {
			joined[n-1].To = r.To
		} else {
			joined = append(joined, r)
		}
	}
	return joined
}

// Close writes buffered data and closes the file, if CreateLog created it.
func (l *LogWriter) Close() error {
	errs := []error{l.w.Flush()}
	for _, c := range l.closes {
		errs = append(errs, c.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("write %s: %w", l.path, err)
	}
	return nil
}
