package sinks

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gqlstream/quant"
)

// What a log out holds of a community is read back by time, and by where in the log a
// record was in force; another pipeline's is not seen.
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
		l.publish(w, with)
	}
	config := HistoryConfig{Names: DefaultNames(), Log: "log"}
	h := NewHistory(l.js, config)
	positions := func(list []quant.Estimate) (at []uint64) {
		for _, e := range list {
			at = append(at, e.Position)
		}
		return at
	}
	list, whole, err := h.Between(t.Context(), "c0001", "pcc", time.Unix(5, 0), time.Unix(7, 0))
	if diff := cmp.Diff([]uint64{5, 6, 7}, positions(list)); diff != "" || !whole || err != nil {
		t.Errorf("between: %v, %v\n%s", whole, err, diff)
	}
	for until, want := range map[uint64]uint64{0: 0, 1: 1, 13: 13, 99: 20} {
		record, ok, err := InForce(t.Context(), l.js, config, "c0001", "pcc", until, time.Unix(0, 0))
		if err != nil || ok != (want > 0) || record.Position != want || ok && record.Method != "pcc" {
			t.Errorf("in force at %d: %d, %v, %v", until, record.Position, ok, err)
		}
	}
	if _, ok, err := InForce(t.Context(), l.js, config, "c0000", "pcc", 99, time.Time{}); ok || err != nil {
		t.Errorf("a method that is not there: %v, %v", ok, err)
	}
	l.mustHaveLatest(map[string]uint64{"c0000": 20, "c0001": 20, "c0002": 20})
	if list, err := h.Latest(t.Context(), 20); len(list) != 4 || err != nil {
		t.Errorf("latest: %d, %v", len(list), err)
	}
	config.Log = "another"
	if list, err := NewHistory(l.js, config).Latest(t.Context(), 20); len(list) != 0 || err != nil {
		t.Errorf("latest of another log: %d, %v", len(list), err)
	}
}
