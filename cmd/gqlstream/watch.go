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
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"gqlstream/pipeline/config"
	"gqlstream/quant"
)

type watchCmd struct {
	URL string `name:"url" aliases:"http" default:"http://127.0.0.1:8090" help:"${watch_url}"`

	TokenFile string        `type:"existingfile" placeholder:"FILE" help:"${watch_token_file}"`
	Filter    string        `placeholder:"TEXT" help:"Only communities with TEXT in their names."`
	Flagged   bool          `help:"Only communities with a flag."`
	Sort      string        `default:"name" enum:"${sorts}" help:"${watch_sort}"`
	Reverse   bool          `help:"Largest first."`
	Class     string        `placeholder:"NAME" help:"The displayed class. [the first]"`
	Method    string        `placeholder:"NAME" help:"The displayed method. [the first configured]"`
	Every     time.Duration `default:"1s" help:"Time between two readings."`
	Count     int           `placeholder:"N" help:"End after N readings; 0 runs until Ctrl-C."`
}

func (*watchCmd) Help() string {
	return `Shows the communities of a running gqlstream run or demo, by the HTTP API of its page.
A terminal shows as many as fit: choose them with --filter, --sort and --flagged. Without a
terminal all are printed. The change since the record before has two parts, each with its standard
error: moved (members, predictions, edges) and revised (a better knowledge of the classifier).

Examples:
  gqlstream watch
  gqlstream watch --flagged --sort width --reverse
  gqlstream watch --filter berlin --count 1`
}

const (
	watchEveryMin = 100 * time.Millisecond
	watchWaitMax  = 5 * time.Second // for one answer
	watchBytesMax = 64 << 20        // of one answer
	watchRowsMax  = 1000            // on a terminal; elsewhere all are printed
)

// watch is one run of the command. Its loop owns it.
type watch struct {
	watchCmd
	watchData
	base    string // address of the page
	token   string
	wait    time.Duration // for one answer; 0: watchWaitMax
	con     console
	problem error // of the last look
}

// watchData is one reading of the page.
type watchData struct {
	info struct {
		Pipeline string   `json:"pipeline"`
		Classes  []string `json:"classes"`
	}
	status struct {
		State    string `json:"state"`
		Position uint64 `json:"position"`
		Lag      uint64 `json:"lag"`
	}
	class int // that is shown
	list  struct {
		Total       int        `json:"total"`
		Communities []watchRow `json:"communities"`
	}
}

// watchRow is one community.
type watchRow struct {
	Name     string         `json:"name"`
	Updated  time.Time      `json:"updated"`
	Estimate quant.Estimate `json:"estimate"`
}

// Run watches until it is told to stop.
func (c *watchCmd) Run(ctx context.Context, con console) error {
	if c.Every < watchEveryMin {
		return config.Usagef("watch: --every %v is less than %v", c.Every, watchEveryMin)
	}
	at, err := url.Parse(c.URL)
	if err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
		return config.Usagef(
			"watch: --url %q: want the address of a page, such as http://127.0.0.1:8090",
			c.URL)
	}
	w := &watch{watchCmd: *c, base: strings.TrimRight(at.String(), "/"), con: con}
	if password, given := at.User.Password(); given { // a token, which is not for the screen
		at.User, w.token = nil, password
		w.base = strings.TrimRight(at.String(), "/")
	}
	if c.TokenFile != "" {
		token, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return config.Usage(err)
		}
		w.token = strings.TrimSpace(string(token))
	}
	awaitStart(ctx, con.Err, "a page at "+w.base, func() bool { // run opens its page last
		w.refresh(ctx)
		return errors.Is(w.problem, syscall.ECONNREFUSED)
	})
	if w.problem != nil { // later a page that is away is waited for
		return fmt.Errorf("watch: %w", w.problem)
	}
	if w.list.Total == 0 {
		fmt.Fprintln(con.Err,
			"watch: no estimates yet; publish edges, labels, predictions and members")
	}
	looked := 0
	return showUntil(ctx, con.Out, c.Every, c.Every, nil, func() ([]string, bool) {
		if looked > 0 {
			w.refresh(ctx)
		}
		looked++
		return w.lines(), c.Count == 0 || looked < c.Count
	})
}

// refresh reads the pipeline once more. After a problem the rows are those of before.
func (w *watch) refresh(ctx context.Context) {
	var seen watchData
	if seen, w.problem = w.ask(ctx); w.problem == nil {
		w.watchData = seen
	}
}

// ask requests the pipeline's info, status and communities.
func (w *watch) ask(ctx context.Context) (seen watchData, err error) {
	if err := w.get(ctx, "/api/v1/info", nil, &seen.info); err != nil {
		return seen, err
	}
	if seen.class = slices.Index(seen.info.Classes, w.Class); seen.class < 0 && w.Class != "" {
		return seen, config.Usagef("class %q is not one of %s",
			w.Class, strings.Join(seen.info.Classes, ", "))
	}
	seen.class = max(seen.class, 0)
	if err := w.get(ctx, "/api/v1/status", nil, &seen.status); err != nil {
		return seen, err
	}
	query := url.Values{
		"sort":   {w.Sort},
		"limit":  {"all"},
		"class":  {strconv.Itoa(seen.class)},
		"q":      {w.Filter},
		"method": {w.Method},
	}
	if _, _, terminal := terminalSize(w.con.Out); terminal {
		query.Set("limit", strconv.Itoa(watchRowsMax))
	}
	if w.Reverse {
		query.Set("order", "desc")
	}
	if w.Flagged {
		query.Set("flag", "any")
	}
	return seen, w.get(ctx, "/api/v1/communities", query, &seen.list)
}

// lines lays a look out.
func (w *watch) lines() []string {
	class, now := "", time.Now()
	if w.class < len(w.info.Classes) {
		class = w.info.Classes[w.class]
	}
	var rows []communityRow
	for _, r := range w.list.Communities {
		e := &r.Estimate
		rows = append(rows, communityRow{
			name: r.Name, members: int(e.Members), estimate: e, class: w.class,
			further: fmt.Sprintf("%s\t%s\t%v\t%s", changeCell(e.Moved, e.SEChange, w.class),
				changeCell(e.Revised, e.SERevised, w.class),
				max(now.Sub(r.Updated), 0).Truncate(time.Second),
				harmless(strings.Join(e.Flags, " "))),
		})
	}
	lines := []string{
		"gqlstream watch  " + harmless(w.info.Pipeline) + "  " + w.base,
		w.state(),
		"",
	}
	return append(lines, communityTable(class, "moved\trevised\tage\tflags", rows)...)
}

// changeCell writes a part of the change of a class since the record before, with its standard
// error. It is empty for a first record.
func changeCell(part, errors []float64, class int) string {
	if class >= min(len(part), len(errors)) {
		return ""
	}
	return fmt.Sprintf("%+.3f ±%.3f", part[class], errors[class])
}

// state says how the pipeline does, or why that is not known.
func (w *watch) state() string {
	if w.problem != nil {
		return "trying again: " + w.problem.Error()
	}
	return fmt.Sprintf("%s, position %s, %s behind, %s communities, by %s",
		harmless(w.status.State), grouped(int(w.status.Position)), grouped(int(w.status.Lag)),
		grouped(w.list.Total), w.Sort)
}

// get reads one answer of the API.
func (w *watch) get(ctx context.Context, path string, query url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(w.wait, watchWaitMax))
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, w.base+path+"?"+query.Encode(),
		nil)
	if err != nil {
		return err
	}
	if w.token != "" {
		request.Header.Set("Authorization", "Bearer "+w.token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("no page at %s, start gqlstream run or name its address with --url: %w",
			w.base, err)
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
		return fmt.Errorf("%s answers %s to %s: %.200s",
			w.base, response.Status, path, harmless(strings.TrimSpace(string(body))))
	}
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%s is not the page of a gqlstream: %w", w.base, err)
	}
	return nil
}
