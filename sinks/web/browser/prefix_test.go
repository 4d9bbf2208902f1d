//go:build browser

package browser

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
	"time"
)

// A proxy may serve the page under a path of its own: assets and API are found below it.
func TestPageUnderAPathOfAProxy(t *testing.T) {
	s := filled(t, newDemo(20, fiveClasses, time.Second), 3)
	to, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host
	}}
	mux := http.NewServeMux()
	mux.Handle("/gql/", http.StripPrefix("/gql", proxy))
	front := httptest.NewServer(mux)
	defer front.Close()
	p := open(t, 1280, 800, "light")
	p.visit(front.URL + "/gql/")
	p.until("rows", `document.querySelectorAll(".rows .name[href]").length > 5`)
	p.do(click(`document.querySelector(".rows .name[href]")`))
	p.until(
		"a chart",
		`location.hash.startsWith("#/c/") && document.querySelector("canvas") !== null`,
	)
	p.quiet()
}
