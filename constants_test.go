package gqlstream

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// constantsIn are the folders with constants that decide results.
var constantsIn = []string{
	"graphstore", "quant", "quant/solve", "quant/stats", "quant/adjusted", "quant/auto",
	"incremental", "incremental/posterior", "incremental/pairs", "incremental/tally",
	"incremental/prequential", "incremental/classifier", "sinks/alerts",
}

// declared holds the expressions of the constants of one package by name.
type declared map[string]ast.Expr

// constantsOf reads the constants of a folder.
func constantsOf(t *testing.T, folder string) declared {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	of := declared{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.ValueSpec); ok && len(spec.Values) == len(spec.Names) {
				for i, name := range spec.Names {
					of[name.Name] = spec.Values[i]
				}
			}
			return true
		})
	}
	return of
}

// value evaluates an expression of numbers, units of time and constants of the same package.
// It is unknown for anything else.
func (d declared) value(e ast.Expr) constant.Value {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.MakeFromLiteral(e.Value, e.Kind, 0)
	case *ast.ParenExpr:
		return d.value(e.X)
	case *ast.Ident:
		if of, ok := d[e.Name]; ok {
			return d.value(of)
		}
	case *ast.SelectorExpr:
		units := map[string]time.Duration{"Hour": time.Hour, "Minute": time.Minute}
		if unit, ok := units[e.Sel.Name]; ok {
			return constant.MakeInt64(int64(unit))
		}
	case *ast.BinaryExpr:
		return binary(e.Op, d.value(e.X), d.value(e.Y))
	}
	return constant.MakeUnknown()
}

// binary applies an operator to two known values.
func binary(op token.Token, x, y constant.Value) constant.Value {
	if x.Kind() == constant.Unknown || y.Kind() == constant.Unknown {
		return constant.MakeUnknown()
	}
	if op == token.SHL {
		bits, _ := constant.Uint64Val(y)
		return constant.Shift(x, op, uint(bits))
	}
	return constant.BinaryOp(constant.ToFloat(x), op, constant.ToFloat(y))
}

// documentedValue reads a value as the table has it: 0.1, 1e-9, 2^23, 1h.
func documentedValue(text string) (float64, error) {
	if power, ok := strings.CutPrefix(text, "2^"); ok {
		n, err := strconv.Atoi(power)
		value := 1.0
		for range max(n, -n) {
			value *= 2
		}
		if n < 0 {
			value = 1 / value
		}
		return value, err
	}
	if d, err := time.ParseDuration(text); err == nil && text != "0" {
		return float64(d), nil
	}
	return strconv.ParseFloat(text, 64)
}

// Every constant of the table of docs/methods.md must exist with the value that stands there.
func TestTableOfConstantsIsTheCode(t *testing.T) {
	page, err := os.ReadFile("docs/methods.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Constants\n")
	var packages []declared
	for _, folder := range constantsIn {
		packages = append(packages, constantsOf(t, folder))
	}
	checked := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, " | ")
		names := regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(cells[0], -1)
		if len(cells) < 4 || len(names) == 0 {
			continue
		}
		values := strings.Split(cells[1], ", ")
		if len(values) != len(names) {
			t.Errorf("%d names and %d values: %s", len(names), len(values), line)
			continue
		}
		for i, name := range names {
			checkConstant(t, packages, name[1], values[i])
			checked++
		}
	}
	if checked < 50 {
		t.Errorf("only %d constants in the table", checked)
	}
}

// checkConstant fails the test unless a package has the constant with this value.
func checkConstant(t *testing.T, packages []declared, name, text string) {
	t.Helper()
	want, err := documentedValue(text)
	if err != nil {
		t.Errorf("%s: %q is no value: %v", name, text, err)
		return
	}
	var found []float64
	for _, p := range packages {
		if e, ok := p[name]; ok {
			value, _ := constant.Float64Val(constant.ToFloat(p.value(e)))
			if value == want {
				return
			}
			found = append(found, value)
		}
	}
	t.Errorf("docs/methods.md has %s = %s, the code %v", name, text, found)
}
