package web

import (
	"bufio"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// raw sends bytes as they are and returns the code of the answer, 0 for none.
func raw(t testing.TB, s *Server, request string) (int, http.Header, string) {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, request); err != nil {
		return 0, nil, "" // refused while it was sent
	}
	reply, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, nil, ""
	}
	defer reply.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(reply.Body, 1<<16))
	return reply.StatusCode, reply.Header, string(body)
}

// hostileRequest is a request that must not reach a handler.
type hostileRequest struct {
	name, request string
	codes         []int // any of these
}

func plainGet(path, host string, headers ...string) string {
	return "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n" + strings.Join(
		append(headers, "Connection: close"),
		"\r\n",
	) + "\r\n\r\n"
}

func hostileRequests() []hostileRequest {
	const ok = "localhost"
	var out []hostileRequest
	add := func(name, request string, codes ...int) {
		out = append(out,
			hostileRequest{name, request, codes})
	}
	for _, host := range []string{
		"evil.example", "evil.example:8090", "127.0.0.1.evil.example", "localhost.evil.example",
		"localhost.",
		"127.0.0.1.", "127.1", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.2", "0.0.0.0",
		"[::]", "[::ffff:127.0.0.1]",
		"::1", "[::1", "::1]", "localhost:99999", "localhost:x", "localhost:-1", "localhost:80:80",
		"a@localhost", "localhost@evil.example",
		"localtest.me", "rebind.network", "10.0.0.1", "192.168.0.1", "169.254.169.254",
		"metadata.google.internal", "*", "",
	} {
		for _, path := range []string{"/api/v1/communities", "/healthz"} {
			add("host "+host+" "+path, plainGet(path, host), 421, 400)
		}
	}
	add(
		"absolute address",
		"GET http://evil.example/api/v1/status HTTP/1.1\r\nHost: localhost\r\nConnection: "+
			"close\r\n\r\n",
		421,
	)
	add("no host", "GET / HTTP/1.1\r\nConnection: close\r\n\r\n", 400)
	add("no host in 1.0", "GET / HTTP/1.0\r\n\r\n", 421)
	add(
		"two hosts",
		"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
		400,
	)
	add(
		"forwarded host does not help",
		plainGet("/", "evil.example", "X-Forwarded-Host: localhost", "Forwarded: host=localhost"),
		421,
	)
	for _, method := range []string{
		"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get", "GETT",
		"QUERY",
	} {
		add(
			"method "+method,
			method+" /api/v1/status HTTP/1.1\r\nHost: localhost\r\nContent-Length: "+
				"0\r\nConnection: close\r\n\r\n",
			405,
			400,
		)
	}
	add("head", "HEAD /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 200)
	add("override", plainGet("/api/v1/nothing", ok, "X-HTTP-Method-Override: DELETE"), 404)
	add("body", "GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", 413)
	add(
		"huge body announced",
		"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n",
		413,
	)
	add(
		"chunked body",
		"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: "+
			"chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		413,
	)
	add(
		"two lengths",
		"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\nabcde",
		400,
	)
	add(
		"length and chunks",
		"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: "+
			"chunked\r\n\r\n0\r\n\r\n",
		413,
		400,
	)
	add(
		"odd coding",
		"GET / HTTP/1.1\r\nHost: localhost\r\n"+
			"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
		400,
		501,
	)
	add("long header", plainGet("/", ok, "X-Long: "+strings.Repeat("x", 32<<10)), 431)
	add(
		"many headers",
		plainGet(
			"/",
			ok,
			strings.TrimSuffix(strings.Repeat("X-Many: 0123456789\r\n", 2000), "\r\n"),
		),
		431,
	)
	add("long address", plainGet("/"+strings.Repeat("a", 32<<10), ok), 431, 414)
	add("space in header name", plainGet("/", ok, "Bad Header: x"), 400)
	add("nul in header", plainGet("/", ok, "X: a\x00b"), 400)
	add("nul in host", plainGet("/", "local\x00host"), 400)
	add("folded header", plainGet("/", ok, "X: a\r\n b: c"), 400, 200)
	add("not http", "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n", 400)
	add("http/0.9", "GET /\r\n\r\n", 400)
	add("http/9", "GET / HTTP/9.9\r\nHost: localhost\r\n\r\n", 505, 400)
	add("h2c preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 421, 405, 400, 505)
	add("star", "GET * HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 400)
	for _, path := range []string{
		"//evil.example/", "/../etc/passwd", "/static/../config.go", "/js/../../config.go", "/./",
		"/js//app.js",
		"/api/v1//status", "/api/v1/./status", "/api/v1/../v1/status",
	} {
		add("path "+path, plainGet(path, ok), 400)
	}
	for _, path := range []string{
		"/%2e%2e/%2e%2e/etc/passwd", "/..%2f..%2fetc/passwd", "/static/index.html", "/static",
		"/js", "/js/", "/uplot/",
		"/index.html/", "/.git/config", "/js/app.js%00.html", "/js/app.js.map", "/js/app.js\\..\\x",
		"/%5c..%5cconfig.go", "/debug/pprof/", "/debug/vars",
		"/API/v1/status", "/api/v1/status/", "/api/v1/communities/",
		"/api/v1/communities//estimates",
	} {
		add("path "+path, plainGet(path, ok), 404, 400)
	}
	for _, header := range []string{
		"Origin: http://evil.example", "Origin: null", "Origin: http://localhost:1",
		"Origin: https://localhost.evil.example",
		"Origin: file://", "Origin: chrome-extension://abc", "Sec-Fetch-Site: cross-site",
		"Sec-Fetch-Site: same-site",
		"Sec-Fetch-Site: none\r\nOrigin: https://gql.example",
		"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: no-cors\r\nSec-Fetch-Dest: script",
		"Sec-Fetch-Site: cross-site\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: iframe",
	} {
		add("foreign "+header, plainGet("/api/v1/estimates", ok, header), 403)
	}
	return out
}

func TestHostileRequestsAreRefused(t *testing.T) {
	s := serve(t, nil)
	write(t, s, estimate("secret-community", "auto", 1, 0.5))
	requests := hostileRequests()
	if len(requests) < 80 {
		t.Fatalf("%d requests, want at least 80", len(requests))
	}
	for _, c := range requests {
		code, header, body := raw(t, s, c.request)
		fine := false
		for _, want := range c.codes {
			fine = fine || code == want
		}
		if !fine || strings.Contains(body, "secret-community") {
			t.Errorf("%s: code %d, want one of %v; body %.200q", c.name, code, c.codes, body)
		}
		if header.Get("Location") != "" {
			t.Errorf("%s: redirected to %s", c.name, header.Get("Location"))
		}
	}
	if code, _, _ := get(t, s, "/healthz"); code != 200 {
		t.Errorf("after all that: code %d", code)
	}
}

// Requests of real people and programs must be served.
func TestFriendlyRequestsAreServed(t *testing.T) {
	s := serve(t, func(c *Config) { c.Hosts = []string{"Gql.Example", "[fd00::1]"} })
	_, port, _ := net.SplitHostPort(s.Addr().String())
	for _, host := range []string{
		"localhost", "LOCALHOST", "localhost:" + port, "127.0.0.1", "127.0.0.1:" + port,
		"[::1]:" + port, "gql.example", "gql.example:443",
		"[FD00::1]:9", "localhost:9000",
	} {
		if code, _, body := raw(t, s, plainGet("/api/v1/status", host)); code != 200 {
			t.Errorf("host %s: code %d %s", host, code, body)
		}
	}
	for _, headers := range [][]string{
		{"Origin: http://localhost"},
		{"Sec-Fetch-Site: same-origin"},
		// behind a proxy that sends a Host of its own, as nginx does by default
		{"Sec-Fetch-Site: same-origin", "Origin: https://gql.example"},
		{"Sec-Fetch-Site: none"},
		{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"},
	} {
		if code, _, body := raw(t, s, plainGet("/", "localhost", headers...)); code != 200 {
			t.Errorf("%v: code %d %s", headers, code, body)
		}
	}
}

// Every answer, good or bad, carries the policy and the other headers.
func TestEveryAnswerCarriesThePolicy(t *testing.T) {
	s := serve(t, nil)
	for _, path := range []string{
		"/", "/app.css", "/js/app.js", "/api/v1/info", "/api/v1/nothing",
		"/metrics", "/healthz", "/readyz", "/a/../b",
	} {
		_, header, _ := raw(t, s, plainGet(path, "localhost"))
		for name, want := range map[string]string{
			"Content-Security-Policy": contentPolicy, "X-Content-Type-Options": "nosniff",
			"X-Frame-Options": "DENY",
			"Referrer-Policy": "no-referrer", "Cross-Origin-Resource-Policy": "same-origin",
			"Cross-Origin-Opener-Policy": "same-origin",
		} {
			if got := header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
		if header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: answers other origins", path)
		}
	}
	if strings.Contains(contentPolicy, "unsafe") || strings.Contains(contentPolicy, "*") {
		t.Errorf("the policy allows too much: %s", contentPolicy)
	}
}

// The page must need nothing from elsewhere and nothing inline.
func TestPageIsSelfContained(t *testing.T) {
	files := 0
	err := fs.WalkDir(static, "static", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		data, err := static.ReadFile(name)
		body, name := string(data), strings.TrimPrefix(name, "static")
		for _, bad := range []string{
			"innerHTML", "outerHTML", "insertAdjacentHTML",
			"document.write", "eval(", "new Function", "DOMParser",
		} {
			if strings.Contains(body, bad) && !strings.HasPrefix(name, "/uplot/") {
				t.Errorf("%s uses %s", name, bad)
			}
		}
		for _, bad := range []string{"https://", "http://", "@import", "//cdn"} {
			for line := range strings.Lines(body) {
				if strings.Contains(line, bad) && !strings.Contains(line, "http://www.w3.org/") &&
					!strings.Contains(line, "github.com/leeoniya/uPlot") {
					t.Errorf("%s refers to another place: %.120s", name, line)
				}
			}
		}
		if strings.HasSuffix(name, ".html") {
			for _, bad := range []string{" style=", "onclick", "onload", "<style", "<script>"} {
				if strings.Contains(body, bad) {
					t.Errorf("%s has inline %q", name, bad)
				}
			}
		}
		return err
	})
	if err != nil || files < 14 {
		t.Fatalf("%d files, %v", files, err)
	}
}

func TestFilesAreRevalidated(t *testing.T) {
	s := serve(t, nil)
	_, header, body := raw(t, s, plainGet("/js/app.js", "localhost"))
	if header.Get("Content-Type") != "text/javascript; charset=utf-8" || len(body) < 100 {
		t.Errorf("%s, %d bytes", header.Get("Content-Type"), len(body))
	}
	code, _, body := raw(
		t,
		s,
		plainGet("/js/app.js", "localhost", "If-None-Match: "+header.Get("ETag")),
	)
	if code != http.StatusNotModified || body != "" {
		t.Errorf("code %d and %d bytes, want 304 and none", code, len(body))
	}
}

// A client that sends its header drop by drop is cut off.
func TestSlowHeadersAreCutOff(t *testing.T) {
	s, err := prepare(Config{HTTP: HTTP{Listen: "127.0.0.1:0"}, Classes: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	s.http.ReadHeaderTimeout = 50 * time.Millisecond
	go s.serve()
	defer s.Close()
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: loc"); err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Errorf("the connection stayed open: %v", err)
	}
}
