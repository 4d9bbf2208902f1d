package sinks

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
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

// highRule fires while the share of a is above a value.
func highRule(t *testing.T, value string) alerts.Config {
	t.Helper()
	rule := alerts.Rule{
		Name:        "high",
		Communities: []string{"*"},
		Classes:     []string{"a"},
		For:         2 * time.Second,
	}
	if err := rule.ParseWhen("point > " + value); err != nil {
		t.Fatal(err)
	}
	return alerts.Config{
		Pipeline: "p", Classes: []string{"a", "b"}, Methods: []string{"auto"},
		Rules: []alerts.Rule{rule},
	}
}

// restless is an output log with shares that go up and down.
func restless(seed uint64, n int) (list []Emission) {
	random := rand.New(rand.NewPCG(seed, 5))
	for p := range n {
		e := emissionAt(uint64(p+1), random.IntN(4))
		for i := range e.Estimates {
			share := random.Float64()
			e.Estimates[i].Prevalence = []float64{share, 1 - share}
			e.Estimates[i].Low, e.Estimates[i].High, e.Estimates[i].SE = []float64{
				0,
				0,
			}, []float64{
				1,
				1,
			}, []float64{
				1,
				1,
			}
		}
		list = append(list, e)
	}
	return list
}

func (l *logOut) alerting(path string, rules alerts.Config, d disk) *Alerting {
	l.t.Helper()
	a, err := NewAlerting(l.t.Context(), AlertingConfig{
		JS: l.js, Streams: StreamsConfig{Names: DefaultNames()}, Log: "log",
		State: fileStore{path, d}, Rules: rules,
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return a
}

// follow runs a follower until it has taken all records.
func (l *logOut) follow(c FollowConfig, sequence uint64) {
	l.t.Helper()
	c.JS, c.Reader.Names, c.Reader.Log = l.js, DefaultNames(), "log"
	r := NewRunner(c)
	ctx, cancel := context.WithTimeout(l.t.Context(), 20*time.Second)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	err := r.CatchUp(ctx, sequence)
	cancel()
	if err := errors.Join(err, <-ended); err != nil {
		l.t.Fatalf("%s: %v; %+v", c.Name, err, r.State())
	}
}

// alertsStored reads the stream of alerts.
func (l *logOut) alertsStored() (list []string) {
	l.t.Helper()
	stream, err := l.js.Stream(l.t.Context(), "GQL_ALERTS")
	if err != nil {
		l.t.Fatal(err)
	}
	for at := range stream.CachedInfo().State.LastSeq {
		m, err := stream.GetMsg(l.t.Context(), at+1)
		if err != nil {
			l.t.Fatal(err)
		}
		list = append(list, m.Header.Get(headerPlace)+" "+string(m.Data))
	}
	return list
}

// evaluated returns the alerts of emissions without a broker.
func evaluated(t *testing.T, rules alerts.Config, list []Emission) (want []string) {
	t.Helper()
	engine, err := alerts.New(rules)
	if err != nil {
		t.Fatal(err)
	}
	var beats Heartbeats
	for _, e := range list {
		if !beats.Publishes(&e) {
			continue
		}
		for i, x := range engine.Evaluate(alerts.Moment{Position: e.Position, Time: e.Time},
			e.Estimates) {
			want = append(want, fmt.Sprintf("%d.%d %s", e.Position, i+1, x.JSON()))
		}
	}
	return want
}

// Every beginning and end of an alert must be stored once, in order, and be in the file of
// alerts, whatever the step at which the follower dies, and although it begins again each
// time from its saved state.
func TestAlertsAreStoredOnceAfterACrashAnywhere(t *testing.T) {
	l := startLogOut(t)
	w := l.writer(run("a"))
	dir := t.TempDir()
	state, file := filepath.Join(dir, "alerts.json"), filepath.Join(dir, "alerts.ndjson")
	rules, list := highRule(t, "0.5"), restless(1, 120)
	random := rand.New(rand.NewPCG(1, 2))
	var deaths int
	d := disk{fault: func(string) error {
		if random.IntN(12) == 0 {
			deaths++
			return errCrash
		}
		return nil
	}}
	l.alerting(
		state,
		rules,
		disk{},
	) // begins before the first emission, although it ends before it is opened
	for from := 0; from < len(list); from += 40 {
		l.publish(w, list[from:from+40]...)
		a := l.alerting(state, rules, d)
		l.follow(FollowConfig{Name: "alerts", Open: a.Open}, w.Sequence())
		if from == 40 { // an equal run evaluates everything again
			b := l.alerting(filepath.Join(dir, "other.json"), rules, disk{})
			if b.begin = (Cursor{}); os.Remove(filepath.Join(dir, "other.json")) != nil {
				t.Fatal("where it begins is not saved")
			}
			l.follow(FollowConfig{Name: "alerts", Open: b.Open}, w.Sequence())
		}
		stored := uint64(len(l.alertsStored()))
		l.follow(
			FollowConfig{
				Name:   "file",
				Reader: ReaderConfig{Alerts: true},
				Open: func(context.Context) (Follower, Cursor, error) {
					return openLinesFile(file, "log", d)
				},
			},
			stored,
		)
	}
	want := evaluated(t, rules, list)
	if diff := cmp.Diff(want, l.alertsStored()); diff != "" || len(want) < 20 || deaths < 3 {
		t.Fatalf("%d deaths, %d alerts; -want +got:\n%.2000s", deaths, len(want), diff)
	}
	var lines []string
	for _, x := range want {
		_, line, _ := strings.Cut(x, " ")
		lines = append(lines, line)
	}
	if diff := cmp.Diff(strings.Join(lines, "\n")+"\n",
		contents(t, dir)["alerts.ndjson"]); diff != "" {
		t.Errorf("file: -want +got:\n%.2000s", diff)
	}
}

// New alerts in a pipeline that has published for a long time begin with the next records.
// Changed rules hold from behind the newest alert.
func TestAlertsBeginAndChangeWhereTheLogIs(t *testing.T) {
	l := startLogOut(t)
	w := l.writer(run("a"))
	list, state := restless(2, 90), filepath.Join(t.TempDir(), "alerts.json")
	l.publish(w, list[:30]...)
	a := l.alerting(state, highRule(t, "0.5"), disk{})
	l.publish(w, list[30:60]...)
	l.follow(FollowConfig{Name: "alerts", Open: a.Open}, w.Sequence())
	if diff := cmp.Diff(evaluated(t, highRule(t, "0.5"), list[30:60]),
		l.alertsStored()); diff != "" {
		t.Fatalf("-want +got:\n%.2000s", diff)
	}
	last, _ := parsePlace(strings.Fields(l.alertsStored()[len(l.alertsStored())-1])[0])
	b := l.alerting(state, highRule(t, "0.9"), disk{})
	l.publish(w, list[60:]...)
	l.follow(FollowConfig{Name: "alerts", Open: b.Open}, w.Sequence())
	first := slices.IndexFunc(
		l.alertsStored(),
		func(s string) bool { return strings.Contains(s, "above 90.0 %") },
	)
	if first < 0 {
		t.Fatal("the new rule never speaks")
	}
	at, _ := parsePlace(strings.Fields(l.alertsStored()[first])[0])
	if at.Compare(last) <= 0 {
		t.Errorf("the new rule speaks at %v, before %v", at, last)
	}
	if _, c, _ := b.Now(); len(c) != 1 || c[0].Inactive+c[0].Pending+c[0].Firing != 3 {
		t.Errorf("counts %+v", c)
	}
}

// Alerts without a stored state must start at the end of the output log, not evaluate all of
// it. This must also hold if the first attempt to read the state failed.
func TestAlertsBeginWhereTheLogIsAfterAFailedLook(t *testing.T) {
	l := startLogOut(t)
	l.publish(l.writer(run("a")), restless(2, 30)...)
	stored := FileStore(filepath.Join(t.TempDir(), "alerts.json"))
	a, err := NewAlerting(t.Context(), AlertingConfig{
		JS: l.js, Streams: StreamsConfig{Names: DefaultNames()}, Log: "log",
		State: unreadable{stored}, Rules: highRule(t, "0.5"),
	})
	if err != nil {
		t.Fatal(err)
	}
	a.config.State = stored
	if _, at, err := a.Open(t.Context()); err != nil || at.Position != 30 {
		t.Errorf("they begin behind position %d, %v; want 30", at.Position, err)
	}
}

// A stream of alerts that is deleted is made again, and alerts go on.
func TestDeletedAlertsAreMadeAgain(t *testing.T) {
	l := startLogOut(t)
	w := l.writer(run("a"))
	a := l.alerting(filepath.Join(t.TempDir(), "alerts.json"), highRule(t, "0.5"), disk{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r := NewRunner(
		FollowConfig{
			Name:   "alerts",
			JS:     l.js,
			Reader: ReaderConfig{Names: DefaultNames(), Log: "log"},
			Open:   a.Open,
		},
	)
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	for p, shares := range [][]float64{{0.9, 0.1}, {0.9, 0.1}, {0.1, 0.9}, {0.9, 0.1}, {0.9, 0.1}} {
		if p == 3 {
			if err := errors.Join(r.CatchUp(ctx, w.Sequence()),
				l.js.DeleteStream(ctx, "GQL_ALERTS")); err != nil {
				t.Fatal(err)
			}
		}
		e := Emission{Position: uint64(p + 1), Time: int64(3*p+3) * int64(time.Second)}
		e.Estimates = []quant.Estimate{
			{
				Community:  "x",
				Method:     "auto",
				Prevalence: shares,
				Low:        shares,
				High:       shares,
				SE:         shares,
			},
		}
		l.publish(w, e)
	}
	if err := r.CatchUp(ctx, w.Sequence()); err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if got := l.alertsStored(); len(got) == 0 || !strings.HasPrefix(got[len(got)-1], "5.1 ") {
		t.Errorf("alerts %q", got)
	}
}

// The bucket of latest values holds the newest record of each subject.
func TestBucketHasTheNewestRecords(t *testing.T) {
	l := startLogOut(t)
	w := l.writer(run("a"))
	for p := range uint64(20) {
		l.publish(w, emissionAt(p+1, int(p%5)+1))
	}
	l.mustHaveLatest(
		map[string]uint64{"c0000": 20, "c0001": 20, "c0002": 20, "c0003": 20, "c0004": 20},
	)
}

// mustHaveLatest waits until the bucket holds, byte for byte, the last message of each
// subject of the stream, and checks the positions.
func (l *logOut) mustHaveLatest(positions map[string]uint64) {
	l.t.Helper()
	kv, err := l.js.KeyValue(l.t.Context(), "gql_estimates")
	if err != nil {
		l.t.Fatal(err)
	}
	stream, err := l.js.Stream(l.t.Context(), "GQL_ESTIMATES")
	if err != nil {
		l.t.Fatal(err)
	}
	deadline := time.Now().
		Add(90 * time.Second)
		// A server waits 30 s for the first answer of a source.
	for community, position := range positions {
		want, err := stream.GetLastMsgForSubject(
			l.t.Context(),
			"gqlest.estimate."+community+".auto",
		)
		if err != nil ||
			!strings.Contains(string(want.Data), fmt.Sprintf(`"position":%d,`, position)) {
			l.t.Fatalf("%s in the stream: %v, %v", community, want, err)
		}
		for {
			got, err := kv.Get(l.t.Context(), community+".auto")
			if err == nil && string(got.Value()) == string(want.Data) {
				break
			}
			if time.Now().After(deadline) ||
				err != nil && !errors.Is(err, jetstream.ErrKeyNotFound) {
				l.t.Fatalf("%s in the bucket: %v, %v; want %s", community, got, err, want.Data)
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// The place of an alert has the form that earlier builds wrote: a file of alerts goes on behind the
// same one.
func TestAPlaceIsReadAsItWasWritten(t *testing.T) {
	var p progress
	if err := json.Unmarshal([]byte(`{"log":"log","cursor":{"position":7,"shard":2,"sequence":9,`+
		`"stamp":1}}`), &p); err != nil {
		t.Fatal(err)
	}
	if want := (Place{Position: 7, Ordinal: 2}); p.Cursor.Place != want {
		t.Errorf("%+v, want %+v", p.Cursor.Place, want)
	}
}
