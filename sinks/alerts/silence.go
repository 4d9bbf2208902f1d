package alerts

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Quieting is a decision of somebody about alerts: to silence them until a time, or to take them
// on. It is a note in the log, so that every worker and every replay knows of it, and a chart shows
// it.
type Quieting struct {
	Rule      string `json:"rule"`      // a pattern
	Community string `json:"community"` // a pattern
	Class     string `json:"class"`     // a pattern
	Until     string `json:"until"`     // log time, RFC 3339
	By        string `json:"by"`
	Why       string `json:"why,omitempty"`
	// Acknowledge leaves the alerts firing, and names the person in charge.
	Acknowledge bool `json:"acknowledge,omitempty"`
}

// Words that begin a note with a decision.
const (
	silenceWord     = "silence "
	acknowledgeWord = "acknowledge "
)

// quietingsMax bounds the decisions in force; the oldest go first.
const quietingsMax = 1000

// Note is the text of the note that carries the decision.
func (q Quieting) Note() string {
	word := silenceWord
	if q.Acknowledge {
		word = acknowledgeWord
	}
	q.Acknowledge = false
	data, _ := PlainJSON(q) // plain fields cannot fail
	return word + string(data)
}

// ParseQuieting reads a note. ok is false for a note that is no decision.
func ParseQuieting(note string) (q Quieting, ok bool) {
	rest, silence := strings.CutPrefix(note, silenceWord)
	if !silence {
		if rest, ok = strings.CutPrefix(note, acknowledgeWord); !ok {
			return q, false
		}
	}
	if json.Unmarshal([]byte(rest), &q) != nil {
		return q, false
	}
	q.Acknowledge = !silence
	return q, q.Validate() == nil
}

// Validate reports missing or wrong fields.
func (q Quieting) Validate() error {
	if q.Rule == "" || q.Community == "" || q.Class == "" {
		return fmt.Errorf("rule, community and class: want a name or a pattern such as * for each")
	}
	if _, err := time.Parse(time.RFC3339Nano, q.Until); err != nil {
		return fmt.Errorf("until: %q: want a time such as 2026-11-27T18:00:00Z", q.Until)
	}
	if q.By == "" {
		return fmt.Errorf("by: want a name")
	}
	return nil
}

// until returns the log time when the decision ends.
func (q *Quieting) until() int64 {
	at, _ := time.Parse(time.RFC3339Nano, q.Until) // it was validated
	return at.UnixNano()
}

// about reports whether the decision is about an alert.
func (q *Quieting) about(a *alert, class string) bool {
	return Matches(q.Rule, a.Rule) && Matches(q.Community, a.Community) && Matches(q.Class, class)
}

// applyNote takes a note of the log. A decision replaces an earlier one of its kind about the same
// patterns; one that has already ended cancels it.
func (e *Engine) applyNote(text string, now int64) {
	q, ok := ParseQuieting(text)
	if !ok {
		return
	}
	over := func(old Quieting) bool {
		return old.until() <= now || old.Acknowledge == q.Acknowledge && old.Rule == q.Rule &&
			old.Community == q.Community && old.Class == q.Class
	}
	e.quietings = append(slices.DeleteFunc(e.quietings, over), q)
	e.quietings = e.quietings[max(0, len(e.quietings)-quietingsMax):]
	e.due = 0 // firing ones end now
}

// quieted returns the newest decision of a kind that is in force for an alert, or nil.
func (e *Engine) quieted(a *alert, acknowledged bool, now int64) *Quieting {
	for i := range slices.Backward(e.quietings) {
		q := &e.quietings[i]
		if q.Acknowledge == acknowledged && q.until() > now &&
			q.about(a, e.config.Classes[a.Class]) {
			return q
		}
	}
	return nil
}

// text gives the end of a silence, its author and the reason.
func (q *Quieting) text() string {
	text := "silenced until " + clock(q.until()) + " by " + q.By
	if q.Why != "" {
		text += ": " + q.Why
	}
	return text
}

// Quietings returns the decisions in force, oldest first.
func (e *Engine) Quietings() []Quieting { return slices.Clone(e.quietings) }
