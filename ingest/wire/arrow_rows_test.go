package wire

import (
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"

	"gqlstream/ingest/event"
)

// badRows are tables of one row that is refused.
var badRows = []struct {
	name    string
	kind    event.Kind
	columns []col
	rows    string
	reason  event.Reason
	detail  string
}{
	{
		"null src",
		event.KindEdge,
		[]col{{"src", prims.Uint64}, {"dst", prims.Uint64}},
		`[{"dst":1}]`,
		event.MissingField,
		"edge event without src",
	},
	{
		"null text",
		event.KindEdge,
		[]col{{"src", prims.Uint64}, {"dst", texts.String}},
		`[{"src":1}]`,
		event.MissingField,
		"edge event without dst",
	},
	{
		"null category",
		event.KindEdge,
		[]col{{"src", prims.Uint64}, {"dst", textDictionary(prims.Int8)}},
		`[{"src":1}]`,
		event.MissingField,
		"edge event without dst",
	},
	{
		"only nulls",
		event.KindEdge,
		[]col{{"src", prims.Uint64}, {"dst", arrow.Null}},
		`[{"src":1}]`,
		event.MissingField,
		"edge event without dst",
	},
	{
		"negative id",
		event.KindEdge,
		[]col{{"src", prims.Int64}, {"dst", prims.Int64}},
		`[{"src":-5,"dst":1}]`,
		event.BadID,
		"src -5 is negative",
	},
	{
		"smallest id",
		event.KindEdge,
		[]col{{"src", prims.Int64}, {"dst", prims.Int64}},
		`[{"src":-9223372036854775808,"dst":1}]`,
		event.BadID,
		"-9223372036854775808",
	},
	{
		"empty id",
		event.KindEdge,
		[]col{{"src", texts.String}, {"dst", prims.Int64}},
		`[{"src":"","dst":1}]`,
		event.BadID,
		"src is empty",
	},
	{
		"long id",
		event.KindEdge,
		[]col{{"src", texts.StringView}, {"dst", prims.Int64}},
		`[{"src":"` + strings.Repeat("x", 257) + `","dst":1}]`,
		event.BadID,
		"longer than 256",
	},
	{
		"self-loop",
		event.KindEdge,
		[]col{{"src", texts.String}, {"dst", prims.Int64}},
		`[{"src":"1","dst":1}]`,
		event.SelfLoop,
		"itself",
	},
	{
		"weight 0",
		event.KindEdge,
		[]col{{"src", prims.Int64}, {"dst", prims.Int64}, {"weight", prims.Float32}},
		`[{"src":1,"dst":2,"weight":0}]`,
		event.BadWeight,
		"weight 0",
	},
	{
		"op 2",
		event.KindEdge,
		[]col{{"src", prims.Int64}, {"dst", prims.Int64}, {"op", prims.Uint8}},
		`[{"src":1,"dst":2,"op":2}]`,
		event.BadValue,
		"0 or 1",
	},
	{
		"op -1",
		event.KindEdge,
		[]col{{"src", prims.Int64}, {"dst", prims.Int64}, {"op", prims.Int8}},
		`[{"src":1,"dst":2,"op":-1}]`,
		event.BadValue,
		"op -1 is negative",
	},
	{
		"op text",
		event.KindEdge,
		[]col{{"src", prims.Int64}, {"dst", prims.Int64}, {"op", texts.String}},
		`[{"src":1,"dst":2,"op":"Add"}]`,
		event.BadValue,
		`op "Add"`,
	},
	{
		"ttl -1",
		event.KindEdge,
		[]col{{"src", prims.Int64}, {"dst", prims.Int64}, {"ttl", prims.Float64}},
		`[{"src":1,"dst":2,"ttl":-1}]`,
		event.BadValue,
		"ttl -1s",
	},
	{
		"ttl 1e300",
		event.KindEdge,
		[]col{{"src", prims.Int64}, {"dst", prims.Int64}, {"ttl", prims.Float64}},
		`[{"src":1,"dst":2,"ttl":1e300}]`,
		event.BadValue,
		"ttl of 1e+300",
	},
	{
		"label's ttl",
		event.KindLabel,
		[]col{{"vertex", prims.Int64}, {"class", prims.Int8}, {"ttl", texts.String}},
		`[{"vertex":1,"class":1,"ttl":"-3s"}]`,
		event.BadValue,
		"ttl -3s",
	},
	{
		"prediction's ttl",
		event.KindPrediction,
		[]col{{"vertex", prims.Int64}, {"class", prims.Int8}, {"ttl", prims.Int64}},
		`[{"vertex":1,"class":1,"ttl":0}]`,
		event.BadValue,
		"ttl 0s",
	},
	{
		"time text",
		event.KindEdge,
		[]col{{"src", prims.Int64}, {"dst", prims.Int64}, {"time", texts.String}},
		`[{"src":1,"dst":2,"time":"x"}]`,
		event.BadTime,
		`"x" is neither`,
	},
	{
		"time 1e15",
		event.KindEdge,
		[]col{{"src", prims.Int64}, {"dst", prims.Int64}, {"time", prims.Int64}},
		`[{"src":1,"dst":2,"time":1000000000000}]`,
		event.BadTime,
		"out of range",
	},
	{
		"time in ms",
		event.KindEdge,
		[]col{{"src", prims.Int64}, {"dst", prims.Int64}, {"time", prims.Float64}},
		`[{"src":1,"dst":2,"time":1.7e12}]`,
		event.BadTime,
		"out of range",
	},
	{
		"class -1",
		event.KindLabel,
		[]col{{"vertex", prims.Int64}, {"class", prims.Int64}},
		`[{"vertex":1,"class":-1}]`,
		event.UnknownClass,
		"class -1",
	},
	{
		"class 2",
		event.KindLabel,
		[]col{{"vertex", prims.Int64}, {"class", prims.Uint8}},
		`[{"vertex":1,"class":2}]`,
		event.UnknownClass,
		"class 2",
	},
	{
		"class name",
		event.KindLabel,
		[]col{{"vertex", prims.Int64}, {"class", texts.String}},
		`[{"vertex":1,"class":"up"}]`,
		event.UnknownClass,
		`class "up"`,
	},
	{
		"role",
		event.KindLabel,
		[]col{{"vertex", prims.Int64}, {"class", prims.Int8}, {"role", texts.String}},
		`[{"vertex":1,"class":1,"role":"x"}]`,
		event.BadValue,
		`role "x"`,
	},
	{
		"audit without pi",
		event.KindLabel,
		[]col{{"vertex", prims.Int64}, {"class", prims.Int8}, {"role", texts.String}},
		`[{"vertex":1,"class":1,"role":"audit"}]`,
		event.MissingField,
		"pi, the probability",
	},
	{
		"pi NaN",
		event.KindLabel,
		[]col{
			{"vertex", prims.Int64},
			{"class", prims.Int8},
			{"role", texts.String},
			{"pi", prims.Float64},
		},
		`[{"vertex":1,"class":1,"role":"audit","pi":2}]`,
		event.BadValue,
		"pi 2 must be",
	},
	{
		"half a row",
		event.KindPrediction,
		[]col{{"vertex", prims.Int64}, {"p0", prims.Float32}, {"p1", prims.Float32}},
		`[{"vertex":1,"p0":1}]`,
		event.MissingField,
		"some of its probabilities",
	},
	{
		"half a list",
		event.KindPrediction,
		[]col{{"vertex", prims.Int64}, {"p", arrow.FixedSizeListOf(2, prims.Float64)}},
		`[{"vertex":1,"p":[1,null]}]`,
		event.MissingField,
		"some of its probabilities",
	},
	{
		"no row",
		event.KindPrediction,
		[]col{{"vertex", prims.Int64}, {"p0", prims.Float32}, {"p1", prims.Float32}},
		`[{"vertex":1}]`,
		event.MissingField,
		"probabilities or class",
	},
	{
		"both",
		event.KindPrediction,
		[]col{
			{"vertex", prims.Int64},
			{"p0", prims.Float32},
			{"p1", prims.Float32},
			{"class", prims.Int8},
		},
		`[{"vertex":1,"p0":1,"p1":0,"class":1}]`,
		event.BadValue,
		"exclude",
	},
	{
		"negative",
		event.KindPrediction,
		[]col{{"vertex", prims.Int64}, {"p0", prims.Float32}, {"p1", prims.Float32}},
		`[{"vertex":1,"p0":1.5,"p1":-0.5}]`,
		event.NotNormal,
		"class 1 is -0.5",
	},
	{
		"sum 2",
		event.KindPrediction,
		[]col{{"vertex", prims.Int64}, {"p0", prims.Float32}, {"p1", prims.Float32}},
		`[{"vertex":1,"p0":1,"p1":1}]`,
		event.NotNormal,
		"sum to 2",
	},
	{
		"empty version",
		event.KindPrediction,
		[]col{{"vertex", prims.Int64}, {"class", prims.Int8}, {"version", texts.String}},
		`[{"vertex":1,"class":1,"version":""}]`,
		event.BadID,
		"version is empty",
	},
	{
		"multiplicity -1",
		event.KindMember,
		[]col{{"vertex", prims.Int64}, {"community", texts.String}, {"multiplicity", prims.Int8}},
		`[{"vertex":1,"community":"a","multiplicity":-1}]`,
		event.BadValue,
		"multiplicity",
	},
	{
		"multiplicity 2^32",
		event.KindMember,
		[]col{{"vertex", prims.Int64}, {"community", texts.String}, {"multiplicity", prims.Int64}},
		`[{"vertex":1,"community":"a","multiplicity":4294967296}]`,
		event.BadValue,
		"multiplicity",
	},
	{
		"null community",
		event.KindMember,
		[]col{{"vertex", prims.Int64}, {"community", texts.String}},
		`[{"vertex":1}]`,
		event.MissingField,
		"without community",
	},
	{
		"community -1",
		event.KindMember,
		[]col{{"vertex", prims.Int64}, {"community", prims.Int8}},
		`[{"vertex":1,"community":-1}]`,
		event.BadID,
		"community -1",
	},
	{
		"erase with attributes",
		event.KindVertex,
		[]col{{"vertex", prims.Int64}, {"a", prims.Int8}, {"erase", boolean}},
		`[{"vertex":1,"a":1,"erase":true}]`,
		event.BadValue,
		"exclude",
	},
	{
		"long attribute",
		event.KindVertex,
		[]col{{"vertex", prims.Int64}, {"a", texts.String}},
		`[{"vertex":1,"a":"` + strings.Repeat("x", 4097) + `"}]`,
		event.TooLarge,
		"at most 4096",
	},
	{
		"empty name",
		event.KindVertex,
		[]col{{"vertex", prims.Int64}, {"", texts.String}},
		`[{"vertex":1,"":"x"}]`,
		event.BadID,
		"attribute name is empty",
	},
	{
		"null op",
		event.KindControl,
		[]col{{"op", texts.String}},
		`[{}]`,
		event.MissingField,
		"without op",
	},
	{
		"config",
		event.KindControl,
		[]col{{"op", texts.String}, {"config", texts.String}},
		`[{"op":"configure","config":"{\"a\":1"}]`,
		event.BadValue,
		"config: ",
	},
	{
		"config list",
		event.KindControl,
		[]col{{"op", texts.String}, {"config", texts.String}},
		`[{"op":"configure","config":"[]"}]`,
		event.BadValue,
		"JSON object",
	},
	{
		"idle config",
		event.KindControl,
		[]col{{"op", texts.String}, {"config", texts.String}},
		`[{"op":"flush","config":"{}"}]`,
		event.BadValue,
		"only configure",
	},
}

// Events keep their number and their time over the batches and chunks of a stream,
// and rows that are refused come back as JSON that is refused again.
func TestArrowRowsAreRefusedAlone(t *testing.T) {
	for _, c := range badRows {
		t.Run(c.name, func(t *testing.T) {
			d := newDecoder(t, 2)
			payload := arrowStream(t, c.columns, nil, nil, c.rows, c.rows)
			var b event.Batch
			if err := d.Decode(Message{Kind: c.kind, Payload: payload, Position: 12},
				&b); err != nil {
				t.Fatal(err)
			}
			if len(b.Refused) != 2 || b.Events() != 0 {
				t.Fatalf("%d events, refused %+v", b.Events(), b.Refused)
			}
			for i, r := range b.Refused {
				if r.Index != i || r.Position != 12 || r.Reason != c.reason ||
					!strings.Contains(r.Detail, c.detail) {
					t.Errorf("refused %d as %s: %s", r.Index, r.Reason, r.Detail)
				}
				var again event.Batch
				if err := d.Decode(Message{Kind: c.kind, ContentType: JSON, Payload: r.Original},
					&again); err != nil {
					t.Fatalf("%s: %v", r.Original, err)
				}
				if len(again.Refused) != 1 {
					t.Errorf("%s is not refused again", r.Original)
				}
			}
		})
	}
}
