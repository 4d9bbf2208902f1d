package wire

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gqlstream/ingest/event"
)

// lateMessages are of each kind that can be late: events at 100 s, at 39 s, without a
// time, at 40 s, and one at 39 s that is wrong as well.
var lateMessages = map[event.Kind]string{
	event.KindEdge: `{"src":1,"dst":2,"time":100}
{"src":1,"dst":3,"time":39}
{"src":1,"dst":4}
{"src":1,"dst":5,"time":40}
{"src":6,"dst":6,"time":39}`,
	event.KindLabel: `{"vertex":1,"class":1,"time":100}
{"vertex":2,"class":1,"time":39,"ttl":"1h"}
{"vertex":3,"class":1}
{"vertex":4,"class":null,"time":40}
{"vertex":5,"class":7,"time":39}`,
	event.KindPrediction: `{"vertex":1,"p":[0.5,0.5],"time":100}
{"vertex":2,"p":[0.25,0.75],"time":39}
{"vertex":3,"class":1}
{"vertex":4,"class":1,"time":40}
{"vertex":5,"p":[0.5,0.25],"time":39}`,
	event.KindMember: `{"community":"c","vertex":1,"time":100}
{"op":"leave","community":"c","vertex":2,"time":39}
{"community":"c","vertex":3}
{"community":"c","vertex":4,"time":40}
{"community":"","vertex":5,"time":39}`,
}

// A late event must be counted, and refused with its place and its original if the policy
// of its kind says so. Another mistake of the event is reported first.
func TestLateEventsAreDivertedOrCounted(t *testing.T) {
	d := newDecoder(t, 2)
	for kind, text := range lateMessages {
		for _, divert := range []bool{true, false} {
			policy := event.LatePolicy{
				After:       time.Minute,
				Edges:       divert,
				Labels:      divert,
				Predictions: divert,
				Members:     divert,
			}
			m := Message{
				Kind:        kind,
				ContentType: NDJSON,
				Payload:     []byte(text),
				Position:    4,
				Received:    98e9,
				Late:        policy,
				Now:         100e9,
			}
			var b event.Batch
			decodeAll(t, d, m, &b)
			want := []string{"1 late", "4 " + string(b.Refused[len(b.Refused)-1].Reason)}
			if !divert {
				want = want[1:]
			}
			if got := refusals(&b); !slices.Equal(got, want) || b.Events() != 5-len(want) ||
				b.Late[kind] != 1 {
				t.Errorf(
					"%v, divert %t: refused %v, want %v; %d events, %v late", kind, divert, got,
					want, b.Events(), b.Late,
				)
			}
			if line := strings.Split(text, "\n")[1]; divert &&
				string(b.Refused[0].Original) != line {
				t.Errorf("%v: original %s, want %s", kind, b.Refused[0].Original, line)
			}
			if detail := b.Refused[0].Detail; divert &&
				!strings.Contains(detail, "1m1s behind the log's, more than 1m0s") {
				t.Errorf("%v: detail %s", kind, detail)
			}
			whole := m
			whole.ContentType, whole.Payload = JSON, []byte(
				"["+strings.ReplaceAll(text, "\n", ",")+"",
			)
			var none event.Batch
			if err := d.Decode(whole, &none); err == nil || none.Late != [event.Kinds]int{} {
				t.Errorf("%v: a message refused whole has %v late", kind, none.Late)
			}
			m.Late, m.Now = event.LatePolicy{}, 0
			none.Reset()
			decodeAll(t, d, m, &none)
			if none.Late != [event.Kinds]int{} || len(none.Refused) != 1 {
				t.Errorf(
					"%v without a policy: refused %v, %v late", kind, refusals(&none), none.Late,
				)
			}
		}
	}
}

// decodeAll decodes a message in which events may be refused.
func decodeAll(t *testing.T, d *Decoder, m Message, b *event.Batch) {
	t.Helper()
	if err := d.Decode(m, b); err != nil {
		t.Fatal(err)
	}
}

func refusals(b *event.Batch) (list []string) {
	for _, r := range b.Refused {
		list = append(list, fmt.Sprint(r.Index, " ", r.Reason))
	}
	return list
}

// A table must be judged row by row as the same events in JSON are.
func TestLateRowsAreLateEvents(t *testing.T) {
	d := newDecoder(t, 2)
	policy := event.LatePolicy{
		After:       time.Minute,
		Edges:       true,
		Labels:      true,
		Predictions: true,
		Members:     true,
	}
	for kind, text := range lateMessages {
		lines := strings.Split(text, "\n")[:4]
		m := Message{
			Kind:        kind,
			ContentType: NDJSON,
			Payload:     []byte(strings.Join(lines, "\n")),
			Position:    4,
		}
		var sound event.Batch
		mustDecode(t, d, m, &sound)
		payload, err := encodeTable(kind, &sound, 0, sound.Events())
		if err != nil {
			t.Fatal(err)
		}
		table := m
		table.ContentType, table.Payload = Arrow, payload
		table.Late, table.Now, table.Received = policy, 100e9, 98e9
		m.Late, m.Now, m.Received = policy, 100e9, 98e9
		var a, b event.Batch
		decodeAll(t, d, m, &a)
		decodeAll(t, d, table, &b)
		if x, y := refusals(&a), refusals(&b); !slices.Equal(x, y) || len(x) != 1 ||
			a.Late != b.Late ||
			a.Events() != b.Events() {
			t.Errorf("%v: JSON refuses %v, Arrow %v; %v and %v late", kind, x, y, a.Late, b.Late)
		}
		again := Message{Kind: kind, ContentType: JSON, Payload: b.Refused[0].Original, Position: 4}
		var retried event.Batch
		mustDecode(t, d, again, &retried)
		if retried.Events() != 1 {
			t.Errorf("%v: the original %s is not the event", kind, again.Payload)
		}
	}
}

// The withdrawal of a label that a table brings late must be one when it is published again.
func TestALateWithdrawalComesBackAsOne(t *testing.T) {
	d := newDecoder(t, 2)
	var sound, late, again event.Batch
	m := Message{
		Kind:        event.KindLabel,
		ContentType: JSON,
		Payload:     []byte(`{"vertex":4,"class":null,"time":39}`),
	}
	mustDecode(t, d, m, &sound)
	payload, err := EncodeArrow(event.KindLabel, &sound, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	table := Message{
		Kind:    event.KindLabel,
		Payload: payload,
		Late:    event.LatePolicy{After: time.Minute, Labels: true},
		Now:     100e9,
	}
	decodeAll(t, d, table, &late)
	if len(late.Refused) != 1 {
		t.Fatalf("refused %v", refusals(&late))
	}
	m.Payload = late.Refused[0].Original
	mustDecode(t, d, m, &again)
	if len(again.Labels) != 1 || again.Labels[0].Class != event.NoClass {
		t.Errorf("the original %s gives %+v", m.Payload, again.Labels)
	}
}

// Every invalid value of a policy must be named.
func TestLatePoliciesAreValidated(t *testing.T) {
	for _, c := range []struct {
		policy event.LatePolicy
		want   string
	}{
		{event.LatePolicy{}, ""},
		{event.LatePolicy{After: time.Second}, ""},
		{event.LatePolicy{Labels: true}, "late.after: missing"},
		{event.LatePolicy{After: -1}, "must be positive"},
	} {
		err := c.policy.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.policy, err, c.want)
		}
	}
}
