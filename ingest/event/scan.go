package event

import (
	"fmt"
	"unicode/utf8"
)

// scanner reads strict JSON (RFC 8259, and no key twice where it looks at keys)
// from UTF-8 text. The first error stays, and every call after it says no.
type scanner struct {
	buf     []byte
	pos     int
	base    int      // where buf begins in the message
	event   int      // index of the event at hand
	problem *Problem // the first error
	batch   *Batch   // owner of the strings that do not alias buf
}

// token is one JSON value as far as a field looks at it. Objects and arrays
// have been skipped, and checked as JSON.
type token struct {
	kind byte   // the first byte of the value, '0' for any number
	text string // of a string
	num  number // of a number
}

// fail notes a syntax error at the current byte and returns false.
func (s *scanner) fail(format string, args ...any) bool {
	if s.problem == nil {
		s.problem = problemf(Malformed, "event %d, byte %d: %s",
			s.event, s.base+s.pos, fmt.Sprintf(format, args...))
	}
	return false
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for s.pos < len(s.buf) {
		switch c := s.buf[s.pos]; c {
		case ' ', '\n', '\t', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// expect reads the punctuation c.
func (s *scanner) expect(c byte) bool {
	if s.peek() != c {
		return s.unexpected(fmt.Sprintf("%q", c))
	}
	s.pos++
	return true
}

// unexpected fails because something else was wanted.
func (s *scanner) unexpected(wanted string) bool {
	if s.pos >= len(s.buf) {
		return s.fail("the text ends where %s should stand", wanted)
	}
	r, _ := utf8.DecodeRune(s.buf[s.pos:])
	return s.fail("%q where %s should stand", r, wanted)
}

// next reads the comma between the items of a list that ends with end. more is
// false at the end of the list.
func (s *scanner) next(end byte) (more, ok bool) {
	switch s.peek() {
	case ',':
		s.pos++
		return true, true
	case end:
		s.pos++
		return false, true
	}
	return false, s.unexpected(fmt.Sprintf("\",\" or %q", end))
}

// str reads a string, which aliases the text or is owned by the batch.
func (s *scanner) str() (string, bool) {
	if s.peek() != '"' {
		return "", s.unexpected("a string")
	}
	start := s.pos + 1
	buf := s.buf
	for i := start; i < len(buf); i++ {
		switch c := buf[i]; {
		case c == '"':
			s.pos = i + 1
			return alias(buf[start:i]), true
		case c == '\\':
			return s.unescape(start, i)
		case c < ' ':
			s.pos = i
			return "", s.fail("control character in a string")
		}
	}
	s.pos = len(buf)
	return "", s.fail("the string that begins at byte %d does not end", s.base+start-1)
}

// unescape reads the string that begins at start and has its first escape at i.
func (s *scanner) unescape(start, i int) (string, bool) {
	var stack [128]byte
	out := append(stack[:0], s.buf[start:i]...)
	for i < len(s.buf) {
		c := s.buf[i]
		s.pos = i
		switch {
		case c == '"':
			s.pos++
			return s.batch.keep(out), true
		case c < ' ':
			return "", s.fail("control character in a string")
		case c != '\\':
			out = append(out, c)
			i++
		case i+1 < len(s.buf) && s.buf[i+1] == 'u':
			r, n := escapedRune(s.buf[i:])
			if n == 0 {
				return "", s.fail("bad \\u escape, or half a surrogate pair")
			}
			out = utf8.AppendRune(out, r)
			i += n
		default:
			e, ok := simpleEscape(s.buf, i+1)
			if !ok {
				return "", s.fail("unknown escape in a string")
			}
			out = append(out, e)
			i += 2
		}
	}
	s.pos = len(s.buf)
	return "", s.fail("the string that begins at byte %d does not end", s.base+start-1)
}

// simpleEscape returns what the escape letter at buf[i] stands for.
func simpleEscape(buf []byte, i int) (byte, bool) {
	if i >= len(buf) {
		return 0, false
	}
	switch c := buf[i]; c {
	case '"', '\\', '/':
		return c, true
	case 'b':
		return '\b', true
	case 'f':
		return '\f', true
	case 'n':
		return '\n', true
	case 'r':
		return '\r', true
	case 't':
		return '\t', true
	}
	return 0, false
}

// escapedRune reads the \uXXXX, or the pair of them, at the start of buf. n is 0
// when it is none, or half a surrogate pair.
func escapedRune(buf []byte) (r rune, n int) {
	r, ok := hexRune(buf)
	switch {
	case !ok || r >= 0xdc00 && r < 0xe000:
		return 0, 0
	case r < 0xd800 || r >= 0xe000:
		return r, 6
	}
	low, ok := hexRune(buf[6:])
	if !ok || low < 0xdc00 || low >= 0xe000 {
		return 0, 0
	}
	return (r-0xd800)<<10 + (low - 0xdc00) + 0x10000, 12
}

// hexRune reads the \uXXXX at the start of buf.
func hexRune(buf []byte) (rune, bool) {
	if len(buf) < 6 || buf[0] != '\\' || buf[1] != 'u' {
		return 0, false
	}
	var r rune
	for _, c := range buf[2:6] {
		switch {
		case c-'0' <= 9:
			r = r<<4 | rune(c-'0')
		case (c|0x20)-'a' < 6:
			r = r<<4 | rune((c|0x20)-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// value reads any value into t. depth is how many lists enclose it.
func (s *scanner) value(t *token, depth int) bool {
	c := s.peek()
	switch {
	case c == '"':
		var ok bool
		t.kind = '"'
		t.text, ok = s.str()
		return ok
	case c == '-' || c-'0' <= 9:
		t.kind = '0'
		return s.number(&t.num)
	}
	t.kind = c
	switch c {
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	case '{':
		return s.skipObject(depth + 1)
	case '[':
		return s.skipArray(depth + 1)
	}
	return s.unexpected("a value")
}

// number reads a number.
func (s *scanner) number(n *number) bool {
	end := scanNumber(alias(s.buf[s.pos:]), n)
	if end == 0 {
		return s.fail("not a number")
	}
	s.pos += end
	return true
}

// literal reads one of the three words of JSON.
func (s *scanner) literal(word string) bool {
	if rest := s.buf[s.pos:]; len(rest) < len(word) || string(rest[:len(word)]) != word {
		return s.fail("not a value (true, false and null are written so)")
	}
	s.pos += len(word)
	return true
}

// enter refuses lists that are too deep inside each other.
func (s *scanner) enter(depth int) bool {
	if depth > JSONDepthMax {
		return s.fail("more than %d objects and arrays inside each other", JSONDepthMax)
	}
	s.pos++
	return true
}

// skipArray reads the array at hand, which makes depth lists.
func (s *scanner) skipArray(depth int) bool {
	if !s.enter(depth) {
		return false
	}
	if s.peek() == ']' {
		s.pos++
		return true
	}
	var t token
	for {
		if !s.value(&t, depth) {
			return false
		}
		if more, ok := s.next(']'); !more {
			return ok
		}
	}
}

// skipObject reads the object at hand, which makes depth lists. No key may stand
// in it twice.
func (s *scanner) skipObject(depth int) bool {
	if !s.enter(depth) {
		return false
	}
	if s.peek() == '}' {
		s.pos++
		return true
	}
	var t token
	seen := make(map[string]struct{})
	for {
		key, ok := s.str()
		if !ok {
			return false
		}
		if _, ok := seen[key]; ok {
			return s.fail("key %s given twice", quote(key))
		}
		seen[key] = struct{}{}
		if !s.expect(':') || !s.value(&t, depth) {
			return false
		}
		if more, ok := s.next('}'); !more {
			return ok
		}
	}
}
