package files

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
)

// A log in a file and the same log in a stream must have the same late events: a label is
// late when its time is more than a minute behind the largest before it.
func TestLateRowsOfALogFile(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	var lines strings.Builder
	var want []string
	now := 0
	for p := 1; p <= 100; p++ {
		at := 10_000 + 10*p - rng.IntN(120)
		fmt.Fprintf(
			&lines, `{"kind":"label","vertex":%d,"class":1,"time":%d}`+"\n", rng.IntN(50), at,
		)
		if now > 0 && at < now-60 {
			want = append(want, fmt.Sprintf("%d/0", p))
		}
		now = max(now, at)
	}
	if len(want) < 5 {
		t.Fatalf("only %d late", len(want))
	}
	path := writeFile(t, "log.ndjson", []byte(lines.String()))
	for _, late := range []event.LatePolicy{
		{After: time.Minute, Labels: true},
		{After: time.Minute},
	} {
		source, err := NewSource(Config{
			Inputs: []Input{{Path: path, Log: true}}, Classes: event.ClassSet{Count: 2},
			Steps: ingest.StepConfig{Every: 30 * time.Second, Late: late},
		})
		if err != nil {
			t.Fatal(err)
		}
		got, counted := lateOf(t, source)
		if late.Labels != slices.Equal(got, want) || counted != len(want) ||
			!late.Labels && len(got) > 0 {
			t.Errorf("policy %+v: %v late (%d counted), want %v", late, got, counted, want)
		}
		source.Close()
	}
}

// lateOf runs through a source and returns the events that were refused as late, and the
// number of late labels.
func lateOf(t *testing.T, s *Source) (late []string, counted int) {
	t.Helper()
	var batch event.Batch
	for {
		err := s.Next(t.Context(), &batch)
		if errors.Is(err, io.EOF) {
			return late, counted
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range batch.Refused {
			if r.Reason == event.Late {
				late = append(late, fmt.Sprintf("%d/%d", r.Position, r.Index))
			}
		}
		counted += batch.Late[event.KindLabel]
	}
}
