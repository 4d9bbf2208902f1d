package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"gqlstream/internal/testfile"
)

// Every target of a configuration is told once, and one that refuses fails the command.
func TestNotifySendsToEveryTarget(t *testing.T) {
	var got []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.URL.Path+" "+string(body))
		if r.URL.Path == "/refuses" {
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer s.Close()
	path := filepath.Join(t.TempDir(), "c.yaml")
	text := "classes: [left, right]\nnotify:\n  webhooks:\n" +
		"    - {name: chat, url: \"" + s.URL + "/chat\", template: slack}\n" +
		"    - {name: other, url: \"" + s.URL + "/refuses\"}\n"
	testfile.Write(t, path, text)
	var out, said strings.Builder
	code := execute(t.Context(), []string{"notify", path, "--test"}, console{Out: &out, Err: &said})
	if code != exitFailed || !strings.Contains(out.String(), "webhook/chat: took it\n") ||
		!strings.Contains(out.String(), "webhook/other: the answer is 403") {
		t.Errorf("code %d\n%s\n%s", code, out.String(), said.String())
	}
	if len(got) != 2 || !strings.HasPrefix(got[0], `/chat {"text": "🔔 *gqlstream-trial*`) {
		t.Errorf("got %q", got)
	}
}
