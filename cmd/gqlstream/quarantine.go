package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
	"gqlstream/pipeline/config"
	"gqlstream/sinks/web"
)

type quarantineCmd struct {
	List  quarantineListCmd  `cmd:"" help:"List refused events, oldest first."`
	Show  quarantineShowCmd  `cmd:"" help:"Show one entry with its original bytes."`
	Retry quarantineRetryCmd `cmd:"" help:"Publish entries again, unchanged or corrected."`
}

func (*quarantineCmd) Help() string {
	return `Messages that do not decode, and events that are refused, are kept for 30 days in the
stream GQL_QUARANTINE, with the reason and their original bytes.

Examples:
  gqlstream quarantine list --nats nats://localhost:4222
  gqlstream quarantine list --state gqlstream-state --reason self-loop --json
  gqlstream quarantine retry 17 --nats nats://localhost:4222 --file corrected.json`
}

// openQuarantine opens the quarantine until the command ends.
func (f *serverFlags) openQuarantine(ctx context.Context, con console) (*ingest.Quarantine, error) {
	if f.settings.NATS.URL != "" && f.State != "" {
		return nil, config.Usagef("quarantine: give either --nats URL or --state DIR")
	}
	b, err := f.openExisting(ctx, con)
	if err != nil {
		return nil, err
	}
	return ingest.OpenQuarantine(ctx, b.JS, f.names)
}

type quarantineListCmd struct {
	serverFlags
	Reason string `placeholder:"WORD" enum:",${reasons}" default:"" help:"${entry_reason}"`
	Kind   string `placeholder:"KIND" enum:",${kinds},unknown" default:"" help:"${entry_kind}"`
	All    bool   `help:"Also entries that were retried."`
	JSON   bool   `name:"json" help:"One JSON object a line."`
}

func (*quarantineListCmd) Help() string {
	return `Example:
  gqlstream quarantine list --state gqlstream-state --reason malformed`
}

// Run lists entries.
func (c *quarantineListCmd) Run(ctx context.Context, con console) error {
	filter := ingest.QuarantineFilter{Reason: event.Reason(c.Reason), Kind: c.Kind, Retried: c.All}
	q, err := c.openQuarantine(ctx, con)
	if err != nil {
		return err
	}
	if c.JSON {
		lines := json.NewEncoder(con.Out)
		return q.List(ctx, filter, func(e ingest.QuarantineEntry) error { return lines.Encode(e) })
	}
	table := newTable(con.Out)
	fmt.Fprintln(table, "ENTRY\tTIME\tKIND\tREASON\tPOSITION\tEVENT\tRETRIED\tDETAIL")
	n, more := 0, 0
	err = q.List(ctx, filter, func(e ingest.QuarantineEntry) error {
		n++
		more += e.More
		index := "all"
		if e.Index >= 0 {
			index = strconv.Itoa(e.Index)
		}
		_, err := fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%d\t%s\t%t\t%s\n", e.Sequence,
			e.Time.Format(time.DateTime), e.Kind, e.Reason, e.Position, index, e.Retried, e.Detail)
		return err
	})
	fmt.Fprintf(con.Err, "%d entries\n", n)
	if more > 0 {
		fmt.Fprintf(con.Err,
			"%d more events were refused and have no entry; the log has them\n",
			more)
	}
	if gone := q.Discarded(); gone > 0 {
		fmt.Fprintf(con.Err, "%d older entries were deleted or discarded\n", gone)
	}
	return errors.Join(err, table.Flush())
}

type quarantineShowCmd struct {
	serverFlags
	Entry    uint64 `arg:"" help:"Number of the entry, from the list."`
	Original bool   `help:"Print only the original bytes."`
}

func (*quarantineShowCmd) Help() string {
	return `Example:
  gqlstream quarantine show 17 --nats nats://localhost:4222 --original > message.json`
}

// Run shows an entry as list --json does, with the beginning of its original.
func (c *quarantineShowCmd) Run(ctx context.Context, con console) error {
	q, err := c.openQuarantine(ctx, con)
	if err != nil {
		return err
	}
	e, err := q.Entry(ctx, c.Entry)
	if err != nil {
		return err
	}
	if c.Original {
		_, err = con.Out.Write(e.Original)
		return err
	}
	object := json.NewEncoder(printer{con.Out})
	object.SetEscapeHTML(false)
	object.SetIndent("", "  ")
	return object.Encode(web.QuarantineEntry{
		QuarantineEntry: e,
		Original:        fmt.Sprintf("%.4096s", e.Original),
	})
}

type quarantineRetryCmd struct {
	serverFlags
	Entries []uint64 `arg:"" optional:"" name:"entry" help:"Numbers of entries, from the list."`
	Reason  string   `placeholder:"WORD" enum:",${reasons}" default:"" help:"${retry_reason}"`
	File    string   `type:"existingfile" placeholder:"FILE" help:"${retry_file}"`
	Kind    string   `placeholder:"KIND" enum:",${kinds}" default:"" help:"${retry_kind}"`
	Again   bool     `help:"Also entries that were retried before."`
}

func (*quarantineRetryCmd) Help() string {
	return `Publishes entries again at the end of the log: an old event then follows newer ones and
overwrites their changes. An event that is refused again becomes a new entry. A late event is not
late again.

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
		return config.Usagef("quarantine retry: which entries? Give their numbers, or --reason")
	case len(c.Entries) > 0 && c.Reason != "":
		return config.Usagef("quarantine retry: numbers and --reason are given; choose one")
	case c.File != "" && len(c.Entries) != 1:
		return config.Usagef("quarantine retry: --file goes with one entry")
	}
	correction, err := c.correction()
	if err != nil {
		return err
	}
	q, err := c.openQuarantine(ctx, con)
	if err != nil {
		return err
	}
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
}

func (c *quarantineRetryCmd) correction() (ingest.Correction, error) {
	correction := ingest.Correction{Kind: c.Kind}
	if c.File == "" {
		return correction, nil
	}
	data, err := os.ReadFile(c.File)
	if err != nil {
		return correction, config.Usage(err)
	}
	correction.Payload = data
	correction.ContentType = map[string]string{
		".json":   wire.JSON,
		".ndjson": wire.NDJSON,
		".jsonl":  wire.NDJSON,
		".arrow":  wire.Arrow,
		".arrows": wire.Arrow,
	}[strings.ToLower(filepath.Ext(c.File))]
	return correction, nil
}

// entries looks up all entries to retry before anything is published.
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
			return nil, fmt.Errorf("entry %d was retried before; --again retries it once more",
				number)
		}
		entries = append(entries, e)
	}
	return entries, nil
}
