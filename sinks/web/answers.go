package web

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"
)

// answersMax bounds the bytes of labels that are published at once.
const answersMax = 4 << 20

// published is the result of labels that a reader sent.
type published struct {
	Published int `json:"published"` // labels; rows without one are passed over
}

// serveLabels publishes labels that a reader sends as CSV. The media type is one that pages of
// other sites cannot send without being asked first, which this server refuses.
func (s *Server) serveLabels(w http.ResponseWriter, r *http.Request) {
	if s.config.Publish == nil {
		fail(w, http.StatusForbidden,
			"this page accepts no labels; set http.answers, or use gqlstream publish --labels")
		return
	}
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "text/csv" {
		fail(w, http.StatusUnsupportedMediaType, "labels come as text/csv")
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, answersMax))
	if err != nil {
		fail(w, http.StatusRequestEntityTooLarge, "labels are at most 4 MiB of CSV at a time")
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), questionWaitMax)
	defer cancel()
	_ = http.NewResponseController(
		w).SetWriteDeadline(time.Now().Add(questionWaitMax + writeWaitMax))
	n, err := s.config.Publish(ctx, body)
	var refusal *Refusal
	switch {
	case errors.As(err, &refusal):
		fail(w, refusal.Code, refusal.Message)
	case err != nil:
		s.config.Logger.Warn("labels from the page are not published", "error", err)
		fail(w, http.StatusServiceUnavailable, "the labels cannot be published now")
	default:
		answer(w, http.StatusOK, published{n})
	}
}
