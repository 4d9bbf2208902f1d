package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"gqlstream/quant"
	"gqlstream/sinks/web"
)

// pageNamed is how many changes of each cause the page names, where it may.
const pageNamed = 5

// explain answers the page: from the checkpoints and the log, beside the loop, with
// a graph of its own. Vertices are named only where no privacy floor holds.
func (p *pipeline) explain(ctx context.Context, asked web.ExplainQuery) (*quant.Explanation, error) {
	e := &explainer{
		config: p.config, classes: p.begun.Classes, checkpoints: p.begun.State,
		tell: func(format string, args ...any) { p.log.Debug("explain: " + fmt.Sprintf(format, args...)) },
	}
	if err := e.readStream(p.broker, &p.begun); err != nil {
		return nil, err
	}
	q := explainQuery{community: asked.Community, method: asked.Method, membersMin: p.config.MembersMin}
	if p.config.MembersMin <= 1 {
		q.named = pageNamed
	}
	var err error
	if q.from, err = parsePlace("from", asked.From); err == nil {
		q.to, err = parsePlace("to", asked.To)
	}
	if err == nil {
		err = q.ordered()
	}
	if err != nil {
		return nil, &web.Refusal{Code: http.StatusBadRequest, Message: strings.TrimPrefix(err.Error(), "explain: ")}
	}
	x, err := e.explain(ctx, q)
	var question explainError
	if errors.As(err, &question) {
		err = &web.Refusal{Code: http.StatusConflict, Message: strings.TrimPrefix(question.Error(), "explain: ")}
	}
	return x, err
}
