package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
	"gqlstream/internal/request"
)

// questionStream and questionSubject name the stream of ask --publish about a log.
func questionStream(log string) string  { return log + "_ASK" }
func questionSubject(log string) string { return strings.ToLower(log) + "ask" }

// forgetQuestions deletes the questions about vertices that the log erases, as far as it still has
// the erasures, and returns how many there are. Where dry is set it deletes none. The broker
// overwrites deleted messages.
func forgetQuestions(
	ctx context.Context, js jetstream.JetStream, names broker.StreamNames, dry bool,
) (n int, err error) {
	stream, err := js.Stream(ctx, questionStream(names.Log))
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	erased, _, err := erasedIn(ctx, js, names.Log, 0)
	if err != nil || len(erased) == 0 {
		return 0, err
	}
	feed := request.Feed{JS: js, Stream: questionStream(names.Log)}
	err = feed.Each(ctx, 0, func(m request.Message) (bool, error) {
		var asked struct {
			Vertex string `json:"vertex"`
		}
		if json.Unmarshal(m.Data(), &asked) != nil || !erased[asked.Vertex] {
			return true, nil
		}
		n++
		if dry {
			return true, nil
		}
		return true, stream.SecureDeleteMsg(ctx, m.Sequence)
	})
	return n, err
}

// erasedIn returns the vertices that a log erases after a position, and the position of the last
// erasure, 0 without one.
func erasedIn(
	ctx context.Context, js jetstream.JetStream, log string, after uint64,
) (erased map[string]bool, last uint64, err error) {
	decoder, err := wire.NewDecoder(event.ClassSet{Count: 2}) // events of vertices have no class
	if err != nil {
		return nil, 0, err
	}
	erased, batch := map[string]bool{}, event.Batch{}
	subject := broker.Subject(log, event.KindVertex)
	feed := request.Feed{JS: js, Stream: log, Subjects: []string{subject}}
	err = feed.Each(ctx, after, func(m request.Message) (bool, error) {
		batch.Reset()
		header := m.Headers()
		err := decoder.Decode(wire.Message{
			Kind: event.KindVertex, ContentType: header.Get(wire.HeaderContentType),
			Schema: header.Get(wire.HeaderSchema), Checksum: header.Get(wire.HeaderChecksum),
			Payload: m.Data(), Position: event.Position(m.Sequence),
		}, &batch)
		for _, v := range batch.Vertices {
			if v.Erase {
				erased[v.Vertex.String()], last = true, m.Sequence
			}
		}
		if errors.Is(err, wire.ErrMalformed) { // it was refused by the run as well
			err = nil
		}
		return true, err
	})
	return erased, last, err
}
