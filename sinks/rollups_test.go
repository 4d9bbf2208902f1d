package sinks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/quant"
	"gqlstream/sinks/alerts"
)

// longLog is an output log over days, with nights without a record, of three communities. One
// has no intervals and one has a method twice.
func longLog(t *testing.T, seed uint64, days int) (log []*Stored) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 3))
	at := time.Date(2026, 1, 30, 22, 17, 5, 0, time.UTC)
	for until := at.AddDate(0, 0, days); at.Before(until); {
		at = at.Add(
			time.Duration(1+random.IntN([]int{40, 40, 40, 14000}[random.IntN(4)])) * time.Second,
		)
		if random.IntN(25) == 0 {
			at = at.Add(14 * time.Hour)
		}
		position := uint64(len(log) + 1)
		e := &Stored{
			Position: position,
			Time:     at.UnixNano(),
			Cursor:   Cursor{Place: Place{Position: position}, Sequence: position},
		}
		for _, name := range []string{"a", "b", "b", "c"} {
			if random.IntN(3) == 0 {
				continue
			}
			share := random.Float64()
			one := estimate(name, "auto", position)
			one.Time, one.Prevalence, one.Suppressed = alerts.TimeText(e.Time), []float64{
				share,
				1 - share,
			}, random.IntN(9) == 0
			one.Low, one.High = []float64{
				share / 2,
				(1 - share) / 2,
			}, []float64{
				(1 + share) / 2,
				1 - share/2,
			}
			if name == "c" {
				one.Low, one.High = nil, nil
			} else {
				moved, revised := random.NormFloat64()/50, random.NormFloat64()/50
				one.Moved, one.Revised = []float64{moved, -moved}, []float64{revised, -revised}
				one.Counted = []float64{moved / 2, -moved / 2}
				one.SEChange, one.SERevised = []float64{.03, .04}, []float64{.01, .02}
				one.SECounted = []float64{.05, .06}
			}
			one.ModelVersion = "v" + string(rune('0'+position/5000))
			one.Flags = [][]string{nil, {"thin"}, {"shift", "thin"}}[random.IntN(3)]
			e.decoded = append(e.decoded, one)
		}
		e.Records = make([][]byte, len(e.decoded))
		log = append(log, e)
	}
	return log
}

// recount computes the roll-ups of a community from scratch, period by period.
func recount(log []*Stored, community string, length time.Duration) (list []Rollup) {
	byPeriod := map[int64][]quant.Estimate{}
	var starts []int64
	for _, e := range log {
		for i, one := range e.decoded {
			if one.Community != community || one.Suppressed ||
				i > 0 && e.decoded[i-1].Community == community {
				continue
			}
			start := time.Unix(0, e.Time).UTC().Truncate(length).UnixNano()
			if byPeriod[start] == nil {
				starts = append(starts, start)
			}
			byPeriod[start] = append(byPeriod[start], one)
		}
	}
	round := func(x float64) float64 { return math.Round(x*1e6) / 1e6 }
	for _, start := range starts {
		all := byPeriod[start]
		last := all[len(all)-1]
		until, _ := time.Parse(time.RFC3339Nano, last.Time)
		r := Rollup{
			Time:     time.Unix(0, start).UTC(),
			Until:    until,
			Position: last.Position,
			Count:    uint64(len(all)),

			ModelVersion: last.ModelVersion,
		}
		for k := range 2 {
			sum, low, high := 0.0, 1.0, 0.0
			moved, revised, counted, squares := 0.0, 0.0, 0.0, [3]float64{}
			for _, e := range all {
				sum += e.Prevalence[k]
				if len(e.Moved) > 0 {
					moved, revised = moved+e.Moved[k], revised+e.Revised[k]
					counted += e.Counted[k]
					for i, error := range []float64{e.SEChange[k], e.SERevised[k], e.SECounted[k]} {
						squares[i] += float64(error * error)
					}
				}
				if len(e.Low) > 0 {
					low, high = min(low, e.Low[k]), max(high, e.High[k])
				}
			}
			r.Last, r.Mean = append(r.Last, round(last.Prevalence[k])), append(
				r.Mean,
				round(sum/float64(len(all))),
			)
			if len(last.Low) > 0 {
				r.Low, r.High = append(r.Low, round(low)), append(r.High, round(high))
			}
			if len(last.Moved) > 0 {
				r.Moved = append(r.Moved, round(moved))
				r.Revised = append(r.Revised, round(revised))
				r.Counted = append(r.Counted, round(counted))
				r.SEChange = append(r.SEChange, round(math.Sqrt(squares[0])))
				r.SERevised = append(r.SERevised, round(math.Sqrt(squares[1])))
				r.SECounted = append(r.SECounted, round(math.Sqrt(squares[2])))
			}
		}
		for _, e := range all {
			r.Flags = append(r.Flags, e.Flags...)
		}
		slices.Sort(r.Flags)
		r.Flags = slices.Compact(r.Flags)
		list = append(list, r)
	}
	return list
}

func (l *logOut) rollups(path string, d disk) *Rollups {
	return NewRollups(RollupsConfig{
		JS: l.js, Streams: StreamsConfig{Names: DefaultNames()}, Log: "log",
		State: fileStore{path, d},
	})
}

// near allows for sums that were added in another order: hours are sums of minutes.
var near = cmp.Comparer(func(x, y float64) bool { return math.Abs(x-y) < 1.5e-6 })

// Roll-ups of every resolution must equal a recount of the output log, whatever the step at
// which the follower dies, and although an equal one writes at the same time: the stream
// has each once.
func TestRollupsEqualARecountAfterACrashAnywhere(t *testing.T) {
	l := startLogOut(t)
	log := longLog(t, 1, 40)
	dir := t.TempDir()
	random, deaths := rand.New(rand.NewPCG(2, 2)), 0
	d := disk{fault: func(string) error {
		if random.IntN(40) == 0 {
			deaths++
			return errCrash
		}
		return nil
	}}
	r := l.rollups(filepath.Join(dir, "history.json"), d)
	open := func(disk) (Follower, Cursor, error) { return r.Open(t.Context()) }
	for err := errCrash; err != nil; {
		if err = fold(log[:len(log)/2], open, d); err != nil && !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
	}
	other := l.rollups(filepath.Join(dir, "other.json"), disk{})
	if err := fold(log[:len(log)*3/4], func(disk) (Follower, Cursor,
		error,
	) {
		return other.Open(t.Context())
	}, d); err != nil {
		t.Fatal(err)
	}
	for err := errCrash; err != nil; {
		if err = fold(log, open, d); err != nil && !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
	}
	if deaths < 5 {
		t.Fatalf("%d deaths", deaths)
	}
	end := time.Unix(0, log[len(log)-1].Time)
	for i, row := range resolutions {
		for _, name := range []string{"a", "b", "c"} {
			q := RollupQuery{Community: name, Method: "auto", Points: 1 << 20}
			want := recount(log, name, row.period)
			if i == 0 {
				q.From = end.Add(-34 * 24 * time.Hour)
				want = slices.DeleteFunc(
					want,
					func(r Rollup) bool { return r.Until.Before(q.From) },
				)
			}
			list, fits, err := r.read(t.Context(), i, q)
			if err != nil || !fits {
				t.Fatal(fits, err)
			}
			if diff := cmp.Diff(want, list, near); diff != "" || len(want) == 0 {
				t.Errorf(
					"%s by %s, %d of %d: -want +got:\n%.1500s", name, row.name, len(list),
					len(want), diff,
				)
			}
		}
	}
	mustHaveChunksOnce(t, l)
}

// mustHaveChunksOnce fails if a message is there twice or is of a method that is configured twice.
func mustHaveChunksOnce(t *testing.T, l *logOut) {
	t.Helper()
	seen := map[string]bool{}
	for _, row := range resolutions {
		n := DefaultNames()
		stream, err := l.js.Stream(t.Context(), n.historyStream(row.name))
		if err != nil {
			t.Fatal(err)
		}
		for at := range stream.CachedInfo().State.LastSeq {
			raw, err := stream.GetMsg(t.Context(), at+1)
			if err != nil {
				t.Fatal(err)
			}
			var m rollupChunk
			if raw.Subject == n.noteSubject() {
				continue
			}
			if err := unpack(raw.Data, &m); err != nil || m.Resolution != row.name {
				t.Fatal(m, err)
			}
			key := fmt.Sprint(raw.Subject, m.Rollups[0].Time)
			if !strings.HasSuffix(raw.Subject, ".auto") {
				t.Errorf("%s is of a second configuration", key)
			}
			if seen[key] {
				t.Errorf("stored twice: %s", key)
			}
			seen[key] = true
		}
	}
	if len(seen) < 100 {
		t.Errorf("%d messages", len(seen))
	}
}

// Of each community and method so many minutes are kept as are read, however fast the log is read.
func TestMinutesAreKeptForTheirTime(t *testing.T) {
	l := startLogOut(t)
	r := l.rollups(filepath.Join(t.TempDir(), "history.json"), disk{})
	if _, _, err := r.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 1, 30, 22, 17, 5, 0, time.UTC)
	kept := int(resolutions[0].keep / time.Hour)
	for position := range uint64(kept + 50) {
		at = at.Add(time.Hour)
		e := &Stored{
			Position: position + 1,
			Time:     at.UnixNano(),
			decoded:  []quant.Estimate{estimate("a", "auto", position+1)},
			Records:  make([][]byte, 1),
		}
		if err := r.Take(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	q := RollupQuery{
		Community: "a",
		Method:    "auto",
		From:      at.Add(time.Minute - resolutions[0].keep),
		Points:    1 << 20,
	}
	got, err := r.Read(t.Context(), q)
	if err != nil || got.Resolution != minutes || len(got.Rollups) != kept {
		t.Errorf("%d by %s, %v; want %d", len(got.Rollups), got.Resolution, err, kept)
	}
	stream, err := l.js.Stream(t.Context(), DefaultNames().historyStream(minutes))
	if err != nil || stream.CachedInfo().State.Msgs != uint64(kept+1) {
		t.Errorf("%+v, %v", stream.CachedInfo().State, err)
	}
}

// Of many classes a chunk is several messages, and the stream must have room for all of them.
func TestRollupsOfManyClassesAreKeptForTheirTime(t *testing.T) {
	for _, classes := range []int{1, 2, 136, 137, 342, 1000, 1024} {
		streams := StreamsConfig{Names: DefaultNames(), Classes: classes}
		for i, row := range resolutions {
			s, messages, chunks := rolled{}, int64(0), int64(3)
			start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC).
				UnixNano() /
				int64(row.chunk) * int64(row.chunk)
			for at := start; at <= start+chunks*int64(row.chunk); at += int64(row.period) {
				if _, ok := s.complete(i, at); ok {
					messages++
				}
				s.add(&quant.Estimate{Prevalence: make([]float64, classes)}, at)
			}
			room := streams.history(row).MaxMsgsPerSubject
			if want := messages / chunks * int64(row.keep/row.chunk); room < want ||
				row.keep > 0 && room > want+want/chunks {
				t.Errorf(
					"%d classes: %d messages are kept by the %s, and %d are made in %v", classes,
					room, row.name, want, row.keep,
				)
			}
		}
	}
}

// A question is answered in the finest resolution that has no more points than asked for,
// also after a restart, when nothing is published.
func TestRollupsAreReadInTheResolutionThatFits(t *testing.T) {
	l := startLogOut(t)
	log := longLog(t, 3, 80)
	state := filepath.Join(t.TempDir(), "history.json")
	r := l.rollups(state, disk{})
	if err := fold(log, func(disk) (Follower, Cursor, error) { return r.Open(t.Context()) },
		disk{}); err != nil {
		t.Fatal(err)
	}
	mustReadWhatFits(t, r, log)
	again := l.rollups(state, disk{})
	if _, at, err := again.Open(t.Context()); err != nil || at.Position == 0 {
		t.Fatal(at, err)
	}
	mustReadWhatFits(t, again, log)
	mustKnowTheLastDay(t, again, log)
}

// The broker removes minutes by its own clock, whatever the time of the log. Hours must
// answer for times before the remaining minutes.
func TestRemovedRollupsAreReadInACoarserResolution(t *testing.T) {
	l := startLogOut(t)
	log := longLog(t, 3, 20)
	r := l.rollups(filepath.Join(t.TempDir(), "history.json"), disk{})
	if err := fold(log, func(disk) (Follower, Cursor, error) { return r.Open(t.Context()) },
		disk{}); err != nil {
		t.Fatal(err)
	}
	stream, err := l.js.Stream(t.Context(), DefaultNames().historyStream(minutes))
	if err != nil {
		t.Fatal(err)
	}
	all := recount(log, "a", time.Minute)
	end := all[len(all)-1].Until // the log may end many hours after the last estimate of a
	for _, keep := range []uint64{1 << 20, 60} {
		long := minutes
		if keep == 60 {
			long = hours
		}
		if err := stream.Purge(t.Context(), jetstream.WithPurgeKeep(keep)); err != nil {
			t.Fatal(err)
		}
		for from, want := range map[time.Time]Resolution{
			end.AddDate(0, 0, -18): long, end.Add(-12 * time.Hour): minutes, {}: long,
		} {
			q := RollupQuery{Community: "a", Method: "auto", From: from, Points: 10_000}
			got, err := r.Read(t.Context(), q)
			if err != nil || got.Resolution != want {
				t.Errorf("%d messages, from %v: %s, %v; want %s",
					keep, from, got.Resolution, err, want)
			}
		}
	}
}

// mustKnowTheLastDay holds the recent past against a recount: hours from the last day with any
// before this one, and minutes of the hour under way.
func mustKnowTheLastDay(t *testing.T, r *Rollups, log []*Stored) {
	t.Helper()
	got := map[string][]Rollup{}
	if err := r.Recent(t.Context(), func(community, method string, list []Rollup) {
		got[community+" "+method] = append(got[community+" "+method], list...)
	}); err != nil {
		t.Fatal(err)
	}
	now := time.Unix(0, log[len(log)-1].Time).UTC()
	for _, name := range []string{"a", "b", "c"} {
		today := func(one Rollup) bool { return !one.Time.Before(now.Truncate(24 * time.Hour)) }
		all := slices.DeleteFunc(
			recount(log, name, time.Hour),
			func(one Rollup) bool { return !one.Time.Before(now.Truncate(time.Hour)) },
		)
		begin := all[max(0, slices.IndexFunc(append(slices.Clone(all), Rollup{Time: now}),
			today)-1)].Time.Truncate(24 * time.Hour)
		want := slices.DeleteFunc(all, func(one Rollup) bool { return one.Time.Before(begin) })
		want = append(
			want,
			slices.DeleteFunc(
				recount(log, name, time.Minute),
				func(one Rollup) bool { return one.Time.Before(now.Truncate(time.Hour)) },
			)...)
		if diff := cmp.Diff(want, got[name+" auto"], near); diff != "" || len(want) < 2 {
			t.Errorf("%s by %v (-want +got):\n%s", name, now, diff)
		}
	}
	if len(got) != 3 {
		t.Errorf("%d pairs, want 3", len(got))
	}
}

func mustReadWhatFits(t *testing.T, r *Rollups, log []*Stored) {
	t.Helper()
	end := time.Unix(0, log[len(log)-1].Time).UTC()
	for _, test := range []struct {
		name     string
		from, to time.Time
		points   int
		want     Resolution
	}{
		{"a day", end.Add(-24 * time.Hour), time.Time{}, 1500, minutes},
		{"a month", end.AddDate(0, -1, 0), time.Time{}, 200, hours},
		{"a month, many points", end.AddDate(0, -1, 0), time.Time{}, 1500, minutes},
		{"a day months ago", end.AddDate(0, 0, -60), end.AddDate(0, 0, -59), 1500, minutes},
		{"all", time.Time{}, time.Time{}, 50, days},
		{"all, more points", time.Time{}, time.Time{}, 650, hours},
		{"all, many points", time.Time{}, time.Time{}, 1500, minutes},
		{"the beginning", time.Time{}, end.AddDate(0, 0, -70), 90, hours},
	} {
		got, err := r.Read(
			t.Context(),
			RollupQuery{
				Community: "a",
				Method:    "auto",
				From:      test.from,
				To:        test.to,
				Points:    test.points,
			},
		)
		if err != nil || got.Resolution != test.want || len(got.Rollups) == 0 ||
			len(got.Rollups) > test.points && got.Resolution != days {
			t.Errorf(
				"%s: %q, %d roll-ups, %v; want %q", test.name, got.Resolution, len(got.Rollups),
				err, test.want,
			)
			continue
		}
		for _, one := range got.Rollups {
			if !test.from.IsZero() && one.Until.Before(test.from) ||
				!test.to.IsZero() && one.Time.After(test.to) {
				t.Errorf("%s: %v to %v", test.name, one.Time, one.Until)
			}
		}
	}
	if got, err := r.Read(t.Context(), RollupQuery{
		Community: "nobody", Method: "auto",
		Points: 10,
	}); err != nil ||
		got.Resolution != "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// A question without a beginning is about all that there is, also where minutes are left of the
// last hours only, because nothing was published for longer than they are kept.
func TestRollupsOfAllTimeReachBackOverAPause(t *testing.T) {
	l := startLogOut(t)
	log := longLog(t, 5, 3)
	pause := 40 * 24 * time.Hour
	for _, e := range longLog(t, 6, 3) {
		e.Position = uint64(len(log) + 1)
		e.Time += int64(pause)
		e.Cursor = Cursor{Place: Place{Position: e.Position}, Sequence: e.Position}
		for k := range e.decoded {
			e.decoded[k].Position, e.decoded[k].Time = e.Position, alerts.TimeText(e.Time)
		}
		log = append(log, e)
	}
	r := l.rollups(filepath.Join(t.TempDir(), "history.json"), disk{})
	if err := fold(log, func(disk) (Follower, Cursor, error) { return r.Open(t.Context()) },
		disk{}); err != nil {
		t.Fatal(err)
	}
	got, err := r.Read(t.Context(), RollupQuery{Community: "a", Method: "auto", Points: 10_000})
	if err != nil || len(got.Rollups) == 0 || got.Resolution != minutes {
		t.Fatalf("%s, %d roll-ups, %v", got.Resolution, len(got.Rollups), err)
	}
	if diff := cmp.Diff(recount(log, "a", time.Minute), got.Rollups, near); diff != "" {
		t.Errorf("-want +got:\n%.900s", diff)
	}
}

// Messages of others among the roll-ups must be ignored, even if they look like roll-ups of
// this log.
func TestForeignMessagesAmongRollupsAreIgnored(t *testing.T) {
	l := startLogOut(t)
	log := longLog(t, 7, 40)
	r := l.rollups(filepath.Join(t.TempDir(), "history.json"), disk{})
	foreign := func(disk) (Follower, Cursor, error) {
		f, at, err := r.Open(t.Context())
		for i, text := range []string{"{}", "no JSON", "{\"rollups\":[]}", "[1]"} {
			m := newMessage(
				DefaultNames().historySubject(resolutions[i%3].name, "a", "auto"),
				"log",
				[]byte(text),
			)
			if _, failed := l.js.PublishMsg(t.Context(), m); failed != nil {
				t.Fatal(failed)
			}
			r.stored[i%3].sequence++
		}
		return f, at, err
	}
	if err := fold(log, foreign, disk{}); err != nil {
		t.Fatal(err)
	}
	for i, row := range resolutions[1:] {
		list, _, err := r.read(
			t.Context(),
			i+1,
			RollupQuery{Community: "a", Method: "auto", Points: 1 << 20},
		)
		if diff := cmp.Diff(recount(log, "a", row.period), list, near); diff != "" || err != nil {
			t.Errorf("%s: %v, -want +got:\n%.900s", row.name, err, diff)
		}
	}
	from := time.Unix(0, log[len(log)/2].Time)
	if got, err := r.Read(t.Context(), RollupQuery{
		Community: "a", Method: "auto", From: from,
		Points: 1 << 20,
	}); err != nil ||
		len(got.Rollups) == 0 {
		t.Errorf("%d from %v on, %v", len(got.Rollups), from, err)
	}
}

// A community that is no longer published must be removed from the state once all its roll-ups are
// stored.
func TestCommunitiesThatGoLeaveNoState(t *testing.T) {
	l := startLogOut(t)
	r := l.rollups(filepath.Join(t.TempDir(), "history.json"), disk{})
	if _, _, err := r.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	for day := range uint64(12) {
		at := time.Date(2026, 12, 28, 10, 0, 0, 0, time.UTC).AddDate(0, 0, int(day))
		e := &Stored{
			Position: day + 1,
			Time:     at.UnixNano(),
			decoded:  []quant.Estimate{estimate("stays", "auto", day+1)},
		}
		if day == 0 {
			e.decoded = append(e.decoded, estimate("went", "auto", 1))
		}
		e.Records = make([][]byte, len(e.decoded))
		if err := r.Take(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.state.Series) != 1 || r.state.Series[0].Community != "stays" {
		t.Errorf("%d series", len(r.state.Series))
	}
	list, _, err := r.read(t.Context(), notes, RollupQuery{Community: "went", Method: "auto"})
	if err != nil || len(list) != 1 ||
		list[0].Time != time.Date(2026, 12, 28, 0, 0, 0, 0, time.UTC) {
		t.Errorf("its days are %+v, %v", list, err)
	}
}

// unreadable is a state store that cannot be read now.
type unreadable struct{ StateStore }

func (unreadable) Read(context.Context) ([]byte, error) { return nil, errCrash }

// While the state of roll-ups cannot be read, the follower must wait: roll-ups from the
// remaining output log would lack the discarded records.
func TestRollupsWaitForTheirState(t *testing.T) {
	l := startLogOut(t)
	r := l.rollups(filepath.Join(t.TempDir(), "history.json"), disk{})
	open := func(disk) (Follower, Cursor, error) { return r.Open(t.Context()) }
	log := longLog(t, 3, 4)
	if err := fold(log, open, disk{}); err != nil {
		t.Fatal(err)
	}
	stored := r.config.State
	r.config.State = unreadable{stored}
	if _, _, err := r.Open(t.Context()); !errors.Is(err, errCrash) {
		t.Errorf("opened: %v", err)
	}
	r.config.State = stored
	if _, at, err := r.Open(t.Context()); err != nil || at != log[len(log)-1].Cursor {
		t.Errorf("it goes on from %+v, %v", at, err)
	}
}

// A period that a release without errors of movements began goes on without them.
func TestAPeriodOfAnOlderReleaseGoesOn(t *testing.T) {
	var s rolled
	if err := json.Unmarshal([]byte(`{"Community":"a","Method":"auto",
		"Rollups":[[{"time":"2026-03-01T12:00:00Z","count":1,
			"last":[0.5,0.5],"mean":[0.5,0.5]}],[],[]],
		"Sums":[{"Shares":[0.5,0.5],"Moved":[0.1,-0.1],"Revised":[0,0]},{},{}]}`), &s); err != nil {
		t.Fatal(err)
	}
	e := quant.Estimate{
		Community: "a", Method: "auto", Prevalence: []float64{0.7, 0.3},
		Moved: []float64{0.2, -0.2}, Revised: []float64{0, 0}, SEChange: []float64{0.01, 0.01},
		SERevised: []float64{0.01, 0.01},
		Counted:   []float64{0.1, -0.1}, SECounted: []float64{0.02, 0.02},
	}
	s.add(&e, time.Date(2026, 3, 1, 12, 0, 30, 0, time.UTC).UnixNano())
	r := s.Rollups[0][0]
	if r.Count != 2 || r.Moved[0] != 0.3 || len(r.SEChange)+len(r.Counted) > 0 {
		t.Errorf("%+v", r)
	}
	s.add(&e, time.Date(2026, 3, 1, 12, 1, 30, 0, time.UTC).UnixNano())
	r = s.Rollups[0][1]
	if r.SEChange[0] != 0.01 || r.Counted[0] != 0.1 || r.SECounted[0] != 0.02 {
		t.Errorf("%+v", r)
	}
}
