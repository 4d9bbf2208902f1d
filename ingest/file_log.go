package ingest

import (
	"bytes"
	"fmt"
	"io"

	"gqlstream/ingest/event"
)

// logRows reads a log: NDJSON whose lines are events of all kinds, as on the wire
// with one member more, "kind". See LogWriter.
type logRows struct {
	path    string
	file    *openedFile
	lines   *lineReader
	decoder *event.Decoder
	text    arena[byte]
	scan    jsonScan
}

func openLogRows(input FileInput, decoder *event.Decoder) (*logRows, error) {
	file, err := openFile(input.Path)
	if err != nil {
		return nil, err
	}
	return &logRows{path: input.Path, file: file, lines: newLineReader(file), decoder: decoder}, nil
}

func (r *logRows) opened() *openedFile { return r.file }
func (r *logRows) warning() string     { return "" }

// next appends the event of the next line to b, or its refusal, and returns the
// event's time. The events are good for as long as anybody holds them, unless b
// is reset.
func (r *logRows) next(b *event.Batch) (event.Time, error) {
	line, err := r.line()
	if bad, ok := err.(*badRow); ok {
		r.refuse(b, event.KindControl, &bad.problem, nil)
		return 0, nil
	}
	if err == io.EOF {
		return 0, io.EOF
	}
	if err != nil {
		return 0, fmt.Errorf("ingest: %s: after line %d: %w", r.path, r.lines.line, err)
	}
	kept := r.text.take(len(line)) // the batch aliases it
	copy(kept, line)
	kind, payload, problem := r.scan.cutKind(kept)
	if problem != nil {
		r.refuse(b, kind, problem, line)
		return 0, nil
	}
	before := markOf(b)
	err = r.decoder.Decode(event.Message{Kind: kind, ContentType: event.JSON, Payload: payload}, b)
	if len(b.Refused) > before.refused {
		refused := b.Refused[before.refused]
		before.rollback(b)
		r.refuse(b, kind, &event.Problem{Reason: refused.Reason, Detail: refused.Detail}, line)
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("ingest: %s:%d: %w", r.path, r.lines.line, err)
	}
	return before.latest(b), nil
}

// line returns the next line that is not blank.
func (r *logRows) line() ([]byte, error) {
	for {
		line, err := r.lines.next()
		if err != nil || len(trimSpaces(line)) > 0 {
			return line, err
		}
	}
}

func (r *logRows) refuse(b *event.Batch, kind event.Kind, p *event.Problem, original []byte) {
	b.Refused = append(b.Refused, event.Refusal{
		Position: event.Position(r.lines.line), Kind: kind, Reason: p.Reason,
		Detail: fmt.Sprintf("%s:%d: %s", r.path, r.lines.line, p.Detail), Original: bytes.Clone(original),
	})
}

// kindPrefix is how the lines of LogWriter begin.
var kindPrefix = []byte(`{"kind":"`)

const wantKind = "want edge, label, prediction, member, vertex or control"

// cutKind takes the member "kind" out of the object in text and returns what is
// left of it, in the memory of text, which it may change.
func (s *jsonScan) cutKind(text []byte) (event.Kind, []byte, *event.Problem) {
	if bytes.HasPrefix(text, kindPrefix) {
		name, _, _ := bytes.Cut(text[len(kindPrefix):], []byte(`"`))
		kind, known := event.ParseKind(string(name))
		if at := len(kindPrefix) + len(name) + 1; known && at < len(text) && text[at] == ',' {
			text[at] = '{'
			return kind, text[at:], nil
		}
	}
	start, end, name, err := s.findKind(text)
	if err != nil {
		return event.KindControl, nil, &event.Problem{Reason: event.Malformed, Detail: err.Error()}
	}
	if end == 0 {
		return event.KindControl, nil, &event.Problem{
			Reason: event.MissingField, Detail: `no member "kind": ` + wantKind,
		}
	}
	kind, known := event.ParseKind(name)
	if !known {
		return event.KindControl, nil, &event.Problem{
			Reason: event.UnknownKind,
			Detail: "kind " + shortQuote(name) + ": " + wantKind,
		}
	}
	return kind, append(text[:start:start], text[end:]...), nil
}

// findKind returns where the member "kind" of the object in text is, with one of
// the commas around it, and its value; end is 0 when there is none.
func (s *jsonScan) findKind(text []byte) (start, end int, kind string, err error) {
	var row fileRow
	s.reset(text)
	if !s.punct('{') {
		return 0, 0, "", s.bad("want an object")
	}
	for comma := -1; ; {
		s.spaces()
		from := s.at
		key, ok := s.string()
		if !ok || !s.punct(':') {
			return 0, 0, "", s.bad(`want "name": value`)
		}
		var c cell
		if !s.value(&c, &row) {
			return 0, 0, "", s.bad("want a value for " + shortQuote(key))
		}
		to := s.at
		more := s.punct(',')
		if key == "kind" && c.kind == textCell {
			switch {
			case more:
				to = s.at
			case comma >= 0:
				from = comma
			}
			return from, to, c.text, nil
		}
		if !more {
			return 0, 0, "", nil
		}
		comma = s.at - 1
	}
}
