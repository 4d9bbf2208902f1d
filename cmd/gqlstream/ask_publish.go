package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ask"
	"gqlstream/config"
)

// askedBytesMax bounds the stream of questions: the oldest go first.
const askedBytesMax = 64 << 20

// publish puts a message for each vertex to be labelled into the stream of questions. The
// same draw published again adds nothing within two minutes.
func (c *askCmd) publish(ctx context.Context, list *ask.Answer) (err error) {
	b, err := config.OpenBroker(config.Settings{NATS: config.NATS{URL: c.NATS}}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	_, err = b.JS.CreateOrUpdateStream(ctx, jetstream.StreamConfig{
		Name: "GQL_ASK", Subjects: []string{"gqlask"}, MaxBytes: askedBytesMax,
	})
	if err != nil {
		return fmt.Errorf("ask: stream GQL_ASK: %w", err)
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
		if _, err := b.JS.Publish(ctx, "gqlask", data, jetstream.WithMsgID(id)); err != nil {
			return fmt.Errorf("ask: publish: %w", err)
		}
	}
	return nil
}
