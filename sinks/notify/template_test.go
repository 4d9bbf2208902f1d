package notify

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gqlstream/internal/testfile"
)

// The bodies for Slack and Teams must be valid JSON of their formats, whatever the name of
// a community; other templates are filled in as written.
func TestTemplatesWriteBodies(t *testing.T) {
	sample := sampleAlert(time.Unix(1_700_000_000, 0))
	sample.Community = `a "b" \ <c>` + "\n"
	sample.Text = "trial of " + sample.Community + " is 50.0 %; this is a trial"
	for text, want := range map[string]string{
		"slack": `🔔 *gqlstream-trial* firing: trial of a "b" \ <c>` + "\n" +
			` is 50.0 %; this is a trial`,
		"teams": `trial of a "b" \ <c>` + "\n" + ` is 50.0 %; this is a trial`,
		`{"n": {{json .Community}}, "p": {{.Point}}}`: `a "b" \ <c>`,
	} {
		b, err := parseTemplate(text)
		if err != nil {
			t.Fatal(err)
		}
		body, err := execute(b, &sample, "https://page.example/")
		var decoded any
		if err != nil || json.Unmarshal(body, &decoded) != nil {
			t.Fatalf("%s: %s, %v", text, body, err)
		}
		if found := false; !contains(decoded, want, &found) {
			t.Errorf("%s: no %q in %s", text, want, body)
		}
		if found := false; strings.HasPrefix(text, "s") &&
			!contains(decoded, "https://page.example/#/c/a%20%22b%22", &found) {
			t.Errorf("%s: no link in %s", text, body)
		}
	}
	plain, err := parseTemplate("{{.Rule}} {{.State}}")
	if err != nil {
		t.Fatal(err)
	}
	if body, err := execute(plain, &sample, ""); string(body) != "gqlstream-trial firing" ||
		err != nil {
		t.Errorf("%q, %v", body, err)
	}
	for text, want := range map[string]string{
		"{{.Nothing}}": "Nothing", "{{": "unclosed",
		`{"text": "{{.Community}}"}`: "write {{json .Community}}",
	} {
		if _, err := parseTemplate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
		c := Config{Webhooks: []Webhook{{Name: "a", URL: "https://example.org", Template: text}}}
		if err := c.Validate(); err == nil ||
			!strings.Contains(err.Error(), "notify.webhooks[0].template") {
			t.Errorf("%s is configured: %v", text, err)
		}
	}
}

// A template that could take all time or memory is refused before it is tried, also where it writes
// nothing; loops over labels, variables and conditions are not.
func TestTemplatesCannotEatTimeOrMemory(t *testing.T) {
	sample := sampleAlert(time.Unix(0, 0))
	growing := `{{$x := "a"}}` +
		strings.Repeat(`{{with $y := print $x $x $x $x}}{{$x = $y}}{{end}}`, 20)
	for text, want := range map[string]string{
		"{{range 3000000000}}{{end}}":                                "a loop goes over .Labels",
		"{{range .Position}}{{end}}":                                 "a loop goes over .Labels",
		"{{$n := 3000000000}}{{if true}}{{range $n}}{{end}}{{end}}":  "a loop goes over .Labels",
		"{{range .Labels}}{{range $.Labels}}{{end}}{{end}}":          "a loop goes over .Labels",
		`{{$x := "a"}}{{range .Labels}}{{$x = print $x $x}}{{end}}`:  "may not change a variable",
		`{{define "a"}}{{template "a"}}{{end}}{{template "a"}}`:      "templates within templates",
		`{{block "a" .}}{{template "a" .}}{{template "a" .}}{{end}}`: "templates within templates",
		`{{printf "%999999d%999999d" 1 1}}`:                          "at most three digits",
		`{{printf "%*d" 1000000 1}}`:                                 "at most three digits",
		growing:                                                      "64 KiB",
	} {
		if _, err := parseTemplate(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %q", text, err, want)
		}
	}
	body, err := parseTemplate(
		`{{range $k, $v := .Labels}}{{$k}}={{html $v}} {{end}}{{with .Class}}{{printf "%-9s" ` +
			`.}}{{end}}`,
	)
	if err != nil {
		t.Fatal(err)
	}
	sample.Labels = map[string]string{"team": "<a>"}
	if text, err := execute(body, &sample, ""); err != nil ||
		!strings.HasPrefix(string(text), "team=&lt;a&gt; ") {
		t.Errorf("%q, %v", text, err)
	}
}

// contains reports whether a text is in a value of JSON.
func contains(value any, text string, found *bool) bool {
	switch value := value.(type) {
	case string:
		*found = *found || strings.Contains(value, text)
	case []any:
		for _, v := range value {
			contains(v, text, found)
		}
	case map[string]any:
		for _, v := range value {
			contains(v, text, found)
		}
	}
	return *found
}

// A trial reaches each target once, signed and as its template says, and tells how each
// took it.
func TestTrialReachesEveryTargetOnce(t *testing.T) {
	got := map[string]string{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got[r.URL.Path] += r.Header.Get(headerSignature) + string(body)
		if r.URL.Path == "/refuses" {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	defer s.Close()
	key := filepath.Join(t.TempDir(), "key")
	testfile.Write(t, key, strings.Repeat("k", 32))
	outcomes, err := Trial(t.Context(), Config{
		Webhooks: []Webhook{
			{
				Name:       "slack",
				URL:        s.URL + "/slack",
				Template:   "slack",
				SecretFile: key,
				Rules:      []string{"none"},
			},
			{Name: "refuses", URL: s.URL + "/refuses"},
			{Name: "away", URL: "http://127.0.0.1:1/"},
			{Name: "unreadable", URL: s.URL, SecretFile: key + "x"},
		},
		Alertmanagers: []Alertmanager{{Name: "am", URL: s.URL, Rules: []string{"none"}}},
	})
	if err != nil || len(outcomes) != 5 {
		t.Fatal(outcomes, err)
	}
	for i, want := range []string{"", "418", "connection refused", "secret", ""} {
		o := outcomes[i]
		if (o.Err == nil) != (want == "") ||
			o.Err != nil && !strings.Contains(o.Err.Error(), want) {
			t.Errorf("%s: %v, want %q", o.Name, o.Err, want)
		}
	}
	if !strings.HasPrefix(got["/slack"], "v1,") ||
		!strings.Contains(got["/slack"], `{"text": "🔔 *gqlstream-trial*`) ||
		!strings.Contains(got["/api/v2/alerts"], `"alertname":"gqlstream-trial"`) ||
		!strings.Contains(got["/refuses"], `"id":"trial-`) {
		t.Errorf("got %q", got)
	}
}
