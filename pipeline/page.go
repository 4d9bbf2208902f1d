package pipeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/graphstore"
	"gqlstream/incremental/ask"
	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/internal/request"
	"gqlstream/pipeline/config"
	"gqlstream/quant"
	"gqlstream/sinks"
	"gqlstream/sinks/web"
)

// openPage starts page, API and metrics, unless they are turned off. It returns also the
// configured address, if another program has it and the page has another one.
func openPage(
	b *base, out *output, states func() []request.State, deployment func() web.Deployment,
	freePort bool,
) (page *web.Server, taken string, err error) {
	conf := pageConfig(b, out)
	conf.Sinks, conf.Deployment = states, deployment
	page, err = web.New(conf)
	if errors.Is(err, syscall.EADDRINUSE) && freePort {
		taken = conf.Listen
		host, _, _ := net.SplitHostPort(conf.Listen)
		conf.Listen = net.JoinHostPort(host, "0")
		page, err = web.New(conf)
	}
	if errors.As(err,
		// do not wrap it: a network error would count as a broker that may come back
		new(*net.OpError)) {
		return nil, "", fmt.Errorf(
			"%v; choose another address with --http, or --http off for no page",
			err) //nolint:errorlint // see above
	}
	return page, taken, err
}

// pageConfig returns the settings of the page, and the functions that answer its questions.
func pageConfig(b *base, out *output) web.Config {
	conf := web.Config{
		HTTP:     b.settings.HTTP,
		Pipeline: b.settings.Pipeline, Version: b.version,
		Classes: b.settings.Classes,
		Logger:  b.log,
		Questions: web.Questions{
			Records:    out.history.Read,
			Rollups:    out.rollups.Read,
			Explain:    b.Explain,
			Quarantine: b.newestRefusals,
		},
		Display: b.settings.Display,
		State:   b.settings.State,
		NATS:    b.serverForCommands(),
		Quiet:   b.Config.Emit.AtLeastEvery,
	}
	for kind := range event.Kind(event.Kinds) {
		conf.Kinds = append(conf.Kinds, kind.String())
	}
	for _, reason := range event.Reasons {
		conf.Reasons = append(conf.Reasons, string(reason))
	}
	conf.InForce = func(
		ctx context.Context, community, method string, at time.Time,
	) (quant.Estimate, bool, error) {
		return out.history.InForce(ctx, community, method, 0, at)
	}
	conf.Ask = func(q ask.Question) (*ask.Answer, error) {
		return ask.OfState(b.settings.State, b.settings.Classes, b.Config.MembersMin,
			b.group.fetchShards, q)
	}
	if b.settings.HTTP.Answers {
		conf.Publish = b.publishAnswers
	}
	if b.settings.HTTP.Silences {
		conf.Note = b.publishNote
	}
	return conf
}

// answerQuestions starts to answer on NATS.
func answerQuestions(b *base, page *web.Server, opened *closers) error {
	nc, own, err := config.ConnectToAnswer(b.settings, b.Broker.NC, b.log)
	if err != nil {
		return err
	}
	if own {
		opened.add(func() error { nc.Close(); return nil })
	}
	stop, err := page.AnswerOn(nc, b.names.Out.Queries(), b.settings.NATS.Answers.Inboxes...)
	if err != nil {
		return err
	}
	opened.add(stop)
	return nil
}

// serverForCommands is the server address in commands that the page shows, without secrets; empty
// if the server is inside this process and has no port.
func (p *plan) serverForCommands() string {
	if nats := p.settings.NATS; nats.URL == "" && nats.Listen != "" {
		return "nats://" + nats.Listen
	}
	return broker.Redacted(p.settings.NATS.URL)
}

// pageTask fills the page and lets it follow the output log. It runs beside the loop: reading what
// was published before may take seconds after servers died.
func (p *Pipeline) pageTask(from sinks.Cursor) task {
	open, filled := takeBehind(from, p.showEstimates), false
	return task{
		FollowConfig: sinks.FollowConfig{
			Name: "page",
			Open: func(ctx context.Context) (sinks.Follower, sinks.Cursor, error) {
				if !filled {
					if err := p.fillPage(ctx, from); err != nil {
						return nil, sinks.Cursor{}, err
					}
					filled = true
				}
				return open(ctx)
			},
		},
	}
}

// fillPage shows the records before a cursor on the page, which will not get them again.
func (p *Pipeline) fillPage(ctx context.Context, from sinks.Cursor) error {
	awaitBucket(ctx, p.Broker.JS, p.names.Out, from.Sequence)
	latest, err := p.history.Latest(ctx, from.Position)
	if err != nil {
		return err
	}
	notes, err := p.rollups.Notes(ctx, web.NotesMax)
	if err != nil {
		return err
	}
	p.Page.AddNotes(notes)
	p.Page.Load(latest)
	ctx, cancel := context.WithTimeout(ctx, trendsWaitMax)
	defer cancel()
	if err := p.rollups.Recent(ctx, p.Page.Recall); err != nil {
		p.log.Warn("the page shows trends from this start on", "error", err)
	}
	return nil
}

const (
	// how long a start waits for the broker's copy of the latest estimates
	bucketWaitMax = 2 * time.Second
	trendsWaitMax = 5 * time.Second // how long new records wait for the records of the last day
)

// awaitBucket waits until the bucket has the records up to a sequence: the page begins with it, and
// follows later records, which other workers may publish at any time.
func awaitBucket(ctx context.Context, js jetstream.JetStream, names sinks.Names, sequence uint64) {
	for begun := time.Now(); time.Since(begun) < bucketWaitMax &&
		ctx.Err() == nil; time.Sleep(catchUpLookEvery) {
		out, err := js.Stream(ctx, names.Estimates)
		if err != nil {
			return
		}
		stream, err := js.Stream(ctx, "KV_"+names.Latest)
		if err != nil {
			return
		}
		sources := stream.CachedInfo().Sources
		if len(sources) == 1 && sources[0].Active >= 0 &&
			sequence+sources[0].Lag <= out.CachedInfo().State.LastSeq {
			return
		}
	}
}

func (p *Pipeline) showEstimates(_ context.Context, e *sinks.Stored) error {
	estimates, err := e.Estimates()
	if err != nil {
		return err
	}
	p.Page.AddNotes(sinks.NotesOf(e.Position, e.Time, e.Notes))
	p.Page.Write(estimates)
	return nil
}

// Explain answers a question of the page from the checkpoints and the log, beside the loop, with a
// graph of its own, and passes its progress to report. It names vertices only if there is no
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

// The definitions of more than definitionsFew communities are checked this often at most, but at
// once after a configure event, because a log may be quiet for long after a step.
const (
	definitionsEvery = time.Second
	definitionsFew   = 64
)

type definitions struct {
	texts map[string]string // by name; shared with the page
	// how often each rule met values that it cannot compare, by community; shared with the shown
	// status
	// map too
	misses map[string]uint64
	gone   map[string]bool // communities without members; shared with the page
	due    time.Time
}

// show passes the rules of communities to the page, in words, when they have changed, and warns
// once about each rule that met values of another type.
func (d *definitions) show(view graphstore.View, page *web.Server, log *slog.Logger, atOnce bool) {
	now := time.Now()
	if now.Before(d.due) && view.Communities() > definitionsFew && !atOnce {
		return
	}
	texts := map[string]string{}
	misses := map[string]uint64{}
	gone := map[string]bool{}
	for c := range graphstore.Community(view.Communities()) {
		if text := inWords(view, c); text != "" {
			texts[view.CommunityName(c)] = text
		}
		if list, _ := view.Members(c); len(list) == 0 {
			gone[view.CommunityName(c)] = true
		}
		if n := view.Mismatches(c); n > 0 {
			name := view.CommunityName(c)
			if misses[name] = n; d.misses[name] == 0 {
				log.Warn("a rule met a value of another type than it compares with", "community",
					name)
			}
		}
	}
	if !maps.Equal(texts, d.texts) {
		page.Define(texts)
	}
	if !maps.Equal(gone, d.gone) {
		page.Gone(gone)
	}
	*d = definitions{texts, misses, gone, now.Add(definitionsEvery)}
}

// inWords describes the rule of a community, and the present radius of an ego network.
func inWords(view graphstore.View, c graphstore.Community) string {
	rule := view.Rule(c)
	text := rule.String()
	list, _ := view.Members(c)
	switch {
	case rule.Kind != graphstore.Ego:
	case len(list) == 0:
		text += ", which is not a vertex at present"
	case view.CutShort(c):
		text += fmt.Sprintf("; at present within %d hops, because more would exceed "+
			"members_max", view.Hops(c))
	}
	return text
}

func greet(w io.Writer, p *Pipeline) {
	begins := "from the beginning of the log"
	if at := p.Position(); at > 0 {
		begins = fmt.Sprintf("from the checkpoint at position %d", at)
	}
	tracked := []string{}
	for _, rule := range p.Config.Communities {
		tracked = append(tracked, rule.Name)
	}
	fmt.Fprintf(w, "gqlstream %s\n", p.version)
	fmt.Fprintf(w, "  reads      stream %s at %s\n", p.names.In.Log, p.Broker.Where)
	fmt.Fprintf(w, "  state      %s, %s\n", p.settings.State, begins)
	fmt.Fprintf(w, "  classes    %s\n", strings.Join(p.settings.Classes, ", "))
	fmt.Fprintf(w, "  tracks     %s\n",
		strings.Join(append(tracked, "communities named in member events"), ", "))
	fmt.Fprintf(w, "  publishes  stream %s, bucket %s%s\n",
		p.names.Out.Estimates, p.names.Out.Latest, p.settings.Output.AlsoTo())
	if url := p.Page.URL(); url != "" {
		fmt.Fprintf(w, "  page       %s\n", url)
	}
	fmt.Fprintf(w, "  refuses to stream %s, which gqlstream quarantine list reads\n",
		p.names.In.Quarantine)
}
