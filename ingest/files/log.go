package files

import (
	"bytes"

	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// logTable reads a log: NDJSON whose lines are events of all kinds, as on the wire
// with one member more, "kind". See LogWriter.
type logTable struct {
	lines  *lineReader
	raw    []byte
	object wire.Object
}

func (t *logTable) text() []byte { return t.raw }
func (t *logTable) place() int64 { return t.lines.line }

// next reads one line. What it says is not a row of cells: see decodeLine.
func (t *logTable) next(*fileRow) (err error) {
	t.raw, err = t.lines.notBlank()
	return err
}

// decodeLine appends the event of the last line of a log to b, or its refusal, and returns the
// event's time. The event is good for as long as anybody holds it, unless b is reset.
func (r *fileRows) decodeLine(t *logTable, b *event.Batch) (event.Time, error) {
	kind, problem := t.kindOf(t.raw)
	if problem != nil {
		return 0, &badRow{*problem}
	}
	before := b.Mark()
	kept := bytesOf(b.Keep(aliasString(t.raw))) // its events alias it
	err := r.decoder.Decode(wire.Message{Kind: kind, ContentType: wire.JSON, SaysKind: true, Payload: kept}, b)
	if len(b.Refused) > before.Refused {
		refused := b.Refused[before.Refused]
		b.Rollback(before)
		r.refuse(b, kind, wire.NoColumn, event.Problemf(refused.Reason, "%s", refused.Detail))
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	_, at := b.Stamp(kind, before.Count[kind])
	return at, nil
}

// kindPrefix is the beginning of the lines of LogWriter.
var kindPrefix = []byte(`{"kind":"`)

const wantKind = "want edge, label, prediction, member, vertex or control"

// kindOf returns the kind that the event on a line says.
func (t *logTable) kindOf(line []byte) (event.Kind, *event.Problem) {
	if rest, ok := bytes.CutPrefix(line, kindPrefix); ok {
		name, _, _ := bytes.Cut(rest, []byte(`"`))
		if kind, known := event.ParseKind(string(name)); known {
			return kind, nil
		}
	}
	var c wire.Cell
	p := t.object.Read(line, func(key string) *wire.Cell {
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
