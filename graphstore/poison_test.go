package graphstore

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"gqlstream/ingest/event"
)

// rulesOf returns n communities of one expression each.
func rulesOf(n int, expression func(i int) string) []Rule {
	rules := make([]Rule, n)
	for i := range rules {
		rules[i] = Rule{Name: fmt.Sprint("r", i), Kind: ByExpression, Expression: expression(i)}
	}
	return rules
}

// Twelve thousand rules that hold for every vertex must be refused before they take
// memory in proportion to rules times vertices, and must change nothing.
func TestRulesBeyondTheMembershipsAreRefused(t *testing.T) {
	s := newTestStore(t, Config{Limits: event.Limits{Memberships: 100_000}})
	var b event.Batch
	for i := range uint64(2000) {
		b.Vertices = append(b.Vertices, event.Vertex{
			Vertex: event.NumberID(i),
			Attributes: []event.Attribute{
				{Key: "a", Value: event.Value{Kind: event.NumberValue, Number: float64(i)}},
			},
		})
	}
	s.Apply(&b)
	if err := s.SetCommunities(rulesOf(20, func(int) string { return "a >= 0" })); err != nil {
		t.Fatal(err)
	}
	poison := rulesOf(12_000, func(i int) string { return fmt.Sprintf("a > %d or a != %d", i, i) })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := s.SetCommunities(poison)
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "more memberships than 100000") {
		t.Fatalf("error %v", err)
	}
	// Compiling 12,000 rules takes some 50 MB, their memberships would take 2 GB.
	if took := after.TotalAlloc - before.TotalAlloc; took > 128<<20 {
		t.Errorf("refusing took %d bytes", took)
	}
	if n := s.members.total; n != 40_000 || s.View().Communities() != 20 {
		t.Errorf(
			"%d memberships in %d communities afterwards, want 40000 in 20",
			n,
			s.View().Communities(),
		)
	}
	if err := s.Check(); err != nil {
		t.Error(err)
	}
}

// A pattern that compiles to hundreds of thousands of instructions must be refused
// without being compiled, and so must many patterns that together are too much.
func TestPatternsThatWouldHoldAStepAreRefused(t *testing.T) {
	s := newTestStore(t, Config{})
	one := rulesOf(
		1,
		func(int) string { return `a matches "` + strings.Repeat(".{0,999}", 400) + `z"` },
	)
	many := rulesOf(
		100,
		func(i int) string { return fmt.Sprintf(`a matches "%s%d"`, strings.Repeat(".?", 200), i) },
	)
	for want, rules := range map[string][]Rule{
		"instructions":                  one,
		"steps of evaluating all rules": many,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := s.SetCommunities(rules)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%d rules: error %v, want one about %s", len(rules), err, want)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > 32<<20 {
			t.Errorf("%d rules: refusing took %d bytes", len(rules), took)
		}
		if _, err := New(Config{Classes: 2, Communities: rules}); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%d rules at the start: error %v, want one about %s", len(rules), err, want)
		}
	}
}

// Memory that one large batch needed must not be held by the batches after it.
func TestScratchOfALargeBatchIsGivenBack(t *testing.T) {
	s := newTestStore(t, Config{})
	var b event.Batch
	for i := range uint64(2000) {
		b.Vertices = append(b.Vertices, event.Vertex{Vertex: event.NumberID(i)})
	}
	s.Apply(&b)
	if err := s.SetCommunities(rulesOf(1000, func(int) string { return "a == nil" })); err != nil {
		t.Fatal(err)
	}
	if n := len(s.step.delta.Members); n != 2_000_000 {
		t.Fatalf("%d memberships, want 2000000", n)
	}
	s.Apply(&event.Batch{})
	if held := cap(s.step.delta.Members) + cap(s.members.asserted) +
		cap(s.step.scratch); held > scratchMax {
		t.Errorf("%d elements are held", held)
	}
}
