package web

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"gqlstream/quant"
)

const (
	explainWaitMax    = 2 * time.Minute // for an explanation, waiting for its turn included
	explainQueueMax   = 4               // requests that wait while another is answered
	explainRetryAfter = 5 * time.Second
)

// ExplainQuery asks why an estimate moved. From and To are positions or RFC 3339
// times, as the request gives them.
type ExplainQuery struct {
	Community, Method string
	From, To          string
}

// Refusal is an error of Config.Explain that the client can mend: a place that is
// none, a community that was not there.
type Refusal struct {
	Code    int // of HTTP
	Message string
}

func (r *Refusal) Error() string { return r.Message }

// turns lets one request at a time be answered, and few wait.
type turns struct {
	places chan struct{} // one for the request that is answered, and those that wait
	turn   chan struct{}
}

func newTurns() turns {
	return turns{places: make(chan struct{}, 1+explainQueueMax), turn: make(chan struct{}, 1)}
}

// errNoTurn says that too many wait already.
var errNoTurn = errors.New("web: too many requests wait")

// wait returns when it is the caller's turn, which ends when done is called.
func (t *turns) wait(ctx context.Context) (done func(), err error) {
	select {
	case t.places <- struct{}{}:
	default:
		return nil, errNoTurn
	}
	select {
	case t.turn <- struct{}{}:
		return func() { <-t.turn; <-t.places }, nil
	case <-ctx.Done():
		<-t.places
		return nil, context.Cause(ctx)
	}
}

func (s *Server) serveExplain(w http.ResponseWriter, r *http.Request, query url.Values) {
	if s.config.Explain == nil {
		fail(w, http.StatusNotFound, "this server explains nothing")
		return
	}
	q := ExplainQuery{From: query.Get("from"), To: query.Get("to")}
	if q.From == "" || q.To == "" {
		fail(w, http.StatusBadRequest, "from and to: want positions or RFC 3339 times")
		return
	}
	part, ok := s.memory(r.PathValue("name"), query.Get("method"), time.Time{}, time.Time{})
	if !ok {
		fail(w, http.StatusNotFound, "no such community or method")
		return
	}
	q.Community, q.Method = part.community, part.method
	// The server's own limit on the time to write is shorter.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(explainWaitMax + writeWaitMax))
	ctx, cancel := withTimeout(r, explainWaitMax)
	defer cancel()
	x, err := s.explain(ctx, q)
	if err != nil {
		s.failExplain(w, ctx, err)
		return
	}
	answer(w, x)
}

func (s *Server) explain(ctx context.Context, q ExplainQuery) (*quant.Explanation, error) {
	done, err := s.turns.wait(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	return s.config.Explain(ctx, q)
}

// failExplain answers what can be said of an error; nobody hears it when the client
// has gone.
func (s *Server) failExplain(w http.ResponseWriter, ctx context.Context, err error) {
	var refusal *Refusal
	switch {
	case errors.As(err, &refusal):
		fail(w, refusal.Code, refusal.Message)
	case errors.Is(err, errNoTurn):
		w.Header().Set("Retry-After", strconv.Itoa(int(explainRetryAfter.Seconds())))
		fail(w, http.StatusServiceUnavailable, "other explanations are under way; try again")
	case ctx.Err() != nil:
		fail(w, http.StatusServiceUnavailable, "no explanation within "+explainWaitMax.String()+
			"; choose places closer together, or use gqlstream explain")
	default:
		s.config.Logger.Warn("web: explain", "error", err)
		fail(w, http.StatusServiceUnavailable, "the log cannot be read now")
	}
}
