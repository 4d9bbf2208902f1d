package event

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

// readReference returns docs/events.md.
func readReference(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// section returns the part of the reference about a kind.
func section(t *testing.T, reference string, kind Kind) string {
	t.Helper()
	title := "\n## " + strings.ToUpper(kind.String()[:1]) + kind.String()[1:] + "\n"
	_, rest, ok := strings.Cut(reference, title)
	if !ok {
		t.Fatalf("no section on %v events", kind)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	return rest
}

// Every JSON example in the reference is accepted, and each kind has two.
func TestReferenceExamplesDecode(t *testing.T) {
	examples := regexp.MustCompile("(?s)```json (\\w+)\n(.*?)\n```")
	reference := readReference(t)
	d := newDecoder(t, 2)
	for kind := range Kind(Kinds) {
		found := 0
		for _, match := range examples.FindAllStringSubmatch(section(t, reference, kind), -1) {
			if match[1] != kind.String() {
				t.Errorf("an example of %s events among %v events", match[1], kind)
			}
			var b Batch
			mustDecode(t, d, Message{Kind: kind, ContentType: JSON, Payload: []byte(match[2])}, &b)
			found++
		}
		if found < 2 {
			t.Errorf("%d examples of %v events", found, kind)
		}
	}
}

// The Arrow tables of the reference are those of the code, and every field and
// alias stands in the table of JSON fields.
func TestReferenceTablesAreTheCode(t *testing.T) {
	reference := readReference(t)
	for kind := range Kind(Kinds) {
		text := section(t, reference, kind)
		var want strings.Builder
		want.WriteString("| Arrow column | types | required |\n|---|---|---|\n")
		for _, s := range fields[kind] {
			required := "no"
			if s.required {
				required = "yes"
			}
			fmt.Fprintf(&want, "| `%s` | %s | %s |\n", s.name, s.arrow, required)
			json, _, _ := strings.Cut(text, "| Arrow column")
			if !strings.Contains(json, "`"+s.name+"`") || s.alias != "" && !strings.Contains(json, "`"+s.name+"`, also `"+s.alias+"`") {
				t.Errorf("%v events: no row for %s %s", kind, s.name, s.alias)
			}
		}
		if !strings.Contains(text, want.String()) {
			t.Errorf("%v events: the table should be\n%s", kind, want.String())
		}
		if !strings.Contains(reference, "`"+Subject(kind)+"`") {
			t.Errorf("no subject %s", Subject(kind))
		}
	}
}

// Every reason for a refusal, content type, header and limit is in the reference.
func TestReferenceIsComplete(t *testing.T) {
	reference := readReference(t)
	for _, word := range []any{
		Malformed, TooLarge, UnknownField, MissingField, BadValue, NotFinite, NotNormal, WrongClasses,
		UnknownClass, SelfLoop, BadWeight, BadID, BadTime, UnknownKind, BadConfig, LimitExceeded, Late,
		JSON, NDJSON, Arrow, HeaderContentType, HeaderSchema, HeaderChecksum, schemaVersionKey,
	} {
		if !strings.Contains(reference, fmt.Sprintf("`%v`", word)) {
			t.Errorf("no `%v`", word)
		}
	}
	for _, limit := range []int{
		EventsPerMessageLimit, UnitsPerMessageMax, ClassesMax, IDBytesLimit, AttributesPerEventMax,
		AttributesPerMessage, AttributeTextBytesMax, JSONDepthMax, MessageBytesLimit >> 20, WeightMax,
	} {
		if !strings.Contains(reference, fmt.Sprint(limit)) {
			t.Errorf("no limit %d", limit)
		}
	}
}
