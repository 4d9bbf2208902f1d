package web

import (
	"context"
	"net/http"
	"sync"
	"time"

	"gqlstream/ask"
)

const (
	explainWaitMax  = 2 * time.Minute      // for an explanation, waiting for its turn included
	explainQueueMax = 4                    // that wait while another is made
	explainKept     = 15 * time.Second     // how long an answer is given again
	explainPatience = 5 * time.Millisecond // of who asks on NATS: a client that answers others beside must not wait
)

// ExplainQuery asks why an estimate moved. From and To are positions or RFC 3339
// times, as the request gives them.
type ExplainQuery struct {
	Community, Method string
	From, To          string
}

// slowAnswers makes one answer at a time, beside who asks, lets few wait for their turn, and
// keeps each for a while: who asks again has it at once.
type slowAnswers struct {
	mu     sync.Mutex
	byWhat map[any]*slowAnswer
	turn   sync.Mutex
	makers sync.WaitGroup
	life   context.Context //nolint:containedctx // of the makers
	end    context.CancelFunc
}

type slowAnswer struct {
	ready chan struct{} // closed when the answer stands
	until time.Time     // when it is forgotten; zero: it does not stand
	value any
	err   error
}

// get returns the answer to a question, or says that it is being made when ctx ends before.
func (s *slowAnswers) get(ctx context.Context, what any, answer func(context.Context) (any, error)) (any, error) {
	a := s.begin(what, answer)
	if a == nil {
		return nil, busy("other explanations are under way; try again")
	}
	select {
	case <-a.ready:
		return a.value, a.err
	case <-ctx.Done():
		return nil, busy("the answer is being made; ask again in a second")
	}
}

// begin returns the answer that is kept or under way, or begins to make it; nil: too many are.
func (s *slowAnswers) begin(what any, answer func(context.Context) (any, error)) *slowAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting := 0
	for what, a := range s.byWhat {
		if a.until.IsZero() {
			waiting++
		} else if time.Now().After(a.until) {
			delete(s.byWhat, what)
		}
	}
	if a := s.byWhat[what]; a != nil || waiting > explainQueueMax {
		return a
	}
	a := &slowAnswer{ready: make(chan struct{})}
	s.byWhat[what] = a
	s.makers.Go(func() {
		ctx, cancel := context.WithTimeout(s.life, explainWaitMax)
		defer cancel()
		s.turn.Lock()
		a.value, a.err = answer(ctx)
		s.turn.Unlock()
		if a.err != nil && ctx.Err() != nil {
			a.err = busy("no answer within " + explainWaitMax.String() + "; choose places closer together, or use the command line")
		}
		s.mu.Lock()
		a.until = time.Now().Add(explainKept)
		s.mu.Unlock()
		close(a.ready)
	})
	return a
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
	return v.slow.get(ctx, e, func(ctx context.Context) (any, error) { return v.config.Explain(ctx, e) })
}

// askWhom answers whom to label, in turn with explanations: it too needs a graph of its own.
func askWhom(ctx context.Context, v *view, q *asked) (any, error) {
	question := ask.Question{Communities: []string{q.name}, Count: q.number("count", 50, 1, 100_000), Seed: 1}
	if q.err != nil || v.config.Ask == nil {
		return nil, refuse(http.StatusNotFound, "this server has no state to draw from")
	}
	return v.slow.get(ctx, [2]any{q.name, question.Count}, func(context.Context) (any, error) {
		answer, err := v.config.Ask(question)
		if err != nil {
			err = refuse(http.StatusConflict, "%v", err)
		}
		return answer, err
	})
}
