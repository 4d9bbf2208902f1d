package sinks

import (
	"bufio"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/request"
)

// Gap is a range of emissions of one shard that the output log lacks: after From and before To.
// In an inclusive gap the emission at To is missing as well, if it has records.
type Gap struct {
	Shard     int
	From, To  uint64
	Inclusive bool
}

// Lacks reports whether a position lies in the gap.
func (g *Gap) Lacks(position uint64) bool {
	return position > g.From && (position < g.To || g.Inclusive && position == g.To)
}

// Rebuild makes the output log again with the emissions that it lacks. Sequences after a hole
// change, and so do the times of storage: readers find their places by position. No run may
// publish meanwhile.
type Rebuild struct {
	Gaps []Gap

	js    jetstream.JetStream
	names Names
	log   string
	torn  map[shardPosition]bool // emissions that lack some of their parts
	marks map[int]shardMark      // by shard, the newest that is left
	first uint64                 // first sequence of the output log
}

type shardPosition struct {
	shard    int
	position uint64
}

// storedBatch is a batch of the output log that is left whole.
type storedBatch struct {
	shard    int
	mark     shardMark
	messages []rebuiltMessage
}

// rebuiltMessage is a message as the file of a rebuilding has it.
type rebuiltMessage struct {
	Subject, Log string
	Data         []byte
}

// FindGaps looks for the emissions that the output log lacks. until returns the last published
// position of a shard: if the output log ends before it, the rest is a gap.
func FindGaps(
	ctx context.Context, js jetstream.JetStream, names Names, log string,
	until func(shard int) uint64,
) (*Rebuild, error) {
	r := &Rebuild{
		js: js, names: names, log: log, torn: map[shardPosition]bool{}, marks: map[int]shardMark{},
	}
	parts := map[shardPosition]int{} // of the emissions since the last complete one
	done, open, holed := map[int]uint64{}, map[int]bool{}, false
	hole := func() {
		holed = true
		for shard := range done {
			open[shard] = true
		}
	}
	err := r.batches(ctx, hole, func(b *storedBatch) error {
		at := shardPosition{b.shard, b.mark.Position}
		if b.mark.Log != log {
			return nil
		}
		r.marks[b.shard] = b.mark
		bare := b.mark.Records == 0 // perhaps repeated: its emission may be gone
		if !bare {
			if parts[at]++; parts[at] < b.mark.Parts {
				r.torn[at] = true // until the others are read
				return nil
			}
			delete(r.torn, at)
		}
		if _, begun := done[b.shard]; !begun && holed && r.first <= 1 {
			done[b.shard], open[b.shard] = 0, true // the first emission may be gone
		}
		if open[b.shard] && at.position > done[b.shard] {
			r.Gaps = append(r.Gaps, Gap{b.shard, done[b.shard], at.position, bare})
		}
		done[b.shard], open[b.shard] = max(done[b.shard], at.position), false
		return nil
	})
	if err != nil {
		return nil, err
	}
	for shard := range done {
		if to := until(shard); to > done[shard] {
			r.Gaps = append(r.Gaps, Gap{shard, done[shard], to, true})
		}
	}
	return r, nil
}

// batches visits the whole batches of the output log, and calls hole where messages are gone or
// damaged.
func (r *Rebuild) batches(ctx context.Context, hole func(), visit func(*storedBatch) error) error {
	_, info, err := leader(ctx, r.js, r.names.Estimates)
	if err != nil {
		return err
	}
	state := info.State
	r.first = state.FirstSeq
	at := max(state.FirstSeq, 1) - 1
	var b *storedBatch
	id := ""
	feed := request.Feed{JS: r.js, Stream: r.names.Estimates}
	err = feed.Each(ctx, at, func(m request.Message) (bool, error) {
		if m.Sequence != at+1 || !json.Valid(m.Data()) {
			b = nil
			hole()
		}
		at = m.Sequence
		further := at < state.LastSeq
		one := rebuiltMessage{m.Subject(), m.Headers().Get(headerLog), slices.Clone(m.Data())}
		if shard, is := r.names.shardOf(m.Subject()); is {
			mark, err := parseMark(m.Data())
			if b = nil; err != nil {
				hole()
				return further, nil
			}
			b, id = &storedBatch{shard: shard, mark: mark}, m.Headers().Get(request.HeaderBatchID)
		} else if b == nil || m.Headers().Get(request.HeaderBatchID) != id {
			b = nil // of a batch that is not whole
			return further, nil
		}
		if b.messages = append(b.messages, one); len(b.messages) <= b.mark.Records {
			return further, nil
		}
		whole := b
		b = nil
		return further, visit(whole)
	})
	if at < state.LastSeq && (err == nil || errors.Is(err, context.DeadlineExceeded)) {
		hole()
		return nil
	}
	return err
}

// Made returns the batches of an emission of one shard that the output log lacks.
func (r *Rebuild) Made(shard int, e *Emission) (batches [][]rebuiltMessage, err error) {
	mark, known := r.marks[shard]
	if !known {
		return nil, fmt.Errorf("no mark of shard %d is left", shard)
	}
	w := &Writer{config: WriterConfig{
		Streams: StreamsConfig{Names: r.names}, Shard: shard, Log: r.log,
		Config: mark.Config, Classes: mark.Classes, Writer: mark.Writer,
	}}
	e.Active = e.Time
	err = w.parts(e, func(m *shardMark, records []*nats.Msg) error {
		batch, err := w.batch(m, records)
		var list []rebuiltMessage
		for _, one := range batch {
			list = append(list, rebuiltMessage{one.Subject, one.Header.Get(headerLog), one.Data})
		}
		batches = append(batches, list)
		return err
	})
	return batches, err
}

// Emitted is an emission that was made again, as batches.
type Emitted struct {
	Shard    int
	Position uint64
	Batches  [][]rebuiltMessage
}

// Write writes the whole content of the output log to a file, with the emissions that were made
// again in their places, for Replace.
func (r *Rebuild) Write(ctx context.Context, path string, made []Emitted) error {
	stream, err := r.js.Stream(ctx, r.names.Estimates)
	if err != nil {
		return err
	}
	config := stream.CachedInfo().Config
	config.FirstSeq = max(stream.CachedInfo().State.FirstSeq, 1)
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	buffer := bufio.NewWriter(file)
	out := gob.NewEncoder(buffer)
	put := func(shard int, before uint64) (err error) {
		made = slices.DeleteFunc(made, func(e Emitted) bool {
			take := e.Shard == shard && e.Position <= before
			for i := 0; take && err == nil && i < len(e.Batches); i++ {
				err = out.Encode(e.Batches[i])
			}
			return take
		})
		return err
	}
	err = out.Encode(config)
	if err == nil {
		err = r.batches(ctx, func() {}, func(b *storedBatch) error {
			if b.mark.Log == r.log && r.torn[shardPosition{b.shard, b.mark.Position}] {
				return nil
			}
			before := b.mark.Position
			if b.mark.Log != r.log || before == 0 {
				return out.Encode(b.messages)
			}
			if b.mark.Records > 0 {
				before--
			}
			return errors.Join(put(b.shard, before), out.Encode(b.messages))
		})
	}
	for _, g := range r.Gaps {
		err = errors.Join(err, put(g.Shard, ^uint64(0)))
	}
	err = errors.Join(err, buffer.Flush(), file.Sync())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	return err
}

// Replace deletes the output log, creates it again with the content of a file of Write, and removes
// the file. If it is interrupted, call it again.
func Replace(ctx context.Context, js jetstream.JetStream, names Names, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	in := gob.NewDecoder(bufio.NewReader(file))
	var config jetstream.StreamConfig
	if err := in.Decode(&config); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := js.DeleteStream(ctx, config.Name); err != nil &&
		!errors.Is(err, jetstream.ErrStreamNotFound) {
		return err
	}
	if _, err := js.CreateStream(ctx, config); err != nil {
		return err
	}
	last := map[string]uint64{} // sequence of the newest message, by subject of marks
	for {
		var list []rebuiltMessage
		if err := in.Decode(&list); errors.Is(err, io.EOF) {
			return os.Remove(path)
		} else if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		var batch []*nats.Msg
		for _, m := range list {
			batch = append(batch, newMessage(m.Subject, m.Log, m.Data))
		}
		end, err := publishAfter(ctx, js.Conn(), jetstream.ExpectedLastSubjSeqHeader,
			last[list[0].Subject], batch)
		if err != nil {
			return fmt.Errorf("stream %s is rebuilt from %s: %w", config.Name, path, err)
		}
		last[list[0].Subject] = end - uint64(len(batch)) + 1
	}
}

// Lives reports whether the writer of a mark may still publish.
func (m *Mark) Lives() bool {
	return m.Sequence > 0 && !m.Closed && m.age <= markFreshMax
}
