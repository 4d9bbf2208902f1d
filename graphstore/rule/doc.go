// Package rule decides by an expression over its attributes whether a vertex is a
// member of a community:
//
//	language == "de" and age >= 18
//
// A rule is compiled once and evaluated whenever an attribute that it reads may have changed. The
// language is small on purpose. It has attributes by name (attribute("home town") for a name that
// is no identifier), text, numbers, true, false, nil, comparisons, in [a, b], contains, startsWith,
// endsWith, matches with a constant pattern, + - * / %, ?? for a default, and, or, not. It has no
// variables, loops, functions, clock or random numbers: a result depends on the attributes alone,
// takes at most the Steps that compiling counts, and allocates only in patterns. patternSizeMax
// bounds a pattern and matchTextBytesMax the text, since their product is the time of a match.
//
// An evaluation cannot fail. A missing attribute is nil: nil equals only nil, no order or text
// comparison with it holds, arithmetic with it gives nil, and as a truth value it is false. So !=
// is always the opposite of ==, and language != "de" holds for a vertex without a language. Values
// whose types do not go together (age >= 18 with the age "old"), and texts too long to match, give
// Mismatch: the vertex is no member, and the caller counts it. Arithmetic without a finite result
// gives nil.
//
// The grammar is that of github.com/expr-lang/expr, whose parser is used; its virtual
// machine is not, because there a missing attribute is an error, every value is boxed,
// and loops are possible.
//
// Cost: about 20 ns an operator. The package knows nothing of graphs.
package rule
