package alerts

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gqlstream/quant/difference"
)

// State is the state of an alert.
type State string

// The states of an alert, and the transition that ends one.
const (
	Inactive State = "inactive"
	Pending  State = "pending" // the condition holds, but not yet for Rule.For
	Firing   State = "firing"
	Resolved State = "resolved" // only of a transition: firing has ended
)

// Transition is the beginning or the end of a firing alert. Followers deliver its JSON form. A
// replay gives the same bytes.
type Transition struct {
	ID string `json:"id"` // of this transition, for receivers to drop repeats
	// of pipeline, rule, community and class: the same at beginning and end
	Alert     string `json:"alert"`
	Pipeline  string `json:"pipeline,omitempty"`
	Rule      string `json:"rule"`
	Community string `json:"community"`
	Class     string `json:"class"`
	Method    string `json:"method,omitempty"`
	State     State  `json:"state"` // firing or resolved
	Position  uint64 `json:"position"`
	Time      string `json:"time,omitempty"`  // log time, RFC 3339
	Since     string `json:"since,omitempty"` // when it began to fire
	Reason    string `json:"reason"`          // why it began or ended
	// the share, its interval and its change, and the reason
	Text   string            `json:"text"`
	End    End               `json:"end,omitempty"` // of resolved: why
	Point  float64           `json:"point"`         // the newest estimate
	Low    float64           `json:"low"`
	High   float64           `json:"high"`
	Moved  float64           `json:"moved"`                 // how far the share moved
	From   string            `json:"moved_since,omitempty"` // since this log time, RFC 3339
	Labels map[string]string `json:"labels,omitempty"`
}

// End says why a firing alert ended.
type End string

// The ends of an alert.
const (
	EndBack End = "back" // the condition holds no longer
	// the movement is older than the rule looks back; the share has not gone back
	EndWindow   End = "window-passed"
	EndNoData   End = "no-data" // with no_data: ok
	EndSilenced End = "silenced"
	EndRule     End = "rule-changed" // no rule is about it any more
)

// Alert is one that is pending or firing.
type Alert struct {
	Transition        // into firing, as it was told; of a pending alert, its present figures
	Now        string `json:"now"` // the share, its interval and its change as they stand

	Acknowledged *Quieting `json:"acknowledged,omitempty"` // somebody sees to it
}

// alert is one rule on one class of one community.
type alert struct {
	Community string   `json:"community"`
	Class     int      `json:"class"`
	State     State    `json:"state"`
	Since     int64    `json:"since"`  // of the state
	Method    string   `json:"method"` // of the estimates
	Detector  detector `json:"detector"`
	Due       int64    `json:"due"` // when to evaluate it by time alone; dueNever
	Reason    string   `json:"reason,omitempty"`
	// of firing: the total where the movement began, and when
	Base sample      `json:"base,omitzero"`
	Last *Transition `json:"last,omitempty"` // the newest beginning or end
	Rule string      `json:"rule"`
	// why no rule is about it; it goes with the next evaluation
	Gone string `json:"gone,omitempty"`

	quiet *Quieting // that is in force; set before each step

	rule *Rule // nil: Gone
	at   int   // of the rule among the rules
}

const dueNever = math.MaxInt64

// goneAfter is how long the engine keeps an inactive alert of a community without data that the
// rule does not name. Without this bound, alerts of deleted communities would fill alertsMax.
const goneAfter = 7 * 24 * time.Hour

// forgottenAt returns the time when the engine deletes the alert.
func (a *alert) forgottenAt() int64 {
	switch {
	case a.rule == nil:
		return 0
	case a.State != Inactive || a.Detector.Standing != standingNone ||
		slices.Contains(a.rule.Communities, a.Community):
		return dueNever
	}
	return a.Detector.At + int64(goneAfter)
}

// step evaluates the alert and returns the state that it enters, or "".
func (a *alert) step(t *tail, often float64, fresh bool, now int64) State {
	if a.rule == nil {
		if a.State == Firing {
			return Resolved
		}
		return ""
	}
	r := a.rule
	if r.Every > 0 {
		if fresh = now >= a.Due; !fresh {
			return ""
		}
	}
	entered := a.enter(a.Detector.evaluate(r, t, often, a.State == Firing, fresh, now), now)
	a.Due = a.due(now)
	return entered
}

// enter moves the alert to the state that follows a verdict. While nothing is known, a pending
// alert stays pending: Rule.For counts the time since the condition began to hold unless it was
// seen not to.
func (a *alert) enter(v verdict, now int64) State {
	if v == verdictMissing {
		v = map[NoData]verdict{
			noDataKeep: verdictUnknown, noDataAlert: verdictYes, noDataOK: verdictNo,
		}[a.rule.NoData]
	}
	if v == verdictYes && a.State == Inactive {
		a.State, a.Since = Pending, now
	}
	switch {
	case v == verdictYes && a.State == Pending && now-a.Since >= int64(a.rule.For):
		a.State, a.Since = Firing, now
		return Firing
	case v == verdictNo && a.State == Pending:
		a.State, a.Since = Inactive, now
	case v == verdictNo && a.State == Firing:
		return Resolved
	}
	return ""
}

// due returns when the alert must be evaluated even if no estimate comes.
func (a *alert) due(now int64) int64 {
	r, due := a.rule, int64(dueNever)
	if r.Every > 0 {
		return (now/int64(r.Every) + 1) * int64(r.Every)
	}
	if at := a.Since + int64(r.For); a.State == Pending && at > now {
		due = min(due, at)
	}
	if r.NoDataAfter > 0 && a.Detector.Standing == standingGood &&
		now-a.Detector.At < int64(r.NoDataAfter) {
		due = min(due, a.Detector.At+int64(r.NoDataAfter))
	}
	if r.When.Quantity == Change {
		due = min(due, a.Detector.changesAt(r, now))
	}
	return due
}

// transition describes the alert as it enters a state.
func (a *alert) transition(c *Config, t *tail, often float64, state State, m Moment) Transition {
	class := c.Classes[a.Class]
	s := a.story(t, often, state, m.Time)
	out := Transition{
		ID: identity(c.Pipeline, a.Rule, a.Community, class,
			strconv.FormatUint(m.Position, 10)),
		Alert:     identity(c.Pipeline, a.Rule, a.Community, class),
		Pipeline:  c.Pipeline,
		Rule:      a.Rule,
		Community: a.Community,
		Class:     class,
		Method:    a.Method,
		State:     state,
		Position:  m.Position,
		Time:      TimeText(m.Time),
		Since:     TimeText(a.Since),
		Reason:    s.reason,
		Text:      s.text(c.Display, a.Community, class),
		End:       s.end,
		Point:     a.Detector.Point,
		Low:       a.Detector.Low,
		High:      a.Detector.High,
		Moved:     s.moved,
		From:      TimeText(s.from),
	}
	if a.rule != nil {
		out.Labels = a.rule.Labels
	}
	return out
}

// identity returns a name of 32 hexadecimal digits for the fields.
func identity(fields ...string) string {
	var text []byte
	for _, f := range fields {
		text = append(strconv.AppendInt(text, int64(len(f)), 10), ' ')
		text = append(text, f...)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// TimeText is a log time as estimates write it; none is empty.
func TimeText(t int64) string {
	if t == 0 {
		return ""
	}
	return time.Unix(0, t).UTC().Format(time.RFC3339Nano)
}

// about reports whether the rule is about a community. A difference is meant by its name alone.
func (r *Rule) about(community string) bool {
	if difference.Is(community) {
		return slices.Contains(r.Communities, community)
	}
	return r.Communities.Match(community)
}

// literals are the communities that the rule names without a wildcard.
func (r *Rule) literals() []string {
	return slices.DeleteFunc(slices.Clone(r.Communities),
		func(name string) bool { return strings.ContainsAny(name, `*?\`) })
}
