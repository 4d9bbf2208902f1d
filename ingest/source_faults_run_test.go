package ingest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
	"gqlstream/internal/checkpoint"
	"gqlstream/lab/campaign"
	"gqlstream/quant"
)

// memoryDisk is a disk in memory; every operation on it can fail.
type memoryDisk struct {
	files map[string][]byte
	fail  func() error
}

func (s *memoryDisk) Mkdir(string) error { return s.fail() }
func (s *memoryDisk) Create(name string) (checkpoint.File, error) {
	if err := s.fail(); err != nil {
		return nil, err
	}
	s.files[name] = nil
	return &shelfFile{s, name}, nil
}

func (s *memoryDisk) Open(name string) (io.ReadCloser, error) {
	data, ok := s.files[name]
	if !ok {
		return nil, os.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(data)), nil
}

func (s *memoryDisk) Rename(from, to string) error {
	if err := s.fail(); err != nil {
		return err
	}
	for name, data := range s.files {
		if rest, ok := strings.CutPrefix(name, from+"/"); ok {
			delete(s.files, name)
			s.files[to+"/"+rest] = data
		}
	}
	return nil
}

func (s *memoryDisk) RemoveAll(name string) error {
	for n := range s.files {
		if n == name || strings.HasPrefix(n, name+"/") {
			delete(s.files, n)
		}
	}
	return nil
}

func (s *memoryDisk) List(dir string) (names []string, err error) {
	for n := range s.files {
		if rest, ok := strings.CutPrefix(n, dir+"/"); ok {
			names = append(names, strings.Split(rest, "/")[0])
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
func (s *memoryDisk) SyncDir(string) error { return s.fail() }

type shelfFile struct {
	s    *memoryDisk
	name string
}

func (f *shelfFile) Write(p []byte) (int, error) {
	if err := f.s.fail(); err != nil {
		f.s.files[f.name] = append(f.s.files[f.name], p[:len(p)/2]...)
		return len(p) / 2, err
	}
	f.s.files[f.name] = append(f.s.files[f.name], p...)
	return len(p), nil
}
func (f *shelfFile) Sync() error  { return f.s.fail() }
func (f *shelfFile) Close() error { return nil }

// outcome is the output of a run over a log, and its last state.
type outcome struct {
	published, refused []string
	position           event.Position
	refusedAt          [2]int // position and index of the last refusal
	state              string
}

// faultyCore is cheap to solve: the test is about steps and their storage.
var faultyCore = incremental.Config{
	Classes: 2, Communities: []graphstore.Rule{{Name: "all", Kind: graphstore.Everyone}},
	CompactEvery: 500 * time.Millisecond,
	Estimates:    []quant.Options{{Method: "pcc"}},
}

// run reads the log to its end, in as many lives as it takes.
func (b *faultyBroker) run(t *testing.T, decoder *wire.Decoder) (out outcome) {
	disk := &memoryDisk{files: map[string][]byte{}, fail: func() error {
		if b.faulty && b.rand.IntN(60) == 0 {
			b.count[faultDisk].Add(1)
			return errors.New("injected")
		}
		return nil
	}}
	for lives := 0; ; lives++ {
		if lives > 1000 {
			t.Fatal("no run comes to its end")
		}
		if b.live(t, decoder, disk, &out) {
			return out
		}
	}
}

// live runs until the end of the log, or until the process dies; it reports which.
func (b *faultyBroker) live(
	t *testing.T, decoder *wire.Decoder, disk *memoryDisk, out *outcome,
) (done bool) {
	dir, err := checkpoint.Open(disk, "state")
	if err != nil {
		return false
	}
	saved, err := dir.Load(func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	config := JetStreamConfig{
		UntilLast: true,
		Step:      StepConfig{Every: 50 * time.Millisecond, EventsMax: 40},
	}
	var core *incremental.Core
	if saved == nil {
		core, err = incremental.New(faultyCore)
	} else {
		m := saved.Manifest
		config.From = Resume{
			Position: event.Position(m.Position), Time: event.Time(m.LogTime),
			Emitted: m.Emitted,
		}
		config.Identity = &Identity{
			Stream: "GQL", Position: config.From.Position,
			Digest: ParseDigest(m.Stream.Digest),
		}
		core, err = incremental.Restore(faultyCore, saved.Sections)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	source, err := OpenJetStream(t.Context(), b, decoder, config)
	if err != nil {
		if !errors.Is(err, nats.ErrTimeout) {
			t.Fatal(err)
		}
		return false
	}
	defer source.Close()
	var batch event.Batch
	for {
		err := source.Next(t.Context(), &batch)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		result := core.Step(&batch)
		out.add(t, &batch, &result)
		if result.Compacted {
			b.save(t, dir, source, core, &batch)
		}
		if b.faulty && b.rand.IntN(10) == 0 {
			b.count[faultRestart].Add(1)
			return false
		}
	}
	sections, err := core.Sections()
	if err != nil {
		t.Fatal(err)
	}
	out.state = digestOf(sections)
	return true
}

func digestOf(sections []incremental.Section) string {
	c := checkpoint.New(checkpoint.Manifest{})
	for _, s := range sections {
		c.Add(path.Base(s.Name), s.Data)
	}
	return checkpoint.Digest(c.Manifest.Sections)
}

// save makes a checkpoint, or does not.
func (b *faultyBroker) save(
	t *testing.T, dir *checkpoint.Dir, source *JetStreamSource, core *incremental.Core,
	batch *event.Batch,
) {
	id := source.Identity()
	state, err := core.Sections()
	if err != nil {
		t.Fatal(err)
	}
	c := checkpoint.New(checkpoint.Manifest{
		Position: uint64(
			batch.Last,
		), LogTime: int64(batch.Time), Emitted: batch.Emit, Config: faultyCore.Digest(),
		Stream: checkpoint.Stream{Name: id.Stream, Digest: id.Digest.String()},
	})
	for _, s := range state {
		c.Add(s.Name, s.Data)
	}
	_, _ = dir.Save(c)
}

// add publishes the output of a step as the sinks do: it leaves out records that are not
// newer than the last.
func (o *outcome) add(t *testing.T, b *event.Batch, result *incremental.Result) {
	for _, r := range slices.Concat(b.Refused, result.Refused) {
		if at := [2]int{int(r.Position), r.Index}; slices.Compare(at[:], o.refusedAt[:]) > 0 {
			o.refused, o.refusedAt = append(
				o.refused,
				fmt.Sprint(r.Position, r.Index, r.Reason),
			), at
		}
	}
	if len(result.Estimates) == 0 || result.Position <= o.position {
		return
	}
	o.position = result.Position
	for _, e := range result.Estimates {
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		o.published = append(o.published, string(data))
	}
}

// Whatever the broker, the network and the disk do, and however often the process dies, the
// published sequence and the final state must be those of an undisturbed run.
// GQLSTREAM_SOURCEFAULTS sets the number of runs (make faults: 100000).
func TestSourceFaultsChangeNothing(t *testing.T) {
	runs, first := uint64(campaign.Size(t, "GQLSTREAM_SOURCEFAULTS", 200)), campaign.Seed(t, 0)
	const runsOfLog = 20
	decoder := testDecoder(t)
	var total [faultKinds]int64
	var want outcome
	var log []*jetstream.RawStreamMsg
	estimates, begun := 0, time.Now()
	for run := first; run < first+runs; run++ {
		synctest.Test(t, func(t *testing.T) {
			if run%runsOfLog == 0 || log == nil {
				log = faultyLog(run / runsOfLog)
				want = (&faultyBroker{messages: log, rand: rand.New(rand.NewPCG(0, 0))}).run(
					t,
					decoder,
				)
			}
			b := &faultyBroker{messages: log, faulty: true, rand: rand.New(rand.NewPCG(run, 42))}
			got := b.run(t, decoder)
			if !slices.Equal(got.published, want.published) {
				t.Fatalf(
					"run %d: published\n%s",
					run,
					firstDifference(got.published, want.published),
				)
			}
			if !slices.Equal(got.refused, want.refused) || got.state != want.state {
				t.Fatalf(
					"run %d: refused %v, state %s; want %v, %s", run, got.refused, got.state,
					want.refused, want.state,
				)
			}
			for i := range total {
				total[i] += b.count[i].Load()
			}
			estimates += len(got.published)
		})
	}
	t.Logf(
		"%d runs in %v, %d estimates: %d messages again, %d old ones, %d left out, %d delays, "+
			"%d broken connections, "+
			"%d requests refused, %d replies that are no message, %d deaths, %d failures of the "+
			"disk, %d replicas that lag; 0 differences",
		runs,
		time.Since(begun).Round(time.Second),
		estimates,
		total[faultRepeat],
		total[faultOld],
		total[faultSkip],
		total[faultDelay],
		total[faultBreak],
		total[faultRequest],
		total[faultBadReply],
		total[faultRestart],
		total[faultDisk],
		total[faultLag],
	)
	for kind, n := range total {
		if n == 0 {
			t.Errorf("no fault of kind %d happened", kind)
		}
	}
}
