package web

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"time"

	"gqlstream/sinks/alerts"
)

// Bounds of a decision that a reader sends.
const (
	silenceBytesMax = 4 << 10
	silenceMax      = 366 * 24 * time.Hour
)

// silenceAsked is a decision about alerts as the API takes it: until a time, or for some time from
// now.
type silenceAsked struct {
	alerts.Quieting
	For string `json:"for"` // such as 2h
}

var silenceFields = []string{
	"rule", "community", "class", "for", "until", "by", "why", "acknowledge",
}

// serveSilence writes a silence or an acknowledgement to the log. The media type is one that pages
// of other sites cannot send without being asked first, which this server refuses.
func (s *Server) serveSilence(w http.ResponseWriter, r *http.Request) {
	if s.config.Note == nil {
		fail(w, http.StatusForbidden,
			"this page accepts no silences; set http.silences, or use gqlstream publish --note")
		return
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		fail(w, http.StatusUnsupportedMediaType, "a silence must be application/json")
		return
	}
	asked, err := readSilence(http.MaxBytesReader(w, r.Body, silenceBytesMax))
	if err != nil {
		fail(w, http.StatusBadRequest,
			`want {"rule":"jump","community":"north","class":"*",`+
				`"for":"2h","by":"anna","why":"..."}`)
		return
	}
	q, problem := asked.decision(time.Now())
	if problem != "" {
		fail(w, http.StatusUnprocessableEntity, problem)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), questionWaitMax)
	defer cancel()
	_ = http.NewResponseController(
		w).SetWriteDeadline(time.Now().Add(questionWaitMax + writeWaitMax))
	if err := s.config.Note(ctx, q.Note()); err != nil {
		s.config.Logger.Warn("a silence from the page is not published", "error", err)
		fail(w, http.StatusServiceUnavailable, "the silence cannot be published now")
		return
	}
	answer(w, http.StatusOK, q)
}

// readSilence decodes a request. It refuses unknown fields, fields in other letters, null and empty
// texts: a community or a class that is left out stands for all of them, and an empty one does not
// say so.
func readSilence(body io.Reader) (asked silenceAsked, err error) {
	text, err := io.ReadAll(body)
	if err != nil {
		return asked, err
	}
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return asked, err
	}
	for name, value := range fields {
		empty := value == nil || value == "" && name != "why"
		if empty || !slices.Contains(silenceFields, name) {
			return asked, fmt.Errorf("field %q is unknown or empty", name)
		}
	}
	return asked, json.Unmarshal(text, &asked)
}

// decision completes a request, or explains its mistake.
func (a silenceAsked) decision(now time.Time) (q alerts.Quieting, problem string) {
	q = a.Quieting
	q.Community, q.Class = cmp.Or(q.Community, "*"), cmp.Or(q.Class, "*")
	if (a.For == "") == (q.Until == "") {
		return q, "want either for, such as 2h, or until, a time"
	}
	if a.For != "" {
		length, err := time.ParseDuration(a.For)
		if err != nil || length < 0 {
			return q, "for: want a duration such as 2h"
		}
		q.Until = now.Add(length).UTC().Format(time.RFC3339)
	}
	if err := q.Validate(); err != nil {
		return q, err.Error()
	}
	if until, _ := time.Parse(time.RFC3339Nano, q.Until); until.Sub(now) > silenceMax {
		return q, "until: at most a year from now"
	}
	return q, ""
}
