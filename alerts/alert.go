package alerts

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gqlstream/difference"
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

// Transition is the beginning or the end of a firing alert. Its JSON form is what
// is delivered, and holds nothing that a replay would not give again.
type Transition struct {
	ID        string            `json:"id"`    // of this transition, for receivers to drop repeats
	Alert     string            `json:"alert"` // of pipeline, rule, community and class: the same at beginning and end
	Pipeline  string            `json:"pipeline,omitempty"`
	Rule      string            `json:"rule"`
	Community string            `json:"community"`
	Class     string            `json:"class"`
	Method    string            `json:"method,omitempty"`
	State     State             `json:"state"` // firing or resolved
	Position  uint64            `json:"position"`
	Time      string            `json:"time,omitempty"`  // log time, RFC 3339
	Since     string            `json:"since,omitempty"` // when it began to fire
	Reason    string            `json:"reason"`
	Point     float64           `json:"point"` // the newest estimate
	Low       float64           `json:"low"`
	High      float64           `json:"high"`
	Labels    map[string]string `json:"labels,omitempty"`
}

// Alert is one that is pending or firing.
type Alert struct {
	Transition        // into firing; of a pending alert, its present figures
	Now        string `json:"now"` // the condition as it stands
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
	FiredAt   uint64   `json:"fired_at,omitempty"` // position
	Rule      string   `json:"rule"`
	Gone      string   `json:"gone,omitempty"` // why no rule is about it; it goes with the next evaluation

	rule *Rule // nil: Gone
	at   int   // of the rule among the rules
}

const dueNever = math.MaxInt64

// goneAfter is how long an alert in which nothing is under way is kept when its community has no data and is
// not named by the rule. Without an end those of communities that are gone would leave no room for new ones.
const goneAfter = 7 * 24 * time.Hour

// forgottenAt returns the time from which on the alert is forgotten.
func (a *alert) forgottenAt() int64 {
	switch {
	case a.rule == nil:
		return 0
	case a.State != Inactive || a.Detector.Standing != standingNone || slices.Contains(a.rule.Communities, a.Community):
		return dueNever
	}
	return a.Detector.At + int64(goneAfter)
}

// step evaluates the alert and returns the state that it enters, or "".
func (a *alert) step(fresh bool, now int64) State {
	if a.rule == nil {
		if a.State == Firing {
			a.Reason = a.Gone
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
	entered := a.enter(a.Detector.evaluate(r, a.State == Firing, fresh, now), now)
	a.Due = a.due(now)
	return entered
}

// enter moves the alert to the state that follows a verdict.
func (a *alert) enter(v verdict, now int64) State {
	missing := v == verdictMissing
	if missing {
		v = map[NoData]verdict{noDataKeep: verdictUnknown, noDataAlert: verdictYes, noDataOK: verdictNo}[a.rule.NoData]
	}
	if v == verdictYes && a.State == Inactive {
		a.State, a.Since = Pending, now
	}
	switch {
	case v == verdictYes && a.State == Pending && now-a.Since >= int64(a.rule.For):
		a.State, a.Since, a.Reason = Firing, now, a.reason(missing, now)
		return Firing
	case v != verdictYes && a.State == Pending:
		a.State, a.Since = Inactive, now
	case v == verdictNo && a.State == Firing:
		a.Reason = a.reason(missing, now)
		return Resolved
	}
	return ""
}

// due returns the time at which the alert must be evaluated although no estimate comes.
func (a *alert) due(now int64) int64 {
	r, due := a.rule, int64(dueNever)
	if r.Every > 0 {
		return (now/int64(r.Every) + 1) * int64(r.Every)
	}
	if a.State == Pending {
		due = min(due, a.Since+int64(r.For))
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

// reason returns the figures that explain the state of the alert.
func (a *alert) reason(missing bool, now int64) string {
	r, d := a.rule, &a.Detector
	if missing && d.Standing == standingGood {
		return "no estimate for " + r.NoDataAfter.String()
	}
	if missing {
		return "no data"
	}
	x, known := d.value(r, now)
	if !known {
		return "not known yet"
	}
	if r.When.Quantity == CUSUM {
		return fmt.Sprintf("cusum up %s, down %s; threshold %s, recovers at %s",
			short(d.Up), short(d.Down), short(r.Threshold), short(r.recovery()))
	}
	text := fmt.Sprintf("%s %s; %s", r.When.Quantity, short(x), r.When)
	if r.When.Quantity == Change {
		text += " in " + r.Over.String()
	}
	return text + ", recovers at " + short(r.recovery())
}

// short is a number with four digits.
func short(x float64) string { return strconv.FormatFloat(x, 'g', 4, 64) }

// transition describes the alert as it enters a state.
func (a *alert) transition(c *Config, state State, position uint64, now int64) Transition {
	class := c.Classes[a.Class]
	t := Transition{
		ID: identity(
			c.Pipeline,
			a.Rule,
			a.Community,
			class,
			strconv.FormatUint(position, 10),
		),
		Alert:    identity(c.Pipeline, a.Rule, a.Community, class),
		Pipeline: c.Pipeline, Rule: a.Rule, Community: a.Community, Class: class, Method: a.Method, State: state,
		Position: position, Time: TimeText(now), Since: TimeText(a.Since), Reason: a.Reason,
		Point: a.Detector.Point, Low: a.Detector.Low, High: a.Detector.High,
	}
	if a.rule != nil {
		t.Labels = a.rule.Labels
	}
	return t
}

// identity names what fields describe in 32 hexadecimal digits.
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
	return slices.DeleteFunc(
		slices.Clone(r.Communities),
		func(name string) bool { return strings.ContainsAny(name, `*?\`) },
	)
}
