package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// connectMCP connects a client to the tools over a page.
func connectMCP(t *testing.T, page http.Handler) *mcp.ClientSession {
	t.Helper()
	backend := httptest.NewServer(page)
	t.Cleanup(backend.Close)
	server, err := (&mcpCmd{URL: backend.URL}).server()
	if err != nil {
		t.Fatal(err)
	}
	here, there := mcp.NewInMemoryTransports()
	ctx, cancel := context.WithCancel(t.Context())
	session, err := server.Connect(ctx, there, nil)
	if err != nil {
		t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	asked, err := client.Connect(ctx, here, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = asked.Close()
		_ = session.Close()
		cancel()
	})
	return asked
}

// A client must be able to list the tools. Each tool is read-only and calls the part of the
// API that its name says.
func TestMCPToolsAskTheAPI(t *testing.T) {
	var asked []string
	client := connectMCP(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			t.Errorf("%s %s", r.Method, r.URL)
		}
		asked = append(asked, r.URL.EscapedPath()+"?"+r.URL.RawQuery)
		_, _ = w.Write([]byte(`{"path": "` + r.URL.Path + `"}`))
	}))
	tools, err := client.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, tool := range tools.Tools {
		names = append(names, tool.Name)
		if tool.Annotations == nil || !tool.Annotations.ReadOnlyHint {
			t.Errorf("%s is not said to change nothing", tool.Name)
		}
	}
	want := []string{"ask", "compare", "explain", "history", "latest", "list"}
	if slices.Sort(names); !slices.Equal(names, want) {
		t.Errorf("tools %v, want %v", names, want)
	}
	for _, c := range []struct {
		tool string
		args map[string]any
		want string // of the last question
	}{
		{
			"list",
			map[string]any{"search": "north", "limit": 3},
			"/api/v1/communities?limit=3&q=north",
		},
		{"latest", map[string]any{"community": "a/b"}, "/api/v1/communities/a%2Fb?"},
		{
			"history",
			map[string]any{"community": "x", "from": "2026-01-01T00:00:00Z"},
			"/api/v1/communities/x/history?from=2026-01-01T00%3A00%3A00Z&points=200",
		},
		{
			"explain",
			map[string]any{"community": "x", "from": "1", "to": "2"},
			"/api/v1/communities/x/explain?from=1&to=2",
		},
		{
			"compare",
			map[string]any{"community": "x", "other": "y"},
			"/api/v1/communities/x/difference?other=y",
		},
		{
			"ask",
			map[string]any{"community": "x", "count": 50},
			"/api/v1/communities/x/ask?count=50",
		},
	} {
		answer, err := client.CallTool(t.Context(),
			&mcp.CallToolParams{Name: c.tool, Arguments: c.args})
		if err != nil || answer.IsError {
			t.Errorf("%s: %v %v", c.tool, err, answer)
			continue
		}
		if got := asked[len(asked)-1]; got != c.want {
			t.Errorf("%s asks %s, want %s", c.tool, got, c.want)
		}
		if data, _ := json.Marshal(answer.StructuredContent); !strings.Contains(
			string(data),
			"path",
		) {
			t.Errorf("%s answers %s", c.tool, data)
		}
	}
}

// A mistake is told to the model, in the words of the API.
func TestMCPReportsMistakes(t *testing.T) {
	client := connectMCP(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error": "no such community"}`, http.StatusNotFound)
	}))
	answer, err := client.CallTool(t.Context(), &mcp.CallToolParams{
		Name: "latest", Arguments: map[string]any{"community": "nobody"},
	})
	if err != nil || !answer.IsError {
		t.Fatalf("answer %+v, error %v", answer, err)
	}
	if data, _ := json.Marshal(answer.Content); !strings.Contains(
		string(data),
		"no such community",
	) {
		t.Errorf("the model reads %s", data)
	}
}
