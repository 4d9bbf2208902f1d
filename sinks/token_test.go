package sinks

import (
	"strings"
	"testing"

	"gqlstream/quant"
)

func estimate(community, method string, position uint64) quant.Estimate {
	return quant.Estimate{
		Community: community, Method: method, Position: position,
		Prevalence: []float64{0.25, 0.75}, NEff: []float64{1, 2}, Flags: []string{},
	}
}

// Different names must have different tokens, made of characters that subjects and
// keys allow, and the name must come back.
func FuzzTokenIsInvertible(f *testing.F) {
	for _, name := range []string{
		"", "=", "a", "A.b", "é", "a b", "*", ">", "=41", "\x00", "x=2E",
		"~", "+", "%41",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		token := Token(name)
		if token == "" || strings.ContainsFunc(token, func(r rune) bool {
			return r > 127 || !plain(byte(r)) && r != '='
		}) {
			t.Fatalf("%q has the token %q", name, token)
		}
		if back, ok := nameOf(token); !ok || back != name {
			t.Fatalf("%q comes back as %q, %v", name, back, ok)
		}
		if back, ok := nameOf(name); ok && Token(back) != name {
			t.Fatalf("%q is read as a token of %q, which has %q", name, back, Token(back))
		}
	})
}

// nameOf is the inverse of Token; ok is false when the token is not one of Token's.
func nameOf(token string) (name string, ok bool) {
	if token == "=" {
		return "", true
	}
	var b strings.Builder
	for i := 0; i < len(token); i++ {
		c := token[i]
		if c == '=' {
			if i+2 >= len(token) {
				return "", false
			}
			high := strings.IndexByte("0123456789ABCDEF", token[i+1])
			low := strings.IndexByte("0123456789ABCDEF", token[i+2])
			c, i = byte(high<<4|low), i+2
			if high < 0 || low < 0 || plain(c) {
				return "", false
			}
		} else if !plain(c) {
			return "", false
		}
		b.WriteByte(c)
	}
	return b.String(), token != ""
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' ||
		c == '_'
}
