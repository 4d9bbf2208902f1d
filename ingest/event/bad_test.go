package event

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// badCase is one input that is refused: the whole message, or its one event.
type badCase struct {
	name    string
	kind    Kind
	payload string
	whole   bool
	reason  Reason
	detail  string // part of the detail
}

func edges(payload string, whole bool, reason Reason, detail string) badCase {
	return badCase{detail, KindEdge, payload, whole, reason, detail}
}

// twoClasses is the configuration of the cases: classes "left" and "right".
var twoClasses = Config{Classes: ClassSet{Names: []string{"left", "right"}}, MessageBytesMax: 4 << 20}

// badJSON is read as application/json unless it has a line end.
var badJSON = []badCase{
	// Not JSON: nothing of the message applies.
	edges("", true, Malformed, "empty message"),
	edges(" ", true, Malformed, "ends where the object of an event"),
	edges("{", true, Malformed, "ends where a string should stand"),
	edges(`{"src":1,"dst":2`, true, Malformed, `ends where "," or '}'`),
	edges(`{"src":1,"dst":2}}`, true, Malformed, "text after the end"),
	edges(`{"src":1,"dst":2} {"src":1,"dst":3}`, true, Malformed, "text after the end"),
	edges(`[{"src":1,"dst":2},]`, true, Malformed, "']' where the object of an event"),
	edges(`[{"src":1,"dst":2}`, true, Malformed, `ends where "," or ']'`),
	edges(`{"src":1,"dst":2,}`, true, Malformed, "'}' where a string should stand"),
	edges(`{"src":1 "dst":2}`, true, Malformed, `'"' where "," or '}'`),
	edges(`{"src" 1}`, true, Malformed, "'1' where ':' should stand"),
	edges(`{src:1}`, true, Malformed, "'s' where a string should stand"),
	edges(`{'src':1}`, true, Malformed, `'\'' where a string should stand`),
	edges(`[1]`, true, Malformed, "'1' where the object of an event"),
	edges(`"edge"`, true, Malformed, "where the object of an event"),
	edges(`null`, true, Malformed, "'n' where the object of an event"),
	edges(`{"src":1,"dst":2,"weight":NaN}`, true, Malformed, "'N' where a value should stand"),
	edges(`{"src":1,"dst":2,"weight":01}`, true, Malformed, "not a number"),
	edges(`{"src":1,"dst":2,"weight":1.}`, true, Malformed, "not a number"),
	edges(`{"src":1,"dst":2,"weight":-}`, true, Malformed, "not a number"),
	edges(`{"src":1,"dst":2,"weight":nul}`, true, Malformed, "not a value"),
	edges(`{"src":1,"dst":2,"weight":True}`, true, Malformed, "'T' where a value should stand"),
	edges(`{"src":1,"src":1,"dst":2}`, true, Malformed, `field "src" given twice`),
	edges(`{"src":1,"\u0073rc":1,"dst":2}`, true, Malformed, `field "src" given twice`),
	edges(`{"src":null,"src":1,"dst":2}`, true, Malformed, `field "src" given twice`),
	edges(`{"src":"a`, true, Malformed, "the string that begins at byte 7 does not end"),
	edges(`{"src":"a\`, true, Malformed, "unknown escape"),
	edges(`{"src":"\x41"}`, true, Malformed, "unknown escape"),
	edges(`{"src":"\u12"}`, true, Malformed, "bad \\u escape"),
	edges(`{"src":"\ud800","dst":2}`, true, Malformed, "half a surrogate pair"),
	edges(`{"src":"\udc00","dst":2}`, true, Malformed, "half a surrogate pair"),
	edges(`{"src":"\ud800\u0041","dst":2}`, true, Malformed, "half a surrogate pair"),
	edges("{\"src\":\"a\nb\"}", true, Malformed, "control character"),
	edges("{\"src\":\"\xff\",\"dst\":2}", true, Malformed, "byte 8: not UTF-8"),
	edges("{\"src\":\"\xed\xa0\x80\",\"dst\":2}", true, Malformed, "byte 8: not UTF-8"),
	edges("\xef\xbb\xbf{}", true, Malformed, "byte order mark"),
	edges("\x00", true, Malformed, "where the object of an event"),
	edges("\x1f\x8b\x08", true, Malformed, "compressed"),
	edges("PAR1....", true, Malformed, "Parquet"),
	edges("ARROW1\x00\x00", true, Malformed, "Arrow file"),
	edges("\xff\xff\xff\xff\x00\x00\x00\x00", true, Malformed, "Arrow stream, not JSON"),
	edges(strings.Repeat("[", 100000), true, Malformed, "'[' where the object of an event"),
	edges(`{"x":`+strings.Repeat("[", 100000), true, Malformed, "byte 12: more than 8 objects"),
	edges(`{"x":`+strings.Repeat(`{"x":`, 100000), true, Malformed, "more than 8 objects"),
	edges(strings.Repeat(" ", 4<<20+1), true, TooLarge, "4194305 bytes, at most 4194304"),
	edges(`[`+strings.Repeat(`{"src":1,"dst":2},`, 65536)+`{}]`, true, TooLarge, "more than 65536 events"),

	// Not an edge: the rest of the message applies.
	edges(`{}`, false, MissingField, "edge event without src"),
	edges(`{"src":1}`, false, MissingField, "edge event without dst"),
	edges(`{"src":1,"dst":null}`, false, MissingField, "edge event without dst"),
	edges(`{"src":1,"dest":2}`, false, UnknownField, `no field "dest": did you mean "dst"?`),
	edges(`{"src":1,"dst":2,"colour":[{"a":1}]}`, false, UnknownField, "known are op, src, dst"),
	edges(`{"src":1,"dst":2,"":0}`, false, UnknownField, `no field ""`),
	edges(`{"src":1,"dst":2,"SRC":0}`, false, UnknownField, `no field "SRC"`),
	edges(`{"src":1,"dst":1}`, false, SelfLoop, `edge from "1" to itself`),
	edges(`{"src":1,"dst":"1"}`, false, SelfLoop, `edge from "1" to itself`),
	edges(`{"src":"","dst":1}`, false, BadID, "vertex id is empty"),
	edges(`{"src":-1,"dst":1}`, false, BadID, "not the number -1"),
	edges(`{"src":1.0,"dst":1}`, false, BadID, "not the number 1.0"),
	edges(`{"src":1e3,"dst":1}`, false, BadID, "not the number 1e3"),
	edges(`{"src":18446744073709551616,"dst":1}`, false, BadID, "not the number 18446744073709551616"),
	edges(`{"src":true,"dst":1}`, false, BadID, "not a boolean"),
	edges(`{"src":{"id":1},"dst":1}`, false, BadID, "not an object"),
	edges(`{"src":[1],"dst":1}`, false, BadID, "not an array"),
	edges(`{"src":"`+strings.Repeat("x", 257)+`","dst":1}`, false, BadID, "longer than 256 bytes"),
	edges(`{"src":"`+strings.Repeat("x", 2<<20)+`","dst":1}`, false, BadID, "(2097152 bytes) is longer than 256"),
	edges(`{"src":1,"dst":2,"weight":0}`, false, BadWeight, "weight 0"),
	edges(`{"src":1,"dst":2,"weight":-1}`, false, BadWeight, "weight -1"),
	edges(`{"src":1,"dst":2,"weight":4e-7}`, false, BadWeight, "weight 4e-07"),
	edges(`{"src":1,"dst":2,"weight":16777217}`, false, BadWeight, "weight 1.6777217e+07"),
	edges(`{"src":1,"dst":2,"weight":1e999}`, false, NotFinite, "weight is +Inf"),
	edges(`{"src":1,"dst":2,"weight":1e999999999999}`, false, NotFinite, "weight is +Inf"),
	edges(`{"src":1,"dst":2,"weight":"1"}`, false, BadValue, "weight must be a number, not a string"),
	edges(`{"src":1,"dst":2,"weight":"NaN"}`, false, BadValue, "weight must be a number, not a string"),
	edges(`{"src":1,"dst":2,"op":"delete"}`, false, BadValue, `op "delete": known are add, remove`),
	edges(`{"src":1,"dst":2,"op":""}`, false, BadValue, "op is empty"),
	edges(`{"src":1,"dst":2,"op":1}`, false, BadValue, "op must be a string"),
	edges(`{"src":1,"dst":2,"ttl":0}`, false, BadValue, "ttl 0s must be positive"),
	edges(`{"src":1,"dst":2,"ttl":"soon"}`, false, BadValue, `ttl "soon"`),
	edges(`{"src":1,"dst":2,"ttl":true}`, false, BadValue, "ttl must be"),
	edges(`{"src":1,"dst":2,"time":"yesterday"}`, false, BadTime, `"yesterday" is neither`),
	edges(`{"src":1,"dst":2,"time":1700000000000}`, false, BadTime, "give Unix seconds"),
	edges(`{"src":1,"dst":2,"time":1e40}`, false, BadTime, `"1e40" is out of range`),
	edges(`{"src":1,"dst":2,"time":false}`, false, BadTime, "not a boolean"),
	edges(`{"src":1,"dst":2,"time":"`+strings.Repeat("1", 100000)+`"}`, false, BadTime, "(100000 bytes)"),

	{"label with a bad ttl", KindLabel, `{"vertex":1,"class":1,"ttl":-1}`, false, BadValue, "ttl -1s must be positive"},
	{"prediction with a bad ttl", KindPrediction, `{"vertex":1,"class":1,"ttl":"long"}`, false, BadValue, `ttl "long"`},
	{"member with a ttl", KindMember, `{"community":"a","vertex":1,"ttl":5}`, false, UnknownField, `"ttl"`},
	{"label without class", KindLabel, `{"vertex":1}`, false, MissingField, "class (null withdraws"},
	{"label without vertex", KindLabel, `{"class":1}`, false, MissingField, "without vertex"},
	{"class and its alias", KindLabel, `{"vertex":1,"class":0,"label":0}`, true, Malformed, `"class" given twice`},
	{"class beyond K", KindLabel, `{"vertex":1,"class":2}`, false, UnknownClass, "classes 0 to 1"},
	{"class -1", KindLabel, `{"vertex":1,"class":-1}`, false, UnknownClass, "not the number -1"},
	{"class 0.5", KindLabel, `{"vertex":1,"class":0.5}`, false, UnknownClass, "not the number 0.5"},
	{"class name", KindLabel, `{"vertex":1,"class":"rihgt"}`, false, UnknownClass, `did you mean "right"?`},
	{"class object", KindLabel, `{"vertex":1,"class":{}}`, false, BadValue, "class must be"},
	{"long class name", KindLabel, `{"vertex":1,"class":"` + strings.Repeat("x", 5000) + `"}`, false, UnknownClass, "(5000 bytes)"},
	{"role", KindLabel, `{"vertex":1,"class":1,"role":"test"}`, false, BadValue, `role "test"`},

	{"no probabilities", KindPrediction, `{"vertex":1}`, false, MissingField, "probabilities or class"},
	{"null class", KindPrediction, `{"vertex":1,"class":null}`, false, MissingField, "probabilities or class"},
	{"both", KindPrediction, `{"vertex":1,"class":0,"p":[0,1]}`, false, BadValue, "exclude each other"},
	{"one of two", KindPrediction, `{"vertex":1,"p":[1]}`, false, WrongClasses, "1 probabilities for 2"},
	{"three of two", KindPrediction, `{"vertex":1,"p":[1,0,0]}`, false, WrongClasses, "3 probabilities for 2"},
	{"none of two", KindPrediction, `{"vertex":1,"p":[]}`, false, WrongClasses, "0 probabilities for 2"},
	{"a million", KindPrediction, `{"vertex":1,"p":[0` + strings.Repeat(",0", 999999) + `]}`, false, WrongClasses, "1000000 probabilities"},
	{"negative", KindPrediction, `{"vertex":1,"p":[1.5,-0.5]}`, false, NotNormal, "class 1 is -0.5"},
	{"sum 0", KindPrediction, `{"vertex":1,"p":[0,0]}`, false, NotNormal, "sum to 0"},
	{"sum 0.9", KindPrediction, `{"vertex":1,"p":[0.4,0.5]}`, false, NotNormal, "sum to 0.9"},
	{"infinite", KindPrediction, `{"vertex":1,"p":[1e999,0]}`, false, NotFinite, "class 0 is +Inf"},
	{"null probability", KindPrediction, `{"vertex":1,"p":[1,null]}`, false, BadValue, "class 1 is not a number"},
	{"probability object", KindPrediction, `{"vertex":1,"p":{}}`, false, BadValue, "must be an array"},
	{"probabilities and alias", KindPrediction, `{"vertex":1,"p":[0,1],"probabilities":[0,1]}`, true, Malformed, "given twice"},
	{"empty version", KindPrediction, `{"vertex":1,"class":0,"version":""}`, false, BadID, "version is empty"},

	{"no community", KindMember, `{"vertex":1}`, false, MissingField, "without community"},
	{"empty community", KindMember, `{"vertex":1,"community":""}`, false, BadID, "community is empty"},
	{"community -1", KindMember, `{"vertex":1,"community":-1}`, false, BadID, "not the number -1"},
	{"half a member", KindMember, `{"vertex":1,"community":"a","multiplicity":0.5}`, false, BadValue, "multiplicity"},
	{"too many", KindMember, `{"vertex":1,"community":"a","multiplicity":4294967296}`, false, BadValue, "multiplicity"},
	{"infinitely many", KindMember, `{"vertex":1,"community":"a","multiplicity":1e400}`, false, BadValue, "multiplicity"},
	{"text multiplicity", KindMember, `{"vertex":1,"community":"a","weight":"2"}`, false, BadValue, "multiplicity must be"},
	{"member op", KindMember, `{"vertex":1,"community":"a","op":"add"}`, false, BadValue, "join, leave"},

	{"attribute twice", KindVertex, `{"vertex":1,"attributes":{"a":1,"a":2}}`, true, Malformed, `attribute "a" given twice`},
	{"nested attribute", KindVertex, `{"vertex":1,"attributes":{"a":{}}}`, false, BadValue, `attribute "a" must be`},
	{"infinite attribute", KindVertex, `{"vertex":1,"attributes":{"a":-1e999}}`, false, NotFinite, `"a" is -Inf`},
	{"empty name", KindVertex, `{"vertex":1,"attributes":{"":1}}`, false, BadID, "attribute name is empty"},
	{"long text", KindVertex, `{"vertex":1,"attributes":{"a":"` + strings.Repeat("x", 4097) + `"}}`, false, TooLarge, "at most 4096"},
	{"65 attributes", KindVertex, `{"vertex":1,"attributes":{` + manyAttributes(65) + `}}`, false, TooLarge, "more than 64"},
	{"attributes list", KindVertex, `{"vertex":1,"attributes":[]}`, false, BadValue, "must be an object"},
	{"erase with attributes", KindVertex, `{"vertex":1,"attributes":{"a":1},"erase":true}`, false, BadValue, "exclude"},
	{"erase 1", KindVertex, `{"vertex":1,"erase":1}`, false, BadValue, "true or false"},

	{"no op", KindControl, `{}`, false, MissingField, "without op"},
	{"op", KindControl, `{"op":"tock"}`, false, BadValue, `did you mean "tick"?`},
	{"no config", KindControl, `{"op":"configure"}`, false, MissingField, "config, which configure needs"},
	{"idle config", KindControl, `{"op":"tick","config":{}}`, false, BadValue, "only configure"},
	{"config list", KindControl, `{"op":"configure","config":[]}`, false, BadValue, "must be an object"},
	{"config keys", KindControl, `{"op":"configure","config":{"a":{"b":1,"b":2}}}`, true, Malformed, `key "b" given twice`},
	{"deep config", KindControl, `{"op":"configure","config":` + strings.Repeat(`{"a":`, 8) + `1` + strings.Repeat(`}`, 8) + `}`, true, Malformed, "more than 8"},
	{"no such kind", Kind(6), `{}`, true, UnknownKind, "kind(6)"},
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
var goodJSON = [Kinds]string{
	`{"src":1,"dst":2}`, `{"vertex":1,"class":0}`, `{"vertex":1,"p":[0.25,0.75]}`,
	`{"vertex":1,"community":"a"}`, `{"vertex":1}`, `{"op":"tick"}`,
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
			checkBad(t, d, c, Message{Kind: c.kind, ContentType: JSON, Payload: []byte(c.payload), Position: 12})
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
	var b Batch
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
	var b Batch
	if err := d.Decode(Message{Kind: c.kind, Payload: []byte(payload), Position: 12}, &b); err != nil {
		t.Fatalf("between good events: %v", err)
	}
	if b.Events() != 2 || len(b.Refused) != 1 {
		t.Fatalf("between good events: %d events, %d refusals", b.Events(), len(b.Refused))
	}
	if r := b.Refused[0]; r.Index != 1 || r.Reason != c.reason || string(r.Original) != c.payload {
		t.Errorf("between good events: refused %d as %s: %s: %q", r.Index, r.Reason, r.Detail, r.Original)
	}
}

// A message that is refused whole leaves the events before it in the batch, and
// none of its own, wherever the damage is.
func TestDamagedMessageLeavesNothing(t *testing.T) {
	d, err := NewDecoder(twoClasses)
	if err != nil {
		t.Fatal(err)
	}
	for kind := range Kind(Kinds) {
		for _, payload := range []string{
			"[" + goodJSON[kind] + "," + goodJSON[kind] + ",{}",
			goodJSON[kind] + "\n" + goodJSON[kind] + "\n{}\n{]",
			goodJSON[kind] + "\n{} x\n",
		} {
			var b, want Batch
			for _, to := range []*Batch{&b, &want} {
				mustDecode(t, d, Message{Kind: kind, Payload: []byte(goodJSON[kind])}, to)
			}
			if err := d.Decode(Message{Kind: kind, Payload: []byte(payload)}, &b); !errors.Is(err, ErrMalformed) {
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

// What the envelope says is checked before the payload is read; a schema version
// from the future stops the pipeline and says what it needs.
func TestEnvelope(t *testing.T) {
	d := newDecoder(t, 2)
	good := []byte(goodJSON[KindEdge])
	for _, c := range []struct {
		m      Message
		want   error
		detail string
	}{
		{Message{Payload: good, Schema: "2"}, ErrUnknownVersion, "position 7 has schema version 2, this program reads version 1"},
		{Message{Payload: []byte("?"), Schema: "2000000000"}, ErrUnknownVersion, "reads version 2000000000"},
		{Message{Payload: good, Schema: "0"}, ErrMalformed, "not a positive integer"},
		{Message{Payload: good, Schema: "+2"}, ErrMalformed, "not a positive integer"},
		{Message{Payload: good, Schema: "v2"}, ErrMalformed, "not a positive integer"},
		{Message{Payload: good, Checksum: "x"}, ErrMalformed, "16 hexadecimal digits"},
		{Message{Payload: good, Checksum: "+123456789abcdef"}, ErrMalformed, "16 hexadecimal digits"},
		{Message{Payload: good, Checksum: "0123456789abcdef"}, ErrMalformed, "the payload was damaged"},
		{Message{Payload: good, ContentType: "text/csv"}, ErrMalformed, "content type"},
		{Message{Payload: good, ContentType: Arrow}, ErrMalformed, "an Arrow message should begin here"},
		{Message{Payload: good[:5], ContentType: Arrow}, ErrMalformed, "too few for an Arrow stream"},
		{Message{Payload: good, ContentType: " Application/JSON ; charset=utf-8"}, nil, ""},
	} {
		var b Batch
		c.m.Position = 7
		err := d.Decode(c.m, &b)
		if !errors.Is(err, c.want) || err != nil && !strings.Contains(err.Error(), c.detail) {
			t.Errorf("%+v: %v", c.m, err)
		}
		if c.want == ErrUnknownVersion && len(b.Refused) > 0 {
			t.Errorf("%+v: refused", c.m)
		}
	}
}
