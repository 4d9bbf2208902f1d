package ingest

import (
	"cmp"
	"errors"
	"io"
	"maps"
	"math"
	"slices"

	"gqlstream/ingest/event"
)

// FileLog merges the rows of files into one log (see FileConfig for the order).
type FileLog struct {
	config   FileConfig
	inputs   []*fileStream // in the order of the log
	position event.Position
	refused  map[event.Reason]int
	current  *fileStream // what peek found
}

// FileRow describes one row of a FileLog.
type FileRow struct {
	Kind     event.Kind
	Position event.Position // in the log, from 1
	Refused  bool           // it is in Batch.Refused
}

// NewFileLog opens the files and, where rows must be sorted, reads them.
func NewFileLog(config FileConfig) (*FileLog, error) {
	if err := config.Validate(); err != nil {
		return nil, err
	}
	if config.Classes.K() == 0 {
		classes, err := InferClasses(config.Inputs, config.Columns)
		if err != nil {
			return nil, err
		}
		config.Classes = classes
	}
	l := &FileLog{config: config, refused: map[event.Reason]int{}}
	for _, input := range inLogOrder(config.Inputs) {
		in, err := l.open(input)
		if err != nil {
			l.Close()
			return nil, err
		}
		l.inputs = append(l.inputs, in)
	}
	return l, nil
}

// inLogOrder sorts files by kind, logs last.
func inLogOrder(inputs []FileInput) []FileInput {
	rank := func(input FileInput) int {
		if input.Log {
			return len(tableKinds)
		}
		return slices.Index(tableKinds[:], input.Kind)
	}
	out := slices.Clone(inputs)
	slices.SortStableFunc(out, func(a, b FileInput) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}

func (l *FileLog) open(input FileInput) (*fileStream, error) {
	// A decoder of its own: it has one owner, and its scratch memory is small.
	classes := l.config.Classes
	if classes.K() == 0 {
		classes.Count = 1 // no file speaks of classes
	}
	decoder, err := event.NewDecoder(event.Config{Classes: classes})
	if err != nil {
		return nil, err
	}
	if input.Log {
		rows, err := openLogRows(input, decoder)
		if err != nil {
			return nil, err
		}
		return &fileStream{rows: rows, keepOrder: true, ignoreTime: l.config.ByKind, discard: true}, nil
	}
	rows, err := openRows(input, &l.config, decoder)
	if err != nil {
		return nil, err
	}
	in := &fileStream{rows: rows}
	if l.config.ByKind || !rows.mayHaveTimes() {
		in.keepOrder, in.ignoreTime = true, l.config.ByKind
		return in, nil
	}
	return l.openTimed(input, decoder, in)
}

// openTimed finds out whether a table is in the order of time, if it can be read
// twice, and reads it into memory if not.
func (l *FileLog) openTimed(
	input FileInput, decoder *event.Decoder, in *fileStream,
) (*fileStream, error) {
	inOrder := false
	if !in.rows.opened().once {
		again, err := openRows(input, &l.config, decoder)
		if err == nil {
			inOrder, err = inTimeOrder(again)
			err = errors.Join(err, again.file.Close())
		}
		if err != nil {
			in.close()
			return nil, err
		}
	}
	if inOrder {
		return in, nil
	}
	if err := in.loadSorted(); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

// inTimeOrder reads all rows and reports whether no time is before an earlier
// one. The times of refused rows do not count.
func inTimeOrder(rows *fileRows) (bool, error) {
	var b event.Batch
	last := event.Time(math.MinInt64)
	for {
		b.Reset()
		t, err := rows.next(&b)
		if err == io.EOF {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		if len(b.Refused) > 0 {
			continue
		}
		if timeKey(t) < last {
			return false, nil
		}
		last = timeKey(t)
	}
}

// timeKey orders times: none is before all.
func timeKey(t event.Time) event.Time {
	if t == 0 {
		return math.MinInt64
	}
	return t
}

// Close closes the files.
func (l *FileLog) Close() error {
	var errs []error
	for _, in := range l.inputs {
		errs = append(errs, in.close())
	}
	l.inputs = nil
	return errors.Join(errs...)
}

// Next appends the next row of the log to b. It returns io.EOF after the last.
// What it appends is not touched again before b is reset.
func (l *FileLog) Next(b *event.Batch) (FileRow, error) {
	in, err := l.peek()
	if err != nil {
		return FileRow{}, err
	}
	row := FileRow{Kind: in.head().kind, Position: l.position + 1, Refused: in.head().index < 0}
	l.take(in, b)
	return row, nil
}

// Peek returns what Next will deliver, or io.EOF.
func (l *FileLog) Peek() (FileRow, error) {
	in, err := l.peek()
	if err != nil {
		return FileRow{}, err
	}
	return FileRow{Kind: in.head().kind, Position: l.position + 1, Refused: in.head().index < 0}, nil
}

// peek returns the input whose head is the next row of the log.
func (l *FileLog) peek() (*fileStream, error) {
	if l.current != nil {
		return l.current, nil
	}
	var first *fileStream
	for _, in := range l.inputs {
		if in.next == len(in.entries) {
			if err := in.fill(); err == io.EOF {
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
	l.current = first
	return first, nil
}

// unit describes the head of in to the cutter.
func (l *FileLog) unit(in *fileStream) unit {
	u := in.unit()
	u.Position = l.position + 1
	return u
}

// take moves the head of in to b.
func (l *FileLog) take(in *fileStream, b *event.Batch) {
	if e := in.head(); e.index < 0 {
		l.refused[in.ahead.Refused[-1-e.index].Reason]++
	}
	l.skip(in)
	in.moveTo(b, in.next-1, l.position)
}

// takeInTime does take, but for an event that comes late by a policy when the log's
// time is now: that one is counted, and refused if the policy says so.
func (l *FileLog) takeInTime(in *fileStream, b *event.Batch, late event.LatePolicy, now event.Time) {
	e := *in.head()
	var p *event.Problem
	if late.After > 0 && e.index >= 0 {
		if t := in.unit().Time; late.IsLate(e.kind, t, now) {
			p = late.Problem(b, e.kind, t, now)
		}
	}
	if p == nil {
		l.take(in, b)
		return
	}
	before := markOf(b)
	l.take(in, b)
	taken := before
	original := taken.appendNext(nil, b, e.kind)
	before.rollback(b)
	l.refused[p.Reason]++
	b.Refused = append(b.Refused, event.Refusal{
		Position: l.position, Kind: e.kind, Reason: p.Reason, Detail: p.Detail, Original: original,
	})
}

// skip drops the head of in.
func (l *FileLog) skip(in *fileStream) {
	l.position++
	in.next++
	l.current = nil
}

// Classes returns the label classes, as configured or inferred.
func (l *FileLog) Classes() event.ClassSet { return l.config.Classes }

// Refused returns how many rows were refused so far, by reason.
func (l *FileLog) Refused() map[event.Reason]int { return maps.Clone(l.refused) }

// Rows returns how many rows were read so far.
func (l *FileLog) Rows() event.Position { return l.position }

// Warnings lists, so far, the columns of the files that are ignored.
func (l *FileLog) Warnings() []string {
	var out []string
	for _, in := range l.inputs {
		if w := in.rows.warning(); w != "" {
			out = append(out, w)
		}
	}
	return out
}

// Progress returns how many bytes of the files have gone into the log, and how
// many they have; about, and 0 for what is not a regular file.
func (l *FileLog) Progress() (done, total int64) {
	for _, in := range l.inputs {
		d, t := in.progress()
		done, total = done+d, total+t
	}
	return done, total
}
