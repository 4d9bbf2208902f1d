package main

import (
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
)

// A purge must remove the questions of ask --publish about an erased vertex, and no other question.
func TestQuestionsAboutErasedPeopleAreForgotten(t *testing.T) {
	server, err := broker.StartEmbedded(broker.EmbeddedConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	nc, err := server.Connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	names := broker.DefaultStreamNames()
	if err := broker.EnsureStreams(t.Context(), js, names); err != nil {
		t.Fatal(err)
	}
	if n, err := forgetQuestions(t.Context(), js, names, false); n != 0 || err != nil {
		t.Errorf("without a stream of questions: %d, %v", n, err)
	}
	subject, err := questions(t.Context(), js, names)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range [][2]string{
		{"gql.vertex", `{"vertex": "alice", "erase": true}`},
		{"gql.vertex", `{"vertex": "bob", "attributes": {"a": 1}}`},
		{"gql.vertex", "rubbish"},
		{"gql.vertex", `[{"vertex": 7, "erase": true}]`},
		{subject, `{"vertex": "alice", "communities": ["x"]}`},
		{subject, `{"vertex": "bob", "communities": ["x"]}`},
		{subject, `{"vertex": "7", "communities": ["x"]}`},
		{subject, "rubbish"},
	} {
		if _, err := js.Publish(t.Context(), m[0], []byte(m[1])); err != nil {
			t.Fatal(err)
		}
	}
	left := func() uint64 {
		stream, err := js.Stream(t.Context(), questionStream(names.Log))
		if err != nil {
			t.Fatal(err)
		}
		if stream.CachedInfo().Config.MaxAge != askedAgeMax {
			t.Error("questions stay for ever")
		}
		return stream.CachedInfo().State.Msgs
	}
	if n, err := forgetQuestions(t.Context(), js, names, true); n == 0 || err != nil ||
		left() != 4 {
		t.Errorf("a trial: %d, %v, %d are left", n, err, left())
	}
	if n, err := forgetQuestions(t.Context(), js, names, false); n == 0 || err != nil ||
		left() != 4-uint64(n) {
		t.Errorf("%d are forgotten, %v, %d are left", n, err, left())
	}
	if n, err := forgetQuestions(t.Context(), js, names, false); n != 0 || err != nil ||
		left() > 3 {
		t.Errorf("again: %d, %v, %d are left", n, err, left())
	}
}
