package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"gqlstream/quant"
)

// Escape sequences of the terminal (ECMA-48, and the alternate screen of xterm).
const (
	enterScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J" // lines too long are cut, not wrapped
	leaveScreen = "\x1b[?7h\x1b[?25h\x1b[?1049l"
	homeCursor  = "\x1b[H"
	clearLine   = "\x1b[K"
	clearBelow  = "\x1b[J"
)

// terminalSize returns the size of the terminal that w is; ok is false when it is
// none.
func terminalSize(w io.Writer) (width, height int, ok bool) {
	file, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(file.Fd())) {
		return 0, 0, false
	}
	width, height, err := term.GetSize(int(file.Fd()))
	return width, height, err == nil
}

// harmless replaces control characters of a terminal: names come from outside.
func harmless(text string) string { return strings.Map(printed, text) }

func printed(r rune) rune {
	if !unicode.IsPrint(r) {
		return '?'
	}
	return r
}

// printer writes text of several lines and cells, harmless.
type printer struct{ io.Writer }

func (p printer) Write(text []byte) (int, error) {
	_, err := p.Writer.Write(bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return printed(r)
	}, text))
	return len(text), err
}

// newTable returns a writer for a table; tabs separate cells.
func newTable(w io.Writer) *tabwriter.Writer {
	return tabwriter.NewWriter(printer{w}, 0, 0, 2, ' ', 0)
}

// cut shortens plain text to a number of characters.
func cut(text string, most int) string {
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	if most < 1 {
		return ""
	}
	return string([]rune(text)[:most-1]) + "…"
}

// tabled returns the lines of a table; write separates cells by tabs.
func tabled(write func(table io.Writer)) []string {
	var text strings.Builder
	table := newTable(&text)
	write(table)
	_ = table.Flush() // to memory
	return strings.Split(strings.TrimRight(text.String(), "\n"), "\n")
}

// communityRow is a community on the terminal.
type communityRow struct {
	name     string
	members  int
	estimate *quant.Estimate // nil: there is none yet
	class    int             // class of the shown share
	further  string          // cells after the share and its interval
}

// nameMax bounds the characters of a name in a table of communities.
const nameMax = 32

// communityTable returns the lines of a table of communities; further are heads.
func communityTable(class, further string, rows []communityRow) []string {
	return tabled(func(table io.Writer) {
		fmt.Fprintf(table, "community\tmembers\tshare of %s\tinterval\t%s\n",
			harmless(class), further)
		for _, r := range rows {
			name := cut(harmless(r.name), nameMax)
			switch e := r.estimate; {
			case e == nil:
				fmt.Fprintf(table, "%s\t%s\twaiting\t\t%s\n", name, grouped(r.members), r.further)
			case e.Suppressed || r.class >= len(e.Prevalence):
				fmt.Fprintf(table, "%s\tsuppressed: fewer members than privacy.min_members\n", name)
			default:
				interval := ""
				if r.class < min(len(e.Low), len(e.High)) {
					interval = fmt.Sprintf("[%.3f %.3f]", e.Low[r.class], e.High[r.class])
				}
				fmt.Fprintf(table, "%s\t%s\t%.3f\t%s\t%s\n",
					name, grouped(r.members), e.Prevalence[r.class], interval, r.further)
			}
		}
	})
}

// fitted cuts lines to the size of a terminal, and says how many there are beyond it.
func fitted(lines []string, width, height int) []string {
	if more := len(lines) - height; more > 0 && height > 0 {
		lines = append(lines[:height-1:height-1], fmt.Sprintf("… and %s more", grouped(more+1)))
	}
	for i, line := range lines {
		lines[i] = cut(line, width)
	}
	return lines
}

// showUntil shows the results of next until next or ctx ends. It paints over the whole terminal
// and always restores it. Without a terminal it prints lines.
func showUntil(
	ctx context.Context, w io.Writer, onTerminal, elsewhere time.Duration, ended <-chan error,
	next func() (lines []string, more bool),
) error {
	every := elsewhere
	if _, _, terminal := terminalSize(w); terminal {
		every = onTerminal
		fmt.Fprint(w, enterScreen)
		defer fmt.Fprint(w, leaveScreen)
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		lines, more := next()
		text := strings.Join(lines, "\n") + "\n"
		if width, height, terminal := terminalSize(w); terminal {
			text = homeCursor + strings.Join(fitted(lines, width, height),
				clearLine+"\r\n") + clearLine + clearBelow
		}
		if _, err := io.WriteString(w, text); err != nil || !more {
			return err
		}
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// meterEvery is the time between two lines of a meter.
const meterEvery = 10 * time.Second

// meter says now and then how far a long task has come.
type meter struct {
	w     io.Writer
	what  string // is counted, "events" say; empty: nothing is said
	begun time.Time
	shown time.Time
	count int
}

func newMeter(w io.Writer, what string) *meter {
	now := time.Now()
	return &meter{w: w, what: what, begun: now, shown: now}
}

// add counts n more, and shows the count if it is time.
func (m *meter) add(n int) {
	m.count += n
	if now := time.Now(); now.Sub(m.shown) >= meterEvery && m.what != "" {
		m.shown = now
		m.show()
	}
}

// show prints the count so far, or the total at the end.
func (m *meter) show() {
	elapsed := time.Since(m.begun)
	fmt.Fprintf(m.w, "%s %s in %v, %s a second\n", grouped(m.count), m.what,
		elapsed.Round(10*time.Millisecond),
		grouped(int(float64(m.count)/max(elapsed.Seconds(), 1e-3))))
}

// grouped writes n with commas between the thousands.
func grouped(n int) string {
	digits := fmt.Sprint(n)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
