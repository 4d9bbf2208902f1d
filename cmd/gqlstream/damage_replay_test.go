package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest/broker"
)

var skipNamed = regexp.MustCompile(`run --skip (\d+(?:-\d+)?)`)

// compareWithReplay follows the advice of a start or a scrub, publishes more events, and
// compares the records with those of a replay of the remaining log. Call it after the first
// start.
//
// A damaged input log has lost messages below the newest checkpoint, or the broker delivers
// them changed. Then only a replay from that checkpoint gives the records of the run.
func (d *damaging) compareWithReplay(what, state string, code int, said string) {
	d.t.Helper()
	logIn := strings.Contains(what, damageTargets[0].part)
	defer func() {
		if d.t.Failed() {
			d.t.Logf("%s\n%s", what, said)
		}
	}()
	replay, ok := d.goOnAfter(what, state, code, said)
	if !ok {
		return
	}
	d.fill(what, state, said)
	after := d.end(state)
	if code == exitFine && !logIn { // nothing was skipped or accepted: compare all records
		after = 1
	}
	d.publish(state, 20) // some are refused, and a few may move nothing
	output := filepath.Join(d.t.TempDir(), "again.ndjson")
	mustRun(d.t, append(d.start(state), "--output", output)...)
	text, err := os.ReadFile(output)
	if err != nil {
		d.t.Fatal(err)
	}
	if logIn && code == exitFine {
		replay = []string{"--use-checkpoint"}
	}
	replay = append([]string{
		"replay", "--config", d.config, "--state", state,
		"--from", strconv.FormatUint(after, 10),
	}, replay...)
	replayed, _ := mustRun(d.t, replay...)
	got, want := recordsAfter(string(text), after), recordsAfter(replayed, after)
	if len(want) == 0 || !slices.Equal(got, want) {
		d.t.Errorf("%s: %d records are not the %d of a replay of what is left (%v)\n%s", what,
			len(got), len(want), replay, said)
	}
}

// goOnAfter starts with the way on that each refusal names until a start succeeds. It returns
// arguments of a replay: after skipped messages it must begin at a checkpoint, which has applied
// them.
func (d *damaging) goOnAfter(what, state string, code int, said string) (replay []string, ok bool) {
	d.t.Helper()
	const waysMax = 5
	for range waysMax {
		if code == exitFine {
			return replay, true
		}
		start := d.startWithOutputs(state)
		switch lines := strings.Split(strings.TrimSpace(said), "\n"); {
		case skipNamed.MatchString(lines[len(lines)-1]):
			start = append(start, "--skip", skipNamed.FindStringSubmatch(lines[len(lines)-1])[1])
			replay = []string{"--use-checkpoint"}
		case strings.Contains(said, "--accept-log"):
			start = append(start, "--accept-log")
		case strings.Contains(said, "move the old one away"):
			d.moveOutputsAway(state, said)
		default:
			d.t.Errorf("%s: no way on in\n%s", what, said)
			return nil, false
		}
		code, _, said = runCommand(start...)
	}
	d.t.Errorf("%s: after %d ways on the start still says\n%s", what, waysMax, said)
	return nil, false
}

// moveOutputsAway removes the output that a start refuses, with its position.
func (d *damaging) moveOutputsAway(state, said string) {
	for name, files := range map[string][]string{
		"alerting.json": {"alerting.json"},
		"out.ndjson":    {"out.ndjson", "out.ndjson.position"},
		"parts":         {"parts"},
	} {
		for _, file := range files {
			if strings.Contains(said, name) {
				if err := os.RemoveAll(filepath.Join(state, file)); err != nil {
					d.t.Fatal(err)
				}
			}
		}
	}
}

// recordsLacking matches the lines of a scrub about records that are missing or changed.
var recordsLacking = regexp.MustCompile(
	`(?m)^(GQL_ESTIMATES: (messages|shard) |message \d+ of GQL_ESTIMATES )`,
)

// fill makes records again that the output log lacks.
func (d *damaging) fill(what, state, said string) {
	d.t.Helper()
	if strings.Contains(said, "earlier records are gone") {
		withBroker(d.t, state, func(js jetstream.JetStream) {
			if err := js.DeleteStream(d.t.Context(), defaultNames().Estimates); err != nil {
				d.t.Fatal(err)
			}
		})
		if err := os.RemoveAll(filepath.Join(state, "checkpoints")); err != nil {
			d.t.Fatal(err)
		}
		return
	}
	scrub := []string{"scrub", "--config", d.config, "--state", state}
	_, out, _ := runCommand(scrub...)
	if !recordsLacking.MatchString(out) {
		return
	}
	code, out, said := runCommand(append(scrub, "--fill")...)
	if code != exitFine {
		d.t.Errorf("%s: not filled: %d %s%s", what, code, out, said)
	}
}

// end returns the last position of the log.
func (d *damaging) end(state string) (last uint64) {
	withBroker(d.t, state, func(js jetstream.JetStream) {
		s, err := js.Stream(d.t.Context(), broker.DefaultStreamNames().Log)
		if err != nil {
			d.t.Fatal(err)
		}
		last = s.CachedInfo().State.LastSeq
	})
	return last
}

// recordsAfter returns the lines of records after a position.
func recordsAfter(text string, position uint64) (list []string) {
	for line := range strings.Lines(text) {
		var r struct{ Position json.Number }
		if json.Unmarshal([]byte(line), &r) != nil {
			continue
		}
		if at, err := strconv.ParseUint(r.Position.String(), 10, 64); err == nil && at > position {
			list = append(list, line)
		}
	}
	return list
}

// A start names each position file that is missing or empty.
func TestLostPositionFilesAreNamed(t *testing.T) {
	d := newDamaging(t, 46)
	for _, name := range []string{
		"reached", "alerting.json", "history.json", "out.ndjson.position", "parts/_position.json",
	} {
		for _, lose := range []func(string) error{
			os.Remove,
			func(path string) error { return os.Truncate(path, 0) },
		} {
			state := d.copy()
			path := filepath.Join(state, name)
			if err := lose(path); err != nil {
				t.Fatal(err)
			}
			_, _, said := runCommand(d.startWithOutputs(state)...)
			if !strings.Contains(said, path+" is missing") &&
				!strings.Contains(said, path+" is damaged") {
				t.Errorf("%s: not named in\n%s", name, said)
			}
		}
	}
}
