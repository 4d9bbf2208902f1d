package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"gqlstream/quant"
)

// FuzzRequests sends any path, query, host and origin to the handlers: no panic,
// an answer that is JSON or one of our files, and no redirect. Streams do not end,
// so they are left to the other tests.
func FuzzRequests(f *testing.F) {
	for _, rt := range routes() {
		f.Add(rt.pattern, strings.Join(rt.params, "=1&"), "localhost", "")
	}
	for _, name := range hostileNames() {
		f.Add(
			"/api/v1/communities/"+url.PathEscape(name)+"/estimates",
			"method="+url.QueryEscape(name), "localhost:8090", name,
		)
		f.Add(
			"/api/v1/communities", "q="+url.QueryEscape(name)+"&sort="+url.QueryEscape(name), name,
			"",
		)
	}
	s, err := prepare(Config{HTTP: HTTP{Listen: "127.0.0.1:0"}, Classes: []string{"no", "yes"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { s.listener.Close() })
	for _, name := range hostileNames() {
		s.store.write(
			[]quant.Estimate{estimate(name, "auto", 1, 0.5), estimate(name, "pcc", 1, 0.5)},
			s.started,
		)
	}
	f.Fuzz(func(t *testing.T, path, query, host, origin string) {
		u, err := url.ParseRequestURI(path)
		if err != nil {
			return
		}
		u.RawQuery = query
		r := &http.Request{
			Method:     http.MethodGet,
			URL:        u,
			Host:       host,
			Header:     http.Header{},
			Proto:      "HTTP/1.1",
			ProtoMajor: 1,
			ProtoMinor: 1,
		}
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		w := httptest.NewRecorder()
		s.http.Handler.ServeHTTP(w, r)
		switch {
		case w.Code >= 300 && w.Code < 400 && w.Code != http.StatusNotModified:
			t.Errorf("redirected to %q", w.Header().Get("Location"))
		case w.Code >= 500 && path != "/readyz":
			t.Errorf("code %d: %s", w.Code, w.Body)
		case w.Header().Get("Content-Security-Policy") != contentPolicy:
			t.Error("no policy")
		case w.Header().Get("Content-Type") == "application/json" && !json.Valid(w.Body.Bytes()):
			t.Errorf("not JSON: %s", w.Body)
		}
	})
}
