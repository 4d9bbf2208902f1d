package sinks

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// lastUpTo must find the message that a walk over all messages finds, and must read few messages.
// Damaged or foreign messages must not hide the messages before them.
func TestTheLastMessageWithinABoundIsFound(t *testing.T) {
	l := startLogOut(t)
	_, err := l.js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: "KEYS", Subjects: []string{"keys.*"}, AllowDirect: true,
		Storage: jetstream.MemoryStorage,
	})
	if err != nil {
		t.Fatal(err)
	}
	const each, others = 200, 12
	shapes := map[string]func(i int) int64{
		"even": func(i int) int64 { return 1e18 + int64(i)*3600e9 },
		"gap": func(i int) int64 {
			if i < 30 {
				return int64(i)
			}
			return 1e18 + int64(i/5)
		},
		"growing": func(i int) int64 { return int64(math.Exp(float64(i) / 5)) },
	}
	for i := range each * others {
		for subject, key := range map[string]func(int) int64{
			"even": shapes["even"],
			"gap":  shapes["gap"], "growing": shapes["growing"],
		} {
			if i%others != 0 {
				subject, key = "other", shapes["even"]
			}
			data, _ := json.Marshal(key(i / others))
			m := &nats.Msg{
				Subject: "keys." + subject,
				Data:    data,
				Header:  nats.Header{headerLog: []string{"log"}},
			}
			if i < 20*others {
				m.Header.Set(headerLog, "before")
			}
			switch at := i / others; {
			case i%others == 1 && at > 20 && at%3 == 0: // between two of the subject
				m.Subject, m.Data = "keys.even", []byte("damaged")
			case i%others == 2 && at > 20 && at%5 == 0:
				m.Subject, m.Header = "keys.even", nil
			}
			if _, err := l.js.PublishMsgAsync(m); err != nil {
				t.Fatal(err)
			}
		}
	}
	<-l.js.PublishAsyncComplete()
	for subject, key := range shapes {
		look := reading[int64]{l.js, "KEYS", "log", []string{"keys." + subject}}
		looks := 0
		for i := 18; i < each; i += 3 {
			for _, bound := range []int64{key(i) - 1, key(i), key(i) + 1} {
				want := -1
				for j := 20; j < each && key(j) <= bound; j++ {
					want = j
				}
				got, ok, err := look.lastUpTo(
					t.Context(),
					func(k *int64) int64 { looks++; return *k },
					bound,
				)
				name := fmt.Sprintf("%s, at most %d", subject, bound)
				if err != nil || ok != (want >= 0) ||
					ok &&
						(got.value != key(want) || got.sequence <= uint64(3*others*want) ||
							got.sequence > uint64(3*others*want)+3) {
					t.Fatalf(
						"%s: message %d of %d, %v, %v; want the %dth", name, got.sequence,
						got.value, ok, err, want,
					)
				}
			}
		}
		t.Logf("%s: key was asked for %d times", subject, looks)
		if looks > 12*(each-18) {
			t.Errorf("%d keys were looked at for %d questions", looks, 3*(each-18)/3)
		}
	}
}
