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
		if back, ok := nameOf(token); !ok || back != name {
			t.Fatalf("%q comes back as %q, %v", name, back, ok)
		}
		if back, ok := nameOf(name); ok && Token(back) != name {
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

// A file must hold every record once, in order, after a run that was cut short
// anywhere, mid-line or mid-emission, goes on from any checkpoint before that.
func TestLinesFileHoldsEveryRecordOnceAfterARestart(t *testing.T) {
	emissions := func(from int) (all [][]quant.Estimate) {
		for p := from; p <= 50; p += 10 {
			var e []quant.Estimate
			for _, community := range []string{"a", "b", "c"} {
				e = append(e, quant.Estimate{Community: community, Method: "auto", Position: uint64(p)})
			}
			all = append(all, e)
		}
		return all
	}
	write := func(path string, from uint64, all [][]quant.Estimate) {
		s, err := OpenLines(LinesConfig{Path: path, Log: "log", From: from})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			if err := s.Write(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(s.Sync(0), s.Close()); err != nil {
			t.Fatal(err)
		}
	}
	whole := filepath.Join(t.TempDir(), "whole")
	write(whole, 0, emissions(10))
	want, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	emission := len(want) / 5
	for cut := 0; cut < len(want); cut += 7 {
		for from := 0; from*emission <= cut; from++ { // a checkpoint is only made of what is on the disk
			path := filepath.Join(t.TempDir(), "cut")
			if err := os.WriteFile(path, want[:cut], 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path+logSuffix, []byte("log"), 0o600); err != nil {
				t.Fatal(err)
			}
			write(path, uint64(10*from), emissions(10*from+10))
			if got, _ := os.ReadFile(path); !bytes.Equal(got, want) {
				t.Fatalf("cut at byte %d, restart from %d:\n%s\nwant\n%s", cut, 10*from, got, want)
			}
		}
	}
}

// A file of another log must be left alone.
func TestLinesFileOfAnotherLogIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lines")
	s, err := OpenLines(LinesConfig{Path: path, Log: "one"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(t.Context(), []quant.Estimate{{Community: "a", Position: 1}}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadFile(path)
	if _, err := OpenLines(LinesConfig{Path: path, Log: "two"}); err == nil || !strings.Contains(err.Error(), "another log") {
		t.Errorf("the file of another log was opened: %v", err)
	}
	if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
		t.Error("the file of another log was changed")
	}
	if _, err := OpenLines(LinesConfig{Path: t.TempDir()}); err == nil {
		t.Error("a folder was opened as a file")
	}
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
