package web

import (
	"context"
	"net/http"
	"time"

	"gqlstream/quant"
)

const (
	explainWaitMax  = 2 * time.Minute // for an explanation, waiting for its turn included
	explainQueueMax = 4               // requests that wait while another is answered
)

// ExplainQuery asks why an estimate moved. From and To are positions or RFC 3339
// times, as the request gives them.
type ExplainQuery struct {
	Community, Method string
	From, To          string
}

// turns lets one request at a time be answered, and few wait.
type turns struct{ places, turn chan struct{} }

// wait returns when it is the caller's turn, which ends when done is called.
func (t *turns) wait(ctx context.Context) (done func(), err error) {
	select {
	case t.places <- struct{}{}:
	default:
		return nil, busy("other explanations are under way; try again")
	}
	select {
	case t.turn <- struct{}{}:
		return func() { <-t.turn; <-t.places }, nil
	case <-ctx.Done():
		<-t.places
		return nil, ctx.Err()
	}
}

func askExplain(ctx context.Context, v *view, q *asked) (any, error) {
	if v.config.Explain == nil {
		return nil, refuse(http.StatusNotFound, "this server explains nothing")
	}
	e := ExplainQuery{From: q.query.Get("from"), To: q.query.Get("to")}
	if e.From == "" || e.To == "" {
		return nil, refuse(http.StatusBadRequest, "from and to: want positions or RFC 3339 times")
	}
	part, ok := v.memory(q.name, q.query.Get("method"), time.Time{}, time.Time{})
	if !ok {
		return nil, refuse(http.StatusNotFound, "no such community or method")
	}
	e.Community, e.Method = part.community, part.method
	done, err := v.turns.wait(ctx)
	if err == nil {
		defer done()
		var x *quant.Explanation
		if x, err = v.config.Explain(ctx, e); err == nil {
			return x, nil
		}
	}
	if ctx.Err() != nil {
		err = busy("no explanation within " + explainWaitMax.String() + "; choose places closer together, or use gqlstream explain")
	}
	return nil, err
}
