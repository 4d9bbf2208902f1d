package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"
)

type watchCmd struct {
	URL       string        `name:"url" default:"http://127.0.0.1:8090" help:"Address of the page of a running pipeline."`
	TokenFile string        `type:"existingfile" placeholder:"FILE" help:"Access token, where the page asks for one."`
	CAFile    string        `type:"existingfile" placeholder:"FILE" help:"Certificates to trust for https, besides the system's."`
	Filter    string        `placeholder:"TEXT" help:"Only communities with TEXT in their names."`
	Flagged   bool          `help:"Only communities with a flag."`
	Sort      string        `default:"name" enum:"name,members,share,width,coverage,certificate,flags,updated" help:"name, members, share, width, coverage, certificate, flags or updated."`
	Reverse   bool          `help:"Largest first."`
	Class     string        `placeholder:"NAME" help:"The class whose share is shown. [the first]"`
	Method    string        `placeholder:"NAME" help:"The method that is shown. [the first configured]"`
	Every     time.Duration `default:"1s" help:"Time between two looks."`
	Count     int           `placeholder:"N" help:"End after N looks; 0 goes on until q or Ctrl-C."`
}

// Help is the long help of the command.
func (*watchCmd) Help() string {
	return `Shows the communities of a running gqlstream run or demo in the terminal: share of one class with its
interval, trend, members, time since the last estimate, and flags. It reads the HTTP API of the page, so
it works as soon as run does. When run restarts it goes on by itself.

Keys: q or Ctrl-C ends; s sorts by the next column, r turns the order round, f shows flagged communities
only, c the next class; arrows, Page Up and Page Down scroll. Where standard output is no terminal, every
new estimate is a line.

Examples:
  gqlstream watch
  gqlstream watch --flagged --sort width --reverse
  gqlstream watch --url http://127.0.0.1:8090 --filter berlin --count 1`
}

const (
	watchEveryMin   = 100 * time.Millisecond
	watchPaintEvery = 250 * time.Millisecond // so soon a new size of the window shows
	watchTrend      = 24
)

// watch is one run of the command. The loop that runs it owns it.
type watch struct {
	cmd    watchCmd
	client *watchClient
	con    console
	seen   map[string]uint64 // position of the estimate printed, by community

	frame  watchFrame
	looked int
}

// Run watches until it is told to stop.
func (c *watchCmd) Run(ctx context.Context, con console) error {
	if c.Every < watchEveryMin {
		return usagef("watch: --every %v is less than %v", c.Every, watchEveryMin)
	}
	client, err := newWatchClient(c)
	if err != nil {
		return err
	}
	w := &watch{cmd: *c, client: client, con: con, seen: map[string]uint64{}}
	w.frame = watchFrame{url: client.base, sort: c.Sort, reverse: c.Reverse, flagged: c.Flagged}
	if err := w.look(ctx); err != nil { // later a page that is away is waited for
		return fmt.Errorf("watch: %w", err)
	}
	if w.frame.class, err = classIndex(w.frame.info.Classes, c.Class); err != nil {
		return err
	}
	if w.frame.class > 0 {
		if err := w.look(ctx); err != nil {
			return fmt.Errorf("watch: %w", err)
		}
	}
	w.looked = 1
	if _, _, terminal := terminalSize(con.Out); terminal {
		return w.onTerminal(ctx)
	}
	return w.asLines(ctx)
}

func classIndex(names []string, name string) (int, error) {
	if name == "" {
		return 0, nil
	}
	if i := slices.Index(names, name); i >= 0 {
		return i, nil
	}
	return 0, usagef("watch: there is no class %q; there are %s", name, strings.Join(names, ", "))
}

// look reads the pipeline once more. After an error the frame is as it was.
func (w *watch) look(ctx context.Context) error {
	q := watchQuery{
		filter: w.cmd.Filter, method: w.cmd.Method, sort: w.frame.sort, reverse: w.frame.reverse,
		class: w.frame.class, flagged: w.frame.flagged,
	}
	seen, err := w.client.look(ctx, q)
	if err == nil {
		w.frame.watchData = seen
		w.frame.class = min(w.frame.class, max(len(seen.info.Classes)-1, 0)) // of another pipeline, perhaps
	}
	w.frame.problem = err
	return err
}

// asLines prints what is new after every look.
func (w *watch) asLines(ctx context.Context) error {
	ticker := time.NewTicker(w.cmd.Every)
	defer ticker.Stop()
	away := false
	for {
		if err := w.printNew(); err != nil {
			return err
		}
		if w.cmd.Count > 0 && w.looked >= w.cmd.Count {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		err := w.look(ctx)
		if (err != nil) != away && ctx.Err() == nil {
			if away = err != nil; away {
				fmt.Fprintf(w.con.Err, "watch: %v; trying again\n", err)
			} else {
				fmt.Fprintln(w.con.Err, "watch: connected again")
			}
		}
		w.looked++
	}
}

func (w *watch) printNew() error {
	var b strings.Builder
	for _, row := range w.frame.rows {
		if w.seen[row.Name] == row.Estimate.Position {
			continue
		}
		w.seen[row.Name] = row.Estimate.Position
		b.WriteString(row.text(w.frame.class, w.frame.className()) + "\n")
	}
	_, err := io.WriteString(w.con.Out, b.String())
	return err
}

// onTerminal takes the whole screen, and gives it back whatever happens.
func (w *watch) onTerminal(ctx context.Context) error {
	keys := make(chan string, 16)
	if in, ok := w.con.In.(*os.File); ok && term.IsTerminal(int(in.Fd())) {
		before, err := term.MakeRaw(int(in.Fd()))
		if err != nil {
			return fmt.Errorf("watch: %w", err)
		}
		defer term.Restore(int(in.Fd()), before) //nolint:errcheck // nothing else can be done
		go readKeys(in, keys)                    // it waits for a key until the process ends
	}
	fmt.Fprint(w.con.Out, enterScreen)
	defer fmt.Fprint(w.con.Out, leaveScreen)
	looks, paints := time.NewTicker(w.cmd.Every), time.NewTicker(watchPaintEvery)
	defer looks.Stop()
	defer paints.Stop()
	p := colours
	if os.Getenv("NO_COLOR") != "" {
		p = palette{}
	}
	for w.cmd.Count == 0 || w.looked <= w.cmd.Count {
		width, height, _ := terminalSize(w.con.Out)
		if err := paintScreen(w.con.Out, w.frame.lines(width, height, time.Now(), p)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case key := <-keys:
			if w.frame.press(key, height) {
				return nil
			}
			w.look(ctx) //nolint:errcheck // shown in the frame
		case <-looks.C:
			w.look(ctx) //nolint:errcheck // shown in the frame
			w.looked++
		case <-paints.C:
		}
	}
	return nil
}

// readKeys sends what is typed, a key at a time: a sequence of the terminal comes
// in one read.
func readKeys(in io.Reader, keys chan<- string) {
	var b [32]byte
	for {
		n, err := in.Read(b[:])
		if n > 0 {
			select {
			case keys <- string(b[:n]):
			default: // more than anybody types while a page is being read
			}
		}
		if err != nil {
			return
		}
	}
}

// press does what a key says, and reports whether it says to end.
func (f *watchFrame) press(key string, height int) (end bool) {
	page := max(1, height-watchLinesAround)
	switch key {
	case "q", "Q", "\x03", "\x04":
		return true
	case "s":
		f.sort = watchSorts[(slices.Index(watchSorts, f.sort)+1)%len(watchSorts)]
	case "r":
		f.reverse = !f.reverse
	case "f":
		f.flagged, f.top = !f.flagged, 0
	case "c":
		f.class = (f.class + 1) % max(1, len(f.info.Classes))
	case "\x1b[A", "k":
		f.top--
	case "\x1b[B", "j":
		f.top++
	case "\x1b[5~":
		f.top -= page
	case "\x1b[6~", " ":
		f.top += page
	}
	f.top = max(0, min(f.top, len(f.rows)-page))
	return false
}

var errNoToken = errors.New("the page asks for a token; give it with --token-file")
