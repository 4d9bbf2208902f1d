package config

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"gqlstream/ingest/event"
)

// UnknownKeysError lists the unknown keys of a file. All other keys were read.
type UnknownKeysError string

func (e UnknownKeysError) Error() string { return string(e) }

// readStrictly reads a YAML file into *c. The error names the line of a mistake, and the nearest
// key for an unknown one.
func readStrictly(path string, c any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return Usage(err)
	}
	v := visitor{path: path}
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return Usagef("%s", v.mistake(err))
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil
	}
	if valuesOf(file.Docs[0].Body, map[string]int{}) > valuesMax {
		return Usagef("%s: its anchors stand for more than %d values", path, valuesMax)
	}
	v.visit(file.Docs[0].Body, reflect.TypeOf(c))
	ast.Walk(scalars{&v}, file.Docs[0].Body)
	if len(v.values) > 0 {
		return Usagef("%s", strings.Join(append(v.unknown, v.values...), "\n"))
	}
	var options []yaml.DecodeOption
	if len(v.unknown) == 0 {
		options = append(options, yaml.Strict()) // it resolves anchors
	}
	if err = yaml.NodeToValue(file.Docs[0].Body, c, options...); err != nil {
		return Usagef("%s", strings.Join(append(v.unknown, v.mistake(err)), "\n"))
	}
	if len(v.unknown) > 0 {
		return Usage(UnknownKeysError(strings.Join(v.unknown, "\n")))
	}
	return nil
}

// valuesMax bounds the number of values of a file after its aliases are replaced. A few lines of
// aliases of aliases would otherwise take all memory.
const valuesMax = 1 << 20

// valuesOf returns how many values a node has, at most valuesMax + 1. An alias counts with those of
// its anchor, which stands before it.
func valuesOf(node ast.Node, anchors map[string]int) (n int) {
	switch x := node.(type) {
	case *ast.AnchorNode:
		n = valuesOf(x.Value, anchors)
		anchors[x.Name.GetToken().Value] = n
	case *ast.AliasNode:
		n = anchors[x.Value.GetToken().Value]
	case *ast.SequenceNode:
		for _, item := range x.Values {
			n = min(n+valuesOf(item, anchors), valuesMax+1)
		}
	case ast.MapNode:
		for each := x.MapRange(); each.Next(); {
			n = min(n+1+valuesOf(each.Value(), anchors), valuesMax+1)
		}
	}
	return max(n, 1)
}

// visitor lists mistakes of a file that the library does not report: each unknown key, with the
// nearest known one, and values that YAML reads in an unexpected way.
type visitor struct {
	path            string
	unknown, values []string
}

// scalars visits every value of a file.
type scalars struct{ *visitor }

// plainNumber matches numbers that are read without loss.
var plainNumber = regexp.MustCompile(`^[+-]?(0|[1-9][0-9_]*)?(\.[0-9]*)?([eE][+-]?[0-9]+)?$`)

// shellPath matches the beginning of paths that a shell would replace.
var shellPath = regexp.MustCompile(`^(~[\w.-]*|\$\w+|\$\{\w+\}|%\w+%)[/\\]`)

// ShellPath returns the beginning of a path that a shell would replace, or "".
func ShellPath(path string) string {
	return strings.TrimRight(shellPath.FindString(path), `/\`)
}

// Visit implements ast.Visitor. It refuses values that YAML reads in an unexpected way: 007 is 7,
// and 01234 is 668.
func (v scalars) Visit(node ast.Node) ast.Visitor {
	at := node.GetToken()
	switch n := node.(type) {
	case *ast.IntegerNode, *ast.FloatNode:
		if text := strings.TrimSpace(at.Origin); !plainNumber.MatchString(text) &&
			!strings.Contains(text, ".inf") {
			v.refuse(at,
				fmt.Sprintf("%s is the number %v here: put it in quotes, or write it without "+
					"zeros before it", text, n.(ast.ScalarNode).GetValue()))
		}
	case *ast.StringNode:
		if short := ShellPath(n.Value); short != "" {
			v.refuse(at, fmt.Sprintf("%q: %s is no directory here: write the path in full",
				n.Value, short))
		}
	}
	return v
}

func (v scalars) refuse(at *token.Token, message string) {
	v.values = append(v.values, v.mistake(&yaml.SyntaxError{Message: message, Token: at}))
}

// mistake adds the file and the place.
func (v *visitor) mistake(err error) string {
	return v.path + ": " + strings.TrimSpace(yaml.FormatError(err, false, true))
}

// visit visits a node that is read into a type, and the nodes below it.
func (v *visitor) visit(node ast.Node, t reflect.Type) {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch n := node.(type) {
	case *ast.AliasNode: // the target is visited at its own place
	case *ast.AnchorNode:
		v.visit(n.Value, t)
	case *ast.SequenceNode:
		if t == reflect.TypeFor[Alerts]() { // a list means the rules
			t = reflect.TypeFor[Alert]()
		}
		for _, item := range n.Values {
			v.visit(item, t)
		}
	case ast.MapNode:
		if t.Kind() == reflect.Struct {
			v.visitFields(n, t)
		}
	case ast.ScalarNode:
		if number, is := n.(*ast.IntegerNode); is && t == reflect.TypeFor[time.Duration]() {
			// The library reads durations only from texts: make 0 one.
			number.Value = number.Token.Value
		}
		if x, is := n.(*ast.FloatNode); is && t.Kind() == reflect.String &&
			fmt.Sprint(x.Value) != x.Token.Value {
			scalars{v}.refuse(x.Token,
				x.Token.Value+" is text here, and a number in YAML: put it in quotes")
		}
		text, _ := n.GetValue().(string)
		if _, err := time.ParseDuration(text); t == reflect.TypeFor[time.Duration]() &&
			n.GetValue() != nil && err != nil {
			at := n.GetToken()
			v.values = append(v.values, v.mistake(&yaml.SyntaxError{
				Message: fmt.Sprintf("%q: want a duration such as 10m or 1h30m", at.Value),
				Token:   at,
			}))
		}
	}
}

func (v *visitor) visitFields(object ast.MapNode, t reflect.Type) {
	var known []string
	var types []reflect.Type
	for _, field := range reflect.VisibleFields(t) {
		key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if key != "-" &&
			!field.Anonymous { // the fields of an inlined struct are visible by themselves
			known, types = append(known,
				cmp.Or(key, strings.ToLower(field.Name))), append(types, field.Type)
		}
	}
	for each := object.MapRange(); each.Next(); {
		key := each.Key().GetToken()
		if at := slices.Index(known, key.Value); at >= 0 {
			v.visit(each.Value(), types[at])
		} else if !each.Key().IsMergeKey() {
			err := &yaml.UnknownFieldError{
				Message: fmt.Sprintf("unknown field %q", key.Value),
				Token:   key,
			}
			v.unknown = append(v.unknown, v.mistake(err)+"\n"+event.Nearest(key.Value, known))
		}
	}
}

// UsageError marks an error that the user corrects by changing arguments or configuration; it
// decides the exit code.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

// Usage marks err as a mistake of the user.
func Usage(err error) error { return UsageError{err} }

// Usagef returns such an error with a formatted message.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }
