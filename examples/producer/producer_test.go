package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

func decoder(t *testing.T) *wire.Decoder {
	t.Helper()
	d, err := wire.NewDecoder(event.ClassSet{Names: []string{"left", "right"}})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// said returns the content of a message without its origin.
func said(t *testing.T, m wire.Message) string {
	t.Helper()
	var b event.Batch
	if err := decoder(t).Decode(m, &b); err != nil {
		t.Fatal(err)
	}
	for _, r := range b.Refused {
		t.Errorf("%v as %s: refused, %s: %s", m.Kind, m.ContentType, r.Reason, r.Detail)
	}
	var lines []string
	for _, e := range b.Edges {
		e.Position = 0
		lines = append(lines, fmt.Sprintf("%+v", e))
	}
	for _, list := range []any{
		b.Labels, b.Predictions, b.Posts, b.Members, b.Vertices,
		b.Controls,
	} {
		lines = append(lines, fmt.Sprintf("%+v", list))
	}
	if b.Events() == 0 {
		t.Errorf("%v as %s: no events", m.Kind, m.ContentType)
	}
	return strings.Join(lines, "\n")
}

// The program, compiled and run as a user would, must leave every kind in every
// form in the log, and the forms of a kind must say the same.
func TestGoProducer(t *testing.T) {
	program := filepath.Join(t.TempDir(), "producer")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server, err := broker.StartEmbedded(
		broker.EmbeddedConfig{Dir: t.TempDir(), Listen: "127.0.0.1:0"},
	)
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	nc, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	names := broker.DefaultStreamNames()
	if err := broker.EnsureStreams(t.Context(), js, names); err != nil {
		t.Fatal(err)
	}
	const want = 3 * int(event.Kinds)
	for range 2 { // the second time the broker drops every message as a repeat
		out, err := exec.Command(program, "-url", server.URL(), "-producer", "test").
			CombinedOutput()
		if err != nil || string(out) != fmt.Sprintf("published %d messages\n", want) {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	stream, err := js.Stream(t.Context(), names.Log)
	if err != nil {
		t.Fatal(err)
	}
	if last := stream.CachedInfo().State.LastSeq; last != uint64(want) {
		t.Fatalf("%d messages in the log, want %d", last, want)
	}
	first := map[event.Kind]string{}
	for i := range uint64(want) {
		m, err := stream.GetMsg(t.Context(), i+1)
		if err != nil {
			t.Fatal(err)
		}
		kind, _ := event.ParseKind(strings.TrimPrefix(m.Subject, "gql."))
		text := said(
			t,
			wire.Message{Kind: kind, ContentType: m.Header.Get("Content-Type"), Payload: m.Data},
		)
		if first[kind] == "" {
			first[kind] = text
		} else if kind != event.KindVertex &&
			text != first[kind] { // attributes come in the table's order
			t.Errorf("%v as %s says\n%s\nwant\n%s", kind, m.Header.Get("Content-Type"), text,
				first[kind])
		}
	}
	if len(first) != event.Kinds {
		t.Errorf("%d kinds of events", len(first))
	}
}
