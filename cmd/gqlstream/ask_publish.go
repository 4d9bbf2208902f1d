package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ask"
	"gqlstream/ingest/broker"
	"gqlstream/request"
)

// askedBytesMax bounds the stream of questions: the oldest go first.
const askedBytesMax = 64 << 20

// publish puts a message for each vertex to be labelled into the stream of questions. The
// same draw published again adds nothing within two minutes.
func (c *askCmd) publish(ctx context.Context, list *ask.Answer, con console) (err error) {
	b, err := c.open("", con)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	subject, err := questions(ctx, b.JS, c.names)
	if err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	for _, row := range list.Drawn {
		if row.Label != nil {
			continue
		}
		data, err := json.Marshal(struct {
			ask.Drawn
			Communities []string `json:"communities"`
		}{row, row.Communities})
		if err != nil {
			return err
		}
		id := fmt.Sprintf("%d/%d/%s", list.Position, c.Seed, row.Vertex)
		if _, err := b.JS.Publish(ctx, subject, data, jetstream.WithMsgID(id)); err != nil {
			return fmt.Errorf("ask: publish: %w", err)
		}
	}
	return nil
}

// questions creates the stream of the questions about a log where it does not exist, kept by as
// many servers as the log, and returns its subject.
func questions(ctx context.Context, js jetstream.JetStream, names broker.StreamNames) (string, error) {
	log, err := js.Stream(ctx, names.Log)
	if err != nil {
		return "", fmt.Errorf("the log %s of the pipeline (nats.prefix says which): %w", names.Log, err)
	}
	subject := strings.ToLower(names.Log) + "ask"
	stream, err := request.EnsureStream(ctx, js, jetstream.StreamConfig{
		Name: names.Log + "_ASK", Description: "gqlstream: vertices to label", Subjects: []string{subject},
		MaxBytes: askedBytesMax, Replicas: cmp.Or(names.Replicas, log.CachedInfo().Config.Replicas),
	})
	if err != nil {
		return "", err
	}
	return subject, request.AuditReplicas(stream, names.Replicas)
}
