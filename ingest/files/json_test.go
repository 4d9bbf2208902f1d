package files

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"gqlstream/ingest/event"
)

// A JSON file may hold one array, objects of several lines, or one object a line.
func TestJSONDocuments(t *testing.T) {
	want := []string{"1>2", "2>3"}
	for name, text := range map[string]string{
		"array":   `[{"src":1,"dst":2},{"src":2,"dst":3}]`,
		"mark":    "\xef\xbb\xbf [\n{\"src\":1,\"dst\":2}\n,{\"src\":2,\"dst\":3}\r\n]\n\n",
		"pretty":  "[\n {\n  \"src\": 1,\n\"dst\": 2\n },\n {\n\"src\": 2, \"dst\": 3\n }\n]",
		"objects": "{\n\"src\":1,\"dst\":2}\n{\"src\":2,\n\"dst\":3}",
		"joined":  `{"src":1,"dst":2}{"src":2,"dst":3}`,
		"spaced":  `{"src":1,"dst":2} {"src":2,"dst":3}` + "\n",
		"lines":   "{\"src\":1,\"dst\":2}\n\n{\"src\":2,\"dst\":3}\n",
		"text":    `[{"src":1,"dst":2,"text":"a \"]}\" \\"},{"src":2,"dst":3,"x":[{"y":"["}]}]`,
		"inside":  `[{"edge":{"source":1,"target":2}},{"edge":{"source":2,"target":3}}]`,
	} {
		for _, ext := range []string{".json", ".ndjson"} {
			config := Config{}
			if name == "inside" {
				config.Columns = map[string]string{"edge.source": "src", "edge.target": "dst"}
			}
			b, s := readTables(t, config, map[string]string{"edge" + ext: text})
			got := ends(b)
			if !slices.Equal(got, want) || s.Tallies()[0].Rows != 2 || len(b.Refused) > 0 {
				t.Errorf("%s%s: %v of %d rows, refused %v", name, ext, got, s.Tallies()[0].Rows,
					b.Refused)
			}
		}
	}
}

// A JSON file that is not whole is an error with its line, and no row after it is read.
func TestUnsoundJSONDocuments(t *testing.T) {
	row := `{"src":1,"dst":2}`
	for text, want := range map[string]string{
		"[" + row:                              "the file ends before its array does",
		"[" + row + ",":                        "the file ends before its array does",
		"[\n" + row + ",\n]":                   "line 3: a comma before the end of the array",
		"[" + row + " " + row + "]":            "line 1: no comma between two elements",
		"[" + row + "]\n" + row:                `line 2: '{' after the end of the array`,
		"[" + row + ",\n" + `{"src":1,"dst":"`: "the file ends inside the object of line 2",
		"{\n\"src\":1,":                        "the file ends inside the object of line 1",
		"[" + row + ",\n{\"src\":\"1,\"dst\":2},\n" + row + "]":        "line 2 ends in",
		"[" + row + ",\n{\"src\":1 \"dst\":2}," + row + "]":            "of line 2 is no JSON",
		"{\n\"src\":1,\"dst\":2\n}3{\n\"src\":2}":                      "of line 3 is no JSON",
		"[" + row + `,{"src":"` + strings.Repeat("x", fileRowBytesMax): "longer than 1048576",
		"\xff\xfe[\x00": "this is UTF-16: save it as UTF-8",
	} {
		s, err := NewSource(Config{Inputs: []Input{{
			Path: writeFile(t, "edge.json", []byte(text)), Kind: event.KindEdge,
		}}})
		var b event.Batch
		for err == nil {
			err = s.Next(t.Context(), &b)
		}
		if err == io.EOF || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{ // damaged lines of NDJSON are refused alone
		`{"src":"1,"dst":2}` + "\n" + row + "\n" + row + "\n",
		row + "\n" + `{"src":1,"dst":"2}` + "\n" + row + "\n",
		row + "\n" + row + "\n" + `{"src":1,"dst":`,
	} {
		b, s := readTables(t, Config{}, map[string]string{"edge.ndjson": text})
		if len(b.Edges) != 2 || len(b.Refused) != 1 || s.Tallies()[0].Rows != 3 {
			t.Errorf("%q: %d edges, refused %v", text, len(b.Edges), b.Refused)
		}
	}
	b, _ := readTables(t, Config{}, map[string]string{"edge.json": `[` + row + `,5,[1],"x",` +
		`{"src":1},` + row + `]`})
	if len(b.Edges) != 2 || len(b.Refused) != 4 {
		t.Errorf("%d edges, refused %v", len(b.Edges), b.Refused)
	}
}

// Members of objects are columns: the APIs of Mastodon and of Twitter 1.1 name accounts so.
// Later rows may be the first ones that answer.
func TestPostsWithAccountsInside(t *testing.T) {
	for name, text := range map[string]string{
		"mastodon": `[{"id":"7","account":{"id":"1","acct":"a@x"},"p0":1,"p1":0},` +
			`{"id":"8","in_reply_to_account_id":"1","account":{"id":"2"},"p0":1,"p1":0}]`,
		"twitter": `{"id":7,"user":{"id":1,"id_str":"1","screen_name":"a"},"p0":1,"p1":0}` + "\n" +
			`{"id":8,"in_reply_to_user_id":1,"user":{"id":2},"p0":1,"p1":0}`,
		"author": `{"author":{"id":1},"p0":1,"p1":0}` + "\n" +
			`{"author":{"id":2},"in_reply_to":{"id":8,"user_id":1},"p0":1,"p1":0}`,
	} {
		b, _ := readTables(t, Config{}, map[string]string{"post.json": text})
		if len(b.Posts) != 2 || b.Posts[0].Author.Number != 1 || b.Posts[1].Author.Number != 2 ||
			b.Posts[1].ReplyTo.ID.Number != 1 || b.Posts[0].ReplyTo.Given {
			t.Errorf("%s: %+v, refused %v", name, b.Posts, b.Refused)
		}
	}
}

// A document with its rows inside objects is refused with a command that writes them as
// NDJSON; the written rows are those of the document.
func TestAdviceForJSONDocuments(t *testing.T) {
	telegram := `{"name":"g","id":1,"messages":[{"id":1,"type":"service","actor_id":"user7"},` +
		`{"id":2,"from_id":"user1","p0":1,"p1":0},{"id":3,"from_id":"user2","p0":1,"p1":0}]}`
	pages := `{"data":[{"id":"1","author_id":"user1","p0":1,"p1":0}],"meta":{"count":1}}` + "\n" +
		`{"data":[{"id":"2","author_id":"user2","p0":1,"p1":0}],"includes":{"users":[{"id":"9"}]}}`
	long := strings.Replace(telegram, "user7", strings.Repeat("7", fileRowBytesMax), 1)
	for name, x := range map[string]struct{ file, text, want string }{
		"telegram":       {"post.json", telegram, `the 3 of "messages" have`},
		"telegram, long": {"post.json", long, `the 3 of "messages" have`},
		"all chats": {
			"post.json", `{"chats":{"list":[` + telegram + `]}}`,
			`the 3 of "chats.list.messages" have`,
		},
		"pages": {"post.jsonl", pages, `the 2 of "data" have`},
		"archive": {
			"post.js", "window.YTD.tweets.part0 = [\n" +
				`{"tweet":{"id":"1","p0":1,"p1":0}},` + "\n" +
				`{"tweet":{"id":"2","p0":1,"p1":0}}]`,
			"as in a Twitter archive",
		},
		"quotes": {
			"post.json", strings.ReplaceAll(telegram, "messages", "it's \\\"$x\\\\`"),
			"have: write these",
		},
	} {
		path := writeFile(t, x.file, []byte(x.text))
		_, err := NewSource(Config{
			Inputs: []Input{{Path: path, Kind: event.KindPost}}, Classes: event.ClassSet{Count: 2},
		})
		if err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, want %s", name, err, x.want)
			continue
		}
		_, command, _ := strings.Cut(err.Error(), "python3 -c")
		got := runPython(t, command)
		b, _ := readTables(t, Config{}, map[string]string{"post.ndjson": got})
		if len(b.Posts) != 2 || len(b.Refused) > 0 ||
			name != "archive" && b.Posts[1].Author.Name != "user2" {
			t.Errorf("%s: %s\n%+v, refused %v", name, got, b.Posts, b.Refused)
		}
	}
	graph := `{"nodes":[{"id":1}],"links":[{"source":12345678901234567,"target":2}]}`
	path := writeFile(t, "edge.json", []byte(graph))
	_, err := NewSource(Config{Inputs: []Input{{Path: path, Kind: event.KindEdge}}})
	if err == nil ||
		!strings.Contains(err.Error(), `have no src and no dst, but the 1 of "links"`) {
		t.Errorf("%v", err)
	}
	path = writeFile(t, "edge.json", []byte(telegram))
	_, err = NewSource(Config{Inputs: []Input{{Path: path, Kind: event.KindEdge}}})
	if err == nil || !strings.Contains(err.Error(),
		`the 3 of "messages" have id, type, actor_id, from_id, p0, p1: if they are the rows`) {
		t.Errorf("%v", err)
	}
}

// runPython runs an advised command, and returns its output.
func runPython(t *testing.T, command string) string {
	t.Helper()
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
	}
	if out, err := exec.Command("sh", "-c", python+" -c"+command).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	_, path, _ := strings.Cut(command, " > ")
	text, err := os.ReadFile(strings.Trim(path, "'\n"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// A file without a known key is refused with advice on renaming.
func TestJSONWithoutKnownKeys(t *testing.T) {
	_, s := readTables(t, Config{}, map[string]string{"edge.ndjson": `{"a":1,"b":2}`})
	if got := s.Warnings(); !slices.ContainsFunc(got, func(w string) bool {
		return strings.Contains(w, "the file has a, b; rename with --map src=COLUMN,dst=COLUMN")
	}) {
		t.Errorf("%v", got)
	}
}

// valuesOf returns the values of a text.
func valuesOf(text string) (all []string, err error) {
	v := jsonValues{in: bufio.NewReader(strings.NewReader(text)), line: 1}
	for {
		raw, err := v.next()
		if err == io.EOF {
			return all, nil
		} else if err != nil {
			return all, err
		}
		all = append(all, string(raw))
	}
}

// The values of an array are those of encoding/json, or the file is refused.
func FuzzJSONValuesAsEncodingJSON(f *testing.F) {
	for _, seed := range []string{
		`[{"a":1},{"b":[1,{}]}]`, `[]`, "[1,\n\"x]\",null]", `{"a":"\\"}{}`, `[{"a":"\""}`, "[1 2]",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want []json.RawMessage
		if json.Unmarshal([]byte(text), &want) != nil || want == nil {
			return
		}
		got, err := valuesOf(text)
		if err != nil || len(got) != len(want) {
			t.Fatalf("%q: %q, %v, want %q", text, got, err, want)
		}
		for i := range got {
			if strings.TrimRight(got[i], " \t\r") != string(want[i]) {
				t.Fatalf("%q: value %d is %q, want %q", text, i, got[i], want[i])
			}
		}
	})
}
