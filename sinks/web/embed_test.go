package web

import (
	"context"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A public community's chart needs no token and may be framed; everything else may not.
func TestEmbedShowsPublicCommunitiesOnly(t *testing.T) {
	s := serve(t, func(c *Config) {
		c.TokenFile, c.Public = tokenFile(t, testToken, 0o600), []string{"open town"}
	})
	write(t, s, estimate("open town", "auto", 1, 0.5), estimate("secret", "auto", 1, 0.5))
	for path, want := range map[string]int{
		"/embed/open%20town":                    200,
		"/embed/open%20town?class=1&theme=dark": 200,
		"/embed/open%20town?else=1":             400,
		"/embed/open%20town/data":               200,
		"/embed/secret":                         404,
		"/embed/secret/data":                    404,
		"/embed/nobody/data":                    404,
		"/embed.css":                            200,
		"/js/embed.js":                          200,
		"/js/app.js":                            401,
		"/api/v1/communities":                   401,
		"/api/v1/communities/open%20town":       401,
	} {
		code, h, body := raw(t, s, plainGet(path, "localhost",
			"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"))
		if code != want && !(want == 401 && code == 403) {
			t.Errorf("%s: code %d, want %d: %.200s", path, code, want, body)
		}
		framed := strings.Contains(h.Get("Content-Security-Policy"), "frame-ancestors *") &&
			h.Get("X-Frame-Options") == ""
		if embeds := strings.HasPrefix(path, "/embed") || path == "/js/embed.js"; framed != embeds {
			t.Errorf("%s: may be framed %v, want %v", path, framed, embeds)
		}
		if strings.Contains(body, "secret") && code == 200 {
			t.Errorf("%s speaks of a community that is not public: %s", path, body)
		}
	}
}

// The legend must have the interval in force: the bounds of a roll-up are the widest of its period.
// A class has its names for people and in the log.
func TestEmbedHasTheIntervalInForce(t *testing.T) {
	s := serve(t, func(c *Config) {
		c.Public, c.Classes = []string{"x"}, []string{"yes", "no"}
		c.Display.Classes = map[string]string{"yes": "in favour"}
	})
	wide, now := estimate("x", "auto", 1, 0.5), estimate("x", "auto", 2, 0.6)
	wide.Low, wide.High = []float64{0, 0}, []float64{1, 1}
	write(t, s, wide, now)
	got := into[embedded](t, s, "/embed/x/data")
	if !slices.Equal(got.Prevalence, now.Prevalence) || !slices.Equal(got.Low, now.Low) ||
		!slices.Equal(got.High, now.High) {
		t.Errorf("%v, %v to %v in force, want %+v", got.Prevalence, got.Low, got.High, now)
	}
	if !slices.Equal(got.Classes, []string{"in favour", "no"}) ||
		!slices.Equal(got.Labels, []string{"yes", "no"}) {
		t.Errorf("classes %q, labels %q", got.Classes, got.Labels)
	}
}

// Without a public community there is nothing to embed.
func TestNothingIsEmbeddedByDefault(t *testing.T) {
	s := serve(t, func(c *Config) { c.TokenFile = tokenFile(t, testToken, 0o600) })
	write(t, s, estimate("x", "auto", 1, 0.5))
	for _, path := range []string{"/embed/x/data", "/embed/x", "/embed.css", "/js/embed.js"} {
		if code, _, _ := raw(t, s, plainGet(path, "localhost")); code != 404 && code != 401 {
			t.Errorf("%s: code %d", path, code)
		}
	}
}

var imported = regexp.MustCompile(`from "\./([a-z]+\.js)"`)

// The files that an embedded chart loads, and the files that these import, must be open.
func TestEmbedLoadsOnlyOpenFiles(t *testing.T) {
	open := append([]string(nil), embedFiles...)
	for _, file := range open {
		body, err := os.ReadFile("static" + file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range imported.FindAllSubmatch(body, -1) {
			if !slices.Contains(open, "/js/"+string(m[1])) {
				t.Errorf("%s imports %s, which needs a token", file, m[1])
			}
		}
	}
}

// Labels are published where the configuration allows it, and never for another site.
func TestLabelsComeFromThePageAlone(t *testing.T) {
	var got string
	s := serve(t, func(c *Config) {
		c.Publish = func(_ context.Context, csv []byte) (int, error) {
			got = string(csv)
			if strings.Contains(got, "nobody") {
				return 0, refuse(422, "line 2 is wrong")
			}
			return strings.Count(got, "\n") - 1, nil
		}
	})
	post := func(body string, headers ...string) (int, string) {
		t.Helper()
		got = ""
		code, _, text := raw(t, s, "POST /api/v1/labels HTTP/1.1\r\nHost: localhost\r\n"+
			strings.Join(append(headers, "Connection: close"), "\r\n")+
			"\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
		return code, text
	}
	const body = "vertex,label\na,yes\n"
	if code, text := post(body, "Content-Type: text/csv; charset=utf-8"); code != 200 ||
		got != body {
		t.Errorf("code %d, %q published: %s", code, got, text)
	}
	if code, text := post("vertex,label\nnobody,x\n", "Content-Type: text/csv"); code != 422 {
		t.Errorf("a wrong row: code %d: %s", code, text)
	}
	for _, headers := range [][]string{
		{"Content-Type: text/plain"},
		{"Content-Type: text/csv", "Origin: https://elsewhere.example"},
		{"Content-Type: text/csv", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors"},
	} {
		if code, _ := post(body, headers...); code < 400 || got != "" {
			t.Errorf("%v: code %d, %q published", headers, code, got)
		}
	}
	if code, _, _ := get(t, s, "/api/v1/labels"); code != 405 {
		t.Errorf("GET: code %d", code)
	}
	s = serve(t, nil)
	if code, _ := post(body, "Content-Type: text/csv"); code != 403 {
		t.Errorf("where it is not allowed: code %d", code)
	}
}
