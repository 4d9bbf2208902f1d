package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/sinks"
)

// records returns the records of the output log and the marks with notes, without sequences and
// times.
func (d *damaging) records() (list []string) {
	withBroker(d.t, d.dir, func(js jetstream.JetStream) {
		s, err := js.Stream(d.t.Context(), defaultNames().Estimates)
		if err != nil {
			d.t.Fatal(err)
		}
		for at := s.CachedInfo().State.FirstSeq; at <= s.CachedInfo().State.LastSeq; at++ {
			m, err := s.GetMsg(d.t.Context(), at)
			if err == nil && !strings.Contains(m.Subject, ".shard.") {
				list = append(list, fmt.Sprint(m.Subject, string(m.Data)))
			}
		}
	})
	return list
}

// lose removes messages in the middle of the output log, as an operator or a broken disk can.
func (d *damaging) lose(from, to float64) {
	withBroker(d.t, d.dir, func(js jetstream.JetStream) {
		s, err := js.Stream(d.t.Context(), defaultNames().Estimates)
		if err != nil {
			d.t.Fatal(err)
		}
		last := float64(s.CachedInfo().State.LastSeq)
		for at := uint64(last * from); at < uint64(last*to); at++ {
			if err := s.DeleteMsg(d.t.Context(), at); err != nil {
				d.t.Fatal(err)
			}
		}
	})
}

// loseRecord deletes a message with a record from the middle of the output log.
func (d *damaging) loseRecord() {
	withBroker(d.t, d.dir, func(js jetstream.JetStream) {
		s, err := js.Stream(d.t.Context(), defaultNames().Estimates)
		if err != nil {
			d.t.Fatal(err)
		}
		for at := s.CachedInfo().State.LastSeq / 2; ; at++ {
			m, err := s.GetMsg(d.t.Context(), at)
			if err != nil {
				d.t.Fatal(err)
			}
			if !strings.Contains(string(m.Data), `"prevalence"`) {
				continue
			}
			if err := s.DeleteMsg(d.t.Context(), at); err != nil {
				d.t.Fatal(err)
			}
			return
		}
	})
}

// damageBlock sets a byte of a record in the middle of the output log to another one, as after
// a kill.
func (d *damaging) damageBlock() {
	dir := filepath.Join(d.dir, "nats/jetstream/$G/streams/GQL_ESTIMATES/msgs")
	path := filepath.Join(dir, "1.blk")
	data, err := os.ReadFile(path)
	if err != nil {
		d.t.Fatal(err)
	}
	at := len(data)/2 + strings.Index(string(data[len(data)/2:]), `"prevalence"`)
	data[at+2] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		d.t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "index.db")); err != nil {
		d.t.Fatal(err)
	}
}

// Holes of the output log are filled from the log: afterwards it has the records that it had, and a
// run, its output file and a replay go on.
func TestHolesOfTheOutputLogAreFilled(t *testing.T) {
	for name, damage := range map[string]func(*damaging){
		"two holes":       func(d *damaging) { d.lose(.2, .22); d.lose(.7, .9) },
		"one message":     (*damaging).loseRecord,
		"the first":       func(d *damaging) { d.lose(.04, .08) },
		"the end":         func(d *damaging) { d.lose(.8, 1.01) },
		"a damaged block": (*damaging).damageBlock,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDamaging(t, 51)
			want := d.records()
			damage(d)
			if lacks := d.records(); slices.Equal(lacks, want) && name != "a damaged block" {
				t.Fatal("nothing is gone")
			}
			scrub := []string{"scrub", "--config", d.config, "--state", d.dir}
			if code, out, said := runCommand(scrub...); code != exitFailed {
				t.Fatalf("scrub before: exit %d\n%s%s", code, out, said)
			}
			out, _ := mustRun(t, append(scrub, "--fill")...)
			t.Log(strings.Split(out, "\n")[0])
			if got := d.records(); !slices.Equal(got, want) {
				t.Errorf("%d records, want %d", len(got), len(want))
			}
			mustRun(t, scrub...)
			d.publish(d.dir, 20)
			output := filepath.Join(t.TempDir(), "estimates.ndjson")
			mustRun(t, append(d.start(d.dir), "--output", output)...)
			text, err := os.ReadFile(output)
			if err != nil {
				t.Fatal(err)
			}
			replayed, _ := mustRun(t, "replay", "--config", d.config, "--state", d.dir)
			if replayed != string(text) {
				t.Errorf(
					"the output log has %d records, and a replay %d",
					strings.Count(string(text), "\n"),
					strings.Count(replayed, "\n"),
				)
			}
		})
	}
}

// A repair that is interrupted between the removal of the output log and its end is finished by the
// next one.
func TestAnInterruptedRepairIsFinished(t *testing.T) {
	d := newDamaging(t, 52)
	want := d.records()
	withBroker(t, d.dir, func(js jetstream.JetStream) {
		path := filepath.Join(d.dir, "filling")
		r, err := sinks.FindGaps(t.Context(), js, defaultNames(), "", func(int) uint64 { return 0 })
		if err == nil {
			err = r.Write(t.Context(), path, nil)
		}
		if err == nil {
			err = js.DeleteStream(t.Context(), defaultNames().Estimates)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	mustRun(t, "scrub", "--config", d.config, "--state", d.dir, "--fill")
	if got := d.records(); !slices.Equal(got, want) {
		t.Errorf("%d records, want %d", len(got), len(want))
	}
}
