package config

import (
	"cmp"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

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
	mistake := func(err error) string { return path + ": " + strings.TrimSpace(yaml.FormatError(err, false, true)) }
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return Usagef("%s", mistake(err))
	}
	if len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return nil
	}
	var unknown []string
	refuseUnknown(file.Docs[0].Body, reflect.TypeOf(c), func(key ast.MapKeyNode, known []string) {
		name := key.GetToken().Value
		err := &yaml.UnknownFieldError{Message: fmt.Sprintf("unknown field %q", name), Token: key.GetToken()}
		unknown = append(unknown, mistake(err)+"\n"+event.Nearest(name, known))
	})
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

// refuseUnknown refuses the keys below a node that are no fields of the type it is read into.
func refuseUnknown(node ast.Node, t reflect.Type, refuse func(key ast.MapKeyNode, known []string)) {
	if t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if items, ok := node.(*ast.SequenceNode); ok {
		for _, item := range items.Values {
			refuseUnknown(item, t, refuse)
		}
	}
	object, ok := node.(ast.MapNode)
	if !ok || t.Kind() != reflect.Struct {
		return
	}
	var known []string
	var types []reflect.Type
	for _, field := range reflect.VisibleFields(t) {
		key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
		if key != "-" && !field.Anonymous { // the fields of an inlined struct are visible by themselves
			known, types = append(known, cmp.Or(key, strings.ToLower(field.Name))), append(types, field.Type)
		}
	}
	for each := object.MapRange(); each.Next(); {
		if at := slices.Index(known, each.Key().GetToken().Value); at >= 0 {
			refuseUnknown(each.Value(), types[at], refuse)
		} else if !each.Key().IsMergeKey() {
			refuse(each.Key(), known)
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
