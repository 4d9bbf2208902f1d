package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"gqlstream/config"
	"gqlstream/quant"
)

const (
	watchWaitMax  = 5 * time.Second // for one answer
	watchBytesMax = 64 << 20        // of one answer
	watchRowsMax  = 1000            // the most that the API gives at once
)

// watchClient reads the API of a page.
type watchClient struct {
	base  string
	token string
	http  *http.Client
}

func newWatchClient(c *watchCmd) (*watchClient, error) {
	at, err := url.Parse(c.URL)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return nil, config.Usagef("watch: --url %q: want the address of a page, such as http://127.0.0.1:8090", c.URL)
	}
	w := &watchClient{base: strings.TrimRight(at.String(), "/"), http: &http.Client{Timeout: watchWaitMax}}
	if c.TokenFile != "" {
		token, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return nil, config.Usage(err)
		}
		w.token = strings.TrimSpace(string(token))
	}
	return w, nil
}

// watchData is the answer of the page to one look.
type watchData struct {
	info struct {
		Pipeline string   `json:"pipeline"`
		Classes  []string `json:"classes"`
	}
	status struct {
		State    string             `json:"state"`
		Message  string             `json:"message"`
		Position uint64             `json:"position"`
		Lag      uint64             `json:"lag"`
		Rates    map[string]float64 `json:"rates"`
	}
	rows    []watchRow
	total   int   // communities there are
	matched int   // that are looked for; of them rows holds the first
	refused error // why there is no difference of two communities that is asked for
}

// watchRow is one community.
type watchRow struct {
	Name     string         `json:"name"`
	Updated  time.Time      `json:"updated"`
	Estimate quant.Estimate `json:"estimate"`
	refused  error          // why there is no estimate: of a difference
}

// look asks for what the pipeline is, how it does, and its communities: all, or as many as
// the API gives at once.
func (w *watchClient) look(ctx context.Context, c *watchCmd, class int, all bool) (d watchData, err error) {
	if err := w.get(ctx, "/api/v1/info", nil, &d.info); err != nil {
		return d, err
	}
	if err := w.get(ctx, "/api/v1/status", nil, &d.status); err != nil {
		return d, err
	}
	query := url.Values{
		"sort": {c.Sort}, "limit": {strconv.Itoa(watchRowsMax)}, "order": {"asc"},
		"class": {strconv.Itoa(min(class, len(d.info.Classes)-1))},
	}
	set := func(key, value string, given bool) {
		if given {
			query.Set(key, value)
		}
	}
	set("order", "desc", c.Reverse)
	set("q", c.Filter, c.Filter != "")
	set("method", c.Method, c.Method != "")
	set("flag", "any", c.Flagged)
	for _, pair := range c.Difference {
		a, b, _ := strings.Cut(pair, ",")
		a, b = strings.TrimSpace(a), strings.TrimSpace(b)
		query, row := url.Values{"other": {b}, "method": {c.Method}}, watchRow{Updated: time.Now(), Name: "difference(" + a + ", " + b + ")"}
		row.refused = w.get(ctx, "/api/v1/communities/"+url.PathEscape(a)+"/difference", query, &row) // what is no refusal, the list meets as well
		d.refused = cmp.Or(d.refused, row.refused)
		d.rows = append(d.rows, row)
	}
	for {
		var list struct {
			Total       int        `json:"total"`
			Matched     int        `json:"matched"`
			Communities []watchRow `json:"communities"`
		}
		query.Set("offset", strconv.Itoa(len(d.rows)-len(c.Difference)))
		if err := w.get(ctx, "/api/v1/communities", query, &list); err != nil {
			return d, err
		}
		d.rows, d.total, d.matched = append(d.rows, list.Communities...), list.Total, list.Matched
		if !all || len(d.rows)-len(c.Difference) >= d.matched || len(list.Communities) == 0 {
			return d, nil
		}
	}
}

// get reads one answer of the API.
func (w *watchClient) get(ctx context.Context, path string, query url.Values, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+path+"?"+query.Encode(), nil)
	if err != nil {
		return err
	}
	if w.token != "" {
		request.Header.Set("Authorization", "Bearer "+w.token)
	}
	response, err := w.http.Do(request)
	if err != nil {
		return fmt.Errorf("no page at %s, start gqlstream run or name its address with --url: %w", w.base, err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, watchBytesMax))
	if err != nil {
		return fmt.Errorf("%s: %w", w.base, err)
	}
	switch {
	case response.StatusCode == http.StatusUnauthorized:
		return errors.New("the page asks for a token; give it with --token-file")
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("%s answers %s to %s: %.200s", w.base, response.Status, path, harmless(strings.TrimSpace(string(body))))
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s is not the page of a gqlstream: %w", w.base, err)
	}
	return nil
}
