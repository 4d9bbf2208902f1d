package gqlstream

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Bounds of the house. A bound that is reached asks for something to go, not for
// a larger number. Where the house is not yet as small as it shall be, the bound is
// what there is, so that it only shrinks, and the goal stands beside it.
const (
	linesMax       = 48_224 // of Go outside tests; the goal is 42,000
	fileLinesMax   = 400
	functionLines  = 60
	methodFilesMax = 6      // files over which the methods of one type are spread
	configKeysMax  = 85     // rows of docs/configuration.md; the goal is 85
	manualWordsMax = 15_000 // of docs/*.md together, without dated notes
)

// methodFiles are the types whose methods are spread wider than methodFilesMax, and
// how wide.
var methodFiles = map[string]int{
	"quant.Solver": 10, // each method of estimation has a file
}

// rooms says how many lines of Go outside tests a room may hold, with the packages
// below it that have no row of their own, and how many are the goal.
var rooms = map[string]struct{ most, goal int }{
	"cmd/gqlstream": {3_627, 3_500},
	"config":        {740, 700},
	"group":         {790, 600},
	"pipeline":      {3_156, 2_500},
	"ingest/event":  {798, 800},
	"ingest/wire":   {3_016, 3_000},
	"ingest":        {1_848, 2_300},
	"ingest/files":  {1_787, 1_600},
	"ingest/broker": {698, 700},
	"simulate":      {1_061, 1_200},
	"graphstore":    {4_712, 5_500},
	"incremental":   {9_383, 8_000},
	"quant":         {4_006, 3_500},
	"sinks":         {6_772, 6_500},
	"alerts":        {1_239, 1_300},
	"checkpoint":    {515, 700},
	"explain":       {798, 1_300},
	"evaluate":      {1_178, 1_500},
	"bench":         {19, 1_500},
}

// text returns what a source file holds.
func (s source) text(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(s.name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// room returns the row of rooms that a directory belongs to, or nothing.
func room(dir string) string {
	for ; dir != "."; dir = path.Dir(dir) {
		if _, ok := rooms[dir]; ok {
			return dir
		}
	}
	return ""
}

// Rooms and files must stay within their bounds.
func TestRoomsStayWithinTheirBounds(t *testing.T) {
	held, total := map[string]int{}, 0
	for _, s := range sources(t) {
		if s.test || strings.HasPrefix(s.dir, "examples") || slices.Contains(testSupport, s.dir) {
			continue
		}
		lines := bytes.Count(s.text(t), []byte("\n"))
		held[room(s.dir)] += lines
		total += lines
		if lines > fileLinesMax {
			t.Errorf("%s has %d lines, at most %d", s.name, lines, fileLinesMax)
		}
	}
	for name, room := range rooms {
		t.Logf("%-14s %6d lines, goal %d", name, held[name], room.goal)
		if held[name] > room.most {
			t.Errorf("%s has %d lines, at most %d", name, held[name], room.most)
		}
	}
	t.Logf("%-14s %6d lines", "all", total)
	if total > linesMax {
		t.Errorf("there are %d lines of Go outside tests, at most %d", total, linesMax)
	}
}

// Functions must be short enough to be read at once.
func TestFunctionsAreShort(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			f, ok := n.(*ast.FuncDecl)
			if ok && f.Body != nil {
				if lines := s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line + 1; lines > functionLines {
					t.Errorf("%s: %s has %d lines, at most %d", s.name, f.Name.Name, lines, functionLines)
				}
			}
			return true
		})
	}
}

// A type whose methods lie in many files is several types.
func TestMethodsOfATypeLieTogether(t *testing.T) {
	files := map[string]map[string]bool{} // by directory and type
	for _, s := range sources(t) {
		for _, d := range s.file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv == nil || s.test {
				continue
			}
			name := s.dir + "." + receiver(f.Recv.List[0].Type)
			if files[name] == nil {
				files[name] = map[string]bool{}
			}
			files[name][s.name] = true
		}
	}
	for name, in := range files {
		if most := max(methodFilesMax, methodFiles[name]); len(in) > most {
			t.Errorf("%s has methods in %d files, at most %d", name, len(in), most)
		}
	}
}

// receiver returns the name of the type that a method belongs to.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return fmt.Sprintf("%T", e)
}

// What a package exports must be named by another one, or by a declaration that
// another one can reach: a result's type, a field, a parameter. The constants of one
// block are one vocabulary: that one of them is used is enough.
func TestExportedNamesAreUsed(t *testing.T) {
	declared := map[string][]string{} // what a declaration makes, by file and first name
	used := map[string]bool{}
	for _, s := range sources(t) {
		packages := map[string]string{} // directory by the name that the file has for it
		for _, p := range s.imports() {
			if ours, ok := strings.CutPrefix(p, module); ok {
				packages[path.Base(ours)] = ours
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if e, ok := n.(*ast.SelectorExpr); ok {
				if from, ok := e.X.(*ast.Ident); ok && packages[from.Name] != "" {
					used[packages[from.Name]+"."+e.Sel.Name] = true
				}
			}
			return true
		})
		if s.test || s.file.Name.Name == "main" {
			continue
		}
		for _, d := range s.file.Decls {
			names := exportedNames(d)
			for i := range names {
				names[i] = s.dir + "." + names[i]
				if g, ok := d.(*ast.GenDecl); !ok || g.Tok != token.CONST {
					declared[s.name+": "+names[i]] = names[i : i+1]
				}
			}
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST && len(names) > 0 {
				declared[s.name+": "+names[0]] = names
			}
			for _, name := range reachableNames(d) {
				used[s.dir+"."+name] = true
			}
		}
	}
	for where, names := range declared {
		if !slices.ContainsFunc(names, func(name string) bool { return used[name] }) {
			t.Errorf("%s: no other package uses what is exported here: %v", where, names)
		}
	}
}

// exportedNames lists the exported names that a top-level declaration makes,
// without methods, which may be there for an interface.
func exportedNames(d ast.Decl) (names []string) {
	add := func(id *ast.Ident) {
		if id.IsExported() {
			names = append(names, id.Name)
		}
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			add(d.Name)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				add(spec.Name)
			case *ast.ValueSpec:
				for _, id := range spec.Names {
					add(id)
				}
			}
		}
	}
	return names
}

// reachableNames lists the names that stand in the types of an exported
// declaration: parameters, results, fields, and the types of values. A method of
// an unexported type counts, because its type may be behind an interface.
func reachableNames(d ast.Decl) (names []string) {
	collect := func(n ast.Node) {
		if n == nil {
			return
		}
		ast.Inspect(n, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && id.IsExported() {
				names = append(names, id.Name)
			}
			return true
		})
	}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() {
			collect(d.Type)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				collect(spec.Type)
			case *ast.ValueSpec:
				if spec.Type != nil && d.Tok == token.CONST || d.Tok == token.VAR && spec.Type != nil {
					collect(spec.Type)
				}
			}
		}
	}
	return names
}

// configRow is a row of a table of docs/configuration.md, which a test of the
// configuration holds against the keys that exist.
var configRow = regexp.MustCompile("(?m)^\\| (`[a-z_.\\[\\]]+`(?:, `[a-z_.\\[\\]]+`)*) \\|")

// Whoever configures a pipeline must be able to know all keys, and whoever reads
// the manuals to finish them.
func TestManualsAndKeysStayFew(t *testing.T) {
	page, err := os.ReadFile("docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	keys := 0
	for _, row := range configRow.FindAllSubmatch(page, -1) {
		keys += bytes.Count(row[1], []byte("`")) / 2
	}
	t.Logf("%d configuration keys of %d", keys, configKeysMax)
	if keys == 0 || keys > configKeysMax {
		t.Errorf("docs/configuration.md has %d keys, at most %d", keys, configKeysMax)
	}
	manuals, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	words := 0
	for _, name := range manuals {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		words += len(bytes.Fields(text))
	}
	t.Logf("%d words of manuals of %d", words, manualWordsMax)
	if words > manualWordsMax {
		t.Errorf("the manuals have %d words, at most %d", words, manualWordsMax)
	}
}
