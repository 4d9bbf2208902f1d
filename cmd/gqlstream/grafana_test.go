package main

import (
	"encoding/csv"
	"encoding/json"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// board is as much of a Grafana dashboard as is checked here.
type board struct {
	Inputs []struct {
		Name     string `json:"name"`
		Type     string `json:"type"`
		PluginID string `json:"pluginId"`
	} `json:"__inputs"`
	Requires []struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	} `json:"__requires"`
	Templating struct {
		List []struct {
			Name  string `json:"name"`
			Type  string `json:"type"`
			Query any    `json:"query"`
		} `json:"list"`
	} `json:"templating"`
	Panels []struct {
		ID   int    `json:"id"`
		Type string `json:"type"`
	} `json:"panels"`
}

// A board must be importable anywhere: it asks for its data source, names no other one, and
// says which panels it needs. The variable of the same name serves where a board is
// provisioned, for then nobody is asked.
func TestBoardsAskForTheirDataSource(t *testing.T) {
	for path, plugin := range map[string]string{
		"dashboards/gqlstream.json": "prometheus",
		"gqlstream-api.json":        "yesoreyeram-infinity-datasource",
	} {
		text := fromRoot(t, "examples", "grafana", filepath.FromSlash(path))
		var b board
		if err := json.Unmarshal([]byte(text), &b); err != nil {
			t.Fatal(path, err)
		}
		if len(b.Inputs) != 1 || b.Inputs[0].Type != "datasource" ||
			b.Inputs[0].PluginID != plugin {
			t.Fatalf("%s asks for %+v", path, b.Inputs)
		}
		reference := "${" + b.Inputs[0].Name + "}"
		for _, uid := range regexp.MustCompile(`"type":\s*"`+plugin+
			`",\s*"uid":\s*"([^"]*)"`).FindAllStringSubmatch(text, -1) {
			if uid[1] != reference {
				t.Errorf("%s: data source %s, want %s", path, uid[1], reference)
			}
		}
		if v := b.Templating.List[0]; v.Name != b.Inputs[0].Name || v.Type != "datasource" ||
			v.Query != plugin {
			t.Errorf("%s: the first variable is %+v", path, v)
		}
		needs, ids := map[string]bool{}, map[int]bool{}
		for _, r := range b.Requires {
			needs[r.Type+" "+r.ID] = true
		}
		for _, p := range b.Panels {
			if !needs["panel "+p.Type] || ids[p.ID] {
				t.Errorf(
					"%s: panel %d of type %s is not required, or its number is used twice", path,
					p.ID, p.Type,
				)
			}
			ids[p.ID] = true
		}
		if !needs["datasource "+plugin] || !needs["grafana grafana"] {
			t.Errorf("%s requires %v", path, needs)
		}
	}
}

// infinityQuery is a query of the Infinity data source.
type infinityQuery struct {
	Type, Source, Parser, Format, URL string
	Columns                           []struct{ Selector, Type string }
}

// queriesIn returns every query in a part of a dashboard.
func queriesIn(t *testing.T, part any) (found []infinityQuery) {
	t.Helper()
	switch v := part.(type) {
	case []any:
		for _, item := range v {
			found = append(found, queriesIn(t, item)...)
		}
	case map[string]any:
		if url, ok := v["url"].(string); ok && url != "" {
			text, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			var q infinityQuery
			if err := json.Unmarshal(text, &q); err != nil {
				t.Fatal(err)
			}
			return []infinityQuery{q}
		}
		for _, item := range v {
			found = append(found, queriesIn(t, item)...)
		}
	}
	return found
}

// Every query of the board for the API must be answered by a page, with the columns that it
// selects and values of their types.
func TestPageAnswersTheBoard(t *testing.T) {
	page := watchedPage(t, "127.0.0.1:0", 1, "berlin", "nord süd")
	var whole any
	if err := json.Unmarshal([]byte(fromRoot(t, "examples", "grafana", "gqlstream-api.json")),
		&whole); err != nil {
		t.Fatal(err)
	}
	queries := queriesIn(t, whole)
	if len(queries) != 4 {
		t.Fatalf("%d queries", len(queries))
	}
	here := strings.NewReplacer(
		"${community:percentencode}", "nord%20s%C3%BCd", "${__from:date:iso}",
		"2026-03-01T11:00:00.000Z", "${__to:date:iso}", "2026-03-01T13:00:00.000Z",
	)
	for _, q := range queries {
		if q.Type != "csv" || q.Source != "url" || q.Parser != "backend" {
			t.Errorf("query %+v", q)
		}
		reply, err := http.Get(strings.TrimSuffix(page.URL(), "/") + here.Replace(q.URL))
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(reply.Body)
		reply.Body.Close()
		if err != nil || reply.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s %s", q.URL, reply.Status, body)
		}
		rows, err := csv.NewReader(strings.NewReader(string(body))).ReadAll()
		if err != nil || len(rows) < 3 {
			t.Fatalf("%s: %v, rows %v", q.URL, err, rows)
		}
		for _, c := range q.Columns {
			at := slices.Index(rows[0], c.Selector)
			if at < 0 {
				t.Errorf("%s has no column %s: %v", q.URL, c.Selector, rows[0])
				continue
			}
			_, number := json.Number(rows[1][at]).Float64()
			_, timestamp := time.Parse(time.RFC3339, rows[1][at])
			if c.Type == "number" && number != nil || c.Type == "timestamp" && timestamp != nil ||
				rows[1][at] == "" {
				t.Errorf("%s: %s %q is no %s", q.URL, c.Selector, rows[1][at], c.Type)
			}
		}
	}
}
