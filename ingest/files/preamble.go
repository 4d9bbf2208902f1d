package files

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"gqlstream/ingest/event"
	"gqlstream/ingest/wire"
)

// peekBytes bounds how much of a file is examined before reading it: one line.
const peekBytes = 1 << 16

// preamble is the part of a text file before its rows: comments, as SNAP and KONECT write them, and
// the line of a spreadsheet that names the separator.
type preamble struct {
	lines       int64  // of the preamble
	first, last string // comments, without their mark
	separator   rune   // given by the file; 0: none
}

// readPreamble reads the lines that begin with # or %. If the columns are given, the first row is
// data and may begin with a # without a space after it.
func readPreamble(in *bufio.Reader, given bool) (p preamble, err error) {
	for {
		head, _ := in.Peek(2)
		sep, _ := in.Peek(len("sep=;"))
		switch {
		case p.lines == 0 && bytes.EqualFold(sep[:min(4, len(sep))], []byte("sep=")) &&
			len(sep) == 5:
			p.separator = rune(sep[4])
		case p.lines > 0 && (len(head) > 0 && head[0] == '\n' || string(head) == "\r\n"):
		case len(head) == 0 || head[0] != '#' && head[0] != '%':
			return p, nil
		case given && head[0] == '#' && len(head) > 1 &&
			!strings.ContainsRune(" \t\r\n#!", rune(head[1])):
			return p, nil
		}
		var line []byte
		for more := true; more; {
			var part []byte
			if part, more, err = in.ReadLine(); err != nil {
				return p, err
			}
			if len(line) < peekBytes {
				line = append(line, part...)
			}
		}
		p.lines++
		text := wire.TrimText(strings.TrimLeft(string(line), "#%"))
		if len(line) > 0 && (p.separator == 0 || p.lines > 1) {
			p.last = text
			if p.first == "" {
				p.first = p.last
			}
		}
	}
}

// konectKinds are the kinds of networks in the first comment of a KONECT file.
var konectKinds = map[string]bool{"sym": true, "asym": true, "bip": true}

// refuse refuses a bipartite network with the same vertex numbers on both sides.
func (p *preamble) refuse() error {
	if words := strings.Fields(p.first); len(words) > 1 && words[0] == "bip" {
		return errors.New("a bipartite network of KONECT, whose sides both count from 1: " +
			"put a letter before the ids of one side, or both sides are the same vertices")
	}
	return nil
}

// names returns the names of the columns in a comment, unless the first row has them: those of the
// last comment, if their number fits and the required ones are there, as in SNAP files; or the
// fixed names of KONECT files.
func (p *preamble) names(first []string, kind event.Kind, split func(string) []string) []string {
	if p.last == "" {
		return nil
	}
	fits := func(names []string) bool {
		if len(names) != len(first) {
			return false
		}
		c := newColumns(kind, nil, nil)
		_, err := c.setHeader(names)
		return err == nil
	}
	if fits(first) {
		return nil
	}
	words := strings.Fields(p.first)
	if kind == event.KindEdge && len(words) > 1 && konectKinds[words[0]] && len(first) <= 4 {
		return []string{"src", "dst", "weight", "time"}[:len(first)]
	}
	for _, names := range [][]string{split(p.last), strings.Fields(p.last)} {
		for i, name := range names {
			names[i] = wire.TrimText(name)
		}
		if fits(names) {
			return names
		}
	}
	return nil
}

// firstLine returns the next line, with a quote in place of its quoted parts.
func firstLine(in *bufio.Reader) (line []byte) {
	head, _ := in.Peek(peekBytes)
	quoted := false
	for _, c := range head {
		switch {
		case c == '"':
			if quoted = !quoted; quoted {
				line = append(line, '"')
			}
		case c == '\n' && !quoted:
			return line
		case !quoted:
			line = append(line, c)
		}
	}
	return line
}

// separatorOf returns the separator of a file: that of its format, unless the first line has only
// another one.
func separatorOf(line []byte, format fileFormat) rune {
	order := ",;\t|"
	switch format {
	case tsvFile:
		order = "\t,;|"
	case textFile:
		order = "\t;|,"
	}
	for _, separator := range order {
		if bytes.ContainsRune(line, separator) {
			return separator
		}
	}
	if len(bytes.Fields(line)) > 1 {
		return ' '
	}
	return rune(order[0])
}

// packedForms are the first bytes of files that are no text.
var packedForms = map[string]string{
	"\x1f\x8b": "gzip: add .gz to its name", "\x28\xb5\x2f\xfd": "zstd: add .zst to its name",
	"PK\x03\x04": "a zip archive or a spreadsheet: unpack it, or save it as CSV",
	"PAR1":       "Parquet: call it .parquet", "ARROW1": "Arrow: call it .arrow",
	"BZh": "bzip2: unpack it first", "SQLite format 3\x00": "SQLite: call it .sqlite",
	"Obj\x01": "Avro: call it .avro", "FEA1": "Feather, version 1: call it .feather",
	"$FL2": "SPSS: call it .sav", "<stata_dta>": "Stata: call it .dta",
	"\x80\x04\x95": "a pickle: call it .pkl", "\x80\x05\x95": "a pickle: call it .pkl",
}

// checkText refuses a file with the first bytes of another format.
func checkText(in *bufio.Reader) error {
	for first, what := range packedForms {
		if head, _ := in.Peek(len(first)); string(head) == first {
			return errors.New("this is no text but " + what)
		}
	}
	if mark, _ := in.Peek(2); string(mark) == "\xff\xfe" || string(mark) == "\xfe\xff" {
		return errUTF16
	}
	return nil
}

// titlesMax bounds the lines before the names of the columns that an error counts.
const titlesMax = 20

// namesBelow returns advice if a line after the first of head has the names of the columns, or "".
// The file has some lines before head.
func namesBelow(head []byte, format fileFormat, kind event.Kind, before int64) string {
	lines := bytes.SplitN(head, []byte("\n"), titlesMax)
	for i, line := range lines[min(1, len(lines)):] {
		c := newColumns(kind, nil, nil)
		names := strings.Split(strings.TrimSpace(string(line)), string(separatorOf(line, format)))
		for j, name := range names {
			names[j] = strings.Trim(wire.TrimText(name), `"`)
		}
		if _, err := c.setHeader(names); err == nil {
			return fmt.Sprintf("line %d has the names of the columns: remove the lines before it, "+
				"or put # before each of them", before+int64(i)+2)
		}
	}
	return ""
}

// quotedOtherwise are values in quotes that CSV does not know.
var quotedOtherwise = regexp.MustCompile("^['‘‚«»‹›“”„`].*['’‘«»‹›“”`]$")

// checkEnds refuses names that show a line ending which CSV readers do not recognise.
func checkEnds(names []string) error {
	for _, name := range names {
		if strings.ContainsRune(name, '\r') {
			return fmt.Errorf(
				"column %q: the lines end with a carriage return alone: save it with line feeds",
				name)
		}
		if quotedOtherwise.MatchString(name) {
			return fmt.Errorf("column %s: values in quotes of another kind: write double "+
				"quotes, \"", name)
		}
	}
	return nil
}
