package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// With a classifier, a post must enter the log once, however often it is read. The post
// event names the author that it replies to and has none of its words.
func TestPostsAreClassified(t *testing.T) {
	classifier := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var texts []string
		if err := json.NewDecoder(r.Body).Decode(&texts); err != nil {
			t.Error(err)
		}
		answer := make([][]float64, len(texts))
		for i := range answer {
			answer[i] = []float64{0.25, 0.75}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	defer classifier.Close()
	server, err := broker.StartEmbedded(broker.EmbeddedConfig{Dir: t.TempDir()})
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
	tr := translator{ttl: time.Hour, classify: true}
	for range 2 { // the second time the log drops the repeat
		b := &batch{}
		for _, text := range []string{post(2, "ann", "bob", "de"), like(3, "ann", "cem")} {
			var f frame
			if err := json.Unmarshal([]byte(text), &f); err != nil {
				t.Fatal(err)
			}
			if err := tr.add(b, &f); err != nil {
				t.Fatal(err)
			}
		}
		if edges := string(b.edges); strings.Contains(edges, "bob") ||
			!strings.Contains(edges, "cem") {
			t.Errorf("edges %s", edges)
		}
		if err := publish(t.Context(), js, b, classifier.URL); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := js.Stream(t.Context(), names.Log)
	if err != nil {
		t.Fatal(err)
	}
	info, err := stream.Info(t.Context(), jetstream.WithSubjectFilter("gql.post"))
	if err != nil || info.State.Subjects["gql.post"] != 1 {
		t.Fatalf("%d posts in the log (%v)", info.State.Subjects["gql.post"], err)
	}
	m, err := stream.GetLastMsgForSubject(t.Context(), "gql.post")
	if err != nil {
		t.Fatal(err)
	}
	decoder, err := wire.NewDecoder(event.ClassSet{Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	var b event.Batch
	if err := decoder.Decode(wire.Message{Kind: event.KindPost, Payload: m.Data}, &b); err != nil {
		t.Fatal(err)
	}
	if len(b.Posts) != 1 || b.Posts[0].ReplyTo.ID != event.ParseID("did:plc:bob") ||
		strings.Contains(string(m.Data), "hello") {
		t.Errorf("the log has %s", m.Data)
	}
}
