package pipeline

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/ingest/files"
	"gqlstream/ingest/wire"
	"gqlstream/sinks/web"
)

// answersAtOnce is the number of labels in one message: far below the broker's limit.
const answersAtOnce = 1024

// publishAnswers publishes labels that a reader of the page uploaded as CSV, and returns their
// number. Rows without a label are skipped. If a row cannot be read, nothing is published. A flush
// follows, so that estimates with the labels are published at once, at the same log time.
func (b *base) publishAnswers(ctx context.Context, text []byte) (int, error) {
	filled, err := answered(text)
	if err != nil {
		return 0, refuseAnswers(err)
	}
	dir, err := os.MkdirTemp("", "gqlstream-answers")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "answers.csv")
	if err := os.WriteFile(path, filled, 0o600); err != nil {
		return 0, err
	}
	source, err := files.NewSource(files.Config{
		Inputs:  []files.Input{{Path: path, Kind: event.KindLabel}},
		Classes: b.settings.Classes.ClassSet(), Ordered: true,
		Steps: ingest.StepConfig{Every: -1, EventsMax: answersMost},
	})
	if err != nil {
		return 0, refuseAnswers(withoutPath(err, path))
	}
	defer source.Close()
	n, err := b.publishLabels(ctx, source)
	return n, withoutPath(err, path)
}

// withoutPath removes the name of the temporary file from a refusal.
func withoutPath(err error, path string) error {
	var refusal *web.Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refusal):
		refusal.Message = strings.ReplaceAll(refusal.Message, path+":", "line ")
		return refusal
	}
	return errors.New(strings.ReplaceAll(err.Error(), path+":", "line "))
}

// answersMost bounds the labels of one upload: they are read as one batch, so that either all or
// none are published.
const answersMost = 1 << 18

func (b *base) publishLabels(ctx context.Context, source *files.Source) (n int, err error) {
	batch := &event.Batch{}
	if err := source.Next(ctx, batch); err != nil && !errors.Is(err, io.EOF) {
		return 0, refuseAnswers(err)
	}
	if len(batch.Refused) > 0 {
		return 0, refuseAnswers(errors.New(batch.Refused[0].Detail))
	}
	publisher, err := ingest.NewPublisher(
		b.Broker.NC, ingest.PublisherConfig{Stream: b.names.In.Log, RetryFor: -1},
	)
	if err != nil {
		return 0, err
	}
	defer publisher.Close()
	n = batch.Count(event.KindLabel)
	for from := 0; from < n; from += answersAtOnce {
		payload, form := wire.Encode(event.KindLabel, batch, from, min(from+answersAtOnce, n))
		message := ingest.Outgoing{Kind: event.KindLabel, ContentType: form, Payload: payload}
		if err := publisher.Publish(ctx, message); err != nil {
			return 0, err
		}
	}
	if err := publisher.Flush(ctx); err != nil {
		return n, err
	}
	// Labels move no log time, so with times of events they would wait for a later event.
	_, err = publishControl(ctx, b.Broker.JS, b.names.In.Log, event.Flush)
	return n, err
}

// answered returns the rows of a table of labels that have a label.
func answered(text []byte) ([]byte, error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // spreadsheets write a byte order mark
	read := csv.NewReader(bytes.NewReader(text))
	if head, _, _ := bytes.Cut(text, []byte("\n")); bytes.Count(head, []byte(";")) > 1 {
		read.Comma = ';'
	}
	rows, err := read.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("the file is no CSV: %w", err)
	}
	if len(rows) == 0 || !slices.Contains(rows[0], "vertex") || !slices.Contains(rows[0], "label") {
		return nil, errors.New("the first row must name the columns vertex and label")
	}
	at := slices.Index(rows[0], "label")
	labelled := slices.DeleteFunc(rows[1:], func(row []string) bool {
		return strings.TrimSpace(row[at]) == ""
	})
	if len(labelled) == 0 {
		return nil, errors.New("no row has a label")
	}
	var out bytes.Buffer
	write := csv.NewWriter(&out)
	err = errors.Join(write.Write(rows[0]), write.WriteAll(labelled))
	return out.Bytes(), err
}

func refuseAnswers(err error) error {
	return &web.Refusal{
		Code:    http.StatusUnprocessableEntity,
		Message: "nothing was published: " + err.Error(),
	}
}

// publishNote adds a note to the input log.
func (b *base) publishNote(ctx context.Context, text string) error {
	payload, err := json.Marshal(map[string]string{"op": event.Note.String(), "text": text})
	if err != nil {
		return err
	}
	_, err = b.Broker.JS.Publish(ctx, broker.Subject(b.names.In.Log, event.KindControl), payload)
	return err
}
