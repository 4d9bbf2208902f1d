package files

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"gqlstream/ingest/event"
)

// blueskyFrame returns a frame of Bluesky's Jetstream by an account, with a record and further
// members.
func blueskyFrame(account, record, more string) string {
	return fmt.Sprintf(`{"did":"did:plc:%s","time_us":1725911162329308,"kind":"commit",`+
		`"commit":{"operation":"create","collection":"x","rkey":"3k","record":%s,"cid":"b"}%s}`+
		"\n", account, record, more)
}

// blueskyPost returns a record of a post that answers an account, or nobody.
func blueskyPost(whom string) string {
	if whom == "" {
		return `{"createdAt":"2024-09-09T19:46:02.102Z","text":"a"}`
	}
	at := `{"cid":"b","uri":"at://did:plc:` + whom + `/app.bsky.feed.post/3k"}`
	return `{"createdAt":"2024-09-09T19:46:02Z","reply":{"parent":` + at + `,"root":` + at + `}}`
}

// Frames of Bluesky's Jetstream must give an edge for each like, repost, answer and follow, and
// refuse the others one by one; their posts answer accounts. Views of posts are read alike.
func TestBlueskyFrames(t *testing.T) {
	subject := func(text string) string { return `{"text":"a","subject":` + text + `}` }
	likes := subject(`{"cid":"b","uri":"at://did:plc:b/app.bsky.feed.post/3k"}`)
	follows := subject(`"did:plc:c"`)
	rows := map[string]string{
		"like": blueskyFrame("a", likes, ""), "follow": blueskyFrame("a", follows, ""),
		"answer":   blueskyFrame("a", blueskyPost("d"), ""),
		"alone":    blueskyFrame("a", blueskyPost(""), ""),
		"identity": `{"did":"did:plc:a","time_us":1725911162329309,"kind":"identity"}` + "\n",
	}
	want := map[string]string{"like": "b", "follow": "c", "answer": "d"}
	for _, order := range [][]string{
		{"like", "follow", "answer", "alone", "identity"},
		{"follow", "like", "identity", "alone", "answer"},
		{"identity", "answer", "alone", "like", "follow"},
	} {
		text, edges := "", []string{}
		for _, name := range order {
			if text += rows[name]; want[name] != "" {
				edges = append(edges, "did:plc:a>did:plc:"+want[name])
			}
		}
		b, s := readTables(t, Config{}, map[string]string{"edge.ndjson": text})
		if got := ends(b); !slices.Equal(got, edges) || len(b.Refused) != 2 {
			t.Errorf("%v: edges %v, want %v; refused %v", order, got, edges, b.Refused)
		}
		summary := strings.Join(s.Summary(), "\n")
		for _, column := range []string{
			"src from did", "commit.record.subject.uri", "commit.record.reply.parent.uri",
			"time from time_us",
		} {
			if !strings.Contains(summary, column) {
				t.Errorf("%v: summary without %s: %s", order, column, summary)
			}
		}
	}
	classes := `,"p_left":0.25,"p_right":0.75`
	view := func(author, record string) string {
		account := "did:plc:" + author
		return `{"uri":"at://` + account + `/app.bsky.feed.post/3k","author":{"did":"` +
			account + `","handle":"h"},"record":` + record + `,"indexedAt":"2024-09-09T20:00:00Z"` +
			classes + "}\n"
	}
	for name, text := range map[string]string{
		"frames": blueskyFrame("a", blueskyPost(""), classes) +
			blueskyFrame("b", blueskyPost("a"), classes),
		"views": view("a", blueskyPost("")) + view("b", blueskyPost("a")),
	} {
		b, s := readTables(t, Config{}, map[string]string{"post.ndjson": text})
		i := slices.IndexFunc(b.Posts, func(p event.Post) bool { return p.ReplyTo.Given })
		if len(b.Posts) != 2 || i < 0 || b.Posts[i].Author != event.ParseID("did:plc:b") ||
			b.Posts[i].ReplyTo.ID != event.ParseID("did:plc:a") || b.Posts[i].Time == 0 {
			t.Errorf("%s: posts %+v, refused %v; %s", name, b.Posts, b.Refused, s.Summary())
		}
	}
	b, s := readTables(t, Config{}, map[string]string{
		"edge.ndjson": view("a", blueskyPost("")) + view("b", blueskyPost("a")),
	})
	if got := ends(b); !slices.Equal(got, []string{"did:plc:b>did:plc:a"}) || len(b.Refused) != 1 {
		t.Errorf("views: edges %v, refused %v; %s", got, b.Refused, s.Summary())
	}
	b, _ = readTables(t, Config{Columns: map[string]string{"reply.uri": "dst"}},
		map[string]string{"edge.ndjson": `{"src":"x","reply":{"uri":"at://did:plc:b/c/d"}}`})
	if got := ends(b); !slices.Equal(got, []string{"x>at://did:plc:b/c/d"}) {
		t.Errorf("edges %v: an address in a column that the user named is no account", got)
	}
}
