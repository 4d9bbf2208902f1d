package config

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"gqlstream/ingest/event"
)

// UnknownKeysError names every key of a file that no configuration has. All other keys were read.
type UnknownKeysError string

func (e UnknownKeysError) Error() string { return string(e) }

// readStrictly reads a YAML file into what c points to. The error names the line of a mistake,
// and the nearest key where one is unknown.
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
	v.visit(file.Docs[0].Body, reflect.TypeOf(c))
	if len(v.durations) > 0 {
		return Usagef("%s", strings.Join(append(v.unknown, v.durations...), "\n"))
	}
	var options []yaml.DecodeOption
	if len(v.unknown) == 0 {
		options = append(options, yaml.Strict()) // knows what anchors stand for
	}
	if err = yaml.NodeToValue(file.Docs[0].Body, c, options...); err != nil {
		return Usagef("%s", strings.Join(append(v.unknown, v.mistake(err)), "\n"))
	}
	if len(v.unknown) > 0 {
		return Usage(UnknownKeysError(strings.Join(v.unknown, "\n")))
	}
	return nil
}

// visitor lists what a file holds that the types it is read into do not allow, and the library does
// not tell: every key that is no field, with the nearest, and the places of durations that are none.
type visitor struct {
	path               string
	unknown, durations []string
}

// mistake names the file and the place.
func (v *visitor) mistake(err error) string {
	return v.path + ": " + strings.TrimSpace(yaml.FormatError(err, false, true))
}

// visit visits a node that is read into a type, and the nodes below.
func (v *visitor) visit(node ast.Node, t reflect.Type) {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch n := node.(type) {
	case *ast.AliasNode: // what it stands for is visited where it stands
	case *ast.AnchorNode:
		v.visit(n.Value, t)
	case *ast.SequenceNode:
		for _, item := range n.Values {
			v.visit(item, t)
		}
	case ast.MapNode:
		if t.Kind() == reflect.Struct {
			v.visitFields(n, t)
		}
	case ast.ScalarNode:
		if number, is := n.(*ast.IntegerNode); is && t == reflect.TypeFor[time.Duration]() {
			number.Value = number.Token.Value // the library reads durations from texts alone: 0 becomes one
		}
		text, _ := n.GetValue().(string)
		if _, err := time.ParseDuration(text); t == reflect.TypeFor[time.Duration]() && n.GetValue() != nil && err != nil {
			at := n.GetToken()
			v.durations = append(v.durations, v.mistake(&yaml.SyntaxError{Message: fmt.Sprintf("%q: want a duration such as 10m or 1h30m", at.Value), Token: at}))
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
			known, types = append(
				known,
				cmp.Or(key, strings.ToLower(field.Name)),
			), append(
				types,
				field.Type,
			)
		}
	}
	for each := object.MapRange(); each.Next(); {
		key := each.Key().GetToken()
		if at := slices.Index(known, key.Value); at >= 0 {
			v.visit(each.Value(), types[at])
		} else if !each.Key().IsMergeKey() {
			err := &yaml.UnknownFieldError{Message: fmt.Sprintf("unknown field %q", key.Value), Token: key}
			v.unknown = append(v.unknown, v.mistake(err)+"\n"+event.Nearest(key.Value, known))
		}
	}
}

// UsageError marks an error that the user mends by changing arguments or
// configuration; it decides the exit code.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

// Usage marks err as one that the user mends.
func Usage(err error) error { return UsageError{err} }

// Usagef returns such an error with a formatted message.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }
