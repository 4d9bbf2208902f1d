package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
	"gqlstream/lab/campaign"
)

// damageTargets name the stored data to damage, by a part of the path in the state
// directory.
var damageTargets = []struct{ name, part string }{
	{"input log", "/streams/GQL/msgs/"},
	{"output log", "/streams/GQL_ESTIMATES/msgs/"},
	{"checkpoint", "/checkpoints/"},
	{"position file", ""},
}

// outputPositions are the position files of the outputs in a damaged state directory.
var outputPositions = []string{"out.ndjson.position", "_position.json"}

var damageKinds = []string{"bit", "cut", "zeros", "missing"}

// damageConfig makes a checkpoint at the end of each start only. The three that stay then include
// the one from which the comparison replays, on a slow machine as well.
var damageConfig = strings.Replace(crashConfig, "{every: 200ms}", "{every: 1h}", 1)

// A start or a scrub must report any damage to the state directory that changes stored data
// or a position file. After the advice of the report was followed, the records must be
// those of a replay of the remaining log. GQLSTREAM_DAMAGES sets the number of damages
// (make faults: 1,000).
func TestDamagesAreNoticed(t *testing.T) {
	count := campaign.Size(t, "GQLSTREAM_DAMAGES", 16)
	seed := campaign.Seed(t, 1)
	const perBase = 50
	tally := map[string][3]int{} // by target and kind: noticed by a start, by a scrub, harmless
	var d *damaging
	for i := range count {
		if i%perBase == 0 {
			d = newDamaging(t, seed+uint64(i))
		}
		target := damageTargets[i%len(damageTargets)]
		kind := damageKinds[i/len(damageTargets)%len(damageKinds)]
		killed := d.rand.IntN(2) == 0
		n := tally[target.name+", "+kind]
		n[d.try(i, target.part, kind, killed)]++
		tally[target.name+", "+kind] = n
	}
	for _, target := range damageTargets {
		for _, kind := range damageKinds {
			n := tally[target.name+", "+kind]
			t.Logf(
				"%s, %s: a start notices %d, a scrub %d, harmless %d", target.name, kind, n[0],
				n[1], n[2],
			)
		}
	}
}

// damaging is an intact state directory; the test damages copies of it.
type damaging struct {
	*history
	usual  []string // warnings of a start on an intact copy
	stored map[string][]string
}

func newDamaging(t *testing.T, seed uint64) *damaging {
	t.Helper()
	d := &damaging{history: newHistory(t, rand.NewPCG(seed, 5), damageConfig)}
	for range 3 {
		d.publish(d.dir, 20)
		mustRun(t, d.startWithOutputs(d.dir)...)
	}
	d.stored = d.dump(d.dir)
	_, said := mustRun(t, d.startWithOutputs(d.copy())...)
	d.usual = warningsOf(said)
	return d
}

// startWithOutputs is start with a file and parts in the state directory.
func (d *damaging) startWithOutputs(state string) []string {
	return append(d.start(state), "--output", filepath.Join(state, "out.ndjson"),
		"--parquet", filepath.Join(state, "parts"))
}

func (d *damaging) start(state string) []string {
	return []string{"run", "--config", d.config, "--state", state, "--exit-when-drained"}
}

func (d *damaging) copy() string {
	dir := filepath.Join(d.t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(d.dir)); err != nil {
		d.t.Fatal(err)
	}
	return dir
}

// dump returns the messages of each log.
func (d *damaging) dump(state string) map[string][]string {
	all := map[string][]string{}
	withBroker(d.t, state, func(js jetstream.JetStream) {
		for _, name := range []string{broker.DefaultStreamNames().Log, defaultNames().Estimates} {
			s, err := js.Stream(d.t.Context(), name)
			if err != nil {
				continue
			}
			for at := s.CachedInfo().State.FirstSeq; at <= s.CachedInfo().State.LastSeq; at++ {
				if m, err := s.GetMsg(d.t.Context(), at); err == nil {
					all[name] = append(
						all[name],
						fmt.Sprint(m.Sequence, m.Subject, m.Time.UnixNano(), string(m.Data)),
					)
				}
			}
		}
	})
	return all
}

var messageOf = regexp.MustCompile(`level=(?:WARN|ERROR) msg=("[^"]*"|\S+)`)

func warningsOf(said string) (list []string) {
	for _, m := range messageOf.FindAllStringSubmatch(said, -1) {
		list = append(list, m[1])
	}
	return list
}

// try damages a copy of the state directory. It returns 0 if a start reports the damage, 1 if only
// a scrub does, and 2 if neither does. The last case must have changed no stored message.
func (d *damaging) try(i int, part, kind string, killed bool) int {
	d.t.Helper()
	state := d.copy()
	path := d.damage(state, part, kind, killed)
	what := fmt.Sprintf(
		"damage %d: %s of %s, killed %v", i, kind, strings.TrimPrefix(path, state), killed,
	)
	scrubCode, _, scrubSaid := runCommand("scrub", "--config", d.config, "--state", state)
	now := d.dump(state)
	code, _, said := runCommand(d.startWithOutputs(state)...)
	defer d.compareWithReplay(what, state, code, said)
	if news := slices.DeleteFunc(warningsOf(said), func(text string) bool {
		return slices.Contains(d.usual, text)
	}); code != exitFine || len(news) > 0 {
		return 0
	}
	if scrubCode != exitFine {
		return 1
	}
	if part == "" {
		d.t.Errorf("%s: nobody notices it\n%s\n%s", what, scrubSaid, said)
	}
	for name, stored := range d.stored {
		if !slices.Equal(stored, now[name]) {
			d.t.Errorf("%s: nobody notices that %s has %d messages, and had %d\n%s\n%s",
				what, name, len(now[name]), len(stored), scrubSaid, said)
			return 2
		}
	}
	return 2
}

// damage damages a file of a state directory.
func (d *damaging) damage(state, part, kind string, killed bool) string {
	d.t.Helper()
	var files []string
	err := filepath.WalkDir(state, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil || e.IsDir():
			return err
		case killed && filepath.Base(path) == "index.db" && strings.Contains(path, "/msgs/"):
			return os.Remove(path) // as after a kill
		case part != "" && strings.Contains(path, part) && !strings.HasSuffix(path, ".db"),
			part == "" && slices.Contains(slices.Concat(backupFiles, outputPositions),
				filepath.Base(path)):
			files = append(files, path)
		}
		return nil
	})
	if err != nil || len(files) == 0 {
		d.t.Fatalf("no file of %q: %v", part, err)
	}
	path := files[d.rand.IntN(len(files))]
	damageFile(d.t, d.rand, path, kind)
	return path
}

// damageFile damages a file at a random place.
func damageFile(t *testing.T, random *rand.Rand, path, kind string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := random.IntN(len(data))
	switch kind {
	case "bit":
		data[at] ^= 1 << random.IntN(8)
	case "cut":
		data = data[:at]
	case "zeros":
		clear(data[at:min(at+4096, len(data))])
	case "missing":
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The broker's checksum of a message does not cover the length of its headers. A scrub must
// find a record whose header length was changed.
func TestADamagedHeaderLengthIsFound(t *testing.T) {
	d := newDamaging(t, 97)
	state := d.copy()
	damageLastRecord(t, state, func(data []byte, headers int) {
		data[headers-4] ^= 8 // of the length, the least byte first, before the headers
	})
	code, out, said := runCommand("scrub", "--config", d.config, "--state", state)
	if code != exitFailed {
		t.Errorf("exit %d\n%s%s", code, out, said)
	}
}

// damageLastRecord changes the data of the last message of the output log, as after a kill. change
// gets all stored messages, and where the headers of the last one begin.
func damageLastRecord(t *testing.T, state string, change func(data []byte, headers int)) {
	t.Helper()
	dir := filepath.Join(state, "nats/jetstream/$G/streams/GQL_ESTIMATES/msgs")
	if err := os.Remove(filepath.Join(dir, "index.db")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "1.blk")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	headers := bytes.LastIndex(data, []byte("NATS/1.0\r\n"))
	if headers < 0 {
		t.Fatal("no message has headers")
	}
	change(data, headers)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A scrub and a start report that the output log has lost its end, although no checkpoint and no
// position file lies beyond the rest. The next start has nothing to report.
func TestALostEndOfTheOutputLogIsNamed(t *testing.T) {
	d := newDamaging(t, 98)
	state := d.copy()
	damageLastRecord(t, state, func(data []byte, headers int) { clear(data[headers:]) })
	code, out, _ := runCommand("scrub", "--config", d.config, "--state", state)
	if code != exitFailed || !strings.Contains(out, "the last 1 messages are gone") {
		t.Errorf("scrub: exit %d\n%s", code, out)
	}
	const lost = "the broker has lost messages at the end of the output log"
	if _, said := mustRun(t, d.startWithOutputs(state)...); !strings.Contains(said, lost) ||
		!strings.Contains(said, "messages=1 ") {
		t.Errorf("not in\n%s", said)
	}
	if _, said := mustRun(t, d.startWithOutputs(state)...); strings.Contains(said, lost) {
		t.Errorf("said again in\n%s", said)
	}
	mustRun(t, "scrub", "--config", d.config, "--state", state)
}
