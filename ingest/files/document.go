package files

import (
	"bufio"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// rowPath is a place in a JSON document where rows may be: its steps from the top, each the key of
// an object, or "" for the elements of an array.
type rowPath []string

// possibleRows are the objects at one path.
type possibleRows struct {
	path  rowPath
	count int
	keys  map[string]int // how many have a key, with the keys of objects inside
	order []string       // of the keys
}

const (
	possiblePathsMax = 256
	documentDepthMax = 12
)

// document looks for rows in a JSON text.
type document struct {
	dec  *jsontext.Decoder
	rows []*possibleRows // in the order of the text
}

// adviseRows returns an error that says how to make a file of rows from a JSON file whose rows are
// inside its objects, or nil if it has none that fit the columns. It reads the whole file again.
func adviseRows(path string, c *columns) error {
	f, err := openFile(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	in := bufio.NewReader(f)
	skipMark(in)
	d := &document{dec: jsontext.NewDecoder(in,
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))}
	top := 0
	for d.walk(nil, nil) == nil {
		top++
	}
	if best := d.best(c); best != nil {
		return fmt.Errorf("its objects have no %s, but the %d of %s have: write these to a file, "+
			"and read that: %s", c.requiredNames(" and no "), best.count, best.name(),
			best.command(path, top > 1, c))
	}
	if best := d.longest(); best != nil && top == 1 && d.rows[0].count == 1 &&
		len(d.rows[0].path) == 0 {
		return fmt.Errorf("it is one object with no %s; the %d of %s have %s: if they are the "+
			"rows, write them to a file, and read that with --map OURS=COLUMN: %s",
			c.requiredNames(" and no "), best.count, best.name(), listNames(best.order),
			best.command(path, false, c))
	}
	return nil
}

// longest returns the elements of the array with the most objects, or nil.
func (d *document) longest() (best *possibleRows) {
	for _, rows := range d.rows {
		if n := len(rows.path); n > 0 && rows.path[n-1] == "" &&
			(best == nil || rows.count > best.count) {
			best = rows
		}
	}
	return best
}

// walk reads a value. chain are the objects that it is inside of, up to the nearest array, with
// their paths.
func (d *document) walk(path rowPath, chain []*possibleRows) error {
	switch d.dec.PeekKind() {
	case '{':
		return d.object(path, chain)
	case '[':
		if _, err := d.dec.ReadToken(); err != nil {
			return err
		}
		inside := append(slices.Clone(path), "")
		for d.dec.PeekKind() != ']' {
			if err := d.walk(inside, nil); err != nil {
				return err
			}
		}
		_, err := d.dec.ReadToken()
		return err
	}
	return d.dec.SkipValue()
}

// object reads an object, and counts its keys in the chain.
func (d *document) object(path rowPath, chain []*possibleRows) error {
	if len(path) > documentDepthMax {
		return d.dec.SkipValue()
	}
	if _, err := d.dec.ReadToken(); err != nil {
		return err
	}
	if rows := d.at(path); rows != nil {
		rows.count++
		chain = append(slices.Clone(chain), rows)
	}
	for d.dec.PeekKind() != '}' {
		token, err := d.dec.ReadToken()
		if err != nil {
			return err
		}
		inside := append(slices.Clone(path), token.String())
		if kind := d.dec.PeekKind(); kind != '{' && kind != '[' && kind != 'n' {
			for _, rows := range chain {
				rows.has(strings.Join(inside[len(rows.path):], "."))
			}
		}
		if err := d.walk(inside, chain); err != nil {
			return err
		}
	}
	_, err := d.dec.ReadToken()
	return err
}

// at returns the rows at a path, or nil if there are too many paths.
func (d *document) at(path rowPath) *possibleRows {
	for _, rows := range d.rows {
		if slices.Equal(rows.path, path) {
			return rows
		}
	}
	if len(d.rows) == possiblePathsMax {
		return nil
	}
	rows := &possibleRows{path: slices.Clone(path), keys: map[string]int{}}
	d.rows = append(d.rows, rows)
	return rows
}

func (p *possibleRows) has(key string) {
	if p.keys[key] == 0 {
		p.order = append(p.order, key)
	}
	p.keys[key]++
}

// best returns the rows that fill the most columns, and all that are required, or nil. The first
// ones in the text win.
func (d *document) best(c *columns) (best *possibleRows) {
	most := 0
	for _, rows := range d.rows {
		try := newColumns(c.kind, c.rename, nil)
		try.chooseAliases(rows.order)
		if len(rows.path) == 0 || !try.complete(rows.order) {
			continue
		}
		filled := 0
		for _, key := range rows.order {
			if slot := try.resolve(key); slot >= 0 && slot < try.base() {
				filled++
			}
		}
		if filled > most {
			best, most = rows, filled
		}
	}
	return best
}

// name returns the path without arrays.
func (p *possibleRows) name() string {
	steps := slices.DeleteFunc(slices.Clone(p.path), func(step string) bool { return step == "" })
	return strconv.Quote(strings.Join(steps, "."))
}

// requiredNames lists the required columns.
func (c *columns) requiredNames(between string) string {
	var names []string
	for _, known := range c.known {
		if known.Required {
			names = append(names, known.Names[0])
		}
	}
	return strings.Join(names, between)
}

// command returns a command that writes the rows as NDJSON. Python keeps all digits of whole
// numbers, which jq 1.6 does not. Several texts are one a line.
func (p *possibleRows) command(path string, several bool, c *columns) string {
	from, steps := "json.load(open(0))", p.path
	loops := ""
	name := func(i int) string { return string(rune('a' + i)) }
	n := 0
	if several {
		from, loops, n = name(0), " for a in map(json.loads,open(0))", 1
	}
	for i, step := range steps {
		switch {
		case step == "":
			loops += fmt.Sprintf(" for %s in %s", name(n), from)
			from = name(n)
			n++
		case i+1 < len(steps) && steps[i+1] == "":
			from += fmt.Sprintf(".get(%s,[])", pythonText(step))
		default:
			from += fmt.Sprintf("[%s]", pythonText(step))
		}
	}
	if loops == "" {
		return shell(path, fmt.Sprintf("print(json.dumps(%s))", from))
	}
	return shell(path, fmt.Sprintf("[print(json.dumps(%s))%s%s]", from, loops, p.only(from, c)))
}

// only returns a condition that leaves out rows without a required column, if there are some.
func (p *possibleRows) only(row string, c *columns) string {
	try := newColumns(c.kind, c.rename, nil)
	try.chooseAliases(p.order)
	for _, key := range p.order {
		slot := try.resolve(key)
		if slot >= 0 && slot < try.base() && try.known[slot].Required && p.keys[key] < p.count &&
			!strings.Contains(key, ".") {
			return fmt.Sprintf(" if %s.get(%s)", row, pythonText(key))
		}
	}
	return ""
}

// pythonText returns a text in Python, within double quotes of a shell.
func pythonText(text string) string {
	safe := regexp.MustCompile(`[\\'"$` + "`" + `\x00-\x1f]`)
	return "'" + safe.ReplaceAllStringFunc(text, func(s string) string {
		return fmt.Sprintf(`\x%02x`, s[0])
	}) + "'"
}

// shell returns a command that runs a statement of Python on a file.
func shell(path, statement string) string {
	out := strings.TrimSuffix(path, filepath.Ext(path)) + ".rows.ndjson"
	quoted := func(path string) string {
		if regexp.MustCompile(`^[\w./+:@-]+$`).MatchString(path) {
			return path
		}
		return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
	}
	return fmt.Sprintf(`python3 -c "import json; %s" < %s > %s`, statement, quoted(path),
		quoted(out))
}

// assignment is the beginning of a file of a Twitter archive.
var assignment = regexp.MustCompile(`^[A-Za-z_$][\w.$]*\s*=`)

func isAssignment(text []byte) bool { return assignment.Match(text[:min(len(text), 1<<10)]) }

// archiveAdvice says how to read a file of a Twitter archive, where posts do not name their author.
func archiveAdvice(path string) string {
	return "a file of JavaScript, as in a Twitter archive: its posts are all by the owner, whom " +
		"they do not name; with the owner's id in place of OWNER: " +
		shell(path, "[print(json.dumps({**a.get('tweet',a),'author_id':'OWNER'})) "+
			"for a in json.loads(open(0).read().split('=',1)[1].strip(';\\n '))]")
}
