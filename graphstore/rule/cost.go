package rule

import (
	"regexp/syntax"

	"gqlstream/ingest/event"
)

// Bounds of what one evaluation may take. A step is about ten nanoseconds.
const (
	// patternSizeMax bounds the instructions of a compiled pattern. A counted repetition
	// is compiled as often as it counts, so a few bytes of pattern can make millions.
	patternSizeMax = 1000
	// matchTextBytesMax bounds the text that a pattern is matched against: every
	// instruction may look at every byte. A longer text is a Mismatch.
	matchTextBytesMax = 512

	stepsOfNode   = 4
	stepsOfSearch = event.AttributeTextBytesMax / 8 // of contains
)

// Steps returns a bound on the steps of an evaluation.
func (p *Program) Steps() int { return p.steps }

// patternSize returns about how many instructions a pattern compiles to. It counts them
// without compiling, because compiling is what must be avoided when they are many. The
// parser has bounded the pattern to a few millions, so the sum does not overflow.
func patternSize(re *syntax.Regexp) int {
	size := 1
	if re.Op == syntax.OpLiteral {
		size = len(re.Rune)
	}
	for _, sub := range re.Sub {
		size += patternSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(1, re.Min, re.Max)
	}
	return size
}
