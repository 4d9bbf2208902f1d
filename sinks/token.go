package sinks

import "strings"

const hexDigits = "0123456789ABCDEF"

// Token returns a name as one token of a NATS subject, which is also a part of a
// key in a bucket: letters, digits, "-" and "_" stand for themselves, any other
// byte becomes "=" and two hexadecimal digits, and the empty name is "=".
// Different names have different tokens.
func Token(name string) string {
	if name == "" {
		return "="
	}
	var b strings.Builder
	for _, c := range []byte(name) {
		if plain(c) {
			b.WriteByte(c)
			continue
		}
		b.Write([]byte{'=', hexDigits[c>>4], hexDigits[c&15]})
	}
	return b.String()
}

// Name is the inverse of Token; ok is false when the token is not one of Token's.
func Name(token string) (name string, ok bool) {
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
			high := strings.IndexByte(hexDigits, token[i+1])
			low := strings.IndexByte(hexDigits, token[i+2])
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
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}
