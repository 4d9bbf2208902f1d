package rule

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/expr-lang/expr/ast"
	"github.com/expr-lang/expr/file"
	"github.com/expr-lang/expr/parser"

	"gqlstream/ingest/event"
)

// textBytesMax bounds the text of a rule, and with it the time that one takes.
const textBytesMax = 4096

// Bounds on one evaluation. A step is about ten nanoseconds.
const (
	// patternSizeMax bounds the instructions of a compiled pattern. A counted repetition compiles
	// to as many copies as it counts, so a few bytes of pattern can make millions.
	patternSizeMax = 1000
	// matchTextBytesMax bounds the text that a pattern is matched against: every
	// instruction may look at every byte. A longer text is a Mismatch.
	matchTextBytesMax = 512

	stepsOfNode   = 4
	stepsOfSearch = event.AttributeTextBytesMax / 8 // of contains
)

// Outcome is the result of an evaluation.
type Outcome uint8

// The outcomes of an evaluation.
const (
	No       Outcome = iota
	Yes              // the vertex is a member
	Mismatch         // types do not go together; the vertex is no member
)

// Program is a compiled rule. It does not change, and any number of goroutines may
// evaluate it.
type Program struct {
	keys  []string
	run   eval
	steps int
}

// Keys returns the attributes that the rule reads, in order of first mention. The
// slice is the program's own.
func (p *Program) Keys() []string { return p.keys }

// Steps returns a bound on the steps of an evaluation.
func (p *Program) Steps() int { return p.steps }

// Match evaluates the rule on the values of Keys, in that order.
func (p *Program) Match(values []event.Value) Outcome {
	result, ok := truth(p.run(values))
	switch {
	case !ok:
		return Mismatch
	case result:
		return Yes
	}
	return No
}

// compileError is an error in a rule, with its place.
type compileError struct {
	Line, Column int // from 1, in characters
	Message      string
}

// Error returns the place and the message.
func (e *compileError) Error() string {
	if e.Line > 1 {
		return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
	}
	return fmt.Sprintf("column %d: %s", e.Column, e.Message)
}

// allowed ends the message about something that the language does not have.
const allowed = `a rule has attributes, attribute("name"), text, numbers, true, false, nil, ` +
	`== != < <= > >=, in [..], contains, startsWith, endsWith, matches, + - * / %, ??, and, or, not`

// Compile returns the program of a rule. Its errors are *compileError.
func Compile(text string) (*Program, error) {
	if len(text) > textBytesMax {
		return nil, &compileError{
			1,
			1,
			fmt.Sprintf("the rule has %d bytes, at most %d are allowed", len(text), textBytesMax),
		}
	}
	tree, err := parser.Parse(text)
	if err != nil {
		var at *file.Error
		if !errors.As(err, &at) {
			return nil, &compileError{1, 1, err.Error()}
		}
		if strings.HasPrefix(at.Message, "invalid integer literal") {
			at.Message = "a number that is too large: attributes beyond 2^53 are text, so put it " +
				"in quotes"
		}
		return nil, &compileError{max(1, at.Line), at.Column + 1, at.Message}
	}
	c := compiler{source: tree.Source}
	o := c.compile(tree.Node)
	c.want(o, truths, "a rule must be true or false")
	if c.err != nil {
		return nil, c.err
	}
	return &Program{c.keys, o.run, c.steps}, nil
}

// operand is a compiled part of a rule.
type operand struct {
	node  ast.Node
	kinds kinds // types that it may have, as far as the text shows
	run   eval
}

// compiler keeps the first error.
type compiler struct {
	source file.Source
	keys   []string
	steps  int // steps of an evaluation at most
	err    error
}

// fail keeps an error and its place, if it is the first, and returns an operand that fits
// everywhere, so that one mistake is reported once.
func (c *compiler) fail(node ast.Node, format string, args ...any) operand {
	if c.err == nil {
		at := (&file.Error{Location: node.Location()}).Bind(c.source)
		c.err = &compileError{max(1, at.Line), at.Column + 1, fmt.Sprintf(format, args...)}
	}
	return operand{
		node:  node,
		kinds: anything,
		run:   func([]event.Value) event.Value { return null },
	}
}

// want refuses an operand that can have none of the given types.
func (c *compiler) want(o operand, of kinds, why string) {
	if o.kinds != 0 && o.kinds&of == 0 {
		c.fail(o.node, "%s, and this is %v", why, o.kinds)
	}
}

// compile returns the program of a node of the tree. It refuses every node that is not listed here,
// so a new version of the parser cannot extend the language by accident.
func (c *compiler) compile(node ast.Node) operand {
	c.steps += stepsOfNode
	constant := func(k kinds, v event.Value) operand {
		return operand{node, k, func([]event.Value) event.Value { return v }}
	}
	switch n := node.(type) {
	case *ast.IdentifierNode:
		return c.attribute(n, n.Value)
	case *ast.CallNode:
		return c.call(n)
	case *ast.NilNode:
		return constant(0, null)
	case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		v, k := literal(node)
		return constant(k, v)
	case *ast.UnaryNode:
		return c.unary(n)
	case *ast.BinaryNode:
		return c.binary(n)
	case *ast.MemberNode:
		return c.fail(node,
			`values have no parts; an attribute whose name has a dot is attribute("a.b")`)
	case *ast.BuiltinNode:
		return c.fail(node, "there is no function %s; %s", n.Name, allowed)
	}
	return c.fail(node, "this is not a part of a rule; %s", allowed)
}

// literal returns the value of a literal, and no type for any other node.
func literal(node ast.Node) (event.Value, kinds) {
	switch n := node.(type) {
	case *ast.StringNode:
		return event.Value{Kind: event.StringValue, Text: n.Value}, texts
	case *ast.IntegerNode:
		if v := event.WholeValue(strconv.Itoa(n.Value)); v.Kind == event.StringValue {
			return v, texts // in the form that attributes have
		}
		return number(float64(n.Value)), numbers
	case *ast.FloatNode:
		return number(n.Value), numbers
	case *ast.BoolNode:
		return boolean(n.Value), truths
	case *ast.UnaryNode:
		v, k := literal(n.Node)
		if _, whole := n.Node.(*ast.IntegerNode); whole && n.Operator == "-" && k == texts {
			return event.Value{Kind: event.StringValue, Text: "-" + v.Text}, texts
		}
		if n.Operator == "-" && k == numbers {
			return number(-v.Number), numbers
		}
	}
	return null, 0
}

// attribute compiles the reading of an attribute.
func (c *compiler) attribute(node ast.Node, key string) operand {
	if len(key) > event.AttributeTextBytesMax || key == "" {
		return c.fail(node, "an attribute's name has 1 to %d bytes", event.AttributeTextBytesMax)
	}
	if strings.HasPrefix(key, "$") {
		return c.fail(node, "there is no %s; %s", key, allowed)
	}
	i := slices.Index(c.keys, key)
	if i < 0 {
		i = len(c.keys)
		c.keys = append(c.keys, key)
	}
	return operand{node, anything, func(values []event.Value) event.Value { return values[i] }}
}

// call compiles attribute("name"), the only call in the language.
func (c *compiler) call(n *ast.CallNode) operand {
	callee, named := n.Callee.(*ast.IdentifierNode)
	if !named || callee.Value != "attribute" {
		return c.fail(n, "there are no functions but attribute; %s", allowed)
	}
	if len(n.Arguments) == 1 {
		if name, ok := n.Arguments[0].(*ast.StringNode); ok {
			return c.attribute(name, name.Value)
		}
	}
	return c.fail(n, `want the name of an attribute as text, such as attribute("home town")`)
}

// unary compiles an operator of one operand.
func (c *compiler) unary(n *ast.UnaryNode) operand {
	if v, k := literal(n); k == texts {
		return operand{n, k, func([]event.Value) event.Value { return v }}
	}
	o := c.compile(n.Node)
	switch n.Operator {
	case "not", "!":
		c.want(o, truths, n.Operator+" takes true or false")
		return operand{n, truths, not(o.run)}
	case "-":
		c.want(o, numbers, "- takes a number")
		zero := func([]event.Value) event.Value { return number(0) }
		return operand{n, numbers, operators["-"].run(zero, o.run)}
	}
	return c.fail(n, "there is no operator %s of one value; %s", n.Operator, allowed)
}

// binary compiles an operator of two operands.
func (c *compiler) binary(n *ast.BinaryNode) operand {
	switch n.Operator {
	case "in":
		return c.in(n)
	case "matches":
		return c.matches(n)
	}
	left, right := c.compile(n.Left), c.compile(n.Right)
	both := func(of kinds) {
		c.want(left, of, fmt.Sprintf("%s takes %v", n.Operator, of))
		c.want(right, of, fmt.Sprintf("%s takes %v", n.Operator, of))
	}
	switch n.Operator {
	case "and", "&&", "or", "||":
		both(truths)
		return operand{
			n,
			truths,
			junction(left.run, right.run, n.Operator == "or" || n.Operator == "||"),
		}
	case "??":
		return operand{n, left.kinds | right.kinds, otherwise(left.run, right.run)}
	}
	o, known := operators[n.Operator]
	if !known {
		return c.fail(n, "there is no operator %s; %s", n.Operator, allowed)
	}
	both(o.takes)
	if left.kinds != 0 && right.kinds != 0 && left.kinds&right.kinds == 0 {
		c.fail(right.node, "%v cannot be compared with %v", left.kinds, right.kinds)
	}
	c.steps += o.steps
	return operand{n, o.gives, o.run(left.run, right.run)}
}

// in compiles the membership of a value in a list of literals.
func (c *compiler) in(n *ast.BinaryNode) operand {
	left := c.compile(n.Left)
	list, ok := n.Right.(*ast.ArrayNode)
	if !ok {
		return c.fail(n.Right, "in takes a list of texts, numbers or truth values, such as [1, 2]")
	}
	var values []event.Value
	var of kinds
	for _, element := range list.Nodes {
		v, k := literal(element)
		if k == 0 {
			return c.fail(element, "a list holds texts, numbers and truth values only")
		}
		values, of = append(values, v), of|k
	}
	c.steps += len(values)
	if left.kinds != 0 && left.kinds&of == 0 {
		return c.fail(n, "no value of the list can be compared with %v", left.kinds)
	}
	return operand{n, truths, isIn(left.run, values)}
}

// matches compiles a match against a constant pattern. It takes time in proportion to
// the text times the pattern, so both are bounded.
func (c *compiler) matches(n *ast.BinaryNode) operand {
	left := c.compile(n.Left)
	c.want(left, texts, "matches takes text")
	pattern, ok := n.Right.(*ast.StringNode)
	if !ok {
		return c.fail(n.Right, "matches takes a pattern in quotes")
	}
	parsed, err := syntax.Parse(pattern.Value, syntax.Perl)
	if err != nil {
		return c.fail(pattern, "%s", err)
	}
	size := patternSize(parsed)
	if size > patternSizeMax {
		return c.fail(pattern,
			"the pattern has %d instructions, at most %d are allowed; a repetition counts as "+
				"often as it repeats",
			size, patternSizeMax)
	}
	c.steps += size * matchTextBytesMax
	compiled, err := regexp.Compile(pattern.Value)
	if err != nil {
		return c.fail(pattern, "%s", err)
	}
	match := textual(0, func(text, _ string) bool { return compiled.MatchString(text) })
	match.longest = matchTextBytesMax
	empty := func([]event.Value) event.Value { return event.Value{Kind: event.StringValue} }
	return operand{n, truths, match.run(left.run, empty)}
}

// patternSize returns about how many instructions a pattern compiles to. It counts without
// compiling, because compiling a large pattern is the cost to avoid. The parser has bounded the
// pattern to a few millions, so the sum does not overflow.
func patternSize(re *syntax.Regexp) int {
	size := 1
	if re.Op == syntax.OpLiteral {
		size = len(re.Rune)
	}
	for _, sub := range re.Sub {
		size += patternSize(sub)
	}
	if re.Op == syntax.OpRepeat {
		size *= max(1, re.Min, re.Max)
	}
	return size
}
