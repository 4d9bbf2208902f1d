// Command bluesky publishes likes, reposts, answers and classified posts of Bluesky to a
// gqlstream log. Copy the parts you need: the command imports no gqlstream package, only
// a NATS and a websocket client.
//
//	gqlstream run --classes left,right --listen 127.0.0.1:4222
//	go run ./examples/bluesky -url nats://127.0.0.1:4222
//
// It reads Jetstream, the JSON form of Bluesky's firehose, by its first wire format
// (/subscribe, cursors in microseconds). A like, a repost or an answer becomes an edge with
// a time to live; the first language of a post becomes the attribute lang of its author; an
// account that is deleted is erased. A like that is taken back only runs out, because Jetstream
// does not name its author.
//
// With -classify URL every post becomes a post event, and the author's prediction follows from
// these: the classifier is yours, an HTTP service that is sent a JSON list of texts and
// answers with a list of lists of probabilities, one for each class. Texts are not published.
//
// Names are behind an HMAC with a key of your own, so that the log and all that follows from
// it holds no account that someone without the key could recognise; -plain turns that off.
//
// It is tested against a server that replays made frames, drops, stalls, repeats and rejects
// cursors. It has not been run against the live network.
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func main() {
	from := flag.String("jetstream", "wss://jetstream2.us-east.bsky.network/subscribe",
		"the Jetstream server to read")
	url := flag.String("url", "nats://127.0.0.1:4222",
		"the server that gqlstream run listens on, or its own --nats")
	dir := flag.String("dir", "bluesky-state", "folder of the key and the cursor")
	plain := flag.Bool("plain", false, "publish account identifiers as they are")
	ttl := flag.Duration("ttl", 30*24*time.Hour, "how long a like, a repost or an answer counts")
	classifier := flag.String("classify", "",
		"URL of a classifier of texts; without it no posts are published")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *from, *url, *dir, *classifier, *plain, *ttl); err != nil &&
		ctx.Err() == nil {
		log.Fatal(err)
	}
}

func run(
	ctx context.Context, from, url, dir, classifier string, plain bool, ttl time.Duration,
) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	translator := translator{ttl: ttl, classify: classifier != ""}
	if !plain {
		key, err := readKey(filepath.Join(dir, "key"))
		if err != nil {
			return err
		}
		translator.key = key
	}
	nc, err := nats.Connect(url, nats.MaxReconnects(-1), nats.RetryOnFailedConnect(true))
	if err != nil {
		return err
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		return err
	}
	cursor := filepath.Join(dir, "cursor")
	f := follower{
		url: from, translator: translator, stallMax: 30 * time.Second, pauseMin: time.Second,
		publish: func(ctx context.Context, b *batch) error {
			return publish(ctx, js, b, classifier)
		},
		save:   func(at int64) error { return writeFile(cursor, strconv.FormatInt(at, 10)) },
		report: log.Printf,
	}
	if f.cursor, err = readCursor(cursor); err != nil {
		return err
	}
	return f.follow(ctx)
}

// publish stores a batch in the log and returns when it is there. Edges and vertices are
// assertions, so a batch that is sent again after a crash changes nothing; posts add up, so
// each is a message with a name, and the log drops repeated names. Edges and posts come first:
// after the erasure of an account they would bring it back.
func publish(ctx context.Context, js jetstream.JetStream, b *batch, classifier string) error {
	if err := publishPosts(ctx, js, b.posts, classifier); err != nil {
		return err
	}
	for _, m := range []*nats.Msg{
		{Subject: "gql.edge", Data: b.edges}, {Subject: "gql.vertex", Data: b.vertices},
	} {
		if len(m.Data) == 0 {
			continue
		}
		m.Header = nats.Header{"Content-Type": {"application/x-ndjson"}}
		if _, err := js.PublishMsg(ctx, m); err != nil {
			return fmt.Errorf("publish on %s: %w", m.Subject, err)
		}
	}
	return nil
}

// publishPosts asks the classifier about all posts at once, and publishes one after another.
func publishPosts(
	ctx context.Context, js jetstream.JetStream, posts []postEvent, classifier string,
) error {
	if len(posts) == 0 {
		return nil
	}
	texts := make([]string, len(posts))
	for i := range posts {
		texts[i] = posts[i].text
	}
	probabilities, err := classify(ctx, classifier, texts)
	if err != nil {
		return err
	}
	for i, p := range posts {
		p.event["probabilities"] = probabilities[i]
		data, err := json.Marshal(p.event)
		if err != nil {
			return err
		}
		m := &nats.Msg{Subject: "gql.post", Data: data, Header: nats.Header{
			"Content-Type": {"application/json"}, "Nats-Msg-Id": {"bluesky/" + p.id},
		}}
		if _, err := js.PublishMsg(ctx, m); err != nil {
			return fmt.Errorf("publish on %s: %w", m.Subject, err)
		}
	}
	return nil
}

// classify returns the classifier's probabilities for each text.
func classify(ctx context.Context, url string, texts []string) ([][]float64, error) {
	body, err := json.Marshal(texts)
	if err != nil {
		return nil, err
	}
	question, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	question.Header.Set("Content-Type", "application/json")
	reply, err := http.DefaultClient.Do(question)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	var answer [][]float64
	if err := json.NewDecoder(reply.Body).Decode(&answer); err != nil || len(answer) != len(texts) {
		return nil, fmt.Errorf(
			"the classifier answers %s with %d lists for %d texts: %v",
			reply.Status, len(answer), len(texts), err,
		)
	}
	return answer, nil
}

// readKey reads the key of the names, or makes one. Without it, nobody can follow the same
// accounts any further; with it, anybody can recognise them.
func readKey(path string) ([]byte, error) {
	key, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		key = []byte(rand.Text())
		return key, writeFile(path, string(key))
	}
	if key = bytes.TrimSpace(key); err == nil && len(key) < 16 {
		return nil, fmt.Errorf("%s: a key has at least 16 characters", path)
	}
	return key, err
}

// readCursor returns the time in microseconds of the last published frame; 0 begins now.
func readCursor(path string) (int64, error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(string(bytes.TrimSpace(text)), 10, 64)
}

// writeFile replaces a file so that a crash leaves the old or the new one.
func writeFile(path, text string) error {
	if err := os.WriteFile(path+".tmp", []byte(text), 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
