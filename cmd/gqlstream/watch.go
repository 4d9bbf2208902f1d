package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gqlstream/config"
	"gqlstream/quant"
)

type watchCmd struct {
	URL       string        `name:"url" default:"http://127.0.0.1:8090" help:"Address of the page of a running pipeline."`
	TokenFile string        `type:"existingfile" placeholder:"FILE" help:"Access token, where the page asks for one."`
	Filter    string        `placeholder:"TEXT" help:"Only communities with TEXT in their names."`
	Flagged   bool          `help:"Only communities with a flag."`
	Sort      string        `default:"name" enum:"name,members,share,width,coverage,certificate,flags,updated" help:"name, members, share, width, coverage, certificate, flags or updated."`
	Reverse   bool          `help:"Largest first."`
	Class     string        `placeholder:"NAME" help:"The class whose share is shown. [the first]"`
	Method    string        `placeholder:"NAME" help:"The method that is shown. [the first configured]"`
	Every     time.Duration `default:"1s" help:"Time between two looks."`
	Count     int           `placeholder:"N" help:"End after N looks; 0 goes on until Ctrl-C."`
}

func (*watchCmd) Help() string {
	return `Shows the communities of a running gqlstream run or demo in the terminal: share of one class with its
interval, members, time since the last estimate, and flags. It reads the HTTP API of the page, so
it works as soon as run does. When run restarts it goes on by itself. As many communities are shown as the
terminal has lines; --filter, --sort and --flagged choose them. Where standard output is no terminal, all
of them are printed at each look.

Examples:
  gqlstream watch
  gqlstream watch --flagged --sort width --reverse
  gqlstream watch --filter berlin --count 1`
}

const watchEveryMin = 100 * time.Millisecond

// watch is one run of the command. Its loop owns it.
type watch struct {
	watchData
	cmd     watchCmd
	client  *watchClient
	con     console
	class   int
	problem error // of the last look
}

// Run watches until it is told to stop.
func (c *watchCmd) Run(ctx context.Context, con console) error {
	if c.Every < watchEveryMin {
		return config.Usagef("watch: --every %v is less than %v", c.Every, watchEveryMin)
	}
	client, err := newWatchClient(c)
	if err != nil {
		return err
	}
	w := &watch{cmd: *c, client: client, con: con}
	awaitStart(ctx, con.Err, "a page at "+client.base, func() bool { // run opens its page last
		w.look(ctx)
		return errors.Is(w.problem, syscall.ECONNREFUSED)
	})
	if w.problem == nil && c.Class != "" {
		if w.class = slices.Index(w.info.Classes, c.Class); w.class < 0 {
			return config.Usagef("watch: there is no class %q; there are %s", c.Class, strings.Join(w.info.Classes, ", "))
		}
		w.look(ctx) // the order of the rows may depend on the class
	}
	if w.problem != nil { // later a page that is away is waited for
		return fmt.Errorf("watch: %w", w.problem)
	}
	return w.follow(ctx)
}

// look reads the pipeline once more. After a problem the rows are those of before.
func (w *watch) look(ctx context.Context) {
	_, _, terminal := terminalSize(w.con.Out)
	seen, err := w.client.look(ctx, &w.cmd, w.class, !terminal)
	if w.problem = err; err == nil {
		w.watchData = seen
		w.class = min(w.class, max(len(seen.info.Classes)-1, 0)) // of another pipeline, perhaps
	}
}

// follow shows one look after the other.
func (w *watch) follow(ctx context.Context) error {
	if w.total == 0 {
		fmt.Fprintln(w.con.Err, "watch: no estimates yet; publish edges, labels, predictions and members")
	}
	looked := 0
	return showUntil(ctx, w.con.Out, w.cmd.Every, w.cmd.Every, nil, func() ([]string, bool) {
		if looked > 0 {
			w.look(ctx)
		}
		looked++
		return w.lines(), w.cmd.Count == 0 || looked < w.cmd.Count
	})
}

// lines lays a look out.
func (w *watch) lines() []string {
	class, now := "", time.Now()
	if w.class < len(w.info.Classes) {
		class = w.info.Classes[w.class]
	}
	rows := make([]communityRow, len(w.rows))
	for i := range w.rows {
		r, e := &w.rows[i], &w.rows[i].Estimate
		rows[i] = communityRow{name: r.Name, members: int(e.Members), estimate: e, class: w.class, further: fmt.Sprintf("%v\t%s",
			max(now.Sub(r.Updated), 0).Truncate(time.Second), harmless(strings.Join(e.Flags, " ")))}
	}
	lines := []string{"gqlstream watch  " + harmless(w.info.Pipeline) + "  " + w.client.base, w.state(), ""}
	return append(lines, communityTable(class, "age\tflags", rows)...)
}

// state says how the pipeline does, or why that is not known.
func (w *watch) state() string {
	if w.problem != nil {
		return "trying again: " + w.problem.Error()
	}
	rate := 0.0
	for _, r := range w.status.Rates {
		rate += r
	}
	return fmt.Sprintf("%s, position %s, %s behind, %s events a second, %s communities, by %s",
		harmless(w.status.State), grouped(int(w.status.Position)), grouped(int(w.status.Lag)),
		grouped(int(rate)), grouped(w.total), w.cmd.Sort)
}

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
	total   int // communities there are
	matched int // that are looked for; of them rows holds the first
}

// watchRow is one community.
type watchRow struct {
	Name     string         `json:"name"`
	Updated  time.Time      `json:"updated"`
	Estimate quant.Estimate `json:"estimate"`
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
	for {
		var list struct {
			Total       int        `json:"total"`
			Matched     int        `json:"matched"`
			Communities []watchRow `json:"communities"`
		}
		query.Set("offset", strconv.Itoa(len(d.rows)))
		if err := w.get(ctx, "/api/v1/communities", query, &list); err != nil {
			return d, err
		}
		d.rows, d.total, d.matched = append(d.rows, list.Communities...), list.Total, list.Matched
		if !all || len(d.rows) >= d.matched || len(list.Communities) == 0 {
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
