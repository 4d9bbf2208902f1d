package rule

import (
	"regexp/syntax"
	"strings"
	"testing"

	"gqlstream/ingest/event"
)

// The size of a pattern must be near the size of its compiled program: a smaller number
// would make the bound useless, a much larger one would refuse plain patterns.
func TestPatternSizeIsThatOfTheCompiler(t *testing.T) {
	for _, pattern := range []string{
		"", "z", "^de(-|$)", "[a-z0-9._%+-]+@[a-z0-9.-]+", "(a|bc|def)*x", "a{3,90}",
		"(ab{2,5}){7}", "x{40,}",
		"(?i)straße", `\pL+`, `\bword\b`, "a?b+c*", ".{0,99}.{0,99}", "((((a){3}){3}){3}){3}",
	} {
		re, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		program, err := syntax.Compile(re.Simplify())
		if err != nil {
			t.Fatal(err)
		}
		got, want := patternSize(re), len(program.Inst)
		if 2*got+8 < want || got > 4*want+100 {
			t.Errorf("%q: size %d, compiled %d instructions", pattern, got, want)
		}
	}
}

// A text beyond the bound must not be matched, and must say so by a mismatch.
func TestLongTextsAreNotMatched(t *testing.T) {
	p, err := Compile(`language matches "x$"`)
	if err != nil {
		t.Fatal(err)
	}
	longest := strings.Repeat("a", matchTextBytesMax-1) + "x"
	if got := p.Match(values(longest)); got != Yes {
		t.Errorf("the longest text gives %d", got)
	}
	if got := p.Match(values("a" + longest)); got != Mismatch {
		t.Errorf("a longer text gives %d", got)
	}
}

// The steps must grow with the work of an evaluation.
func TestStepsCountTheWorkOfAnEvaluation(t *testing.T) {
	last := 0
	for _, source := range []string{
		`true`, `a > 1`, `a > 1 and b < 2 or c == 3`, `a in [` + strings.Repeat("1,", 200) + `2]`,
		`a contains "x"`, `a matches "xyz"`, `a matches "x{50}"`,
		`a matches "x{50}" or b matches "y{50}"`,
	} {
		p, err := Compile(source)
		if err != nil {
			t.Fatal(err)
		}
		if p.Steps() <= last {
			t.Errorf("%s: %d steps, no more than the one before with %d", source, p.Steps(), last)
		}
		last = p.Steps()
	}
}

func values(language string) []event.Value { return []event.Value{text(language)} }
