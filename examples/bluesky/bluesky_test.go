package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// at is the time of frame i, in microseconds.
func at(i int) int64 { return 1_790_000_000_000_000 + int64(i)*1000 }

// like is a frame: account a likes a post of account b.
func like(i int, a, b string) string {
	return fmt.Sprintf(
		`{"did":"did:plc:%s","time_us":%d,"kind":"commit",
"commit":{"rev":"3l","operation":"create","collection":"app.bsky.feed.like",
		"rkey":"3k","record":{"$type":"app.bsky.feed.like","createdAt":"2026-09-21T00:00:00Z",
"subject":{"cid":"baf","uri":"at://did:plc:%s/app.bsky.feed.post/3p"}},"cid":"baf"}}`,
		a,
		at(i),
		b,
	)
}

// post is a frame: account a writes a post, which answers one of b if that is given.
func post(i int, a, b, lang string) string {
	reply := ""
	if b != "" {
		uri := fmt.Sprintf(`{"cid":"baf","uri":"at://did:plc:%s/app.bsky.feed.post/3p"}`, b)
		reply = `"reply":{"parent":` + uri + `,"root":` + uri + `},`
	}
	return fmt.Sprintf(
		`{"did":"did:plc:%s","time_us":%d,"kind":"commit",
"commit":{"operation":"create","collection":"app.bsky.feed.post",
		"record":{"$type":"app.bsky.feed.post",%s"langs":[%q],"text":"hello"}}}`,
		a,
		at(i),
		reply,
		lang,
	)
}

// Each frame must become its events, and a frame without meaning here must become none.
func TestFramesBecomeEvents(t *testing.T) {
	const src = `"src":"did:plc:ann"`
	for name, c := range map[string]struct{ frame, edges, vertices string }{
		"like": {like(1, "ann", "bob"), `{"dst":"did:plc:bob",` + src +
			`,"time":1790000000.001,"ttl":3600}`, ""},
		"repost": {
			strings.ReplaceAll(like(1, "ann", "bob"), "feed.like", "feed.repost"),
			`{"dst":"did:plc:bob",` + src + `,"time":1790000000.001,"ttl":3600}`, "",
		},
		"answer": {
			post(2, "ann", "bob", "pt-BR"), `{"dst":"did:plc:bob",` + src +
				`,"time":1790000000.002,"ttl":3600}`,
			`{"attributes":{"lang":"pt"},"time":1790000000.002,"vertex":"did:plc:ann"}`,
		},
		"post": {
			post(0, "ann", "", "de"), "",
			`{"attributes":{"lang":"de"},"time":1790000000,"vertex":"did:plc:ann"}`,
		},
		"of one's own": {like(1, "ann", "ann"), "", ""},
		"taken back": {
			`{"did":"did:plc:ann","time_us":5,"kind":"commit",` +
				`"commit":{"operation":"delete","collection":"app.bsky.feed.like","rkey":"3k"}}`,
			"",
			"",
		},
		"deleted account": {
			`{"did":"did:plc:ann","time_us":5000000,"kind":"account",` +
				`"account":{"active":false,"did":"did:plc:ann","status":"deleted"}}`, "",
			`{"erase":true,"time":5,"vertex":"did:plc:ann"}`,
		},
		"paused account": {`{"did":"did:plc:ann","time_us":5000000,"kind":"account",` +
			`"account":{"active":false,"did":"did:plc:ann","status":"deactivated"}}`, "", ""},
		"identity": {`{"did":"did:plc:ann","time_us":5,"kind":"identity",` +
			`"identity":{"did":"did:plc:ann","handle":"ann.bsky.social"}}`, "", ""},
		"no such subject": {strings.ReplaceAll(like(1, "ann", "bob"), "at://did:plc:bob/",
			"https://example.org/"), "", ""},
	} {
		var f frame
		if err := json.Unmarshal([]byte(c.frame), &f); err != nil {
			t.Fatal(name, err)
		}
		b, tr := &batch{}, translator{ttl: time.Hour}
		if err := tr.add(b, &f); err != nil {
			t.Fatal(name, err)
		}
		if got := strings.TrimSpace(string(b.edges)); got != c.edges {
			t.Errorf("%s: edges %s, want %s", name, got, c.edges)
		}
		if got := strings.TrimSpace(string(b.vertices)); got != c.vertices {
			t.Errorf("%s: vertices %s, want %s", name, got, c.vertices)
		}
		if b.through != f.TimeUS {
			t.Errorf("%s: through %d, want %d", name, b.through, f.TimeUS)
		}
	}
}

// script is a Jetstream server; the test scripts its connections, in order.
type script struct {
	*httptest.Server
	mu      sync.Mutex
	cursors []string // of the connections so far
}

// play starts the server. A connection gets frames, then the word "stall" (nothing more
// comes), "drop" (the link is cut) or "reject" (the cursor is refused, before any frame).
func play(t *testing.T, connections ...[]string) *script {
	t.Helper()
	s := &script{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		n := len(s.cursors)
		s.cursors = append(s.cursors, r.URL.Query().Get("cursor"))
		s.mu.Unlock()
		if got := r.URL.Query()["wantedCollections"]; !slices.Equal(
			got,
			[]string{likes, reposts, posts},
		) {
			t.Errorf("wanted collections %q", got)
		}
		if n >= len(connections) {
			http.Error(w, "too many connections", http.StatusTooManyRequests)
			return
		}
		if connections[n][0] == "reject" {
			http.Error(w, "invalid cursor", http.StatusBadRequest)
			return
		}
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.CloseNow()
		for _, text := range connections[n] {
			switch text {
			case "drop":
				return
			case "stall":
				conn.CloseRead(r.Context())
				<-r.Context().Done()
				return
			}
			if err := conn.Write(r.Context(), websocket.MessageText, []byte(text)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// startLog starts a server with the log of gqlstream.
func startLog(t *testing.T) (*broker.Embedded, jetstream.JetStream) {
	t.Helper()
	server, err := broker.StartEmbedded(
		broker.EmbeddedConfig{Dir: t.TempDir(), Listen: "127.0.0.1:0"},
	)
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
	return server, js
}

// A follower that is dropped, stalled, sent the same again, refused its cursor and sent
// rubbish must go on at its cursor, and publish every edge that the server sent.
func TestFollowerOutlivesItsServer(t *testing.T) {
	server := play(
		t,
		[]string{like(1, "a", "b"), `{"did":`, `[]`, like(2, "b", "c"), "drop"},
		[]string{
			like(1, "a", "b"),
			like(2, "b", "c"),
			like(3, "c", "d"),
			"stall",
		}, // begins a bit earlier
		[]string{"reject"},
		[]string{like(90_000, "d", "e"), "drop"}, // the server had nothing older
		[]string{like(190_000, "e", "f"), "drop"},
	)
	var mu sync.Mutex
	var said []string
	published, saved := map[string]int{}, []int64{}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	failures := 1
	f := follower{
		url: server.URL, translator: translator{key: []byte("0123456789abcdef"), ttl: time.Hour},
		stallMax: 300 * time.Millisecond, pauseMin: time.Millisecond,
		publish: func(_ context.Context, b *batch) error {
			if failures--; failures == 0 { // the first batch fails once and is read again
				return errors.New("the broker is away")
			}
			for line := range strings.Lines(string(b.edges)) {
				published[line]++
			}
			if strings.Contains(string(b.edges), "did:") {
				t.Errorf("an account is named: %s", b.edges)
			}
			return nil
		},
		save: func(at int64) error { saved = append(saved, at); return nil },
		report: func(format string, args ...any) {
			mu.Lock()
			defer mu.Unlock()
			if said = append(said, fmt.Sprintf(format, args...)); strings.Contains(
				said[len(said)-1],
				"429",
			) {
				cancel() // the script is over
			}
		},
	}
	if err := f.follow(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if len(published) != 5 {
		t.Errorf("%d different edges were published, want 5: %v", len(published), published)
	}
	if !slices.IsSorted(saved) || saved[len(saved)-1] != at(190_000) {
		t.Errorf("the cursors were %v", saved)
	}
	early := func(i int) string { return strconv.FormatInt(at(i)-rewind.Microseconds(), 10) }
	want := []string{"", early(1), early(3), "", early(90_000), early(190_000)}
	if !slices.Equal(server.cursors[:len(want)], want) {
		t.Errorf("connections began at %q, want %q", server.cursors, want)
	}
	all := strings.Join(said, "\n")
	for _, part := range []string{
		"2 frames could not be read", "no message for 300ms",
		"rejects the cursor", "no events between 2026-09-21T14:14:50Z and 2026-09-21T14:16:30Z",
		"the broker is away",
	} {
		if !strings.Contains(all, part) {
			t.Errorf("%q is not said:\n%s", part, all)
		}
	}
}

// The program must publish events that the decoder takes, keep its key and its cursor, and
// continue there when it is started again.
func TestProgramContinuesAtItsCursor(t *testing.T) {
	server, js := startLog(t)
	if err := broker.EnsureStreams(t.Context(), js, broker.DefaultStreamNames()); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "state")
	first := play(t, []string{like(1, "ann", "bob"), post(2, "bob", "ann", "de"), "stall"})
	runUntil(t, server.URL(), dir, first, at(2))
	deleted := fmt.Sprintf(
		`{"did":"did:plc:cem","time_us":%d,"kind":"account","account":{"active":false,`+
			`"did":"did:plc:cem","status":"deleted"}}`,
		at(4),
	)
	second := play(
		t,
		[]string{post(2, "bob", "ann", "de"), like(3, "ann", "cem"), deleted, "stall"},
	)
	runUntil(t, server.URL(), dir, second, at(4))
	if want := strconv.FormatInt(at(2)-rewind.Microseconds(), 10); second.cursors[0] != want {
		t.Errorf("went on at %s, want %s", second.cursors[0], want)
	}
	edges, langs, erased := stored(t, js)
	if len(edges) != 3 || len(langs) != 1 {
		t.Errorf("edges %v, languages %v", edges, langs)
	}
	key, err := os.ReadFile(filepath.Join(dir, "key"))
	if err != nil {
		t.Fatal(err)
	}
	cem := (&translator{key: key}).name("did:plc:cem")
	if strings.Join(erased, " ") != cem {
		t.Errorf("erased at the end: %q, want %s", erased, cem)
	}
}

// runUntil runs the program until its cursor is at the time given.
func runUntil(t *testing.T, url, dir string, server *script, until int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, server.URL, url, dir, "", false, time.Hour) }()
	for deadline := time.Now().Add(30 * time.Second); ; {
		text, _ := os.ReadFile(filepath.Join(dir, "cursor"))
		if string(text) == strconv.FormatInt(until, 10) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the cursor is %q, want %d", text, until)
		}
		select {
		case err := <-ended:
			t.Fatalf("the program ended: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// stored decodes the log as gqlstream does, and returns its edges and languages, and the
// erased vertices that have no edge afterwards.
func stored(t *testing.T, js jetstream.JetStream) (edges, langs map[string]bool, erased []string) {
	t.Helper()
	decoder, err := wire.NewDecoder(event.ClassSet{Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), broker.DefaultStreamNames().Log)
	if err != nil {
		t.Fatal(err)
	}
	edges, langs = map[string]bool{}, map[string]bool{}
	for i := uint64(1); i <= stream.CachedInfo().State.LastSeq; i++ {
		m, err := stream.GetMsg(t.Context(), i)
		if err != nil {
			t.Fatal(err)
		}
		kind, _ := event.ParseKind(strings.TrimPrefix(m.Subject, "gql."))
		var b event.Batch
		message := wire.Message{
			Kind:        kind,
			ContentType: m.Header.Get("Content-Type"),
			Payload:     m.Data,
			Position:    event.Position(i),
		}
		if err := decoder.Decode(message, &b); err != nil || len(b.Refused) > 0 {
			t.Fatalf("%s: %v, refused %v", m.Data, err, b.Refused)
		}
		for _, e := range b.Edges {
			edges[e.Src.String()+" "+e.Dst.String()] = true
			erased = slices.DeleteFunc(
				erased,
				func(name string) bool { return name == e.Src.String() || name == e.Dst.String() },
			)
			if e.TTL != time.Hour || strings.Contains(e.Src.String()+e.Dst.String(), "did:") {
				t.Errorf("edge %+v", e)
			}
		}
		for _, v := range b.Vertices {
			if v.Erase {
				erased = append(erased, v.Vertex.String())
				continue
			}
			langs[fmt.Sprint(v.Vertex, v.Attributes)] = true
		}
	}
	return edges, langs, erased
}
