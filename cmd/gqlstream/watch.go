package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"syscall"
	"time"

	"gqlstream/config"
)

type watchCmd struct {
	URL        string        `name:"url" default:"http://127.0.0.1:8090" help:"Address of the page of a running pipeline."`
	TokenFile  string        `type:"existingfile" placeholder:"FILE" help:"Access token, where the page asks for one."`
	Difference []string      `placeholder:"A,B" sep:"none" help:"Also by how much A exceeds B, with the error of the difference (repeatable)."`
	Filter     string        `placeholder:"TEXT" help:"Only communities with TEXT in their names."`
	Flagged    bool          `help:"Only communities with a flag."`
	Sort       string        `default:"name" enum:"name,members,share,width,coverage,certificate,flags,updated" help:"name, members, share, width, coverage, certificate, flags or updated."`
	Reverse    bool          `help:"Largest first."`
	Class      string        `placeholder:"NAME" help:"The class whose share is shown. [the first]"`
	Method     string        `placeholder:"NAME" help:"The method that is shown. [the first configured]"`
	Every      time.Duration `default:"1s" help:"Time between two looks."`
	Count      int           `placeholder:"N" help:"End after N looks; 0 goes on until Ctrl-C."`
}

func (*watchCmd) Help() string {
	return `Shows the communities of a running gqlstream run or demo in the terminal: share of one class with its
interval, members, time since the last estimate, and flags. It reads the HTTP API of the page, so
it works as soon as run does. When run restarts it goes on by itself. As many communities are shown as the
terminal has lines; --filter, --sort and --flagged choose them. Where standard output is no terminal,
every new estimate is a line.

Examples:
  gqlstream watch
  gqlstream watch --flagged --sort width --reverse
  gqlstream watch --difference berlin,everyone --filter berlin --count 1`
}

const (
	watchEveryMin = 100 * time.Millisecond
	watchNameMax  = 32 // characters of a name in the table
)

// watch is one run of the command. Its loop owns it.
type watch struct {
	watchData
	cmd     watchCmd
	client  *watchClient
	con     console
	class   int
	problem error             // of the last look
	seen    map[string]uint64 // position of the estimate printed, by community
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
	w := &watch{cmd: *c, client: client, con: con, seen: map[string]uint64{}}
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
	if w.total > 0 && w.problem == nil {
		w.problem = w.refused // of communities that there are not, perhaps
	}
	if w.problem != nil { // later a page that is away is waited for, and a difference
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

// follow shows one look after the other. Elsewhere than on a terminal it says when the page
// goes away and comes back.
func (w *watch) follow(ctx context.Context) error {
	_, _, terminal := terminalSize(w.con.Out)
	if w.total == 0 {
		fmt.Fprintln(w.con.Err, "watch: no estimates yet; publish edges, labels, predictions and members")
	}
	looked := 0
	return showUntil(ctx, w.con.Out, w.cmd.Every, w.cmd.Every, nil, func() (picture, bool) {
		if looked > 0 {
			was := w.problem
			w.look(ctx)
			switch {
			case terminal || ctx.Err() != nil || (was == nil) == (w.problem == nil):
			case w.problem != nil:
				fmt.Fprintf(w.con.Err, "watch: %v; trying again\n", w.problem)
			default:
				fmt.Fprintln(w.con.Err, "watch: connected again")
			}
		}
		looked++
		return w, w.cmd.Count == 0 || looked < w.cmd.Count
	})
}

// report prints the estimates that are new.
func (w *watch) report(out io.Writer) error {
	for _, row := range w.rows {
		if w.seen[row.Name] == row.Estimate.Position || row.refused != nil {
			continue
		}
		w.seen[row.Name] = row.Estimate.Position
		if _, err := fmt.Fprintln(out, row.text(w.class, w.className())); err != nil {
			return err
		}
	}
	return nil
}

func (w *watch) className() string {
	if w.class < len(w.info.Classes) {
		return harmless(w.info.Classes[w.class])
	}
	return ""
}

// lines lays a look out.
func (w *watch) lines() []string {
	lines := []string{"gqlstream watch  " + harmless(w.info.Pipeline) + "  " + w.client.base, w.state(), ""}
	return append(lines, tabled(func(table io.Writer) {
		fmt.Fprintf(table, "community\tmembers\tshare of %s\tinterval\tage\tflags\n", w.className())
		for i := range w.rows {
			fmt.Fprintln(table, w.rows[i].cells(w.class, time.Now()))
		}
	})...)
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

// cells is the row of one community in the table.
func (r *watchRow) cells(class int, now time.Time) string {
	e, name := &r.Estimate, cut(harmless(r.Name), watchNameMax)
	if r.refused != nil {
		return name + "\t" + r.refused.Error()
	}
	if e.Suppressed || class >= len(e.Prevalence) {
		return name + "\tsuppressed: fewer members than privacy.min_members"
	}
	interval := ""
	if class < len(e.Low) && class < len(e.High) {
		interval = fmt.Sprintf("[%.3f %.3f]", e.Low[class], e.High[class])
	}
	age := max(now.Sub(r.Updated), 0).Truncate(time.Second)
	return fmt.Sprintf("%s\t%s\t%.3f\t%s\t%v\t%s", name, grouped(int(e.Members)), e.Prevalence[class], interval, age,
		harmless(strings.Join(e.Flags, " ")))
}

// text is one community as a line for what is not a terminal.
func (r *watchRow) text(class int, className string) string {
	e := &r.Estimate
	line := fmt.Sprintf("%s %s", e.Time, harmless(r.Name))
	if e.Suppressed || class >= len(e.Prevalence) {
		return line + " suppressed"
	}
	line += fmt.Sprintf(" %s %.4f", className, e.Prevalence[class])
	if class < len(e.Low) && class < len(e.High) {
		line += fmt.Sprintf(" [%.4f %.4f]", e.Low[class], e.High[class])
	}
	line += fmt.Sprintf(" members %.0f", e.Members)
	if len(e.Flags) > 0 {
		line += " flags " + harmless(strings.Join(e.Flags, ","))
	}
	return line
}
