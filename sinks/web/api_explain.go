package web

import (
	"context"
	"net/http"
	"time"

	"gqlstream/ask"
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

// take answers when it is the caller's turn.
func (t *turns) take(ctx context.Context, answer func() (any, error)) (value any, err error) {
	select {
	case t.places <- struct{}{}:
		defer func() { <-t.places }()
	default:
		return nil, busy("other explanations are under way; try again")
	}
	select {
	case t.turn <- struct{}{}:
		defer func() { <-t.turn }()
		value, err = answer()
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil && ctx.Err() != nil {
		return nil, busy("no answer within " + explainWaitMax.String() + "; choose places closer together, or use the command line")
	}
	return value, err
}

func askExplain(ctx context.Context, v *view, q *asked) (any, error) {
	if v.config.Explain == nil {
		return nil, refuse(http.StatusNotFound, "this server explains nothing")
	}
	e := ExplainQuery{From: q.query.Get("from"), To: q.query.Get("to")}
	if e.From == "" || e.To == "" {
		return nil, refuse(http.StatusBadRequest, "from and to: want positions or RFC 3339 times")
	}
	part, err := v.asked(q, time.Time{}, time.Time{})
	if err != nil {
		return nil, err
	}
	e.Community, e.Method = part.community, part.method
	return v.turns.take(ctx, func() (any, error) { return v.config.Explain(ctx, e) })
}

// askWhom answers whom to label, in turn with explanations: it too needs a graph of its own.
func askWhom(ctx context.Context, v *view, q *asked) (any, error) {
	question := ask.Question{Communities: []string{q.name}, Count: q.number("count", 50, 1, 100_000), Seed: 1}
	if q.err != nil || v.config.Ask == nil {
		return nil, refuse(http.StatusNotFound, "this server has no state to draw from")
	}
	return v.turns.take(ctx, func() (any, error) {
		answer, err := v.config.Ask(question)
		if err != nil {
			err = refuse(http.StatusConflict, "%v", err)
		}
		return answer, err
	})
}
