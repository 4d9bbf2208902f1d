package gqlstream

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Functions of the page's scripts must be as short as those of Go. A function includes the
// functions inside of it.
func TestFunctionsOfScriptsAreShort(t *testing.T) {
	scripts, err := filepath.Glob("sinks/web/static/js/*.js")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("scripts of the page: %v, %v", scripts, err)
	}
	for _, name := range scripts {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		functions := scriptFunctions(t, name, string(text))
		if len(functions) == 0 && strings.Contains(string(text), "function ") {
			t.Errorf("%s: no function was found", name)
		}
		for _, f := range functions {
			if lines := f.last - f.first + 1; lines > functionLines {
				t.Errorf("%s:%d: a function of %d lines, at most %d", name, f.first, lines,
					functionLines)
			}
		}
	}
}

// Strings, templates, comments and blocks are not functions, and hide none.
func TestFunctionsOfScriptsAreFound(t *testing.T) {
	const script = `// function no() {
const a = (x) => {
  if (x) { return "}{"; }
  return ` + "`${x.map((y) => { return `{${y}`; })} }`" + `; /* { */
};
class B {
  constructor({ a, b }) {
    for (const x of a) { b(x); }
  }
}
export async function c(
  a = {},
) {
  return a.replace(/["'{]+/gu, '{') / 2;
}
`
	want := []scriptFunction{{4, 4}, {2, 5}, {7, 9}, {11, 15}}
	if got := scriptFunctions(t, "script", script); !slices.Equal(got, want) {
		t.Errorf("functions at lines %v, want %v", got, want)
	}
}

// scriptFunction is the first and the last line of a function.
type scriptFunction struct{ first, last int }

// scriptBlock ends the text before a block that is no function.
var scriptBlock = regexp.MustCompile(`\b(if|for|while|switch|catch)\s*$`)

// scriptSkipped matches comments, and strings in quotes.
var scriptSkipped = regexp.MustCompile(
	`^(//[^\n]*|(?s:/\*.*?\*/)|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')`,
)

// scriptPattern matches a regular expression, which stands where a value can begin.
var (
	scriptPattern = regexp.MustCompile(`^/(?:\\.|\[(?:\\.|[^\]\n])*\]|[^/\\\[\n])+/`)
	scriptValue   = regexp.MustCompile(`(^|[,=:?!&|>\[])\s*$`)
)

// scriptFunctions lists the functions with a block, in the order of their ends.
func scriptFunctions(t *testing.T, name, text string) (functions []scriptFunction) {
	t.Helper()
	type bracket struct {
		kind     byte
		first    int // line
		before   string
		function bool
	}
	var open []bracket
	var list bracket // the parentheses that were closed last
	line, code := 1, ""
	push := func(kind byte, first int, function bool) {
		open = append(open, bracket{kind, first, code, function})
	}
	for i := 0; i < len(text); i++ {
		c := text[i]
		inTemplate := len(open) > 0 && open[len(open)-1].kind == '`'
		skipped := scriptSkipped.FindString(text[i:])
		if skipped == "" && scriptValue.MatchString(code) {
			skipped = scriptPattern.FindString(text[i:])
		}
		if skipped != "" && !inTemplate {
			line += strings.Count(skipped, "\n")
			i += len(skipped) - 1
			continue
		}
		switch {
		case c == '\n':
			line++
		case inTemplate && c == '\\':
			i++
		case c == '`' && inTemplate:
			open = open[:len(open)-1]
		case inTemplate && strings.HasPrefix(text[i:], "${"):
			i++
			push('{', line, false)
		case inTemplate: // text
		case c == '(' || c == '[' || c == '`':
			push(c, line, false)
		case c == '{':
			before := strings.TrimSpace(code)
			before, arrow := strings.CutSuffix(before, "=>")
			listed := strings.HasSuffix(strings.TrimSpace(before), ")")
			function := arrow || listed && !scriptBlock.MatchString(list.before)
			first := line
			if function && listed {
				first = list.first
			}
			push(c, first, function)
		case c == ')' || c == ']' || c == '}':
			if len(open) == 0 {
				t.Fatalf("%s:%d: a bracket closes nothing", name, line)
			}
			last := open[len(open)-1]
			open = open[:len(open)-1]
			if c == ')' {
				list = last
			}
			if last.function {
				functions = append(functions, scriptFunction{last.first, line})
			}
		}
		if code += string(c); strings.ContainsRune("({};", rune(c)) {
			code = ""
		}
	}
	if len(open) > 0 {
		t.Fatalf("%s:%d: a bracket is not closed", name, open[len(open)-1].first)
	}
	return functions
}
