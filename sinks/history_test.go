package sinks

import (
	"errors"
	"net"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/quant"
)

// The records of a community are read back by time, and by the position at which they were
// in force; those of another pipeline are not.
func TestHistoryOfACommunityIsReadBack(t *testing.T) {
	l := startLogOut(t)
	w := l.writer(run("a"))
	for p := range uint64(20) {
		e := emissionAt(p+1, 3)
		for i := range e.Estimates {
			e.Estimates[i].Method = "pcc"
		}
		with := emissionAt(p+1, 3)
		with.Estimates = append(with.Estimates, e.Estimates[1]) // c0001 has two methods
		with.Estimates[2], with.Estimates[3] = with.Estimates[3], with.Estimates[2]
		if p == 10 ||
			// c0001 is suppressed twice: the later gap is part of its history, the gap before its
			// first record is not
			p == 0 {
			with.Estimates = []quant.Estimate{
				{
					Community:  "c0001",
					Position:   p + 1,
					Time:       with.Estimates[1].Time,
					Suppressed: true,
				},
			}
		}
		l.publish(w, with)
	}
	h := NewHistory(l.js, DefaultNames(), "log")
	positions := func(list []quant.Estimate) (at []uint64) {
		for _, e := range list {
			at = append(at, e.Position)
		}
		return at
	}
	list, whole, err := h.Read(
		t.Context(),
		RecordsQuery{Community: "c0001", Method: "pcc", From: time.Unix(5, 0), To: time.Unix(7, 0)},
	)
	if diff := cmp.Diff([]uint64{5, 6, 7}, positions(list)); diff != "" || !whole || err != nil {
		t.Errorf("between: %v, %v\n%s", whole, err, diff)
	}
	list, _, err = h.Read(
		t.Context(),
		RecordsQuery{
			Community: "c0001",
			Method:    "pcc",
			From:      time.Unix(0, 0),
			To:        time.Unix(12, 0),
		},
	)
	if diff := cmp.Diff([]uint64{2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12},
		positions(list)); diff != "" ||
		err != nil ||
		!list[9].Suppressed ||
		list[9].Method != "pcc" {
		t.Errorf("with a suppressed one: %v\n%s", err, diff)
	}
	// Of a window with more records than are wanted the newest are read, wherever it lies.
	for most, want := range map[int][]uint64{
		1: {9}, 4: {6, 7, 8, 9}, 6: {4, 5, 6, 7, 8, 9},
		7: {3, 4, 5, 6, 7, 8, 9}, 8: {3, 4, 5, 6, 7, 8, 9},
	} {
		list, whole, err := h.Read(
			t.Context(),
			RecordsQuery{
				Community: "c0001",
				Method:    "pcc",
				From:      time.Unix(3, 0),
				To:        time.Unix(9, 0),
				Most:      most,
			},
		)
		if got := positions(list); err != nil || whole != (most >= 7) || !slices.Equal(got, want) {
			t.Errorf("%d of an old window: %v, %v, %v", most, got, whole, err)
		}
	}
	far := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	for most, want := range map[int][]uint64{1: {20}, 4: {17, 18, 19, 20}} {
		list, whole, err = h.Read(
			t.Context(),
			RecordsQuery{Community: "c0001", Method: "pcc", To: far, Most: most},
		)
		if got := positions(list); err != nil || whole || !slices.Equal(got, want) {
			t.Errorf("%d up to %v: %v, %v, %v", most, far, got, whole, err)
		}
	}
	for _, most := range []int{0, 19, 20} { // the first is suppressed before there is an estimate
		list, whole, err = h.Read(
			t.Context(),
			RecordsQuery{Community: "c0001", Method: "pcc", Most: most},
		)
		if err != nil || !whole || len(list) != 19 || list[0].Position != 2 {
			t.Errorf("%d of all: %v, %v, %v", most, positions(list), whole, err)
		}
	}
	if list, _, err := h.Read(t.Context(), RecordsQuery{
		Community: "c0001", Method: "pcc",
		From: far,
	}); len(list) > 0 ||
		err != nil {
		t.Errorf("from %v: %v, %v", far, positions(list), err)
	}
	for until, want := range map[uint64]uint64{0: 0, 1: 0, 2: 2, 13: 13, 99: 20} {
		record, ok, err := h.InForce(t.Context(), "c0001", "pcc", until, time.Unix(0, 0))
		if err != nil || ok != (want > 0) || record.Position != want ||
			ok && record.Method != "pcc" {
			t.Errorf("in force at %d: %d, %v, %v", until, record.Position, ok, err)
		}
	}
	if _, ok, err := h.InForce(t.Context(), "c0000", "pcc", 99, time.Time{}); ok || err != nil {
		t.Errorf("a method that is not there: %v, %v", ok, err)
	}
	l.mustHaveLatest(map[string]uint64{"c0000": 20, "c0001": 20, "c0002": 20})
	if list, err := h.Latest(t.Context(), 20); len(list) != 5 || err != nil {
		t.Errorf("latest: %d, %v", len(list), err)
	}
	if list, err := NewHistory(l.js, DefaultNames(), "another").Latest(t.Context(), 20); len(
		list,
	) != 0 ||
		err != nil {
		t.Errorf("latest of another log: %d, %v", len(list), err)
	}
}

// Records of a method that is configured twice have places of their own, whatever other
// methods are configured. The first of the two is read back and rolled up.
func TestAMethodThatIsConfiguredTwiceIsNotMixed(t *testing.T) {
	l := startLogOut(t)
	w := l.writer(run("a"))
	for p := range uint64(3) {
		e := emissionAt(p+1, 1)
		for _, method := range []string{"pcc", "auto"} {
			again := e.Estimates[0]
			again.Method, again.Prevalence = method, []float64{0.25, 0.75}
			e.Estimates = append(e.Estimates, again)
		}
		e.Estimates[0].Prevalence = []float64{0.5, 0.5}
		l.publish(w, e)
	}
	h := NewHistory(l.js, DefaultNames(), "log")
	if list, _, err := h.Read(t.Context(), RecordsQuery{Community: "c0000", Method: "auto"}); len(
		list,
	) != 3 ||
		err != nil {
		t.Errorf("%d records of 3 positions, %v", len(list), err)
	}
	l.mustHaveLatest(map[string]uint64{"c0000": 3})
	list, err := h.Latest(t.Context(), 3)
	if err != nil || len(list) != 2 {
		t.Errorf("latest: %d, %v", len(list), err)
	}
	for _, e := range list {
		if e.Method == "auto" && e.Prevalence[0] != 0.5 {
			t.Errorf("the latest is %v", e.Prevalence)
		}
	}
	r := l.rollups(filepath.Join(t.TempDir(), "history.json"), disk{})
	e := emissionAt(1, 1)
	r.add(append(e.Estimates, estimate("c0000", "pcc", 1), e.Estimates[0]), e.Time)
	if len(r.state.Series) != 2 || r.state.Series[0].Rollups[0][0].Count != 1 {
		t.Errorf("%d series", len(r.state.Series))
	}
}

// To answer with few records few must be read, of however many and wherever they lie.
func TestFewRecordsAreReadForFew(t *testing.T) {
	l := startLogOut(t)
	w := l.writer(run("a"))
	for p := range uint64(400) {
		communities := 2
		// c0001 has gone; the newest of its records are further back than the average says
		if p >= 200 {
			communities = 1
		}
		l.publish(w, emissionAt(p+1, communities))
	}
	received := l.nc.Stats().InMsgs
	list, whole, err := NewHistory(
		l.js,
		DefaultNames(),
		"log",
	).Read(t.Context(), RecordsQuery{Community: "c0001", Method: "auto", Most: 1})
	if err != nil || whole || len(list) != 1 || list[0].Position != 200 {
		t.Errorf("%v, %v, %v", list, whole, err)
	}
	// 98 with the answers to requests; heartbeats come on top, two seconds apart. All would be 200.
	if n := l.nc.Stats().InMsgs - received; n > 150 {
		t.Errorf("%d messages came for one record", n)
	}
}

// slowLink is a connection to a broker on which nothing arrives for a while.
type slowLink struct {
	*server.Server
	until atomic.Int64
}

type slowConn struct {
	net.Conn
	link *slowLink
}

func (l *slowLink) InProcessConn() (net.Conn, error) {
	c, err := l.Server.InProcessConn()
	return slowConn{c, l}, err
}

func (c slowConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	time.Sleep(time.Until(time.Unix(0, c.link.until.Load())))
	return n, err
}

// A reading while the broker is slow for longer than the library waits must return all
// records, or an error: not a part of them.
func TestASlowBrokerLeavesNothingOut(t *testing.T) {
	l := startLogOut(t)
	l.publish(l.writer(run("a")), emissionAt(1, 600), emissionAt(2, 600))
	link := &slowLink{Server: l.s}
	nc, err := nats.Connect("", nats.InProcessServer(link))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	read := func() error {
		n = 0
		all := reading[quant.Estimate]{
			js,
			"GQL_ESTIMATES",
			"log",
			[]string{DefaultNames().estimateSubjects()},
		}
		return all.each(t.Context(), 0, func(quant.Estimate) bool {
			if n++; n == 10 || n == 800 {
				link.until.Store(time.Now().Add(1500 * time.Millisecond).UnixNano())
			}
			return true
		})
	}
	if err := read(); n != 1200 && !errors.Is(err, nats.ErrTimeout) {
		t.Errorf("%d of 1200 are read, %v", n, err)
	}
}
