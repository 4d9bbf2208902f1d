package main

import (
	"fmt"
	"io"
	"math"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// watchSorts are the orders that the key s goes through.
var watchSorts = []string{"name", "members", "share", "width", "flags", "updated"}

// Shape of the table, in characters and lines.
const (
	watchNameMin     = 9 // "community"
	watchNameMax     = 32
	watchFigures     = 9 + 7 + 15 + 6 + 4 // members, share, interval, age, gaps
	watchLinesAround = 6                  // title, status, blank, heads, blank, keys
	watchSpanMin     = 0.05               // a trend of less than this is drawn flat
)

// watchFrame is one picture: what the last look has found and how to show it.
type watchFrame struct {
	watchData
	url              string
	problem          error // of the last look
	sort             string
	reverse, flagged bool
	class, top       int
}

func (f *watchFrame) className() string {
	if f.class < len(f.info.Classes) {
		return harmless(f.info.Classes[f.class])
	}
	return ""
}

// lines lays the frame out; there are at most height of them, none wider than width.
func (f *watchFrame) lines(width, height int, now time.Time, p palette) []string {
	name := watchNameMin
	for _, r := range f.rows {
		name = max(name, min(utf8.RuneCountInString(r.Name), watchNameMax))
	}
	trend := max(0, min(watchTrend, width-name-watchFigures-12)) // and some room for flags
	lines := []string{f.title(width, p), f.state(width, p), "", f.heads(name, trend, width, p)}
	room := max(1, height-watchLinesAround)
	for _, r := range f.rows[min(f.top, len(f.rows)):min(f.top+room, len(f.rows))] {
		lines = append(lines, r.line(f, name, trend, width, now, p))
	}
	for len(lines) < height-2 {
		lines = append(lines, "")
	}
	more := ""
	if len(f.rows) > room {
		more = fmt.Sprintf("%d to %d of %s  ", f.top+1, min(f.top+room, len(f.rows)), grouped(f.matched))
	}
	keys := "q ends  s sorts  r reverses  f flagged only  c next class  arrows scroll"
	lines = append(lines, "", p.dim+cut(more+keys, width)+p.reset)
	return lines[:min(len(lines), max(height, 1))]
}

func (f *watchFrame) title(width int, p palette) string {
	pipeline := ""
	if f.info.Pipeline != "" {
		pipeline = "  " + harmless(f.info.Pipeline)
	}
	rest := cut(pipeline+"  "+f.url, max(0, width-len("gqlstream watch")))
	return p.bold + "gqlstream watch" + p.reset + rest
}

// status says how the pipeline does, or why that is not known.
func (f *watchFrame) state(width int, p palette) string {
	if f.problem != nil {
		return p.alarm + cut("trying again: "+f.problem.Error(), width) + p.reset
	}
	rate := 0.0
	for _, r := range f.status.Rates {
		rate += r
	}
	text := fmt.Sprintf("%s, position %s, %s behind, %s events a second, %s communities, by %s",
		harmless(f.status.State), grouped(int(f.status.Position)), grouped(int(f.status.Lag)),
		grouped(int(rate)), grouped(f.total), f.sort)
	if f.reverse {
		text += ", largest first"
	}
	if f.flagged {
		text += ", flagged only"
	}
	return p.dim + cut(text, width) + p.reset
}

func (f *watchFrame) heads(name, trend, width int, p palette) string {
	class := cut(f.className(), 7)
	if len(class) == 1 && class >= "0" && class <= "9" { // a digit says nothing over figures
		class = "class " + class
	}
	text := fmt.Sprintf("%-*s%9s %7s %-15s", name, "community", "members", class, "interval")
	if trend > 0 {
		text += fmt.Sprintf("%-*s ", trend, "trend")
	}
	return p.dim + cut(text+fmt.Sprintf("%6s  %s", "age", "flags"), width) + p.reset
}

// line renders one community.
func (r *watchRow) line(f *watchFrame, name, trend, width int, now time.Time, p palette) string {
	e := &r.Estimate
	title := fmt.Sprintf("%-*s", name, cut(harmless(r.Name), name))
	age := ageText(now.Sub(r.Updated))
	if e.Suppressed || f.class >= len(e.Prevalence) {
		return p.dim + cut(title+"  suppressed: fewer members than privacy.min_members", width) + p.reset
	}
	interval := ""
	if f.class < len(e.Low) && f.class < len(e.High) {
		interval = fmt.Sprintf("[%.3f %.3f]", e.Low[f.class], e.High[f.class])
	}
	text := title + fmt.Sprintf("%9s %s%7.3f%s %-15s", grouped(int(e.Members)), p.ours, e.Prevalence[f.class], p.reset, interval)
	if trend > 0 {
		drawn := sparkline(scaled(r.Trend[max(0, len(r.Trend)-trend):]))
		text += p.ours + drawn + p.reset + strings.Repeat(" ", trend+1-utf8.RuneCountInString(drawn))
	}
	used := name + 34 + trend + min(trend, 1) + 8
	flags := cut(harmless(strings.Join(e.Flags, " ")), max(0, width-used))
	return text + fmt.Sprintf("%6s  ", age) + p.alarm + flags + p.reset
}

// scaled stretches shares over the height of a line, so that what moves is seen.
func scaled(shares []float64) []float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, x := range shares {
		low, high = min(low, x), max(high, x)
	}
	span := max(high-low, watchSpanMin)
	from := (low+high)/2 - span/2
	out := make([]float64, len(shares))
	for i, x := range shares {
		out[i] = (x - from) / span
	}
	return out
}

func ageText(age time.Duration) string {
	switch age = max(age, 0); {
	case age < time.Minute:
		return fmt.Sprintf("%ds", int(age.Seconds()))
	case age < time.Hour:
		return fmt.Sprintf("%dm", int(age.Minutes()))
	case age < 48*time.Hour:
		return fmt.Sprintf("%dh", int(age.Hours()))
	}
	return fmt.Sprintf("%dd", int(age.Hours()/24))
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

// harmless replaces what could steer a terminal: names come from outside.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
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

// paintScreen writes lines over the whole terminal.
func paintScreen(w io.Writer, lines []string) error {
	var b strings.Builder
	b.WriteString(homeCursor)
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(line + clearLine)
	}
	b.WriteString(clearBelow)
	_, err := io.WriteString(w, b.String())
	return err
}
