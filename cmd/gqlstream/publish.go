package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/ingest/event"
	"gqlstream/ingest/files"
	"gqlstream/pipeline"
	"gqlstream/pipeline/config"
	"gqlstream/sinks"
)

type publishCmd struct {
	fileFlags
	refusedFlags
	serverFlags
	Rate         float64 `placeholder:"N" help:"Most events a second; 0 is the rate of the server."`
	Classes      string  `placeholder:"LIST" help:"${publish_classes}"`
	ModelVersion string  `placeholder:"NAME" help:"Model version of predictions without one."`
	Producer     string  `placeholder:"ID" help:"${publish_producer}"`
	Note         string  `placeholder:"TEXT" help:"${publish_note}"`
	Clock        bool    `help:"${publish_clock}"`
	Rejects      string  `placeholder:"FILE" help:"${publish_rejects}"`
}

func (*publishCmd) Help() string {
	return `Publishes the rows of files: first the rows without a time, then the others in the order
of time. Invalid rows are counted and printed, and the exit code is then 1, unless --max-refused or
--skip-refused allows them. See docs/events.md.

Examples:
  gqlstream publish --nats nats://localhost:4222 --note debate
  gqlstream publish --nats nats://localhost:4222 --edges edges.csv.gz --labels labels.csv \
      --predictions p.parquet --classes left,right
  gqlstream publish --state gqlstream-state --edges follows.csv --map src=follower,dst=followee \
      --rejects bad.ndjson
  gqlstream publish --nats nats://localhost:4222 --clock`
}

// publishFlushMax bounds the wait for the server after an interrupt.
const publishFlushMax = 10 * time.Second

// Run publishes the files, then the clock event, then the note.
func (c *publishCmd) Run(ctx context.Context, con console) error {
	conf, err := c.fileConfig()
	if err != nil {
		return err
	}
	b, err := c.open(ctx, con)
	if err != nil {
		return err
	}
	// after the loss of a server a cluster elects leaders for seconds
	log := slog.New(slog.NewTextHandler(con.Err, nil))
	if err := pipeline.OnceElected(ctx, log, false, func() error {
		_, err := broker.EnsureLog(ctx, b.JS, c.names)
		return err
	}); err != nil {
		return err
	}
	var refused error
	if c.any() {
		if refused, err = c.publishFiles(ctx, con, b, conf); err != nil {
			return err
		}
	}
	if c.Clock {
		err = c.publishControl(ctx, con, b, "clock event", map[string]string{
			"op": event.SetClock.String(),
		})
	}
	if c.Note != "" && err == nil {
		err = c.publishControl(ctx, con, b, "note", map[string]string{
			"op": event.Note.String(), "text": c.Note,
		})
	}
	return errors.Join(err, refused)
}

// openOrdered opens the files. Where nobody says the classes, they are those of the run that
// follows the stream, if there are estimates of one, and those of the files else.
func (c *publishCmd) openOrdered(
	ctx context.Context, con console, b *broker.Broker, conf files.Config,
) (*files.Source, error) {
	from := ""
	if conf.Classes.K() == 0 {
		from = "the files"
		log, err := b.JS.Stream(ctx, c.names.Log)
		marks, failed := sinks.Marks(ctx, b.JS, c.out)
		if err = cmp.Or(err, failed); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil, fmt.Errorf(
				"publish: the classes of the run are unknown: %w; give them with --classes",
				err)
		}
		for _, m := range marks {
			if len(m.Classes) > 0 && m.Log == broker.LogName(log) {
				from, conf.Classes.Names = "the estimates", m.Classes
			}
		}
	}
	source, err := c.source(con, conf)
	if err == nil && from != "" && source.Classes().K() > 0 {
		set := source.Classes()
		named := make([]string, set.K())
		for k := range named {
			named[k] = fmt.Sprintf("%d = %s", k, set.Name(event.Class(k)))
		}
		fmt.Fprintf(con.Err, "classes, from %s: %s\n", from, strings.Join(named, ", "))
	}
	return source, err
}

// publishFiles publishes rows. The error refused says that rows were refused; the others are
// published then.
func (c *publishCmd) publishFiles(
	ctx context.Context, con console, b *broker.Broker, conf files.Config,
) (refused, err error) {
	source, err := c.openOrdered(ctx, con, b, conf)
	if err != nil {
		return nil, err
	}
	p := &publishing{ordered: len(c.Log) > 0}
	if c.Rejects != "" {
		file, failed := os.OpenFile(c.Rejects, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
		if failed != nil {
			return nil, config.Usage(failed)
		}
		con.atEnd(file.Close)
		p.rejects = json.NewEncoder(file)
	}
	p.out, err = newStreamWriter(b.NC, c.Rate, ingest.PublisherConfig{
		Stream:   c.names.Log,
		Producer: c.Producer, Report: func(err error) { fmt.Fprintln(con.Err, "gqlstream:", err) },
	})
	if err != nil {
		return nil, err
	}
	defer p.out.publisher.Close()
	refused, err = c.readFiles(ctx, source, newMeter(con.Err, "events read"),
		func(b *event.Batch) ([]event.Refusal, error) { return nil, p.send(ctx, b) })
	err = errors.Join(err, p.flushLate(ctx))
	p.summary(con.Out, source, c.names.Log, cmp.Or(broker.Redacted(c.settings.NATS.URL), b.Where))
	if ctx.Err() != nil {
		err = fmt.Errorf("publish: interrupted; published events stay in the stream: %w",
			ctx.Err())
	}
	switch {
	case err != nil:
	case p.events == 0 && refused == nil:
		refused = errors.New("publish: nothing was published: no row of the files is an event")
	case p.events > 0 && refused != nil:
		refused = fmt.Errorf("publish: the other rows are published, but %w", refused)
	}
	return refused, err
}

func (c *publishCmd) publishControl(
	ctx context.Context, con console, b *broker.Broker, what string, fields map[string]string,
) error {
	payload, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	ack, err := b.JS.Publish(ctx, broker.Subject(c.names.Log, event.KindControl), payload)
	if err != nil {
		return fmt.Errorf("publish the %s: %w", what, err)
	}
	fmt.Fprintf(con.Out, "published the %s at position %d\n", what, ack.Sequence)
	return nil
}

// fileConfig checks the flags and returns the files to read.
func (c *publishCmd) fileConfig() (files.Config, error) {
	conf := files.Config{
		Version: c.ModelVersion,
		Ordered: true,
		Steps:   ingest.StepConfig{Every: c.messageEvery(), EventsMax: messageEventsMax},
	}
	switch {
	case len(c.Note) > event.IDBytesLimit:
		return conf, config.Usagef("publish: --note has %d bytes, at most %d",
			len(c.Note), event.IDBytesLimit)
	case !c.any() && c.Note == "" && !c.Clock:
		return conf, config.Usagef(
			"publish: no files; give --edges, --labels, --predictions, --members, " +
				"--vertices or --log, or --note or --clock",
		)
	case c.settings.NATS.URL == "" && c.settings.State == "":
		return conf, config.Usagef(
			"publish: no stream; give --nats URL, --state DIR or --config FILE")
	case c.settings.NATS.URL != "" && c.State != "":
		return conf, config.Usagef("publish: --nats and --state are given; choose one")
	case !(c.Rate >= 0):
		return conf, config.Usagef("publish: --rate %v is negative", c.Rate)
	}
	err := (&config.ResultFlags{Classes: c.Classes}).Merge(&c.settings)
	conf.Classes = c.settings.Classes.ClassSet()
	return conf, err
}

// messageEvery returns the span of event times of one message. A run by event time emits between
// messages only, so a message of days would be one estimate of days. The kinds of a span follow
// each other, and none of them may be late for it.
func (c *publishCmd) messageEvery() time.Duration {
	const longest, shortest = time.Hour, time.Minute
	every := longest
	for _, most := range []time.Duration{c.settings.Step.EmitEvery, c.settings.Late.After} {
		if most > 0 {
			every = min(every, max(shortest, most))
		}
	}
	return every
}

// publishing is one run of publish.
type publishing struct {
	out streamWriter
	// of refused rows, which the log and its quarantine never see; nil: nobody asks for them
	rejects *json.Encoder
	ordered bool // each event comes after those before it, of whatever kind
	events  int  // published
}

// send publishes the rows of a batch. A message holds events of one kind. Posts and edges of tables
// alternate, which would be a message for each: the kinds of a batch follow each other, unless one
// of its rows erases a vertex. A log keeps its order.
func (p *publishing) send(ctx context.Context, b *event.Batch) error {
	for _, r := range b.Refused {
		if p.rejects == nil {
			break
		}
		if err := p.rejects.Encode(rejected{
			r.Kind.String(), r.Position, r.Reason, r.Detail, string(r.Original),
		}); err != nil {
			return err
		}
	}
	runs := files.Runs(b)
	erases := func(v event.Vertex) bool { return v.Erase }
	if !p.ordered && !slices.ContainsFunc(b.Vertices, erases) {
		runs = byKind(runs)
	}
	for _, run := range runs {
		if err := p.out.publish(ctx, run.Kind, b, run.From, run.To); err != nil {
			return err
		}
	}
	p.events += b.Events()
	return nil
}

// byKind joins all runs of a kind, at the place of the first.
func byKind(runs []files.Run) (joined []files.Run) {
	for _, r := range runs {
		same := func(j files.Run) bool { return j.Kind == r.Kind }
		if at := slices.IndexFunc(joined, same); at >= 0 {
			joined[at].To = r.To
		} else {
			joined = append(joined, r)
		}
	}
	return joined
}

// rejected is a line of --rejects.
type rejected struct {
	Kind     string         `json:"kind"`
	Row      event.Position `json:"row"` // line of its file
	Reason   event.Reason   `json:"reason"`
	Detail   string         `json:"detail"`
	Original string         `json:"original"`
}

// flushLate waits until the sent messages are stored, a moment longer than ctx.
func (p *publishing) flushLate(ctx context.Context) error {
	if ctx.Err() == nil {
		return p.out.publisher.Flush(ctx)
	}
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), publishFlushMax)
	defer cancel()
	return p.out.publisher.Flush(late)
}

// summary prints the numbers of published rows.
func (p *publishing) summary(w io.Writer, log *files.Source, stream, where string) {
	refused := 0
	for _, t := range log.Tallies() {
		refused += t.Refused
	}
	messages, last := p.out.publisher.Stored()
	fmt.Fprintf(w, "published %s events in %s messages to stream %s at %s, now at position %d; "+
		"refused %s rows\n", grouped(p.events), grouped(int(messages)), stream, where, last,
		grouped(refused))
}
