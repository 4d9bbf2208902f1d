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
	"github.com/goccy/go-yaml/token"

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
	mistake := func(err error) string { return path + ": " + strings.TrimSpace(yaml.FormatError(err, false, true)) }
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return Usagef("%s", mistake(err))
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil
	}
	var unknown, durations []string
	v := visitor{
		unknown: func(key *token.Token, known []string) {
			err := &yaml.UnknownFieldError{Message: fmt.Sprintf("unknown field %q", key.Value), Token: key}
			unknown = append(unknown, mistake(err)+"\n"+event.Nearest(key.Value, known))
		},
		duration: func(value *token.Token) { // the library's error says neither where nor what is wanted
			err := &yaml.SyntaxError{Message: fmt.Sprintf("%q: want a duration such as 10m or 1h30m", value.Value), Token: value}
			durations = append(durations, mistake(err))
		},
	}
	v.visit(file.Docs[0].Body, reflect.TypeOf(c))
	if len(durations) > 0 {
		return Usagef("%s", strings.Join(append(unknown, durations...), "\n"))
	}
	var options []yaml.DecodeOption
	if len(unknown) == 0 {
		options = append(options, yaml.Strict()) // knows what anchors stand for
	}
	err = yaml.NodeToValue(file.Docs[0].Body, c, options...)
	if err != nil {
		return Usagef("%s", strings.Join(append(unknown, mistake(err)), "\n"))
	}
	if len(unknown) > 0 {
		return Usage(UnknownKeysError(strings.Join(unknown, "\n")))
	}
	return nil
}

// visitor is told what a file holds that its types do not allow: keys that are no fields, with those
// that are known in their place, and values of durations that are none.
type visitor struct {
	unknown  func(key *token.Token, known []string)
	duration func(value *token.Token)
}

// visit visits a node that is read into a type, and the nodes below.
func (v *visitor) visit(node ast.Node, t reflect.Type) {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch n := node.(type) {
	case *ast.AliasNode: // what it stands for is visited where it stands
	case *ast.SequenceNode:
		for _, item := range n.Values {
			v.visit(item, t)
		}
	case ast.MapNode:
		if t.Kind() == reflect.Struct {
			v.visitFields(n, t)
		}
	case ast.ScalarNode:
		if t != reflect.TypeFor[time.Duration]() || n.GetValue() == nil {
			return
		}
		text, isText := n.GetValue().(string)
		if _, err := time.ParseDuration(text); err != nil || !isText {
			v.duration(n.GetToken())
		}
	}
}

func (v *visitor) visitFields(object ast.MapNode, t reflect.Type) {
	var known []string
	var types []reflect.Type
	for _, field := range reflect.VisibleFields(t) {
		key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if key != "-" && !field.Anonymous { // the fields of an inlined struct are visible by themselves
			known, types = append(known, cmp.Or(key, strings.ToLower(field.Name))), append(types, field.Type)
		}
	}
	for each := object.MapRange(); each.Next(); {
		key := each.Key().GetToken()
		if at := slices.Index(known, key.Value); at >= 0 {
			v.visit(each.Value(), types[at])
		} else if !each.Key().IsMergeKey() {
			v.unknown(key, known)
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
