package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"gqlstream/config"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// encodeEvents returns the events [from, to) of a kind as the payload of one
// message, and its content type. Events that an Arrow table cannot say, such as
// the removal of an attribute, go as lines of JSON.
func encodeEvents(format string, kind event.Kind, b *event.Batch, from, to int) ([]byte, string, error) {
	switch format {
	case "json":
		return append(appendEvents([]byte{'['}, kind, b, from, to, ','), ']'), wire.JSON, nil
	case "ndjson":
		return appendEvents(nil, kind, b, from, to, '\n'), wire.NDJSON, nil
	}
	payload, err := wire.EncodeArrow(kind, b, from, to)
	if err != nil {
		return appendEvents(nil, kind, b, from, to, '\n'), wire.NDJSON, nil
	}
	return payload, wire.Arrow, nil
}

// appendEvents appends events as JSON with a separator between them.
func appendEvents(dst []byte, kind event.Kind, b *event.Batch, from, to int, separator byte) []byte {
	for i := from; i < to; i++ {
		if i > from {
			dst = append(dst, separator)
		}
		dst = wire.AppendJSON(dst, b, kind, i)
	}
	return dst
}

// rejectsFile keeps refused rows as lines of JSON. A nil one keeps nothing.
type rejectsFile struct {
	file *os.File
	w    *bufio.Writer
}

// createRejects creates the file; without a path it returns nil.
func createRejects(path string) (*rejectsFile, error) {
	if path == "" {
		return nil, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, config.Usage(err)
	}
	return &rejectsFile{file: file, w: bufio.NewWriter(file)}, nil
}

// rejected is one line of a rejectsFile.
type rejected struct {
	Kind     string         `json:"kind"`
	Row      event.Position `json:"row"` // line of its file
	Reason   event.Reason   `json:"reason"`
	Detail   string         `json:"detail"`
	Original string         `json:"original"`
}

func (f *rejectsFile) write(r *event.Refusal) error {
	if f == nil {
		return nil
	}
	line, err := json.Marshal(rejected{
		Kind: r.Kind.String(), Row: r.Position, Reason: r.Reason, Detail: r.Detail, Original: string(r.Original),
	})
	if err == nil {
		_, err = f.w.Write(append(line, '\n'))
	}
	if err != nil {
		return fmt.Errorf("write rejects: %w", err)
	}
	return nil
}

func (f *rejectsFile) close() error {
	if f == nil {
		return nil
	}
	return errors.Join(f.w.Flush(), f.file.Close())
}
