package notify

import (
	"errors"
	"fmt"
	"regexp"
	"text/template"
	"text/template/parse"
)

// errTooMuch ends a template that makes too much.
var errTooMuch = errors.New("the template makes more than 64 KiB")

// boundedFunctions are the functions of templates that make texts, the library's own among them.
// None makes more than a body may have, so that texts that are put together again and again stay
// small.
var boundedFunctions = template.FuncMap{
	"print":   bounded(fmt.Sprint),
	"println": bounded(fmt.Sprintln),
	"printf": func(format string, values ...any) (string, error) {
		if wideVerb.MatchString(format) {
			return "", fmt.Errorf("printf %q: a width has at most three digits", format)
		}
		return bounded(func(values ...any) string { return fmt.Sprintf(format, values...) })(
			values...)
	},
	"html":     bounded(template.HTMLEscaper),
	"js":       bounded(template.JSEscaper),
	"urlquery": bounded(template.URLQueryEscaper),
}

// wideVerb matches a verb whose width or precision has four digits, or is an argument.
var wideVerb = regexp.MustCompile(`%[^a-zA-Z%]*(\d{4}|\*)`)

func bounded(render func(...any) string) func(...any) (string, error) {
	return func(values ...any) (string, error) {
		text := render(values...)
		if len(text) > bodyBytesMax {
			return "", errTooMuch
		}
		return text, nil
	}
}

// checkTree refuses parts of a template that could take all time or memory, also where it writes
// nothing: loops over anything but the labels, loops in loops, variables that a loop changes, and
// templates that call each other.
func checkTree(body *template.Template) error {
	for _, t := range body.Templates() {
		if t.Tree != nil {
			if err := checkNode(t.Root, false); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkNode(node parse.Node, looping bool) error {
	switch n := node.(type) {
	case *parse.ListNode:
		if n == nil {
			return nil
		}
		for _, child := range n.Nodes {
			if err := checkNode(child, looping); err != nil {
				return err
			}
		}
	case *parse.ActionNode:
		if looping && n.Pipe.IsAssign {
			return fmt.Errorf("%s: a loop may not change a variable", n)
		}
	case *parse.TemplateNode:
		return fmt.Errorf("%s: templates within templates are not run", n)
	case *parse.IfNode:
		return checkBranches(&n.BranchNode, looping)
	case *parse.WithNode:
		return checkBranches(&n.BranchNode, looping)
	case *parse.RangeNode:
		if looping || !isLabels(n.Pipe) {
			return fmt.Errorf("{{range %s}}: a loop goes over .Labels, and holds no other loop",
				n.Pipe)
		}
		return checkBranches(&n.BranchNode, true)
	}
	return nil
}

func checkBranches(b *parse.BranchNode, looping bool) error {
	if looping && b.Pipe.IsAssign {
		return fmt.Errorf("{{%s}}: a loop may not change a variable", b.Pipe)
	}
	return errors.Join(checkNode(b.List, looping), checkNode(b.ElseList, looping))
}

// isLabels reports whether a pipe is the field of labels and nothing else.
func isLabels(pipe *parse.PipeNode) bool {
	if len(pipe.Cmds) != 1 || len(pipe.Cmds[0].Args) != 1 {
		return false
	}
	switch n := pipe.Cmds[0].Args[0].(type) {
	case *parse.FieldNode:
		return len(n.Ident) == 1 && n.Ident[0] == "Labels"
	case *parse.VariableNode:
		return len(n.Ident) == 2 && n.Ident[0] == "$" && n.Ident[1] == "Labels"
	}
	return false
}
