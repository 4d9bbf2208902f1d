package main

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// crashEvents makes messages of every kind over a small graph: hubs, removals,
// times to live, erasures, labels that change, and events that are refused.
type crashEvents struct {
	rand *rand.Rand
	made int

	nobodyErased bool // an erasure drops the checkpoints from before it

	classes int       // 0: two
	at      time.Time // of the events of the next message; zero: only some have a time
}

const crashVertices = 300

func (e *crashEvents) vertex() int {
	return min(e.rand.IntN(crashVertices), e.rand.IntN(crashVertices))
}

func (e *crashEvents) next() ingest.Outgoing {
	e.made++
	var line func() string
	o := ingest.Outgoing{ContentType: wire.NDJSON}
	n := 1 + e.rand.IntN(20)
	switch x := e.rand.IntN(20); {
	case x < 9:
		o.Kind, line = event.KindEdge, e.edge
	case x < 13:
		o.Kind, line = event.KindPrediction, e.prediction
	case x < 16:
		o.Kind, line = event.KindLabel, e.label
	case x < 18:
		o.Kind, line = event.KindMember, e.member
	default:
		o.Kind, line = event.KindVertex, e.attribute
		if e.rand.IntN(6) == 0 && !e.nobodyErased {
			n, line = 1, e.erasure
		}
	}
	var lines strings.Builder
	for range n {
		lines.WriteString(e.timed(line()))
		lines.WriteByte('\n')
	}
	if e.rand.IntN(30) == 0 {
		lines.WriteString(`{"src":"a line that is cut`)
	}
	o.Payload = []byte(lines.String())
	return o
}

// timed gives an event its time.
func (e *crashEvents) timed(line string) string {
	if e.at.IsZero() {
		return line
	}
	return fmt.Sprintf(
		`%s,"time":%q}`,
		strings.TrimSuffix(line, "}"),
		e.at.Format(time.RFC3339Nano),
	)
}

func (e *crashEvents) edge() string {
	u, v := e.vertex(), e.vertex()
	switch e.rand.IntN(8) {
	case 0:
		return fmt.Sprintf(`{"src":%d,"dst":%d,"op":"remove"}`, u, v)
	case 1:
		return fmt.Sprintf(`{"src":%d,"dst":%d,"ttl":"%dms"}`, u, v, 10+e.rand.IntN(900))
	case 2:
		return fmt.Sprintf(`{"src":%d,"dst":%d,"weight":%v}`, u, v, 0.5+e.rand.Float64())
	case 3:
		return fmt.Sprintf(`{"src":%d,"dst":%d,"weight":-1}`, u, v) // refused
	}
	return fmt.Sprintf(`{"src":%d,"dst":%d}`, u, v)
}

func (e *crashEvents) prediction() string {
	return fmt.Sprintf(
		`{"vertex":%d,"probabilities":[%s],"version":"m%d"%s}`, e.vertex(), e.probabilities(),
		e.made/700%40, e.ttl(),
	)
}

// probabilities returns the probability of the first class, and an equal part of the rest
// for each other class; the last one takes the remainder of rounding.
func (e *crashEvents) probabilities() string {
	left, list := 1.0, []string{}
	for range max(e.classes, 2) - 1 {
		p := left * e.rand.Float64()
		left -= p
		list = append(list, fmt.Sprint(p))
	}
	return strings.Join(append(list, fmt.Sprint(left)), ",")
}

func (e *crashEvents) label() string {
	role := [...]string{"train", "calibrate"}[e.rand.IntN(2)]
	if e.rand.IntN(5) == 0 {
		return fmt.Sprintf(`{"vertex":%d,"label":null}`, e.vertex())
	}
	return fmt.Sprintf(
		`{"vertex":%d,"label":%d,"role":%q%s}`, e.vertex(), e.rand.IntN(max(e.classes, 2)), role,
		e.ttl(),
	)
}

// ttl is a time to live for one in four.
func (e *crashEvents) ttl() string {
	if e.rand.IntN(4) > 0 {
		return ""
	}
	return fmt.Sprintf(`,"ttl":"%dms"`, 10+e.rand.IntN(900))
}

// when is an own time, late for some by crashConfig.
func (e *crashEvents) when() string {
	if e.rand.IntN(4) > 0 || !e.at.IsZero() {
		return ""
	}
	ago := time.Duration(e.rand.IntN(2000)) * time.Millisecond
	return fmt.Sprintf(`,"time":%q`, time.Now().Add(-ago).UTC().Format(time.RFC3339Nano))
}

func (e *crashEvents) member() string {
	op := [...]string{"join", "join", "leave"}[e.rand.IntN(3)]
	return fmt.Sprintf(
		`{"community":"group-%d","vertex":%d,"op":%q%s}`, e.rand.IntN(3), e.vertex(), op, e.when(),
	)
}

func (e *crashEvents) attribute() string {
	return fmt.Sprintf(
		`{"vertex":%d,"attributes":{"language":%q}}`,
		e.vertex(),
		[...]string{"de", "en"}[e.rand.IntN(2)],
	)
}

func (e *crashEvents) erasure() string {
	return fmt.Sprintf(`{"vertex":%d,"erase":true}`,
		e.vertex())
}
