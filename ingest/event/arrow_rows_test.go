package event

import (
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
)

// badRows are tables of one row that is refused.
var badRows = []struct {
	name    string
	kind    Kind
	columns []col
	rows    string
	reason  Reason
	detail  string
}{
	{"null src", KindEdge, []col{{"src", prims.Uint64}, {"dst", prims.Uint64}}, `[{"dst":1}]`, MissingField, "edge event without src"},
	{"null text", KindEdge, []col{{"src", prims.Uint64}, {"dst", texts.String}}, `[{"src":1}]`, MissingField, "edge event without dst"},
	{"null category", KindEdge, []col{{"src", prims.Uint64}, {"dst", textDictionary(prims.Int8)}}, `[{"src":1}]`, MissingField, "edge event without dst"},
	{"only nulls", KindEdge, []col{{"src", prims.Uint64}, {"dst", arrow.Null}}, `[{"src":1}]`, MissingField, "edge event without dst"},
	{"negative id", KindEdge, []col{{"src", prims.Int64}, {"dst", prims.Int64}}, `[{"src":-5,"dst":1}]`, BadID, "vertex id -5 is negative"},
	{"smallest id", KindEdge, []col{{"src", prims.Int64}, {"dst", prims.Int64}}, `[{"src":-9223372036854775808,"dst":1}]`, BadID, "-9223372036854775808"},
	{"empty id", KindEdge, []col{{"src", texts.String}, {"dst", prims.Int64}}, `[{"src":"","dst":1}]`, BadID, "vertex id is empty"},
	{"long id", KindEdge, []col{{"src", texts.StringView}, {"dst", prims.Int64}}, `[{"src":"` + strings.Repeat("x", 257) + `","dst":1}]`, BadID, "longer than 256"},
	{"self-loop", KindEdge, []col{{"src", texts.String}, {"dst", prims.Int64}}, `[{"src":"1","dst":1}]`, SelfLoop, "itself"},
	{"weight 0", KindEdge, []col{{"src", prims.Int64}, {"dst", prims.Int64}, {"weight", prims.Float32}}, `[{"src":1,"dst":2,"weight":0}]`, BadWeight, "weight 0"},
	{"op 2", KindEdge, []col{{"src", prims.Int64}, {"dst", prims.Int64}, {"op", prims.Uint8}}, `[{"src":1,"dst":2,"op":2}]`, BadValue, "0 or 1"},
	{"op text", KindEdge, []col{{"src", prims.Int64}, {"dst", prims.Int64}, {"op", texts.String}}, `[{"src":1,"dst":2,"op":"Add"}]`, BadValue, `op "Add"`},
	{"ttl -1", KindEdge, []col{{"src", prims.Int64}, {"dst", prims.Int64}, {"ttl", prims.Float64}}, `[{"src":1,"dst":2,"ttl":-1}]`, BadValue, "ttl -1s"},
	{"ttl 1e300", KindEdge, []col{{"src", prims.Int64}, {"dst", prims.Int64}, {"ttl", prims.Float64}}, `[{"src":1,"dst":2,"ttl":1e300}]`, BadValue, "ttl of 1e+300"},
	{"label's ttl", KindLabel, []col{{"vertex", prims.Int64}, {"class", prims.Int8}, {"ttl", texts.String}}, `[{"vertex":1,"class":1,"ttl":"-3s"}]`, BadValue, "ttl -3s"},
	{"prediction's ttl", KindPrediction, []col{{"vertex", prims.Int64}, {"class", prims.Int8}, {"ttl", prims.Int64}}, `[{"vertex":1,"class":1,"ttl":0}]`, BadValue, "ttl 0s"},
	{"time text", KindEdge, []col{{"src", prims.Int64}, {"dst", prims.Int64}, {"time", texts.String}}, `[{"src":1,"dst":2,"time":"x"}]`, BadTime, `"x" is neither`},
	{"time 1e15", KindEdge, []col{{"src", prims.Int64}, {"dst", prims.Int64}, {"time", prims.Int64}}, `[{"src":1,"dst":2,"time":1000000000000}]`, BadTime, "out of range"},
	{"time in ms", KindEdge, []col{{"src", prims.Int64}, {"dst", prims.Int64}, {"time", prims.Float64}}, `[{"src":1,"dst":2,"time":1.7e12}]`, BadTime, "out of range"},
	{"class -1", KindLabel, []col{{"vertex", prims.Int64}, {"class", prims.Int64}}, `[{"vertex":1,"class":-1}]`, UnknownClass, "class -1"},
	{"class 2", KindLabel, []col{{"vertex", prims.Int64}, {"class", prims.Uint8}}, `[{"vertex":1,"class":2}]`, UnknownClass, "class 2"},
	{"class name", KindLabel, []col{{"vertex", prims.Int64}, {"class", texts.String}}, `[{"vertex":1,"class":"up"}]`, UnknownClass, `class "up"`},
	{"role", KindLabel, []col{{"vertex", prims.Int64}, {"class", prims.Int8}, {"role", texts.String}}, `[{"vertex":1,"class":1,"role":"x"}]`, BadValue, `role "x"`},
	{"half a row", KindPrediction, []col{{"vertex", prims.Int64}, {"p0", prims.Float32}, {"p1", prims.Float32}}, `[{"vertex":1,"p0":1}]`, MissingField, "some of its probabilities"},
	{"half a list", KindPrediction, []col{{"vertex", prims.Int64}, {"p", arrow.FixedSizeListOf(2, prims.Float64)}}, `[{"vertex":1,"p":[1,null]}]`, MissingField, "some of its probabilities"},
	{"no row", KindPrediction, []col{{"vertex", prims.Int64}, {"p0", prims.Float32}, {"p1", prims.Float32}}, `[{"vertex":1}]`, MissingField, "probabilities or class"},
	{"both", KindPrediction, []col{{"vertex", prims.Int64}, {"p0", prims.Float32}, {"p1", prims.Float32}, {"class", prims.Int8}}, `[{"vertex":1,"p0":1,"p1":0,"class":1}]`, BadValue, "exclude"},
	{"negative", KindPrediction, []col{{"vertex", prims.Int64}, {"p0", prims.Float32}, {"p1", prims.Float32}}, `[{"vertex":1,"p0":1.5,"p1":-0.5}]`, NotNormal, "class 1 is -0.5"},
	{"sum 2", KindPrediction, []col{{"vertex", prims.Int64}, {"p0", prims.Float32}, {"p1", prims.Float32}}, `[{"vertex":1,"p0":1,"p1":1}]`, NotNormal, "sum to 2"},
	{"empty version", KindPrediction, []col{{"vertex", prims.Int64}, {"class", prims.Int8}, {"version", texts.String}}, `[{"vertex":1,"class":1,"version":""}]`, BadID, "version is empty"},
	{"multiplicity -1", KindMember, []col{{"vertex", prims.Int64}, {"community", texts.String}, {"multiplicity", prims.Int8}}, `[{"vertex":1,"community":"a","multiplicity":-1}]`, BadValue, "multiplicity"},
	{"multiplicity 2^32", KindMember, []col{{"vertex", prims.Int64}, {"community", texts.String}, {"multiplicity", prims.Int64}}, `[{"vertex":1,"community":"a","multiplicity":4294967296}]`, BadValue, "multiplicity"},
	{"null community", KindMember, []col{{"vertex", prims.Int64}, {"community", texts.String}}, `[{"vertex":1}]`, MissingField, "without community"},
	{"community -1", KindMember, []col{{"vertex", prims.Int64}, {"community", prims.Int8}}, `[{"vertex":1,"community":-1}]`, BadID, "community -1"},
	{"erase with attributes", KindVertex, []col{{"vertex", prims.Int64}, {"a", prims.Int8}, {"erase", boolean}}, `[{"vertex":1,"a":1,"erase":true}]`, BadValue, "exclude"},
	{"long attribute", KindVertex, []col{{"vertex", prims.Int64}, {"a", texts.String}}, `[{"vertex":1,"a":"` + strings.Repeat("x", 4097) + `"}]`, TooLarge, "at most 4096"},
	{"empty name", KindVertex, []col{{"vertex", prims.Int64}, {"", texts.String}}, `[{"vertex":1,"":"x"}]`, BadID, "attribute name is empty"},
	{"null op", KindControl, []col{{"op", texts.String}}, `[{}]`, MissingField, "without op"},
	{"config", KindControl, []col{{"op", texts.String}, {"config", texts.String}}, `[{"op":"configure","config":"{\"a\":1"}]`, BadValue, "config: "},
	{"config list", KindControl, []col{{"op", texts.String}, {"config", texts.String}}, `[{"op":"configure","config":"[]"}]`, BadValue, "JSON object"},
	{"idle config", KindControl, []col{{"op", texts.String}, {"config", texts.String}}, `[{"op":"flush","config":"{}"}]`, BadValue, "only configure"},
}

// Events keep their number and their time over the batches and chunks of a stream,
// and rows that are refused come back as JSON that is refused again.
func TestArrowRowsAreRefusedAlone(t *testing.T) {
	for _, c := range badRows {
		t.Run(c.name, func(t *testing.T) {
			d := newDecoder(t, 2)
			payload := arrowStream(t, c.columns, nil, nil, c.rows, c.rows)
			var b Batch
			if err := d.Decode(Message{Kind: c.kind, Payload: payload, Position: 12}, &b); err != nil {
				t.Fatal(err)
			}
			if len(b.Refused) != 2 || b.Events() != 0 {
				t.Fatalf("%d events, refused %+v", b.Events(), b.Refused)
			}
			for i, r := range b.Refused {
				if r.Index != i || r.Position != 12 || r.Reason != c.reason || !strings.Contains(r.Detail, c.detail) {
					t.Errorf("refused %d as %s: %s", r.Index, r.Reason, r.Detail)
				}
				var again Batch
				if err := d.Decode(Message{Kind: c.kind, ContentType: JSON, Payload: r.Original}, &again); err != nil {
					t.Fatalf("%s: %v", r.Original, err)
				}
				if len(again.Refused) != 1 {
					t.Errorf("%s is not refused again", r.Original)
				}
			}
		})
	}
}
