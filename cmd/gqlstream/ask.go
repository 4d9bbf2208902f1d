package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/incremental/ask"
	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/internal/request"
	"gqlstream/pipeline/config"
)

type askCmd struct {
	fileFlags
	refusedFlags
	serverFlags
	Classes     string   `placeholder:"LIST" help:"Names of the classes in order, or their number."`
	Community   []string `required:"" sep:"none" placeholder:"NAME" help:"${ask_community}"`
	Count       int      `placeholder:"N" help:"Number of vertices to label."`
	TargetWidth float64  `placeholder:"X" help:"${ask_target_width}"`
	Confidence  float64  `default:"0.9" placeholder:"X" help:"${ask_confidence} [${default}]"`
	Seed        uint64   `default:"1" help:"${ask_seed} [${default}]"`
	Out         outFile  `short:"o" default:"-" placeholder:"FILE" help:"${ask_out} [${default}]"`
	Publish     bool     `help:"${ask_publish}"`
}

func (*askCmd) Help() string {
	return `Prints the interval that labels of members will give, and members to label, drawn at
random with the probability pi of their row. Reads the newest checkpoint of --state, or files like
estimate. Fill in the column label and publish the file: gqlstream publish --labels FILE. See
docs/labels.md.

Examples:
  gqlstream ask --community berlin --count 50 --out berlin.csv
  gqlstream ask --community berlin --community ankara --target-width 0.1 --seed 7
  gqlstream ask --edges e.csv --labels l.csv --predictions p.csv --members m.csv \
      --community berlin --count 50`
}

// Run draws.
func (c *askCmd) Run(ctx context.Context, con console) error {
	if err := (&config.ResultFlags{Classes: c.Classes}).Merge(&c.settings); err != nil {
		return err
	}
	switch {
	case c.Publish && c.settings.NATS.URL == "":
		return config.Usagef(
			"ask: --publish needs a server; give --nats URL, or --config FILE with nats.url")
	case c.any() && c.State != "":
		return config.Usagef("ask: files and --state are given; choose one")
	case !c.Publish && c.NATS != "":
		return config.Usagef("ask: --nats needs --publish; leave --nats out: ask reads the " +
			"newest checkpoint of --state, also during a run")
	}
	list, err := c.draw(ctx, c.settings, con)
	if err != nil {
		return err
	}
	if err := c.summarise(c.Out.beside(con), list); err != nil {
		return err
	}
	if c.Publish {
		if err := c.publish(ctx, list, con); err != nil {
			return err
		}
	}
	if c.Out == "-" {
		return list.WriteCSV(con.Out)
	}
	var rows bytes.Buffer
	if err := list.WriteCSV(&rows); err != nil {
		return err
	}
	return writePrivate(string(c.Out), rows.Bytes())
}

// writePrivate writes a file of mode 0600, also where there was one that others can read: it names
// people.
func writePrivate(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		err = file.Chmod(0o600)
		if err != nil {
			return errors.Join(err, file.Close())
		}
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}

// draw asks the newest checkpoint, or files, which run through a core first.
func (c *askCmd) draw(
	ctx context.Context,
	settings config.Settings,
	con console,
) (*ask.Answer, error) {
	q := ask.Question{
		Communities: c.Community,
		Count:       c.Count,
		TargetWidth: c.TargetWidth,
		Confidence:  c.Confidence,
		Seed:        c.Seed,
	}
	if !c.any() {
		list, err := ask.OfState(cmp.Or(c.settings.State, config.StateDefault), settings.Classes, 0,
			nil, q)
		if err != nil {
			return nil, config.Usage(err)
		}
		return list, nil
	}
	setOneShotDefaults(&settings)
	core, _, err := c.drain(ctx, &settings, ingest.StepConfig{Every: -1}, &c.refusedFlags, con)
	if err != nil {
		return nil, err
	}
	defer core.Close()
	sections, err := core.Sections()
	if err != nil {
		return nil, err
	}
	s := &ask.Source{
		View:     core.View(),
		Classes:  settings.Classes.ClassSet(),
		Position: core.Position(),
		Sections: map[string][]byte{},
	}
	for _, section := range sections {
		s.Sections[section.Name] = section.Data
	}
	list, err := s.Ask(q)
	if err != nil {
		return nil, config.Usage(err)
	}
	return list, nil
}

// summarise prints how narrow an interval the labels buy, and which further labels would help.
func (c *askCmd) summarise(w io.Writer, list *ask.Answer) error {
	out := bufio.NewWriter(w)
	for i, o := range list.Others {
		if i == 0 || o.Community != list.Others[i-1].Community {
			fmt.Fprintf(out, "%s:", o.Community)
		}
		fmt.Fprintf(out, " %d labels: ±%.2f;", o.Labels, o.HalfWidth)
		if i+1 == len(list.Others) || o.Community != list.Others[i+1].Community {
			fmt.Fprintln(out)
		}
	}
	fmt.Fprintf(out, "to label: %d vertices; labelled before: %d\n",
		list.Fresh, len(list.Drawn)-list.Fresh)
	for _, o := range list.Offers {
		fmt.Fprintf(out, "%s: %d labels, the widest %.0f %% interval is ±%.3f\n",
			o.Community, o.Labels, 100*c.Confidence, o.HalfWidth)
	}
	for _, t := range list.When {
		due := "no need to label now"
		if t.Now {
			due = "label now"
		}
		fmt.Fprintf(out, "%s: %s: %s\n", t.Community, due, t.Reason)
	}
	for _, a := range list.Advice {
		fmt.Fprintf(out,
			"%s: calibration: %.0f %% of the variance comes from labels of class %s (%.0f "+
				"count here); %d more labels near it halve that part\n",
			a.Community, 100*a.Share, a.Name, a.Effective, a.More)
	}
	return out.Flush()
}

// The bounds of the stream of questions: the oldest go first. It names people, so none stays for
// long.
const (
	askedBytesMax = 64 << 20
	askedAgeMax   = 30 * 24 * time.Hour
)

// publish puts a message for each vertex to be labelled into the stream of questions. The
// same draw published again adds nothing within two minutes.
func (c *askCmd) publish(ctx context.Context, list *ask.Answer, con console) error {
	b, err := c.open(ctx, con)
	if err != nil {
		return err
	}
	subject, err := questions(ctx, b.JS, c.names)
	if err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	for _, row := range list.Drawn {
		if row.Label != nil {
			continue
		}
		data, err := json.Marshal(struct {
			ask.Drawn
			Communities []string `json:"communities"`
		}{row, row.Communities})
		if err != nil {
			return err
		}
		id := fmt.Sprintf("%d/%d/%s", list.Position, c.Seed, row.Vertex)
		if _, err := b.JS.Publish(ctx, subject, data, jetstream.WithMsgID(id)); err != nil {
			return fmt.Errorf("ask: publish: %w", err)
		}
	}
	return nil
}

// questions creates the stream of the questions about a log where it does not exist, kept by as
// many servers as the log, and returns its subject.
func questions(
	ctx context.Context,
	js jetstream.JetStream,
	names broker.StreamNames,
) (string, error) {
	log, err := js.Stream(ctx, names.Log)
	if err != nil {
		return "", fmt.Errorf("the log %s of the pipeline (see nats.prefix): %w",
			names.Log, err)
	}
	subject := questionSubject(names.Log)
	stream, err := request.EnsureStream(ctx, js, jetstream.StreamConfig{
		Name:        questionStream(names.Log),
		MaxAge:      askedAgeMax,
		Description: "gqlstream: vertices to label",
		Subjects:    []string{subject},
		MaxBytes:    askedBytesMax,
		Replicas:    cmp.Or(names.Replicas, log.CachedInfo().Config.Replicas),
	})
	if err != nil {
		return "", err
	}
	if c := stream.CachedInfo().Config; c.MaxAge == 0 { // an earlier version made it
		c.MaxAge = askedAgeMax
		if _, err := js.UpdateStream(ctx, c); err != nil {
			return "", err
		}
	}
	return subject, request.AuditReplicas(stream, names.Replicas)
}
