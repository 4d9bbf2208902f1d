package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"
)

// The collections that are read. A record of them names another account.
const (
	likes   = "app.bsky.feed.like"
	reposts = "app.bsky.feed.repost"
	posts   = "app.bsky.feed.post"
)

// frame is as much of a Jetstream message as is read here.
type frame struct {
	DID    string `json:"did"`
	TimeUS int64  `json:"time_us"`
	Kind   string `json:"kind"`
	Commit struct {
		Operation  string `json:"operation"`
		Collection string `json:"collection"`
		Record     struct {
			Subject struct { // of a like or repost
				URI string `json:"uri"`
			} `json:"subject"`
			Reply struct { // of a post that answers
				Parent struct {
					URI string `json:"uri"`
				} `json:"parent"`
			} `json:"reply"`
			Text  string   `json:"text"`
			Langs []string `json:"langs"`
		} `json:"record"`
		Key string `json:"rkey"` // of the record in its account
	} `json:"commit"`
	Account struct {
		Status string `json:"status"`
	} `json:"account"`
}

// batch holds lines of NDJSON by kind of event, published together.
type batch struct {
	edges, vertices []byte
	posts           []postEvent // to be classified
	events          int
	through         int64 // time of its last frame, in microseconds
}

// postEvent is a post that a classifier will look at.
type postEvent struct {
	id    string         // of its message, so that the log drops repeats
	text  string         // is not published
	event map[string]any // without its probabilities
}

// translator turns frames into events of gqlstream.
type translator struct {
	key      []byte // of the names; empty publishes them as they are
	ttl      time.Duration
	classify bool // posts are events of their own, with the answers in them
}

// name is how an account appears in the log.
func (t *translator) name(did string) string {
	if len(t.key) == 0 {
		return did
	}
	mac := hmac.New(sha256.New, t.key)
	mac.Write([]byte(did))
	return hex.EncodeToString(mac.Sum(nil)[:16]) // 128 bits: no two accounts share one
}

// add appends the events of a frame to the batch.
func (t *translator) add(b *batch, f *frame) error {
	b.through = max(b.through, f.TimeUS)
	at := float64(f.TimeUS) / 1e6
	switch {
	case f.Kind == "account" && f.Account.Status == "deleted":
		return b.line(&b.vertices,
			map[string]any{"vertex": t.name(f.DID), "erase": true, "time": at})
	case f.Kind != "commit" || f.Commit.Operation != "create":
		return nil
	}
	record := &f.Commit.Record
	whom := author(record.Subject.URI)
	if f.Commit.Collection == posts {
		whom = author(record.Reply.Parent.URI)
		if len(record.Langs) > 0 {
			lang, _, _ := strings.Cut(record.Langs[0], "-") // "pt-BR" is pt
			event := map[string]any{
				"vertex":     t.name(f.DID),
				"attributes": map[string]string{"lang": strings.ToLower(lang)},
				"time":       at,
			}
			if err := b.line(&b.vertices, event); err != nil {
				return err
			}
		}
	}
	if f.Commit.Collection == posts && t.classify {
		t.addPost(b, f, whom, at)
		return nil
	}
	if whom == "" || whom == f.DID { // an answer to oneself is no edge
		return nil
	}
	return b.line(
		&b.edges,
		map[string]any{
			"src":  t.name(f.DID),
			"dst":  t.name(whom),
			"ttl":  t.ttl.Seconds(),
			"time": at,
		},
	)
}

// addPost appends a post, which may answer an account. One without words says nothing.
func (t *translator) addPost(b *batch, f *frame, whom string, at float64) {
	text := strings.TrimSpace(f.Commit.Record.Text)
	if text == "" {
		return
	}
	author := t.name(f.DID)
	event := map[string]any{"author": author, "ttl": t.ttl.Seconds(), "time": at}
	if whom != "" {
		event["reply_to"] = t.name(whom)
	}
	b.posts = append(b.posts, postEvent{author + "/" + f.Commit.Key, text, event})
	b.events++
}

// line appends one event.
func (b *batch) line(lines *[]byte, event map[string]any) error {
	text, err := json.Marshal(event)
	if err != nil {
		return err
	}
	*lines = append(append(*lines, text...), '\n')
	b.events++
	return nil
}

// author returns the account in at://did:plc:abc/app.bsky.feed.post/123, or nothing.
func author(uri string) string {
	rest, ok := strings.CutPrefix(uri, "at://")
	did, _, more := strings.Cut(rest, "/")
	if !ok || !more || !strings.HasPrefix(did, "did:") {
		return ""
	}
	return did
}
