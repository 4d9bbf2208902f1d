package sinks

import (
	"bytes"
	"fmt"
	"os"
	"strings"
)

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
		} else {
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

const secretBytesMax = 4096

// ReadSecret reads a file that nobody else may read, and returns its text without outer space.
func ReadSecret(path string, bytesMin int) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s has mode %#o, others can read it: chmod 600 it", path, info.Mode().Perm())
	case info.Size() > secretBytesMax:
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read", path, info.Size(), secretBytesMax)
	}
	data, err := os.ReadFile(path)
	if data = bytes.TrimSpace(data); err == nil && len(data) < bytesMin {
		err = fmt.Errorf("the secret in %s has %d bytes, want %d or more, such as the output of 'openssl rand -hex 32'", path, len(data), bytesMin)
	}
	return data, err
}
