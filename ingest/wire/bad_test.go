package wire

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gqlstream/ingest/event"
)

// badCase is one input that is refused: the whole message, or its one event.
type badCase struct {
	name    string
	kind    event.Kind
	payload string
	whole   bool
	reason  event.Reason
	detail  string // part of the detail
}

func edges(payload string, whole bool, reason event.Reason, detail string) badCase {
	return badCase{detail, event.KindEdge, payload, whole, reason, detail}
}

// post is one post of these members.
func post(members string, reason event.Reason, detail string) badCase {
	return badCase{
		"post: " + detail, event.KindPost, "{" + members + "}", false, reason, detail,
	}
}

// twoClasses are the classes of the cases.
var twoClasses = event.ClassSet{Names: []string{"left", "right"}}

// badJSON is read as application/json unless it has a line end.
var badJSON = []badCase{
	// Not JSON: nothing of the message applies.
	edges("", true, event.Malformed, "empty message"),
	edges(" ", true, event.Malformed, "byte 1: the text ends too early"),
	edges("{", true, event.Malformed, "byte 1: the text ends too early"),
	edges(`{"src":1,"dst":2`, true, event.Malformed, `byte 16: the text ends too early`),
	edges(`{"src":1,"dst":2}}`, true, event.Malformed, "text after the end"),
	edges(`{"src":1,"dst":2} {"src":1,"dst":3}`, true, event.Malformed, "text after the end"),
	edges(`[{"src":1,"dst":2},]`, true, event.Malformed, "byte 18: invalid character ','"),
	edges(`[{"src":1,"dst":2}`, true, event.Malformed, `byte 18: the text ends too early`),
	edges(`{"src":1,"dst":2,}`, true, event.Malformed, "byte 16: invalid character ','"),
	edges(
		`{"src":1 "dst":2}`, true, event.Malformed,
		`invalid character '"' after object value (expecting ',' or '}')`,
	),
	edges(
		`{"src" 1}`, true, event.Malformed,
		"invalid character '1' after object name (expecting ':')",
	),
	edges(`{src:1}`, true, event.Malformed, "invalid character 's'"),
	edges(`{'src':1}`, true, event.Malformed, `invalid character '\''`),
	edges(`[1]`, true, event.Malformed, "number in place of the object of an event"),
	edges(`"edge"`, true, event.Malformed, "in place of the object of an event"),
	edges(`null`, true, event.Malformed, "null in place of the object of an event"),
	edges(
		`{"src":1,"dst":2,"weight":NaN}`, true, event.Malformed,
		"invalid character 'N' at start of value",
	),
	edges(`{"src":1,"dst":2,"weight":01}`, true, event.Malformed, "byte 27: invalid character '1'"),
	edges(`{"src":1,"dst":2,"weight":1.}`, true, event.Malformed, "in number (expecting digit)"),
	edges(
		`{"src":1,"dst":2,"weight":-}`, true, event.Malformed,
		"byte 27: invalid character '}' in number",
	),
	edges(`{"src":1,"dst":2,"weight":nul}`, true, event.Malformed, "in literal null"),
	edges(
		`{"src":1,"dst":2,"weight":True}`, true, event.Malformed,
		"invalid character 'T' at start of value",
	),
	edges(`{"src":1,"src":1,"dst":2}`, true, event.Malformed, `key "src" given twice`),
	edges(`{"src":1,"\u0073rc":1,"dst":2}`, true, event.Malformed, `key "src" given twice`),
	edges(`{"src":null,"src":1,"dst":2}`, true, event.Malformed, `key "src" given twice`),
	edges(`{"src":"a`, true, event.Malformed, "byte 9: the text ends too early"),
	edges(`{"src":"a\`, true, event.Malformed, "byte 10: the text ends too early"),
	edges(`{"src":"\x41"}`, true, event.Malformed, "invalid escape sequence"),
	edges(`{"src":"\u12"}`, true, event.Malformed, "invalid escape sequence"),
	edges(`{"src":"\ud800","dst":2}`, true, event.Malformed, "invalid surrogate pair"),
	edges(`{"src":"\udc00","dst":2}`, true, event.Malformed, "invalid surrogate pair"),
	edges(`{"src":"\ud800\u0041","dst":2}`, true, event.Malformed, "invalid surrogate pair"),
	edges("{\"src\":\"a\nb\"}", true, event.Malformed, "control character"),
	edges("{\"src\":\"\xff\",\"dst\":2}", true, event.Malformed, "byte 8: invalid UTF-8"),
	edges("{\"src\":\"\xed\xa0\x80\",\"dst\":2}", true, event.Malformed, "byte 8: invalid UTF-8"),
	edges("\xef\xbb\xbf{}", true, event.Malformed, "byte order mark"),
	edges("\x00", true, event.Malformed, "invalid character '\\x00'"),
	edges("\x1f\x8b\x08", true, event.Malformed, "compressed"),
	edges("PAR1....", true, event.Malformed, "Parquet"),
	edges("ARROW1\x00\x00", true, event.Malformed, "Arrow file"),
	edges("\xff\xff\xff\xff\x00\x00\x00\x00", true, event.Malformed, "Arrow stream, not JSON"),
	edges(
		strings.Repeat("[", 100000), true, event.Malformed, "[ in place of the object of an event",
	),
	edges(
		`{"x":`+strings.Repeat("[", 100000), true, event.Malformed, "byte 12: more than 8 objects",
	),
	edges(`{"x":`+strings.Repeat(`{"x":`, 100000), true, event.Malformed, "more than 8 objects"),
	edges(strings.Repeat(" ", 1<<20+1), true, event.TooLarge, "1048577 bytes, at most 1048576"),
	edges(`[`+strings.Repeat(`{},`, 65536)+`{}]`, true, event.TooLarge, "more than 65536 events"),

	// Not an edge: the rest of the message applies.
	edges(`{}`, false, event.MissingField, "edge event without src"),
	edges(`{"src":1}`, false, event.MissingField, "edge event without dst"),
	edges(`{"src":1,"dst":null}`, false, event.MissingField, "edge event without dst"),
	edges(`{"src":1,"dest":2}`, false, event.UnknownField, `no field "dest": did you mean "dst"?`),
	edges(
		`{"src":1,"dst":2,"colour":[{"a":1}]}`, false, event.UnknownField, "known are op, src, dst",
	),
	edges(`{"src":1,"dst":2,"":0}`, false, event.UnknownField, `no field ""`),
	edges(`{"src":1,"dst":2,"SRC":0}`, false, event.UnknownField, `no field "SRC"`),
	edges(`{"src":1,"dst":1}`, false, event.SelfLoop, `edge from "1" to itself`),
	edges(`{"src":1,"dst":"1"}`, false, event.SelfLoop, `edge from "1" to itself`),
	edges(`{"src":"","dst":1}`, false, event.BadID, "src is empty"),
	edges(`{"src":-1,"dst":1}`, false, event.BadID, "not -1"),
	edges(`{"src":1.0,"dst":1}`, false, event.BadID, "not 1.0"),
	edges(`{"src":1e3,"dst":1}`, false, event.BadID, "not 1e3"),
	edges(`{"src":18446744073709551616,"dst":1}`, false, event.BadID, "not 18446744073709551616"),
	edges(
		`{"src":true,"dst":1}`, false, event.BadID,
		"src must be a string or an unsigned 64-bit integer, not true",
	),
	edges(`{"src":{"id":1},"dst":1}`, false, event.BadID, `not "{\"id\":1}"`),
	edges(`{"src":[1],"dst":1}`, false, event.BadID, "not a list of 1 numbers"),
	edges(
		`{"src":"`+strings.Repeat("x", 257)+`","dst":1}`, false, event.BadID,
		"longer than 256 bytes",
	),
	edges(
		`{"src":"`+strings.Repeat("x", 1<<19)+`","dst":1}`, false, event.BadID,
		"(524288 bytes) is longer than 256",
	),
	edges(`{"src":1,"dst":2,"weight":0}`, false, event.BadWeight, "weight 0"),
	edges(`{"src":1,"dst":2,"weight":-1}`, false, event.BadWeight, "weight -1"),
	edges(`{"src":1,"dst":2,"weight":4e-7}`, false, event.BadWeight, "weight 4e-07"),
	edges(`{"src":1,"dst":2,"weight":16777217}`, false, event.BadWeight, "weight 1.6777217e+07"),
	edges(`{"src":1,"dst":2,"weight":1e999}`, false, event.NotFinite, "weight is +Inf"),
	edges(`{"src":1,"dst":2,"weight":1e999999999999}`, false, event.NotFinite, "weight is +Inf"),
	edges(
		`{"src":1,"dst":2,"weight":"1"}`, false, event.BadValue, `weight must be a number, not "1"`,
	),
	edges(
		`{"src":1,"dst":2,"weight":"NaN"}`, false, event.BadValue,
		`weight must be a number, not "NaN"`,
	),
	edges(
		`{"src":1,"dst":2,"op":"delete"}`, false, event.BadValue,
		`op "delete": known are add, remove`,
	),
	edges(`{"src":1,"dst":2,"op":""}`, false, event.BadValue, `op "": known are`),
	edges(`{"src":1,"dst":2,"op":1}`, false, event.BadValue, "op must be a string"),
	edges(`{"src":1,"dst":2,"ttl":0}`, false, event.BadValue, "ttl 0s must be positive"),
	edges(`{"src":1,"dst":2,"ttl":"soon"}`, false, event.BadValue, `ttl "soon"`),
	edges(`{"src":1,"dst":2,"ttl":true}`, false, event.BadValue, "ttl must be"),
	edges(`{"src":1,"dst":2,"time":"yesterday"}`, false, event.BadTime, `"yesterday" is neither`),
	edges(`{"src":1,"dst":2,"time":1700000000000}`, false, event.BadTime, "give Unix seconds"),
	edges(`{"src":1,"dst":2,"time":1e40}`, false, event.BadTime, "1e40 is out of range"),
	edges(`{"src":1,"dst":2,"time":false}`, false, event.BadTime, "not false"),
	edges(
		`{"src":1,"dst":2,"time":"`+strings.Repeat("1", 100000)+`"}`, false, event.BadTime,
		"(100000 bytes)",
	),

	{
		"label with a bad ttl",
		event.KindLabel,
		`{"vertex":1,"class":1,"ttl":-1}`,
		false,
		event.BadValue,
		"ttl -1s must be positive",
	},
	{
		"prediction with a bad ttl",
		event.KindPrediction,
		`{"vertex":1,"class":1,"ttl":"long"}`,
		false,
		event.BadValue,
		`ttl "long"`,
	},
	{
		"member with a ttl",
		event.KindMember,
		`{"community":"a","vertex":1,"ttl":5}`,
		false,
		event.UnknownField,
		`"ttl"`,
	},
	{
		"label without class",
		event.KindLabel,
		`{"vertex":1}`,
		false,
		event.MissingField,
		"class (null withdraws",
	},
	{
		"label without vertex",
		event.KindLabel,
		`{"class":1}`,
		false,
		event.MissingField,
		"without vertex",
	},
	{
		"class and its alias",
		event.KindLabel,
		`{"vertex":1,"class":0,"label":0}`,
		true,
		event.Malformed,
		`"class" given twice`,
	},
	{
		"class beyond K",
		event.KindLabel,
		`{"vertex":1,"class":2}`,
		false,
		event.UnknownClass,
		"classes 0 to 1",
	},
	{"class -1", event.KindLabel, `{"vertex":1,"class":-1}`, false, event.UnknownClass, "not -1"},
	{
		"class 0.5",
		event.KindLabel,
		`{"vertex":1,"class":0.5}`,
		false,
		event.UnknownClass,
		"not 0.5",
	},
	{
		"class name",
		event.KindLabel,
		`{"vertex":1,"class":"rihgt"}`,
		false,
		event.UnknownClass,
		`did you mean "right"?`,
	},
	{
		"class object",
		event.KindLabel,
		`{"vertex":1,"class":{}}`,
		false,
		event.BadValue,
		"class must be",
	},
	{
		"long class name",
		event.KindLabel,
		`{"vertex":1,"class":"` + strings.Repeat("x", 5000) + `"}`,
		false,
		event.UnknownClass,
		"(5000 bytes)",
	},
	{
		"role",
		event.KindLabel,
		`{"vertex":1,"class":1,"role":"test"}`,
		false,
		event.BadValue,
		`role "test"`,
	},
	{
		"audit without pi",
		event.KindLabel,
		`{"vertex":1,"class":1,"role":"audit"}`,
		false,
		event.MissingField,
		"pi, the probability",
	},
	{
		"withdrawn audit without pi",
		event.KindLabel,
		`{"vertex":1,"class":null,"role":"audit","pi":0.5}`,
		false,
		event.MissingField,
		"class, which audit needs",
	},
	{
		"pi without audit",
		event.KindLabel,
		`{"vertex":1,"class":1,"pi":0.5}`,
		false,
		event.BadValue,
		"only the role audit has pi, not calibrate",
	},
	{
		"pi 0",
		event.KindLabel,
		`{"vertex":1,"class":1,"role":"audit","pi":0}`,
		false,
		event.BadValue,
		"pi 0 must be",
	},
	{
		"pi above 1",
		event.KindLabel,
		`{"vertex":1,"class":1,"role":"audit","pi":1.5}`,
		false,
		event.BadValue,
		"pi 1.5 must be",
	},
	{
		"negative pi",
		event.KindLabel,
		`{"vertex":1,"class":1,"role":"audit","pi":-0.5}`,
		false,
		event.BadValue,
		"pi -0.5 must be",
	},
	{
		"infinite pi",
		event.KindLabel,
		`{"vertex":1,"class":1,"role":"audit","pi":1e999}`,
		false,
		event.NotFinite,
		"pi is +Inf",
	},
	{
		"text pi",
		event.KindLabel,
		`{"vertex":1,"class":1,"role":"audit","pi":"0.5"}`,
		false,
		event.BadValue,
		"pi must be a number",
	},

	{
		"no probabilities",
		event.KindPrediction,
		`{"vertex":1}`,
		false,
		event.MissingField,
		"probabilities or class",
	},
	{
		"null class",
		event.KindPrediction,
		`{"vertex":1,"class":null}`,
		false,
		event.MissingField,
		"probabilities or class",
	},
	{
		"both",
		event.KindPrediction,
		`{"vertex":1,"class":0,"p":[0,1]}`,
		false,
		event.BadValue,
		"exclude each other",
	},
	{
		"one of two",
		event.KindPrediction,
		`{"vertex":1,"p":[1]}`,
		false,
		event.WrongClasses,
		"1 probabilities for 2",
	},
	{
		"three of two",
		event.KindPrediction,
		`{"vertex":1,"p":[1,0,0]}`,
		false,
		event.WrongClasses,
		"3 probabilities for 2",
	},
	{
		"none of two",
		event.KindPrediction,
		`{"vertex":1,"p":[]}`,
		false,
		event.WrongClasses,
		"0 probabilities for 2",
	},
	{
		"half a million",
		event.KindPrediction,
		`{"vertex":1,"p":[0` + strings.Repeat(",0", 499999) + `]}`,
		false,
		event.WrongClasses,
		"500000 probabilities",
	},
	{
		"negative",
		event.KindPrediction,
		`{"vertex":1,"p":[1.5,-0.5]}`,
		false,
		event.NotNormal,
		"class 1 is -0.5",
	},
	{"sum 0", event.KindPrediction, `{"vertex":1,"p":[0,0]}`, false, event.NotNormal, "sum to 0"},
	{
		"sum 0.9",
		event.KindPrediction,
		`{"vertex":1,"p":[0.4,0.5]}`,
		false,
		event.NotNormal,
		"sum to 0.9",
	},
	{
		"infinite",
		event.KindPrediction,
		`{"vertex":1,"p":[1e999,0]}`,
		false,
		event.NotFinite,
		"class 0 is +Inf",
	},
	{
		"null probability",
		event.KindPrediction,
		`{"vertex":1,"p":[1,null]}`,
		false,
		event.BadValue,
		"class 1 is not a number",
	},
	{
		"probability object",
		event.KindPrediction,
		`{"vertex":1,"p":{}}`,
		false,
		event.BadValue,
		"must be an array",
	},
	{
		"probabilities and alias",
		event.KindPrediction,
		`{"vertex":1,"p":[0,1],"probabilities":[0,1]}`,
		true,
		event.Malformed,
		"given twice",
	},
	{
		"empty version",
		event.KindPrediction,
		`{"vertex":1,"class":0,"version":""}`,
		false,
		event.BadID,
		"version is empty",
	},

	post(`"author":1`, event.MissingField, "post event without probabilities or class"),
	post(`"p":[0,1]`, event.MissingField, "post event without author"),
	post(`"author":"","class":0`, event.BadID, "author is empty"),
	post(`"author":-1,"class":0`, event.BadID, "not -1"),
	post(`"author":1,"class":0,"p":[0,1]`, event.BadValue, "exclude each other"),
	post(`"author":1,"class":"middle"`, event.UnknownClass, `class "middle"`),
	post(`"author":1,"p":[1]`, event.WrongClasses, "1 probabilities for 2 classes"),
	post(`"author":1,"p":[0.5,0.6]`, event.NotNormal, "sum to 1.1"),
	post(`"author":1,"class":0,"reply_to":""`, event.BadID, "reply_to is empty"),
	post(`"author":1,"class":0,"repost_of":1.5`, event.BadID, "repost_of must be a string"),
	post(`"author":1,"class":0,"weight":0`, event.BadWeight, "weight 0 must be"),
	post(`"author":1,"class":0,"ttl":-1`, event.BadValue, "must be positive"),
	post(`"author":1,"class":0,"id":""`, event.BadID, "id is empty"),
	post(`"author":1,"class":0,"vertex":1`, event.UnknownField, `no field "vertex"`),
	post(`"author":1,"class":0,"time":"soon"`, event.BadTime, "neither RFC 3339"),

	{
		"no community",
		event.KindMember,
		`{"vertex":1}`,
		false,
		event.MissingField,
		"without community",
	},
	{
		"empty community",
		event.KindMember,
		`{"vertex":1,"community":""}`,
		false,
		event.BadID,
		"community is empty",
	},
	{"community -1", event.KindMember, `{"vertex":1,"community":-1}`, false, event.BadID, "not -1"},
	{
		"half a member",
		event.KindMember,
		`{"vertex":1,"community":"a","multiplicity":0.5}`,
		false,
		event.BadValue,
		"multiplicity",
	},
	{
		"too many",
		event.KindMember,
		`{"vertex":1,"community":"a","multiplicity":4294967296}`,
		false,
		event.BadValue,
		"multiplicity",
	},
	{
		"infinitely many",
		event.KindMember,
		`{"vertex":1,"community":"a","multiplicity":1e400}`,
		false,
		event.BadValue,
		"multiplicity",
	},
	{
		"text multiplicity",
		event.KindMember,
		`{"vertex":1,"community":"a","weight":"2"}`,
		false,
		event.BadValue,
		"multiplicity must be",
	},
	{
		"member op",
		event.KindMember,
		`{"vertex":1,"community":"a","op":"add"}`,
		false,
		event.BadValue,
		"join, leave",
	},

	{
		"attribute twice",
		event.KindVertex,
		`{"vertex":1,"attributes":{"a":1,"a":2}}`,
		true,
		event.Malformed,
		`key "a" given twice`,
	},
	{
		"nested attribute",
		event.KindVertex,
		`{"vertex":1,"attributes":{"a":{}}}`,
		false,
		event.BadValue,
		`attribute "a" must be`,
	},
	{
		"infinite attribute",
		event.KindVertex,
		`{"vertex":1,"attributes":{"a":-1e999}}`,
		false,
		event.NotFinite,
		`"a" is -Inf`,
	},
	{
		"empty name",
		event.KindVertex,
		`{"vertex":1,"attributes":{"":1}}`,
		false,
		event.BadID,
		"attribute name is empty",
	},
	{
		"long text",
		event.KindVertex,
		`{"vertex":1,"attributes":{"a":"` + strings.Repeat("x", 4097) + `"}}`,
		false,
		event.TooLarge,
		"at most 4096",
	},
	{
		"65 attributes",
		event.KindVertex,
		`{"vertex":1,"attributes":{` + manyAttributes(65) + `}}`,
		false,
		event.TooLarge,
		"more than 64",
	},
	{
		"attributes list",
		event.KindVertex,
		`{"vertex":1,"attributes":[]}`,
		false,
		event.BadValue,
		"must be an object",
	},
	{
		"erase with attributes",
		event.KindVertex,
		`{"vertex":1,"attributes":{"a":1},"erase":true}`,
		false,
		event.BadValue,
		"exclude",
	},
	{"erase 1", event.KindVertex, `{"vertex":1,"erase":1}`, false, event.BadValue, "true or false"},

	{"no op", event.KindControl, `{}`, false, event.MissingField, "without op"},
	{"op", event.KindControl, `{"op":"tock"}`, false, event.BadValue, `did you mean "tick"?`},
	{
		"no config",
		event.KindControl,
		`{"op":"configure"}`,
		false,
		event.MissingField,
		"config, which configure needs",
	},
	{
		"no text",
		event.KindControl,
		`{"op":"note"}`,
		false,
		event.MissingField,
		"text, which note needs",
	},
	{
		"idle text",
		event.KindControl,
		`{"op":"tick","text":"debate"}`,
		false,
		event.BadValue,
		"only note",
	},
	{"empty text", event.KindControl, `{"op":"note","text":""}`, false, event.BadID, "text"},
	{
		"idle config",
		event.KindControl,
		`{"op":"tick","config":{}}`,
		false,
		event.BadValue,
		"only configure",
	},
	{
		"config list",
		event.KindControl,
		`{"op":"configure","config":[]}`,
		false,
		event.BadValue,
		"must be an object",
	},
	{
		"config keys",
		event.KindControl,
		`{"op":"configure","config":{"a":{"b":1,"b":2}}}`,
		true,
		event.Malformed,
		`key "b" given twice`,
	},
	{
		"deep config",
		event.KindControl,
		`{"op":"configure","config":` + strings.Repeat(`{"a":`, 8) + `1` + strings.Repeat(
			`}`,
			8,
		) + `}`,
		true,
		event.Malformed,
		"more than 8",
	},
	{"no such kind", event.Kind(event.Kinds), `{}`, true, event.UnknownKind, "kind(7)"},
}

// manyAttributes returns the members of an object.
func manyAttributes(n int) string {
	var s strings.Builder
	for i := range n {
		if i > 0 {
			s.WriteByte(',')
		}
		fmt.Fprintf(&s, `"a%d":%d`, i, i)
	}
	return s.String()
}

// goodJSON is an event of each kind that is accepted.
var goodJSON = [event.Kinds]string{
	event.KindEdge:       `{"src":1,"dst":2}`,
	event.KindLabel:      `{"vertex":1,"class":0}`,
	event.KindPrediction: `{"vertex":1,"p":[0.25,0.75]}`,
	event.KindPost:       `{"author":1,"p":[0.25,0.75],"reply_to":1}`,
	event.KindMember:     `{"vertex":1,"community":"a"}`,
	event.KindVertex:     `{"vertex":1}`,
	event.KindControl:    `{"op":"tick"}`,
}

// Every bad input is refused for its reason, with its position in the error, and
// takes only itself down.
func TestBadJSONIsRefused(t *testing.T) {
	d, err := NewDecoder(twoClasses)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range badJSON {
		t.Run(c.name, func(t *testing.T) {
			checkBad(
				t, d, c,
				Message{Kind: c.kind, ContentType: JSON, Payload: []byte(c.payload), Position: 12},
			)
			if c.whole || strings.Contains(c.payload, "\n") {
				return
			}
			good := goodJSON[c.kind]
			for _, payload := range []string{
				"[" + good + "," + c.payload + "," + good + "]",
				good + "\n" + c.payload + "\r\n\n" + good,
			} {
				checkRest(t, d, c, payload)
			}
		})
	}
}

// checkBad decodes one bad message and looks at how it is refused.
func checkBad(t *testing.T, d *Decoder, c badCase, m Message) {
	t.Helper()
	var b event.Batch
	err := d.Decode(m, &b)
	if c.whole != errors.Is(err, ErrMalformed) || c.whole != (err != nil) {
		t.Fatalf("error %v, refused whole should be %v", err, c.whole)
	}
	if b.Events() != 0 || len(b.Refused) != 1 {
		t.Fatalf("%d events and %d refusals", b.Events(), len(b.Refused))
	}
	r := b.Refused[0]
	if r.Reason != c.reason || !strings.Contains(r.Detail, c.detail) || len(r.Detail) > 500 {
		t.Errorf("refused as %s: %s\nwant %s: %s", r.Reason, r.Detail, c.reason, c.detail)
	}
	if r.Position != 12 || r.Kind != m.Kind || c.whole != (r.Index == -1) {
		t.Errorf("refused at position %d, index %d, kind %v", r.Position, r.Index, r.Kind)
	}
	if c.whole && !strings.Contains(err.Error(), "position 12") {
		t.Errorf("error without the position: %v", err)
	}
	if c.whole && string(r.Original) != string(m.Payload) {
		t.Errorf("original is %q", r.Original)
	}
}

// checkRest decodes the bad event between two good ones.
func checkRest(t *testing.T, d *Decoder, c badCase, payload string) {
	t.Helper()
	var b event.Batch
	if err := d.Decode(Message{Kind: c.kind, Payload: []byte(payload), Position: 12},
		&b); err != nil {
		t.Fatalf("between good events: %v", err)
	}
	if b.Events() != 2 || len(b.Refused) != 1 {
		t.Fatalf("between good events: %d events, %d refusals", b.Events(), len(b.Refused))
	}
	if r := b.Refused[0]; r.Index != 1 || r.Reason != c.reason || string(r.Original) != c.payload {
		t.Errorf(
			"between good events: refused %d as %s: %s: %q", r.Index, r.Reason, r.Detail,
			r.Original,
		)
	}
}

// A message that is refused whole leaves the events before it in the batch, and
// none of its own, wherever the damage is.
func TestDamagedMessageLeavesNothing(t *testing.T) {
	d, err := NewDecoder(twoClasses)
	if err != nil {
		t.Fatal(err)
	}
	for kind := range event.Kind(event.Kinds) {
		for _, payload := range []string{
			"[" + goodJSON[kind] + "," + goodJSON[kind] + ",{}",
			goodJSON[kind] + "\n" + goodJSON[kind] + "\n{}\n{]",
			goodJSON[kind] + "\n{} x\n",
		} {
			var b, want event.Batch
			for _, to := range []*event.Batch{&b, &want} {
				mustDecode(t, d, Message{Kind: kind, Payload: []byte(goodJSON[kind])}, to)
			}
			if err := d.Decode(Message{Kind: kind, Payload: []byte(payload)}, &b); !errors.Is(
				err,
				ErrMalformed,
			) {
				t.Errorf("%q: %v", payload, err)
			}
			if len(b.Refused) != 1 || b.Refused[0].Index != -1 {
				t.Errorf("%q: refused %+v", payload, b.Refused)
			}
			b.Refused = nil
			sameEvents(t, &b, &want)
		}
	}
}

// The headers of a message are checked before the payload is read.
func TestEnvelope(t *testing.T) {
	d := newDecoder(t, 2)
	good := []byte(goodJSON[event.KindEdge])
	for _, c := range []struct {
		m      Message
		want   error
		detail string
	}{
		{
			Message{Payload: good, Schema: "2"},
			ErrMalformed,
			`schema version "2", this release reads version 1`,
		},
		{
			Message{Payload: []byte("?"), Schema: "2000000000"},
			ErrMalformed,
			"this release reads version 1",
		},
		{Message{Payload: good, Schema: "0"}, ErrMalformed, "reads version 1"},
		{Message{Payload: good, Schema: "+2"}, ErrMalformed, "reads version 1"},
		{Message{Payload: good, Schema: "v2"}, ErrMalformed, "reads version 1"},
		{Message{Payload: good, Checksum: "x"}, ErrMalformed, "16 hexadecimal digits"},
		{
			Message{Payload: good, Checksum: "+123456789abcdef"},
			ErrMalformed,
			"16 hexadecimal digits",
		},
		{
			Message{Payload: good, Checksum: "0123456789abcdef"},
			ErrMalformed,
			"the payload was damaged",
		},
		{Message{Payload: good, ContentType: "text/csv"}, ErrMalformed, "content type"},
		{Message{Payload: good, ContentType: Arrow}, ErrMalformed, "no Arrow message begins here"},
		{
			Message{Payload: good[:5], ContentType: Arrow},
			ErrMalformed,
			"no Arrow message begins here",
		},
		{Message{Payload: good, ContentType: " Application/JSON ; charset=utf-8"}, nil, ""},
	} {
		var b event.Batch
		c.m.Position = 7
		err := d.Decode(c.m, &b)
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.detail) {
			t.Errorf("%+v: %v", c.m, err)
		}
	}
}
