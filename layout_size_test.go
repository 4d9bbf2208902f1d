package gqlstream

import (
	"bytes"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// Bounds that keep a file and a function readable. Nothing counts the lines of a package,
// its methods or its keys: whether a package is too large is a question for its readers.
const (
	fileLinesMax  = 400
	functionLines = 60
	lineColumns   = 100 // a tab counts as tabColumns
	tabColumns    = 4
)

// text returns the contents of a source file.
func (s source) text(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.FromSlash(s.name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Files must be short enough to be read in one go.
func TestFilesAreShort(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		if lines := bytes.Count(s.text(t), []byte("\n")); lines > fileLinesMax {
			t.Errorf("%s has %d lines, at most %d", s.name, lines, fileLinesMax)
		}
	}
}

// Lines must fit a window of 100 columns: a character is one column, and a tab counts as four.
func TestLinesAreShort(t *testing.T) {
	checked := 0
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		name = filepath.ToSlash(name)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && longLinesAllowed(name, true):
			return fs.SkipDir
		case entry.IsDir() || longLinesAllowed(name, false):
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil || !utf8.Valid(text) || bytes.ContainsRune(text, 0) {
			return err // data
		}
		checked++
		markdown := path.Ext(name) == ".md"
		for i, line := range strings.Split(string(text), "\n") {
			columns := utf8.RuneCountInString(line) + strings.Count(line, "\t")*(tabColumns-1)
			row := markdown && strings.HasPrefix(strings.TrimSpace(line), "|")
			if columns > lineColumns && !row {
				t.Errorf("%s:%d has %d columns, at most %d", name, i+1, columns, lineColumns)
			}
		}
		return nil
	})
	if err != nil || checked < 500 {
		t.Fatalf("%d files checked: %v", checked, err)
	}
}

// longLinesAllowed reports whether a file or folder may have lines that are longer: data of
// tests, files that programs write, libraries of others, and JSON, whose strings cannot be
// broken. The rows of a table in Markdown are exempt for the same reason.
func longLinesAllowed(name string, folder bool) bool {
	base := path.Base(name)
	if folder {
		hidden := strings.HasPrefix(base, ".") && name != "." && name != ".ci"
		return hidden || path.Ext(base) == ".egg-info" || slices.Contains([]string{
			"bin", "build", "dist", "estimates", "gqlstream-state", "state", "testdata", "uplot",
		}, base)
	}
	return slices.Contains([]string{".json", ".ndjson", ".ipynb", ".sum", ".out"}, path.Ext(base))
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
				if lines := s.set.Position(f.End()).Line - s.set.Position(f.Pos()).Line +
					1; lines > functionLines {
					t.Errorf(
						"%s: %s has %d lines, at most %d", s.name, f.Name.Name, lines,
						functionLines,
					)
				}
			}
			return true
		})
	}
}

// Another package must use each exported name, or use a declaration that reaches it: a
// result's type, a field, a parameter. The constants of one block are one vocabulary: the
// use of one is enough.
func TestExportedNamesAreUsed(t *testing.T) {
	declared := map[string][]string{} // declared names, by file and first name
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
				if spec.Type != nil && d.Tok == token.CONST || d.Tok == token.VAR &&
					spec.Type != nil {
					collect(spec.Type)
				}
			}
		}
	}
	return names
}
