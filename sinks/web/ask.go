package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// asked is a question to a view, through either door.
type asked struct {
	params
	name string // of a community
}

// question answers what is asked. It reads the parameters first, and says with a Refusal
// what the client can mend.
type question func(ctx context.Context, v *view, q *asked) (any, error)

// questionWaitMax bounds the time of an answer; an explanation, which reads the log, has more.
const questionWaitMax = 20 * time.Second

// Refusal is an error that the client can mend, such as an unknown community.
type Refusal struct {
	Code    int // of HTTP
	Message string
}

func (r *Refusal) Error() string { return r.Message }

func refuse(code int, format string, args ...any) *Refusal {
	return &Refusal{code, fmt.Sprintf(format, args...)}
}

// busy is a refusal that another try may not meet.
func busy(message string) *Refusal { return &Refusal{http.StatusServiceUnavailable, message} }

// ask answers a question within a time, or says with a Refusal why not.
func (v *view) ask(ctx context.Context, wait time.Duration, rt *route, name string, query url.Values) (any, *Refusal) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	q := &asked{params{query: query}, name}
	value, err := rt.ask(ctx, v, q)
	var refusal *Refusal
	switch {
	case q.err != nil:
		return nil, q.err
	case err == nil:
		return value, nil
	case errors.As(err, &refusal):
		return nil, refusal
	case ctx.Err() != nil:
		return nil, busy("there is no answer in time; ask for less")
	}
	v.config.Logger.Warn("web: "+rt.name, "error", err)
	return nil, busy("what is stored cannot be read now")
}

// serveQuestion is the door of HTTP.
func (s *Server) serveQuestion(w http.ResponseWriter, r *http.Request, rt *route, query url.Values) {
	// The server's own limit on the time to write is shorter than an explanation.
	wait := max(rt.wait, questionWaitMax)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(wait + writeWaitMax))
	value, refusal := s.ask(r.Context(), wait, rt, r.PathValue("name"), query)
	switch table, is := value.(table); {
	case refusal != nil && refusal.Code == http.StatusServiceUnavailable:
		failBusy(w, refusal.Message)
	case refusal != nil:
		fail(w, refusal.Code, refusal.Message)
	case is && query.Get("format") == "csv":
		writeCSV(w, s.config.Classes, table)
	default:
		answer(w, http.StatusOK, value)
	}
}
