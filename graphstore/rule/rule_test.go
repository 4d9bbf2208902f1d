package rule

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gqlstream/ingest/event"
)

func text(s string) event.Value { return event.Value{Kind: event.StringValue, Text: s} }

// attributes are those of the vertex in the tests of evaluation.
var attributes = map[string]event.Value{
	"language": text("de"), "age": number(30), "bot": boolean(false), "home town": text("Ulm"),
	"followers": number(
		200,
	), "following": number(10), "zero": number(0), "born": text("1990-05-01"),
}

func match(t *testing.T, source string) Outcome {
	t.Helper()
	p, err := Compile(source)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	values := make([]event.Value, len(p.Keys()))
	for i, key := range p.Keys() {
		values[i] = attributes[key]
	}
	return p.Match(values)
}

// Each operator must return the value that the package comment documents, also for missing
// attributes and types that do not fit.
func TestRulesHaveTheirDocumentedValues(t *testing.T) {
	for source, want := range map[string]Outcome{
		`language == "de" and age >= 18`:        Yes,
		`language == "de" && age < 18`:          No,
		`language == "fr" or age == 30`:         Yes,
		`language in ["fr", "de"]`:              Yes,
		`language not in ["fr", "de"]`:          No,
		`age in [-30, 30]`:                      Yes,
		`not bot`:                               Yes,
		`!(bot)`:                                Yes,
		`bot`:                                   No,
		`true`:                                  Yes,
		`attribute("home town") startsWith "U"`: Yes,
		`language contains "e" and language endsWith "e"`: Yes,
		`born matches "^19[0-9]{2}-"`:                     Yes,
		`born < "2000"`:                                   Yes,
		`18 <= age < 65`:                                  Yes,
		`followers / following > 10`:                      Yes,
		`followers - following * 20 == 0 and -age < 0`:    Yes,
		`age % 7 == 2 and age + 1 == 31`:                  Yes,
		"language == 'de'\n and\n age >= 18 // grown-ups": Yes,
		`missing`:                              No,
		`not missing`:                          Yes,
		`missing == nil`:                       Yes,
		`language != nil`:                      Yes,
		`missing == "de"`:                      No,
		`missing != "de"`:                      Yes,
		`missing < 3 or missing >= 3`:          No,
		`missing + 1 == nil`:                   Yes,
		`missing contains "x"`:                 No,
		`missing in [1]`:                       No,
		`missing not in [1]`:                   Yes,
		`(missing ?? 40) > 30`:                 Yes,
		`followers / zero == nil`:              Yes,
		`language >= 18`:                       Mismatch,
		`age == "30"`:                          Mismatch,
		`age in ["30"]`:                        Mismatch,
		`age contains "3"`:                     Mismatch,
		`bot < 1`:                              Mismatch,
		`not age`:                              Mismatch,
		`age`:                                  Mismatch,
		`language + 1 > 0`:                     Mismatch,
		`(language + 1) == nil`:                Mismatch,
		`(age == "30") or true`:                Mismatch,
		`true or age == "30"`:                  Yes,
		`language == "fr" and age == "thirty"`: No,
		`language matches "d" and (age ?? missing) != "old"`: Mismatch,
	} {
		if got := match(t, source); got != want {
			t.Errorf("%s: got %d, want %d", source, got, want)
		}
	}
}

// A text that is no rule must be refused with the place and the possible continuations.
func TestBadRulesAreRefusedWithTheirPlace(t *testing.T) {
	for source, want := range map[string]string{
		`language == "de" and and`: "column 22: unexpected token",
		`age >=`:                   "column 6: unexpected token EOF",
		``:                         "column 1: unexpected token EOF",
		"language == \"de\" and\n len(x) > 2": "line 2, column 2: there is no function len; a " +
			"rule has",
		`id == 9900112233445566772`: "column 25: a number that is too large: attributes beyond " +
			"2^53 are text, so put it in quotes",
		`now() > 3`:  "column 1: there is no function now",
		`foo(3) > 3`: "column 1: there are no functions but attribute",
		`age + 1`: "column 5: a rule must be true or false, and " +
			"this is a number",
		`not language == "de"`: "column 17: true or false cannot be compared " +
			"with text",
		`"a" < 3`:     "column 7: text cannot be compared with a number",
		`age and "x"`: "column 9: and takes true or false, and this is text",
		`user.age > 3`: `column 6: values have no parts; an attribute ` +
			`whose name has a dot is attribute("a.b")`,
		`age in 1..100000000`: "in takes a list",
		`age in [x]`: "column 9: a list holds texts, numbers and truth " +
			"values only",
		`age matches "("`:                   "column 13: error parsing regexp",
		`age matches language`:              "column 13: matches takes a pattern in quotes",
		`all(1..9, # > 0)`:                  "column 1: there is no function all",
		`age ^ 2 > 3`:                       "column 5: there is no operator ^",
		`age > 3 ? true : false`:            "this is not a part of a rule",
		`let x = 3; x > age`:                "this is not a part of a rule",
		`$env == 3`:                         "column 1: there is no $env",
		`attribute(language) == 3`:          "column 1: want the name of an attribute",
		strings.Repeat("(", textBytesMax+1): "the rule has 4097 bytes, at most 4096 are allowed",
	} {
		_, err := Compile(source)
		var at *compileError
		if !errors.As(err, &at) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", source, err, want)
		}
	}
}

// Every compiled rule must evaluate without a panic, and twice to the same value.
func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		`language == "de" and age >= 18`, `a ?? b in [1, -2, "x"]`, `not (x matches "^a+$")`,
		`attribute("a b") startsWith "x" || y % 2 == 0`, `1 < a < 3`, `a | b()`, `[1][0]`,
		`{a: 1}.a`, `if a {b} else {c}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, source string) {
		p, err := Compile(source)
		if err != nil {
			return
		}
		values := make([]event.Value, len(p.Keys()))
		all := []event.Value{null, text("de"), number(-3), boolean(true), text("")}
		for shift := range all {
			for i := range values {
				values[i] = all[(i+shift)%len(all)]
			}
			if a, b := p.Match(values), p.Match(values); a != b || a > Mismatch {
				t.Fatalf("%q gave %d, then %d", source, a, b)
			}
		}
	})
}

// An evaluation must not allocate.
func TestMatchDoesNotAllocate(t *testing.T) {
	p, err := Compile(`language == "de" and age >= 18 and language in ["de", "fr"] and age / 2 > 3`)
	if err != nil {
		t.Fatal(err)
	}
	values := []event.Value{text("de"), number(30)}
	if n := testing.AllocsPerRun(100, func() { p.Match(values) }); n != 0 {
		t.Errorf("%g allocations", n)
	}
}

func BenchmarkMatch(b *testing.B) {
	p, err := Compile(`language == "de" and age >= 18`)
	if err != nil {
		b.Fatal(err)
	}
	values := []event.Value{text("de"), number(30)}
	b.ReportAllocs()
	for b.Loop() {
		p.Match(values)
	}
}

func ExampleCompile() {
	p, err := Compile(`language == "de" and age >= 18`)
	if err != nil {
		panic(err)
	}
	fmt.Println(p.Keys())
	fmt.Println(p.Match([]event.Value{text("de"), number(30)}) == Yes)
	fmt.Println(p.Match([]event.Value{text("de"), {}}) == Yes) // no age
	_, err = Compile(`language == de"`)
	fmt.Println(err)
	// Output:
	// [language age]
	// true
	// false
	// column 16: literal not terminated
}
