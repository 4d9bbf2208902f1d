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

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}
