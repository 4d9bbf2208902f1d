package sinks

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
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
	for _, name := range []string{"", "=", "a", "A.b", "é", "a b", "*", ">", "=41", "\x00", "x=2E"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		token := Token(name)
		if token == "" || strings.ContainsFunc(token, func(r rune) bool {
			return r > 127 || !plain(byte(r)) && r != '='
		}) {
			t.Fatalf("%q has the token %q", name, token)
		}
		if back, ok := Name(token); !ok || back != name {
			t.Fatalf("%q comes back as %q, %v", name, back, ok)
		}
		if back, ok := Name(name); ok && Token(back) != name {
			t.Fatalf("%q is read as a token of %q, which has %q", name, back, Token(back))
		}
	})
}

// Each estimate must be one line of JSON that is with the reader when Write
// returns, and an estimate that is not a number an error.
func TestLinesAreFlushedJSON(t *testing.T) {
	var out bytes.Buffer
	s := NewLines(&out)
	want := []quant.Estimate{estimate("a<b", "auto", 7), estimate("c", "ml", 7)}
	if err := s.Write(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(&out)
	for i := 0; lines.Scan(); i++ {
		var got quant.Estimate
		if err := json.Unmarshal(lines.Bytes(), &got); err != nil || got.Community != want[i].Community {
			t.Errorf("line %d: %s, %v", i, lines.Text(), err)
		}
		if i == 0 && !strings.Contains(lines.Text(), "a<b") {
			t.Errorf("escaped: %s", lines.Text())
		}
	}
	bad := estimate("a", "auto", 8)
	bad.Prevalence[0] = math.NaN()
	if err := s.Write(t.Context(), []quant.Estimate{bad}); err == nil || !strings.Contains(err.Error(), `"a" at 8`) {
		t.Errorf("NaN: %v", err)
	}
}

// A file must be appended to, after taking off what a crash left of a line.
func TestLinesFileIsAppendedToAfterATornLine(t *testing.T) {
	path := filepath.Join(t.TempDir(), "estimates.ndjson")
	for _, torn := range []string{"", `{"community":"to`, strings.Repeat("x", 10_000)} {
		before, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, append(before, torn...), 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := OpenLines(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Write(t.Context(), []quant.Estimate{estimate("a", "auto", 1)}), s.Close()); err != nil {
			t.Fatal(err)
		}
		after, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		line, rest, _ := bytes.Cut(after[len(before):], []byte("\n"))
		if !bytes.HasPrefix(after, before) || !json.Valid(line) || len(rest) > 0 {
			t.Errorf("after torn %.20q: %.200q", torn, after)
		}
	}
	if _, err := OpenLines(t.TempDir()); err == nil {
		t.Error("a directory was opened")
	}
}
