package pipeline

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/pipeline/config"
	"gqlstream/quant"
	"gqlstream/sinks/web"
)

// Explain answers a question of the page from the checkpoints and the log, in parallel to the loop,
// with a graph of its own, and passes its progress to report. It names vertices only if there is no
// privacy floor. Any goroutine may call it.
func (b *base) Explain(
	ctx context.Context, asked web.ExplainQuery, report func(text string),
) (*quant.Explanation, error) {
	e := Explainer{
		Config: b.Config, Settings: &b.settings, JS: b.Broker.JS, Floor: b.Config.MembersMin,
		Report: func(format string, args ...any) { report(fmt.Sprintf(format, args...)) },
		Every:  500 * time.Millisecond, // the page asks once a second
	}
	if e.Floor <= 1 {
		e.Named = 5
	}
	for _, place := range [][2]string{{"from", asked.From}, {"to", asked.To}} {
		if _, err := ParsePlace(place[0], place[1]); err != nil {
			return nil, &web.Refusal{Code: http.StatusBadRequest, Message: err.Error()}
		}
	}
	x, err := e.Explain(ctx, asked)
	if errors.As(err, new(config.UsageError)) || errors.Is(err, ingest.ErrPastEnd) {
		err = &web.Refusal{
			Code:    http.StatusConflict,
			Message: strings.TrimPrefix(err.Error(), "explain: "),
		}
	}
	return x, err
}

// How many of the newest entries of the quarantine the page searches for a reason, and how many
// bytes of an original it shows.
const refusalsLookedAt, refusalOriginalsMax = 2000, 500

// newestRefusals returns the newest entries of the quarantine, of one reason unless that is
// empty, newest first.
func (b *base) newestRefusals(
	ctx context.Context,
	reason string,
	limit int,
) (list []web.QuarantineEntry, err error) {
	quarantine, err := ingest.OpenQuarantine(ctx, b.Broker.JS, b.names.In)
	if err != nil {
		return nil, err
	}
	filter := ingest.QuarantineFilter{
		Reason:  event.Reason(reason),
		Retried: true,
		Newest:  refusalsLookedAt,
	}
	err = quarantine.List(ctx, filter, func(e ingest.QuarantineEntry) error {
		shown := web.QuarantineEntry{QuarantineEntry: e}
		if b.Config.MembersMin > 1 { // both contain personal data
			shown.Detail = "the original is hidden, because a privacy floor applies"
		} else if utf8.Valid(e.Original) {
			shown.Original = strings.ToValidUTF8(
				string(e.Original[:min(len(e.Original), refusalOriginalsMax)]), "")
		}
		list = append(list[max(0, len(list)+1-limit):], shown)
		return nil
	})
	slices.Reverse(list)
	return list, err
}
