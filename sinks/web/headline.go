package web

import (
	"fmt"
	"strings"
	"time"

	"gqlstream/internal/request"
	"gqlstream/quant"
)

// Headline says in one sentence how far the estimates can be trusted to be current.
type Headline struct {
	Level string `json:"level"` // live, busy, warning or bad
	Text  string `json:"text"`
}

// Levels of a Headline. A pipeline that is busy will be live without help.
const (
	levelLive    = "live"
	levelBusy    = "busy"
	levelWarning = "warning"
	levelBad     = "bad"
)

const (
	logOldAfter  = time.Hour       // from this age on the newest event is called old
	paceLeast    = 2 * time.Second // of reading, before the time left is said
	evidenceFlag = quant.FlagOldEvidence
)

// pace remembers where the present reading of history began, so that the time left can be said.
type pace struct {
	since    time.Time // zero: no history is being read
	position uint64
}

// noteStatus notes that a status came now.
func (p *pace) noteStatus(s *Status, now time.Time) {
	switch {
	case !s.readsHistory(now):
		*p = pace{}
	case p.since.IsZero() || s.Position < p.position:
		*p = pace{now, s.Position}
	}
}

// readsHistory reports whether events of the past are being read: many messages are behind, or the
// newest event is old and more than a hundredth of the log is unread. publish puts up to an hour of
// events into a message.
func (s *Status) readsHistory(now time.Time) bool {
	return s.State == "replaying" || s.State == "running" && s.LogTime != nil &&
		now.Sub(*s.LogTime) >= logOldAfter && 100*s.lag() > s.End
}

// left estimates how long the reading of history still takes; 0 if that is not known yet.
func (p *pace) left(s *Status, now time.Time) time.Duration {
	took := now.Sub(p.since)
	done := s.Position - min(p.position, s.Position)
	if p.since.IsZero() || took < paceLeast || done == 0 {
		return 0
	}
	return time.Duration(float64(took) * float64(s.lag()) / float64(done))
}

// headline returns the sentence that every page shows. The first case that holds is the worst.
func (s *Server) headline(now time.Time) Headline {
	status, at, pace := s.journal.readPace()
	for _, sink := range s.config.Sinks() {
		if sink.Condition == request.Holding {
			return Headline{levelBad, waitingFor(sink)}
		}
	}
	switch {
	case at.IsZero():
		return Headline{levelBusy, "The pipeline is starting."}
	case now.Sub(at) > staleAfter:
		return Headline{levelBad, fmt.Sprintf(
			"The pipeline has reported nothing for %s. The estimates stand still.",
			ago(now.Sub(at)))}
	case status.LogAhead > logAheadShown:
		return Headline{levelWarning, sentence(status.Warning)}
	case status.readsHistory(now):
		return Headline{levelBusy, reading(&status, pace.left(&status, now))}
	case status.Progress != "":
		return Headline{levelBusy, sentence("computing: " + status.Progress)}
	case status.State != "running":
		return Headline{
			levelBusy, sentence("the pipeline is " + status.State + after(status.Message)),
		}
	}
	return s.runningHeadline(&status, now)
}

// logAheadShown is the lead of the log's time that the headline speaks of.
const logAheadShown = 10 * time.Second

// runningHeadline is the headline of a pipeline that has read its log to the end.
func (s *Server) runningHeadline(status *Status, now time.Time) Headline {
	for _, sink := range s.config.Sinks() {
		if sink.Condition == request.Retrying {
			return Headline{levelWarning, sentence(fmt.Sprintf(
				"%s fails and is tried again%s", sink.Name, after(sink.Reason),
			))}
		}
	}
	if status.Position == 0 {
		return Headline{levelBusy, "Waiting for the first events."}
	}
	text, evidence := "", ""
	if status.LogTime != nil {
		if age := now.Sub(*status.LogTime); age >= logOldAfter {
			text = fmt.Sprintf("The whole log is read. Its newest event is %s old.", ago(age))
		}
	}
	if old, all := s.store.flagged(evidenceFlag); old > 0 {
		evidence = fmt.Sprintf(
			"%d of %d communities rest on old evidence: ask for new labels.", old, all)
	}
	switch {
	case text != "" && evidence != "":
		return Headline{levelWarning, text + " " + evidence}
	case evidence != "":
		return Headline{levelWarning, "Live, but " + evidence}
	case text != "":
		return Headline{levelWarning, text}
	}
	return Headline{levelLive, "Live: the estimates follow the log."}
}

// waitingFor names the cause of a pipeline's wait, and the remedy if it is known.
func waitingFor(sink request.State) string {
	text := sentence(fmt.Sprintf("the pipeline waits for %s%s", sink.Name, after(sink.Reason)))
	low := strings.ToLower(sink.Reason)
	if strings.Contains(low, "no space") || strings.Contains(low, "insufficient") ||
		strings.Contains(low, "resource") || strings.Contains(low, "maximum bytes") {
		text += " The disk or a limit of the stream is full: free space, or raise the limit. " +
			"The embedded server notices a grown volume at its next start."
	}
	return text + " The estimates stand still; no event is lost."
}

// reading says how far the reading of history has come.
func reading(s *Status, left time.Duration) string {
	end := max(s.End, s.Position)
	text := fmt.Sprintf("Reading history: message %s of %s (%d %%)",
		grouped(s.Position), grouped(end), 100*s.Position/max(end, 1))
	if left > 0 {
		text += ", about " + ago(left) + " left"
	}
	return text + "."
}

// after returns a reason with the colon before it, or nothing.
func after(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// sentence begins with a capital letter and ends with a full stop.
func sentence(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + strings.TrimRight(text[1:], ".") + "."
}

// ago is a duration in one unit, as people say it.
func ago(d time.Duration) string {
	switch {
	case d < 90*time.Second:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 90*time.Minute:
		return fmt.Sprintf("%d min", int(d.Minutes()+0.5))
	case d < 36*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()+0.5))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24+0.5))
}

// grouped writes a number with a comma between thousands.
func grouped(n uint64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// flagged returns how many communities carry a flag in their main estimate, and how many there are.
func (s *store) flagged(flag string) (n, all int) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, c := range s.order {
		for _, f := range c.main().latest.estimate.Flags {
			if quant.FlagName(f) == flag {
				n++
				break
			}
		}
	}
	return n, len(s.order)
}
