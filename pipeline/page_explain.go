package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"gqlstream/ingest"
	"gqlstream/quant"
	"gqlstream/sinks/web"
)

// Explain answers the page: from the checkpoints and the log, beside the loop, with
// a graph of its own. Vertices are named only where no privacy floor holds.
func (p *Pipeline) Explain(ctx context.Context, asked web.ExplainQuery) (*quant.Explanation, error) {
	e := &Explainer{
		config: p.Config, classes: p.settings.Classes, Checkpoints: p.settings.State,
		Tell: func(format string, args ...any) { p.log.Debug("explain: " + fmt.Sprintf(format, args...)) },
	}
	if err := e.ReadStream(p.Broker, &p.settings); err != nil {
		return nil, err
	}
	from, err1 := ParsePlace("from", asked.From)
	to, err2 := ParsePlace("to", asked.To)
	if err := cmp.Or(err1, err2); err != nil {
		return nil, &web.Refusal{Code: http.StatusBadRequest, Message: err.Error()}
	}
	q := Query{Community: asked.Community, Method: asked.Method, From: from, To: to, membersMin: p.Config.MembersMin}
	if p.Config.MembersMin <= 1 {
		q.Named = 5 // changes of each cause
	}
	x, err := e.Explain(ctx, q)
	var question QuestionError
	if errors.As(err, &question) || errors.Is(err, ingest.ErrPastEnd) {
		err = &web.Refusal{Code: http.StatusConflict, Message: strings.TrimPrefix(err.Error(), "explain: ")}
	}
	return x, err
}
