package alerts

import (
	"strings"
	"testing"
	"time"
)

// note feeds a decision with an emission that has no records.
func (s *script) note(after int64, q Quieting) []Transition {
	s.second = after
	list := s.engine.Evaluate(Moment{
		Position: uint64(
			1000 + after,
		), Time: start + after*second, Notes: []string{"debate tonight", q.Note()},
	}, nil)
	s.all = append(s.all, list...)
	return list
}

// A silence ends a firing alert with a reason and suppresses new ones. When it is over, the
// alert fires if its condition still holds. A restored state must know the silence.
func TestASilenceEndsAnAlertAndIsOver(t *testing.T) {
	s := begin(t, rule(t, "point > 0.5", nil))
	s.want(0, one(record("x", 0.9, 0.01, 0)), fires)
	q := Quieting{
		Rule: "r*", Community: "x", Class: "*", By: "anna", Why: "known",
		Until: TimeText(start + 20*second),
	}
	list := s.note(5, q)
	if len(list) != 1 || list[0].End != EndSilenced || list[0].State != Resolved ||
		list[0].Reason != "silenced until 2026-03-01 12:00:20 UTC by anna: known" {
		t.Fatalf("the silence gives %+v", list)
	}
	restored, err := Restore(config(rule(t, "point > 0.5", nil)), s.engine.Save())
	if err != nil {
		t.Fatal(err)
	}
	s.engine = restored
	s.want(10, one(record("x", 0.9, 0.01, 0)))
	s.want(11, one(record("y", 0.9, 0.01, 0)), "r y left firing")
	s.want(19, nil)
	s.want(20, nil, fires)
	s.note(25, q)
	q.Until = TimeText(start + 26*second)
	if s.note(24, Quieting{Rule: "", Community: "x"}); len(s.engine.Quietings()) != 1 {
		t.Errorf("a note that names no rule is a decision: %+v", s.engine.Quietings())
	}
}

// A decision about the same alerts with an end that has passed takes the earlier one back.
func TestASilenceIsTakenBack(t *testing.T) {
	s := begin(t, rule(t, "point > 0.5", nil))
	q := Quieting{
		Rule:      "r",
		Community: "*",
		Class:     "*",
		By:        "anna",
		Until:     TimeText(start + 900*second),
	}
	s.note(1, q)
	s.want(2, one(record("x", 0.9, 0.01, 0)))
	q.Until = TimeText(start + 2*second)
	s.note(3, q)
	s.want(4, one(record("x", 0.9, 0.01, 0)), fires)
}

// An acknowledged alert must fire on, with the name of the person who takes care of it.
func TestAnAcknowledgedAlertNamesItsPerson(t *testing.T) {
	s := begin(t, rule(t, "point > 0.5", nil))
	s.want(0, one(record("x", 0.9, 0.01, 0)), fires)
	q := Quieting{
		Rule: "r", Community: "x", Class: "left", By: "anna", Acknowledge: true,
		Until: time.Unix(0, start+60*second).UTC().Format(time.RFC3339),
	}
	if list := s.note(5, q); len(list) != 0 {
		t.Errorf("it ends: %+v", list)
	}
	if a := s.engine.Active(); len(a) != 1 || a[0].Acknowledged == nil ||
		a[0].Acknowledged.By != "anna" {
		t.Errorf("active %+v", a)
	}
}

// Only a decision may read as one, and a written decision must read back.
func TestNotesThatAreDecisionsReadBack(t *testing.T) {
	for _, acknowledge := range []bool{false, true} {
		q := Quieting{
			Rule: "a <b>", Community: "x \"y\"", Class: "*", By: "anna",
			Until: "2026-03-01T12:00:00Z", Acknowledge: acknowledge,
		}
		if got, ok := ParseQuieting(q.Note()); !ok || got != q {
			t.Errorf("%s reads back as %+v", q.Note(), got)
		}
	}
	for _, text := range []string{"", "silence", "silence {}", "silence, please", "acknowledge x"} {
		if q, ok := ParseQuieting(text); ok {
			t.Errorf("%q is %+v", text, q)
		}
	}
	long := Quieting{
		Rule:      strings.Repeat("x", 3),
		Community: "*",
		Class:     "*",
		By:        "a",
		Until:     "soon",
	}
	if err := long.Validate(); err == nil || !strings.Contains(err.Error(), "want a time") {
		t.Errorf("refused with %v", err)
	}
}
