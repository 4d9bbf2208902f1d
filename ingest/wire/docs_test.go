package wire

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"gqlstream/ingest/event"
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
func section(t *testing.T, reference string, kind event.Kind) string {
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
	for kind := range event.Kind(event.Kinds) {
		found := 0
		for _, match := range examples.FindAllStringSubmatch(section(t, reference, kind), -1) {
			if match[1] != kind.String() {
				t.Errorf("an example of %s events among %v events", match[1], kind)
			}
			var b event.Batch
			mustDecode(t, d, Message{Kind: kind, ContentType: JSON, Payload: []byte(match[2])}, &b)
			found++
		}
		if found < 2 {
			t.Errorf("%d examples of %v events", found, kind)
		}
	}
}

// Every field and alias stands in the table of JSON fields of its kind, which says whether it
// is required, and in the table of Arrow types.
func TestReferenceTablesAreTheCode(t *testing.T) {
	reference := readReference(t)
	_, arrow, _ := strings.Cut(reference, "| Arrow column | types |")
	arrow, _, _ = strings.Cut(arrow, "\n\n")
	for kind := range event.Kind(event.Kinds) {
		text := section(t, reference, kind)
		for _, s := range fields[kind] {
			row := regexp.MustCompile("(?m)^\\|[^|\n]*`" + s.name + "`.*$").FindString(text)
			if row == "" ||
				s.alias != "" && !strings.Contains(row, "`"+s.name+"`, also `"+s.alias+"`") {
				t.Errorf("%v events: no row for %s %s", kind, s.name, s.alias)
			}
			if strings.HasSuffix(row, "| required |") != s.required {
				t.Errorf(
					"%v events: %s is required: %t, and its row is %s", kind, s.name, s.required,
					row,
				)
			}
			types := regexp.QuoteMeta(" | " + s.holds.arrow + " |")
			if !regexp.MustCompile("(?m)^\\|[^|\n]*`" + s.name + "`[^|\n]*" + types + "$").
				MatchString(arrow) {
				t.Errorf(
					"%v events: the table of Arrow types does not say %s of %s", kind,
					s.holds.arrow, s.name,
				)
			}
		}
		if !strings.Contains(reference, "`"+"gql."+kind.String()+"`") {
			t.Errorf("no subject %s", "gql."+kind.String())
		}
	}
}

// Every reason for a refusal, content type, header and limit is in the reference.
func TestReferenceIsComplete(t *testing.T) {
	reference := readReference(t)
	words := []any{
		JSON,
		NDJSON,
		Arrow,
		HeaderContentType,
		HeaderSchema,
		HeaderChecksum,
		schemaVersionKey,
	}
	for _, reason := range event.Reasons {
		words = append(words, reason)
	}
	for _, word := range words {
		if !strings.Contains(reference, fmt.Sprintf("`%v`", word)) {
			t.Errorf("no `%v`", word)
		}
	}
	for _, limit := range []int{
		event.EventsPerMessageLimit, event.UnitsPerMessageMax, event.ClassesMax, event.IDBytesLimit,
		event.AttributesPerEventMax,
		event.AttributesPerMessage, event.AttributeTextBytesMax, event.JSONDepthMax,
		event.MessageBytesMax >> 20, event.WeightMax,
	} {
		if !strings.Contains(reference, fmt.Sprint(limit)) {
			t.Errorf("no limit %d", limit)
		}
	}
}
