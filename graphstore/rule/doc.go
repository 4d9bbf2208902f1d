// Package rule decides by an expression over its attributes whether a vertex is a
// member of a community:
//
//	language == "de" and age >= 18
//
// A rule is compiled once and evaluated whenever an attribute that it reads may
// have changed. The language is small on purpose. There are attributes by name
// (attribute("home town") where the name is no identifier), text, numbers, true,
// false, nil, comparisons, in [a, b], contains, startsWith, endsWith, matches with
// a constant pattern, + - * / %, ?? for a default, and, or, not. There are no
// variables, loops, functions, clock or random numbers: a result depends on the
// attributes alone, takes at most the Steps that compiling counts, and does not
// allocate, patterns apart. A pattern is bounded by patternSizeMax and the text that it
// is matched against by matchTextBytesMax, since their product is the time it takes.
//
// An evaluation cannot fail. An attribute that is missing is nil: nil equals only
// nil, no order or text comparison with it holds, arithmetic with it gives nil, and
// where a truth value is wanted it counts as false. So != is always the opposite of
// ==, and language != "de" holds for a vertex without a language. Values whose types
// do not go together (age >= 18 where age is the text "old"), and texts too
// long to match, end the evaluation with
// Mismatch: the vertex is no member, and whoever evaluates counts it. Arithmetic that
// gives no finite number gives nil.
//
// The grammar is that of github.com/expr-lang/expr, whose parser is used; its virtual
// machine is not, because there a missing attribute is an error, every value is boxed,
// and loops are possible.
//
// Cost: about 20 ns an operator. The package knows nothing of graphs.
package rule
