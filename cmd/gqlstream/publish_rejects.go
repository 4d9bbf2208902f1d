package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"gqlstream/config"
	"gqlstream/ingest/event"
)

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
	err := json.NewEncoder(f.w).Encode(rejected{
		Kind: r.Kind.String(), Row: r.Position, Reason: r.Reason, Detail: r.Detail, Original: string(r.Original),
	})
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
