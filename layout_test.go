// Package gqlstream holds no code, only the tests of the project's layout.
package gqlstream

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// module is the path that imports of ours begin with.
const module = "gqlstream/"

// mayImport is which packages of ours a package may import: upstream only, from
// events to estimates. A new package adds its line here.
var mayImport = map[string][]string{
	"ingest/event":      {},
	"ingest/wire":       {"ingest/event"},
	"internal/filelock": {},
	"internal/request":  {},
	"ingest/broker":     {"ingest/event", "internal/filelock", "internal/request"},
	"lab/simulate":      {"ingest/event"},
	"ingest":            {"ingest/event", "ingest/wire", "ingest/broker", "internal/request"},
	"ingest/files":      {"ingest/event", "ingest/wire", "ingest"},
	"graphstore": {
		"ingest/event",
		"ingest/wire",
		"graphstore/rule",
	}, // refused events are kept as JSON
	"quant/solve":      {}, // knows no community
	"quant/stats":      {"quant/solve"},
	"quant/adjusted":   {"quant/solve", "quant/stats"},
	"quant/auto":       {"quant/solve", "quant/stats"},
	"quant":            {"quant/solve", "quant/stats", "quant/adjusted", "quant/auto"},
	"quant/difference": {"quant"},
	"sinks/alerts":     {"quant", "quant/difference"},
	"internal/tables":  {},
	"sinks": {
		"quant",
		"sinks/alerts",
		"internal/tables",
		"internal/filelock",
		"internal/request",
	},
	"sinks/notify": {"sinks/alerts", "internal/request", "sinks"},
	"sinks/web": {
		"internal/tables",
		"internal/request",
		"ingest",
		"quant",
		"sinks",
		"sinks/notify",
		"sinks/alerts",
		"incremental/ask",
	},

	"graphstore/rule":          {"ingest/event"},
	"incremental/diffusion":    {"ingest/event", "graphstore", "incremental/parallel"},
	"incremental/neighborhood": {"ingest/event", "graphstore", "incremental/parallel"},
	"incremental/pairs":        {"ingest/event", "graphstore", "incremental/neighborhood"},
	"incremental/tally": {
		"ingest/event", "graphstore", "incremental/diffusion", "incremental/neighborhood",
		"incremental/pairs", "quant/stats",
	},
	"incremental/parallel":    {},
	"incremental/prequential": {"ingest/event"},
	"incremental/posterior": {
		"ingest/event", "quant/adjusted", "quant/stats",
		"graphstore",
		"incremental/neighborhood",
		"incremental/pairs",
		"incremental/parallel",
	},
	"incremental/classifier": {
		"ingest/event",
		"graphstore",
		"incremental/diffusion",
		"incremental/neighborhood",
	},
	"incremental": {
		"ingest/event", "graphstore", "incremental/diffusion", "incremental/neighborhood",
		"incremental/pairs",
		"incremental/tally", "incremental/classifier", "incremental/prequential",
		"incremental/posterior", "incremental/parallel", "quant", "quant/auto", "quant/stats",
	},
	"pipeline/group":      {"internal/request"},
	"internal/checkpoint": {"incremental/parallel"}, // knows files, not their contents
	"lab/evaluate": {
		"incremental/ask",
		"ingest/event",
		"graphstore",
		"incremental/diffusion",
		"quant/stats",
		"incremental/neighborhood",
		"incremental/pairs",
		"incremental",
		"quant",
	},
	"incremental/explain": {
		"ingest/event",
		"graphstore",
		"incremental",
		"incremental/pairs",
		"quant",
	},
	"pipeline/config": {
		"ingest/event", "ingest/wire", "ingest/broker", "ingest", "graphstore",
		"incremental/classifier", "incremental/posterior", "incremental", "quant",
		"quant/stats",
		"sinks", "sinks/alerts", "sinks/notify", "sinks/web",
	},
	"pipeline": {
		"internal/request", "pipeline/config", "pipeline/group", "ingest/event", "ingest/wire",
		"ingest/broker", "ingest", "ingest/files", "graphstore", "incremental/prequential",
		"incremental",
		"quant", "sinks", "sinks/web", "internal/checkpoint", "incremental/explain", "sinks/alerts",
		"sinks/notify", "incremental/ask",
	},
	"cmd/gqlstream": {
		"internal/request", "pipeline/config", "pipeline", "pipeline/group",
		"ingest/event", "ingest/wire", "ingest/broker", "ingest", "ingest/files", "lab/simulate",
		"graphstore", "incremental/diffusion", "incremental/neighborhood",
		"incremental/ask", "incremental/tally", "incremental/classifier", "incremental/prequential",
		"incremental", "quant", "quant/stats", "internal/tables", "sinks", "sinks/web",
		"internal/checkpoint", "lab/evaluate", "incremental/explain",
		"sinks/alerts", "sinks/notify",
		"lab/communities",
	},

	"ingest/event/eventtest": {"ingest/event"},   // makes events for tests, which alone import it
	"internal/testfile":      {},                 // writes the files of tests
	"lab/campaign":           {},                 // how large a test shall be
	"sinks/web/webtest":      {"quant", "sinks"}, // stands for the output log in tests of the page
	"sinks/web/browser":      {},                 // tests only
	"lab/bench":              {},                 // benchmarks only
	"lab/alarms":             {},                 // tests only
	"lab/communities":        {"graphstore"},
	"incremental/ask": {
		"ingest/event", "graphstore", "incremental", "incremental/tally", "internal/checkpoint",
		"quant",
		"quant/stats",
		"internal/tables",
	},
	"python":            {}, // tests only
	"examples/cluster":  {}, // tests only
	"examples/bluesky":  {}, // to be copied: only its tests use ours
	"examples/producer": {}, // to be copied: only its tests use ours
}

// testSupport are the packages that only tests may import.
var testSupport = []string{
	"ingest/event/eventtest", "internal/testfile", "lab/campaign", "sinks/web/webtest",
}

// arrowFiles are the only files that may import Arrow, so that a change of its major
// version touches no others. Tests may read the files and messages that these write.
var arrowFiles = []string{
	"graphstore/columns.go", "graphstore/lists.go", "graphstore/rows.go", "graphstore/snapshot.go",
	"graphstore/vertex_table.go",
	"ingest/wire/arrow_*.go", "ingest/files/arrow*.go", "ingest/files/parquet.go",
	"sinks/part_file.go", "sinks/part_file_test.go", "internal/tables/*.go",
	"examples/producer/*.go",
}

// core are the packages that do no I/O and read no clock.
var core = []string{
	"graphstore", "graphstore/rule", "incremental", "incremental/diffusion",
	"incremental/neighborhood",
	"incremental/pairs",
	"incremental/tally", "incremental/classifier", "incremental/prequential",
	"incremental/posterior", "incremental/parallel", "quant",
	"quant/solve", "quant/stats", "quant/adjusted", "quant/auto", "incremental/explain",
	"sinks/alerts",
	"lab/communities", "incremental/ask",
}

// outside are imports that the core may not have. A caller gives the store an io.Writer for
// snapshots.
var outside = []string{
	"os", "net", "net/http", "log", "log/slog", "math/rand", "crypto/rand", "github.com/nats-io/",
}

// source is one Go file of the project.
type source struct {
	name, dir string // slash-separated, from the root
	file      *ast.File
	set       *token.FileSet
	test      bool
}

// sources parses every Go file of the project.
func sources(t *testing.T) (all []source) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		switch base := entry.Name(); {
		case err != nil:
			return err
		case entry.IsDir() && (base == "testdata" || base == "bin" || base == "dist" ||
			name != "." && base[0] == '.'):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(base, ".go"):
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		name = filepath.ToSlash(name)
		all = append(
			all,
			source{name, path.Dir(name), file, set, strings.HasSuffix(name, "_test.go")},
		)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 20 {
		t.Fatalf("found only %d files", len(all))
	}
	return all
}

// imports returns the paths that a file imports.
func (s source) imports() (paths []string) {
	for _, spec := range s.file.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, p)
		}
	}
	return paths
}

// Every package must be in the table, and import no package of ours that its row
// does not name.
func TestImportsPointUpstreamOnly(t *testing.T) {
	for _, s := range sources(t) {
		allowed, known := mayImport[s.dir]
		if !known && s.dir != "." {
			t.Errorf("%s: package %s is not in the table of mayImport", s.name, s.dir)
			continue
		}
		for _, p := range s.imports() {
			ours, is := strings.CutPrefix(p, module)
			switch {
			case !is || s.test:
			case slices.Contains(testSupport, ours):
				t.Errorf("%s imports %s, which is for tests", s.name, p)
			case !slices.Contains(allowed, ours):
				t.Errorf("%s imports %s; %s may import %v", s.name, p, s.dir, allowed)
			}
		}
	}
}

// A row of the table must stand for a package that is there.
func TestImportTableNamesExistingPackages(t *testing.T) {
	all := sources(t)
	for dir := range mayImport {
		if !slices.ContainsFunc(all, func(s source) bool { return s.dir == dir }) {
			t.Errorf("%s is in the table, but there is no such package", dir)
		}
	}
}

// docs/architecture.md must name every package.
func TestArchitectureNamesEveryPackage(t *testing.T) {
	page, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range slices.Sorted(maps.Keys(mayImport)) {
		if !slices.Contains(testSupport, dir) && !strings.HasPrefix(dir, "examples/") &&
			dir != "sinks/web/browser" &&
			!strings.Contains(string(page), "`"+dir+"`") &&
			!strings.Contains(string(page), "`"+path.Base(dir)+"`") {
			t.Errorf("docs/architecture.md does not name %s", dir)
		}
	}
}

// errorWords are names of packages that users know as well: commands, keys and things.
var errorWords = []string{
	"alerts", "ask", "checkpoint", "classifier", "communities", "evaluate", "explain", "group",
	"notify", "simulate",
}

// Users do not know packages: no error or message may begin with the name of its package. A
// panic may, since it reports a mistake in the code.
func TestMessagesNameNoPackage(t *testing.T) {
	for _, s := range sources(t) {
		name := s.file.Name.Name
		if s.test || slices.Contains(errorWords, name) {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if f, ok := call.Fun.(*ast.Ident); ok && f.Name == "panic" {
					return false
				}
			}
			text, ok := n.(*ast.BasicLit)
			if ok && text.Kind == token.STRING && strings.HasPrefix(text.Value[1:], name+": ") {
				t.Errorf("%v: %s begins with the name of a package",
					s.set.Position(text.Pos()), text.Value)
			}
			return true
		})
	}
}

// Only the files in arrowFiles may use Arrow's types.
func TestArrowStaysInItsFiles(t *testing.T) {
	for _, s := range sources(t) {
		inArrow := slices.ContainsFunc(s.imports(), func(p string) bool {
			return strings.HasPrefix(p, "github.com/apache/arrow")
		})
		allowed := slices.ContainsFunc(arrowFiles, func(pattern string) bool {
			match, err := path.Match(pattern, s.name)
			return match && err == nil
		})
		if inArrow && !allowed && !s.test {
			t.Errorf("%s imports Arrow; only %v may", s.name, arrowFiles)
		}
	}
}

// Only the example that reads a websocket may know its library, so that the binary does
// without it.
func TestWebsocketStaysInItsExample(t *testing.T) {
	for _, s := range sources(t) {
		if s.dir != "examples/bluesky" &&
			slices.Contains(s.imports(), "github.com/coder/websocket") {
			t.Errorf("%s imports a websocket library; only examples/bluesky may", s.name)
		}
	}
}

// The core must not reach outside: the same log gives the same bytes.
func TestCoreDoesNoIOAndReadsNoClock(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || !slices.Contains(core, s.dir) {
			continue
		}
		for _, p := range s.imports() {
			for _, banned := range outside {
				if p == banned || strings.HasSuffix(banned, "/") && strings.HasPrefix(p, banned) {
					t.Errorf("%s imports %s; the core does no I/O", s.name, p)
				}
			}
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if call, ok := n.(*ast.SelectorExpr); ok {
				from, _ := call.X.(*ast.Ident)
				clock := []string{
					"Now",
					"Since",
					"Until",
					"After",
					"AfterFunc",
					"NewTimer",
					"NewTicker",
					"Tick",
					"Sleep",
				}
				if from != nil && from.Name == "time" && slices.Contains(clock, call.Sel.Name) {
					t.Errorf("%s calls time.%s; now is the time in the log", s.name, call.Sel.Name)
				}
			}
			return true
		})
	}
}
