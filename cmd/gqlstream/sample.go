package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"gqlstream/incremental"
	"gqlstream/ingest/event"
)

// sampleVertices is the size of the history that resultsDigest estimates.
const sampleVertices = 300

// resultsDigest names the estimates that a configuration gives of a small history that never
// changes. Another version that computes otherwise gives another digest, although the configuration
// and its digest are the same. The last bits may also differ between processor architectures.
func resultsDigest(conf incremental.Config) (string, error) {
	conf.Owned, conf.MembersMin = nil, 1
	core, err := incremental.New(conf)
	if err != nil {
		return "", err
	}
	defer core.Close()
	hash := sha256.New()
	for step := range 2 {
		batch := sampleBatch(conf.Classes, step)
		result := core.Step(batch)
		for i := range result.Estimates {
			record, err := json.Marshal(&result.Estimates[i])
			if err != nil {
				return "", fmt.Errorf("results of the sample: %w", err)
			}
			hash.Write(record)
		}
	}
	return fmt.Sprintf("%x", hash.Sum(nil)[:8]), nil
}

// sampleBatch returns a step of the history: a ring with chords, a community of every second
// vertex, predictions that are mostly right and labels of every third vertex. In the second step
// some predictions change.
func sampleBatch(classes, step int) *event.Batch {
	at := event.Time(time.Date(2026, 1, 1, 0, step, 0, 0, time.UTC).UnixNano())
	b := &event.Batch{Time: at, Emit: true, EmitAll: true}
	index := uint32(0)
	position := event.Position(step + 1)
	b.First, b.Last = position, position
	next := func() uint32 { index++; return index }
	for v := range uint64(sampleVertices) {
		id := event.NumberID(v)
		class := int(v*v/7) % classes
		if step == 0 {
			for _, chord := range []uint64{1, 7, 31} {
				b.Edges = append(b.Edges, event.Edge{
					Src: id, Dst: event.NumberID((v + chord) % sampleVertices), Weight: 1, Time: at,
					Position: position, Index: next(),
				})
			}
			if v%2 == 0 {
				b.Members = append(b.Members, event.Member{
					Community:    "sample",
					Vertex:       id,
					Multiplicity: 1,
					Time:         at,
					Position:     position,
					Index:        next(),
				})
			}
			if v%3 == 0 {
				b.Labels = append(b.Labels, event.Label{
					Vertex:   id,
					Class:    event.Class(class),
					Time:     at,
					Position: position,
					Index:    next(),
				})
			}
		} else if v%5 != 0 {
			continue
		}
		said := class
		if (v+uint64(step))%6 == 0 {
			said = (class + 1) % classes
		}
		rest := uint32(event.One / (4 * classes))
		units := make([]uint32, classes)
		for k := range units {
			units[k] = rest
		}
		units[said] = event.One - rest*uint32(classes-1)
		b.Predictions = append(b.Predictions, event.Prediction{
			Vertex:   id,
			Units:    units,
			Version:  "sample",
			Time:     at,
			Position: position,
			Index:    next(),
		})
	}
	return b
}
