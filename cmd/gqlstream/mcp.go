package main

import (
	"context"
	"encoding/json"
	"io"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"gqlstream/pipeline/config"
)

type mcpCmd struct {
	URL       string `name:"url" default:"http://127.0.0.1:8090" help:"Address of the page."`
	TokenFile string `type:"existingfile" placeholder:"FILE" help:"Access token of the page."`
}

func (*mcpCmd) Help() string {
	return `Answers questions of a language model about a running pipeline, by the Model Context
Protocol on standard input and output. The tools read the HTTP API of the page and change nothing:
list, latest, history, explain, compare and ask.

Examples:
  gqlstream mcp
  gqlstream mcp --url https://gql.example --token-file token`
}

// mcpWaitMax bounds one answer: an explanation reads the log.
const mcpWaitMax = 2 * time.Minute

// Run serves until standard input ends.
func (c *mcpCmd) Run(ctx context.Context, con console) error {
	server, err := c.server()
	if err != nil {
		return err
	}
	transport := &mcp.IOTransport{Reader: io.NopCloser(con.In), Writer: noClose{con.Out}}
	return server.Run(ctx, transport)
}

// noClose leaves standard output open.
type noClose struct{ io.Writer }

func (noClose) Close() error { return nil }

// server returns a server with the tools.
func (c *mcpCmd) server() (*mcp.Server, error) {
	at, err := url.Parse(c.URL)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, config.Usagef(
			"mcp: --url %q: want the address of a page, such as http://127.0.0.1:8090", c.URL,
		)
	}
	page := &watch{base: strings.TrimRight(at.String(), "/"), wait: mcpWaitMax}
	if c.TokenFile != "" {
		token, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return nil, config.Usage(err)
		}
		page.token = strings.TrimSpace(string(token))
	}
	server := mcp.NewServer(&mcp.Implementation{
		Name: "gqlstream", Title: "Opinions of communities in a changing graph", Version: version,
	}, &mcp.ServerOptions{Instructions: mcpInstructions})
	addTools(server, page)
	return server, nil
}

const mcpInstructions = `Estimates of which share of each community belongs to each class, with
intervals. Shares are from 0 to 1, by class in the order of "classes" of the tool list. Always give
the interval (low to high) with a share. Look at the flags: the severity "wrong" means that the
number may be wrong. Only the part "moved" of a change is news; the part "revised" is a better
knowledge of the classifier. Call latest first: its headline says whether the estimates are live.
For people, use the names in "display" of the tool list; tools take the names of the log.`

// addTools adds one tool for each question. Each reads the API and changes nothing.
func addTools(server *mcp.Server, page *watch) {
	addTool(server, page, "list",
		"List the communities with their newest shares, the meaning of flags, and whether "+
			"the estimates are live.",
		func(a listArgs) []apiCall {
			query := url.Values{}
			setAll(query, "q", a.Search, "sort", a.Sort, "flag", a.Flag, "class", a.Class)
			query.Set("limit", strconv.Itoa(min(max(a.Limit, 1), mcpRowsMax)))
			if a.Limit == 0 {
				query.Set("limit", strconv.Itoa(mcpRowsDefault))
			}
			if a.Descending {
				query.Set("order", "desc")
			}
			return []apiCall{
				{"info", "/api/v1/info", nil},
				{"status", "/api/v1/status", nil},
				{"list", "/api/v1/communities", query},
			}
		})
	addTool(server, page, "latest",
		"The newest estimate of one community by each method, and how live it is.",
		func(a communityArgs) []apiCall {
			return []apiCall{
				{"status", "/api/v1/status", nil}, {"community", a.path(""), nil},
			}
		})
	addTool(server, page, "history",
		"The history of one community: records, or roll-ups of long spans.",
		func(a historyArgs) []apiCall {
			query := url.Values{}
			setAll(query, "method", a.Method, "from", a.From, "to", a.To)
			query.Set("points", strconv.Itoa(mcpPoints))
			return []apiCall{{"history", a.path("/history"), query}}
		})
	addTool(server, page, "explain",
		"Why an estimate moved between two positions or times, cause by cause.",
		func(a explainArgs) []apiCall {
			query := url.Values{}
			setAll(query, "method", a.Method, "from", a.From, "to", a.To)
			return []apiCall{{"explanation", a.path("/explain"), query}}
		})
	addTool(server, page, "compare",
		"By how much a community exceeds another one, or itself at an earlier time, with the "+
			"error of the difference.",
		func(a compareArgs) []apiCall {
			query := url.Values{}
			setAll(query, "other", a.Other, "at", a.At, "method", a.Method)
			return []apiCall{{"difference", a.path("/difference"), query}}
		})
	addTool(server, page, "ask",
		"Which members to label by hand, and by how much that narrows the interval.",
		func(a askArgs) []apiCall {
			query := url.Values{}
			if a.Count > 0 {
				query.Set("count", strconv.Itoa(a.Count))
			}
			return []apiCall{{"draw", a.path("/ask"), query}}
		})
}

const (
	mcpRowsDefault = 50
	mcpRowsMax     = 500
	mcpPoints      = 200
)

type listArgs struct {
	Search string `json:"search,omitempty" jsonschema:"a part of their names"`

	Sort string `json:"sort,omitempty" jsonschema:"name share width members movement flags updated"`

	Descending bool   `json:"descending,omitempty" jsonschema:"largest first"`
	Flag       string `json:"flag,omitempty" jsonschema:"only communities with this flag, or any"`
	Class      string `json:"class,omitempty" jsonschema:"number of the class to sort by, from 0"`
	Limit      int    `json:"limit,omitempty" jsonschema:"default 50, at most 500"`
}

type communityArgs struct {
	Community string `json:"community" jsonschema:"name of the community, as list has it"`
}

// path returns the path of a question about the community.
func (a communityArgs) path(question string) string {
	return "/api/v1/communities/" + url.PathEscape(a.Community) + question
}

type historyArgs struct {
	communityArgs
	Method string `json:"method,omitempty" jsonschema:"by default the main method"`
	From   string `json:"from,omitempty" jsonschema:"log time, RFC 3339"`
	To     string `json:"to,omitempty" jsonschema:"log time, RFC 3339"`
}

type explainArgs struct {
	communityArgs
	Method string `json:"method,omitempty" jsonschema:"by default the main method"`
	From   string `json:"from" jsonschema:"position in the log, or log time in RFC 3339"`
	To     string `json:"to" jsonschema:"position in the log, or log time in RFC 3339"`
}

type compareArgs struct {
	communityArgs
	Other  string `json:"other,omitempty" jsonschema:"community; default everyone, or none with at"`
	At     string `json:"at,omitempty" jsonschema:"log time, RFC 3339"`
	Method string `json:"method,omitempty" jsonschema:"by default the main method"`
}

type askArgs struct {
	communityArgs
	Count int `json:"count,omitempty" jsonschema:"number of members to label; default 50"`
}

// setAll sets the parameters that are not empty, from pairs of a name and a value.
func setAll(query url.Values, pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
}

// apiCall is one question to the API. Its answer stands under the name.
type apiCall struct {
	name, path string
	query      url.Values
}

// addTool adds a tool that answers with the API's response.
func addTool[A any](
	server *mcp.Server, page *watch, name, description string, calls func(A) []apiCall,
) {
	closed := false
	tool := &mcp.Tool{
		Name: name, Description: description,
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: &closed},
	}
	mcp.AddTool(server, tool, func(
		ctx context.Context, _ *mcp.CallToolRequest, args A,
	) (*mcp.CallToolResult, any, error) {
		answer := map[string]json.RawMessage{}
		for _, call := range calls(args) {
			var value json.RawMessage
			if err := page.get(ctx, call.path, call.query, &value); err != nil {
				return nil, nil, err // the model reads it and can mend its question
			}
			answer[call.name] = value
		}
		return nil, answer, nil
	})
}
