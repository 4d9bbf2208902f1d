package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
)

type quarantineCmd struct {
	List  quarantineListCmd  `cmd:"" help:"List what was refused, oldest first."`
	Show  quarantineShowCmd  `cmd:"" help:"Show one entry with its original bytes."`
	Retry quarantineRetryCmd `cmd:"" help:"Publish entries again, as they were or corrected."`
}

// Help is the long help of the command.
func (*quarantineCmd) Help() string {
	return `Messages that do not decode, and events that are refused, are kept in the stream GQL_QUARANTINE with
the reason, their position in the log and their original bytes. Entries are kept for 30 days; the
originals stay in the log.

Examples:
  gqlstream quarantine list --nats nats://localhost:4222
  gqlstream quarantine list --state gqlstream-state --reason self-loop --json
  gqlstream quarantine retry 17 --nats nats://localhost:4222 --file corrected.json`
}

// quarantineFlags say where the quarantine is.
type quarantineFlags struct {
	NATS        string `name:"nats" placeholder:"URL" help:"The NATS server, such as the one that a run listens on."`
	Credentials string `type:"existingfile" placeholder:"FILE" help:"NATS credentials file, with --nats."`
	State       string `type:"existingdir" placeholder:"DIR" help:"State directory with an embedded server, which no process may be using. [gqlstream-state]"`
}

// with opens the quarantine, calls use and closes everything again.
func (f quarantineFlags) with(
	ctx context.Context, con console, use func(*ingest.Quarantine) error,
) (err error) {
	if f.NATS == "" && f.State == "" {
		if _, err := os.Stat(stateDefault); err != nil {
			return usagef("quarantine: give --nats URL or --state DIR; there is no %s here", stateDefault)
		}
		f.State = stateDefault
	}
	if f.NATS != "" && f.State != "" {
		return usagef("quarantine: give either --nats URL or --state DIR")
	}
	log := slog.New(slog.NewTextHandler(con.Err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	b, err := openBroker(fileConfig{
		State: f.State, NATS: natsConfig{URL: f.NATS, Credentials: f.Credentials},
	}, log)
	if err != nil {
		return explainLocked(err)
	}
	defer func() { err = errors.Join(err, b.close()) }()
	q, err := ingest.OpenQuarantine(ctx, b.js, ingest.DefaultStreamNames())
	if err != nil {
		return err
	}
	return use(q)
}

type quarantineListCmd struct {
	quarantineFlags
	Reason string `placeholder:"WORD" help:"Only entries with this reason, self-loop say."`
	Kind   string `placeholder:"KIND" help:"Only entries of this kind of event, or unknown."`
	All    bool   `help:"Also entries that were retried."`
	JSON   bool   `name:"json" help:"One JSON object a line."`
}

// Help is the long help of the command.
func (*quarantineListCmd) Help() string {
	return `Example:
  gqlstream quarantine list --state gqlstream-state --reason malformed`
}

// Run lists entries.
func (c *quarantineListCmd) Run(ctx context.Context, con console) error {
	filter := ingest.QuarantineFilter{Reason: event.Reason(c.Reason), Kind: c.Kind, Retried: c.All}
	return c.with(ctx, con, func(q *ingest.Quarantine) error {
		if c.JSON {
			lines := json.NewEncoder(con.Out)
			return q.List(ctx, filter, func(e ingest.QuarantineEntry) error { return lines.Encode(e) })
		}
		table := tabwriter.NewWriter(con.Out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(table, "ENTRY\tTIME\tKIND\tREASON\tPOSITION\tEVENT\tRETRIED\tDETAIL")
		n := 0
		err := q.List(ctx, filter, func(e ingest.QuarantineEntry) error {
			n++
			_, err := fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", e.Sequence,
				e.Time.Format(time.DateTime), e.Kind, e.Reason, e.Position, eventText(e), retriedText(e),
				e.Detail)
			return err
		})
		fmt.Fprintf(con.Err, "%d entries\n", n)
		return errors.Join(err, table.Flush())
	})
}

// eventText says which event of its message an entry is.
func eventText(e ingest.QuarantineEntry) string {
	if e.Index < 0 {
		return "all"
	}
	return fmt.Sprint(e.Index)
}

func retriedText(e ingest.QuarantineEntry) string {
	if e.Retried {
		return "yes"
	}
	return "no"
}

type quarantineShowCmd struct {
	quarantineFlags
	Entry    uint64 `arg:"" help:"Number of the entry, from the list."`
	Original bool   `help:"Only the original bytes, as they are."`
	JSON     bool   `name:"json" help:"One JSON object; the original is in base64."`
}

// Help is the long help of the command.
func (*quarantineShowCmd) Help() string {
	return `Example:
  gqlstream quarantine show 17 --nats nats://localhost:4222 --original > message.json`
}

// Run shows an entry.
func (c *quarantineShowCmd) Run(ctx context.Context, con console) error {
	return c.with(ctx, con, func(q *ingest.Quarantine) error {
		e, err := q.Entry(ctx, c.Entry)
		if err != nil {
			return err
		}
		switch {
		case c.Original:
			_, err = con.Out.Write(e.Original)
		case c.JSON:
			err = json.NewEncoder(con.Out).Encode(struct {
				ingest.QuarantineEntry
				Original []byte `json:"original"`
			}{e, e.Original})
		default:
			_, err = con.Out.Write(describeEntry(e))
		}
		return err
	})
}

// describeEntry returns an entry as lines of text.
func describeEntry(e ingest.QuarantineEntry) []byte {
	const shownBytesMax = 4096
	var out bytes.Buffer
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, line := range [][2]string{
		{"entry", fmt.Sprint(e.Sequence)},
		{"time", e.Time.Format(time.RFC3339)},
		{"kind", e.Kind},
		{"reason", string(e.Reason)},
		{"detail", e.Detail},
		{"position", fmt.Sprint(e.Position)},
		{"event", eventText(e)},
		{"content type", e.ContentType},
		{"retried", retriedText(e)},
		{"bytes", fmt.Sprint(e.Bytes)},
	} {
		fmt.Fprintf(table, "%s\t%s\n", line[0], line[1])
	}
	table.Flush()
	shown := e.Original[:min(len(e.Original), shownBytesMax)]
	if printable(shown) {
		fmt.Fprintf(&out, "\n%s\n", shown)
	} else {
		fmt.Fprintf(&out, "\n%s", hex.Dump(shown))
	}
	if len(shown) < len(e.Original) {
		fmt.Fprintf(&out, "... (%d bytes in all; --original writes them)\n", len(e.Original))
	}
	return out.Bytes()
}

// printable reports whether bytes may be written to a terminal as they are. The
// cut at the end may go through a character.
func printable(text []byte) bool {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		if r == utf8.RuneError && n == 1 && len(text) >= utf8.UTFMax {
			return false
		}
		if (r < ' ' && r != '\n' && r != '\r' && r != '\t') || (r >= 0x7f && r < 0xa0) {
			return false
		}
		text = text[n:]
	}
	return true
}

type quarantineRetryCmd struct {
	quarantineFlags
	Entries []uint64 `arg:"" optional:"" name:"entry" help:"Numbers of entries, from the list."`
	Reason  string   `placeholder:"WORD" help:"All entries with this reason that were not retried."`
	File    string   `type:"existingfile" placeholder:"FILE" help:"Publish this instead of the original; for one entry."`
	Kind    string   `placeholder:"KIND" help:"Publish as this kind of event."`
	Again   bool     `help:"Also entries that were retried before."`
}

// Help is the long help of the command.
func (*quarantineRetryCmd) Help() string {
	return `Publishes entries again at the end of the log and marks them as retried. An old event then follows
newer ones: if it says something that has changed since, it takes it back. What is refused again
becomes a new entry. An event that was diverted as late is not late again, since somebody has
decided that it counts; it still ends at its own time plus its ttl or window, which may be past.

Examples:
  gqlstream quarantine retry 17 18 --nats nats://localhost:4222
  gqlstream quarantine retry --reason unknown-class --state gqlstream-state
  gqlstream quarantine retry --reason late --nats nats://localhost:4222
  gqlstream quarantine retry 19 --nats nats://localhost:4222 --file corrected.ndjson`
}

// Run publishes entries again.
func (c *quarantineRetryCmd) Run(ctx context.Context, con console) error {
	switch {
	case len(c.Entries) == 0 && c.Reason == "":
		return usagef("quarantine retry: which entries? Give their numbers, or --reason")
	case len(c.Entries) > 0 && c.Reason != "":
		return usagef("quarantine retry: numbers and --reason are given; choose one")
	case c.File != "" && len(c.Entries) != 1:
		return usagef("quarantine retry: --file goes with one entry")
	}
	correction, err := c.correction()
	if err != nil {
		return err
	}
	return c.with(ctx, con, func(q *ingest.Quarantine) error {
		entries, err := c.entries(ctx, q)
		if err != nil {
			return err
		}
		for _, e := range entries {
			position, err := q.Retry(ctx, e, correction)
			if err != nil {
				return err
			}
			fmt.Fprintf(con.Out, "entry %d is in the log again, at position %d\n", e.Sequence, position)
		}
		if len(entries) == 0 {
			fmt.Fprintln(con.Err, "nothing to retry")
		}
		return nil
	})
}

func (c *quarantineRetryCmd) correction() (ingest.Correction, error) {
	correction := ingest.Correction{Kind: c.Kind}
	if c.Kind != "" {
		if _, ok := event.ParseKind(c.Kind); !ok {
			return correction, usagef("quarantine retry: --kind %q is no kind of event", c.Kind)
		}
	}
	if c.File == "" {
		return correction, nil
	}
	data, err := os.ReadFile(c.File)
	if err != nil {
		return correction, usageError{err}
	}
	correction.Payload = data
	switch strings.ToLower(filepath.Ext(c.File)) {
	case ".json":
		correction.ContentType = event.JSON
	case ".ndjson", ".jsonl":
		correction.ContentType = event.NDJSON
	case ".arrow", ".arrows":
		correction.ContentType = event.Arrow
	}
	return correction, nil
}

// entries looks up what is to be retried, all of it before anything is published.
func (c *quarantineRetryCmd) entries(
	ctx context.Context, q *ingest.Quarantine,
) (entries []ingest.QuarantineEntry, err error) {
	if c.Reason != "" {
		filter := ingest.QuarantineFilter{Reason: event.Reason(c.Reason), Retried: c.Again}
		err = q.List(ctx, filter, func(e ingest.QuarantineEntry) error {
			entries = append(entries, e)
			return nil
		})
		return entries, err
	}
	for _, number := range c.Entries {
		e, err := q.Entry(ctx, number)
		if err != nil {
			return nil, err
		}
		if e.Retried && !c.Again {
			return nil, fmt.Errorf("entry %d was retried before; --again retries it once more", number)
		}
		entries = append(entries, e)
	}
	return entries, nil
}
