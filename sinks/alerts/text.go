package alerts

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"gqlstream/quant/difference"
)

// story is all that texts say of an alert at one time.
type story struct {
	detector *detector
	shares   bool    // there is a share to tell
	moved    float64 // how far it moved
	from     int64   // since this log time; 0: nothing is said of a movement
	reason   string
	end      End
}

// begins returns the total where the movement of a firing alert began, and when.
func (a *alert) begins(now int64) sample {
	d := &a.Detector
	switch a.rule.When.Quantity {
	case Change:
		if moved, _, known := d.change(a.rule, now); known {
			return sample{Cell: now - int64(a.rule.Over), Total: d.Total - moved}
		}
	case CUSUM:
		if a.rule.When.Budgeted {
			return sample{Cell: d.Found.Since, Total: d.Found.From}
		}
		side := d.side()
		return sample{Cell: side.Since, Total: side.From}
	}
	return sample{Cell: now, Total: d.Total}
}

// side returns the larger sum of a CUSUM.
func (d *detector) side() *sum {
	if d.Down.S > d.Up.S {
		return &d.Down
	}
	return &d.Up
}

// story returns the text of an alert that enters a state, or that is Pending.
func (a *alert) story(t *tail, often float64, state State, now int64) (s story) {
	d := &a.Detector
	s = story{detector: d, shares: d.Standing == standingGood || d.Standing == standingSuppressed}
	if a.rule == nil {
		s.reason, s.end = a.Gone, EndRule
		return s
	}
	base := a.Base
	if a.State != Firing {
		base = a.begins(now)
	}
	if quantity := a.rule.When.Quantity; s.shares &&
		(quantity == Change || quantity == CUSUM || state == Resolved) && base.Cell > 0 {
		s.moved, s.from = d.Total-base.Total, base.Cell
	}
	s.reason = a.reason(t, often, state, now)
	switch {
	case state != Resolved:
		return s
	case a.quiet != nil:
		s.end, s.reason = EndSilenced, a.quiet.text()
		return s
	}
	switch s.end = a.ending(s.moved); s.end {
	case EndWindow:
		s.reason = "window passed: " + s.reason + ", and the share has not gone back"
	case EndBack:
		s.reason = "back: " + s.reason
	}
	return s
}

// ending explains the end of a firing alert when its condition no longer holds.
func (a *alert) ending(moved float64) End {
	d, r := &a.Detector, a.rule
	switch {
	case d.Standing != standingGood:
		return EndNoData
	case r.When.Quantity == Change && !r.When.Budgeted && r.When.beyond(moved, r.recovery()),
		(r.When.Quantity == CUSUM || r.When.Budgeted) && a.Last != nil &&
			math.Abs(moved) > math.Abs(a.Last.Moved)/2:
		return EndWindow
	}
	return EndBack
}

// reason compares the figures of the rule with its threshold.
func (a *alert) reason(t *tail, often float64, state State, now int64) string {
	r, d := a.rule, &a.Detector
	silent := r.NoDataAfter > 0 && now-d.At >= int64(r.NoDataAfter)
	switch {
	case d.Standing == standingNone || d.Standing == "":
		return "no data"
	case d.Standing == standingSuppressed:
		return "suppressed while the estimate has the flag " + d.Flag
	case silent:
		return "no estimate for " + span(r.NoDataAfter)
	}
	unit := percent
	if r.When.Quantity == Change || r.When.Of != "" {
		unit = points
	}
	switch quantity := r.When.Quantity; quantity {
	case CUSUM:
		if state == Resolved {
			return "nothing further moved"
		}
		if r.When.Budgeted {
			return d.score(t.threshold(r.shape(), often), now)
		}
		return fmt.Sprintf("movements add up to %s times the usual, the rule fires above %s",
			short(max(d.Up.S, d.Down.S)), short(r.Threshold))
	case Change:
		moved, _, known := d.change(r, now)
		switch {
		case !known:
			return "the share of " + span(r.Over) + " ago is not known yet"
		case r.When.Budgeted:
			return d.score(t.threshold(r.shape(), often), now)
		}
		return fmt.Sprintf("%s in %s, %s", points(moved), span(r.Over), r.asks(state, unit))
	case Low, High:
		x, _ := d.value(r, now)
		return fmt.Sprintf("the %s end of the interval is %s, %s",
			quantity, unit(x), r.asks(state, unit))
	}
	return r.asks(state, unit)
}

// score compares the movement of the count of predictions with the threshold of the rule.
func (d *detector) score(threshold float64, now int64) string {
	m := &d.Found
	if m.Score == 0 {
		return "the count of predictions does not change"
	}
	return fmt.Sprintf(
		"the count of predictions moved %s within %s, %s standard errors: score %s, "+
			"the rule fires above %s",
		points(m.Moved), span(time.Duration(now-m.Since).Round(time.Second)),
		fixed(math.Abs(m.Moved)/math.Sqrt(m.Variance)), fixed(m.Score), fixed(threshold))
}

// asks returns the condition of the rule, or, for an end, the value that ends it.
func (r *Rule) asks(state State, unit func(float64) string) string {
	side := map[bool]string{true: "above", false: "below"}
	value := r.When.Value
	if state == Resolved {
		return "not " + side[r.When.Above] + " " + unit(r.recovery()) + " any more"
	}
	return "the rule asks for " + side[r.When.Above] + " " + unit(value)
}

// text is the whole story in one sentence, with the names for people.
func (s story) text(names Display, community, class string) string {
	d, subject := s.detector, names.Class(class)+" of "+names.Name(community)
	if !s.shares {
		return subject + ": " + s.reason
	}
	unit := unitOf(community)
	confidence := d.Confidence
	if confidence == 0 {
		confidence = 0.9
	}
	text := fmt.Sprintf("%s is %s (%g %% interval %s to %s)", subject, unit(d.Point),
		math.Round(1000*confidence)/10, unit(d.Low), unit(d.High))
	if s.from > 0 {
		text += fmt.Sprintf(", moved %s since %s", points(s.moved), clock(s.from))
	}
	return text + "; " + s.reason
}

// ShareText is the share of a transition as texts have it; of a difference it is in points.
func (t *Transition) ShareText() string { return unitOf(t.Community)(t.Point) }

// IntervalText is the interval of a transition as texts have it.
func (t *Transition) IntervalText() string {
	unit := unitOf(t.Community)
	return unit(t.Low) + " to " + unit(t.High)
}

// ChangeText is how far the share of a transition moved, and since when; empty where nothing is
// said of it.
func (t *Transition) ChangeText() string {
	since, err := time.Parse(time.RFC3339Nano, t.From)
	if err != nil {
		return ""
	}
	return points(t.Moved) + " since " + clock(since.UnixNano())
}

// unitOf is how texts write a share, or a difference of shares.
func unitOf(community string) func(float64) string {
	if difference.Is(community) {
		return points
	}
	return percent
}

// percent is a share as texts have it.
func percent(share float64) string { return strconv.FormatFloat(100*share, 'f', 1, 64) + " %" }

// points is a change of a share as texts have it.
func points(change float64) string {
	return fmt.Sprintf("%+.1f points", math.Round(1000*change)/10+0) // no negative zero
}

// clock is a log time as texts have it.
func clock(at int64) string { return time.Unix(0, at).UTC().Format("2006-01-02 15:04:05 UTC") }

// span is a duration without the units that are zero.
func span(d time.Duration) string {
	if d%day == 0 && d > 0 {
		return fmt.Sprintf("%dd", d/day)
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// fixed is a number with one decimal.
func fixed(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) }

// short is a number with three digits.
func short(x float64) string { return strconv.FormatFloat(x, 'g', 3, 64) }
