package wire

import (
	"bytes"
	"fmt"
	"testing"

	"gqlstream/ingest/event"
)

// benchEdges returns n edges with numeric ids, as a message of each form.
func benchEdges(b *testing.B, n int) (*event.Batch, []byte) {
	b.Helper()
	var batch event.Batch
	for i := range n {
		batch.Edges = append(batch.Edges, event.Edge{
			Src: event.NumberID(
				uint64(i * 7919 % 168000),
			), Dst: event.NumberID(uint64(168000 + i)), Weight: 1,
			Time: event.Time(1700000000+i) * 1e9,
		})
	}
	return &batch, bytes.Join(jsonEvents(event.KindEdge, &batch), []byte("\n"))
}

// benchDecode decodes one message of n events again and again.
func benchDecode(b *testing.B, k, n int, m Message) {
	b.Helper()
	d := newDecoder(b, k)
	var batch event.Batch
	b.ReportAllocs()
	b.SetBytes(int64(len(m.Payload)))
	for b.Loop() {
		batch.Reset()
		if err := d.Decode(m, &batch); err != nil || batch.Events() != n {
			b.Fatalf("%d events: %v", batch.Events(), err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/event")
}

func BenchmarkDecodeJSON(b *testing.B) {
	for _, c := range []struct {
		name, payload string
		kind          event.Kind
	}{
		{"edge", `{"src":123456,"dst":654321,"time":1700000000}`, event.KindEdge},
		{"edge-weight-op", `{"op":"add","src":123456,"dst":654321,"weight":2.5,` +
			`"time":1700000000.25}`, event.KindEdge},
		{"edge-text-rfc3339", `{"src":"user-123456","dst":"user-654321",` +
			`"time":"2024-01-02T03:04:05.123Z"}`, event.KindEdge},
		{"label", `{"vertex":123456,"class":1,"time":1700000000}`, event.KindLabel},
		{
			"prediction-k2", `{"vertex":123456,"probabilities":[0.8125,0.1875],"version":"m1"}`,
			event.KindPrediction,
		},
		{"member", `{"community":"news","vertex":123456}`, event.KindMember},
		{"vertex", `{"vertex":123456,"attributes":{"language":"de","age":31}}`, event.KindVertex},
	} {
		b.Run(c.name, func(b *testing.B) {
			benchDecode(
				b, 2, 1, Message{Kind: c.kind, ContentType: JSON, Payload: []byte(c.payload)},
			)
		})
	}
}

func BenchmarkDecodeNDJSON1024(b *testing.B) {
	_, lines := benchEdges(b, 1024)
	benchDecode(b, 2, 1024, Message{Kind: event.KindEdge, ContentType: NDJSON, Payload: lines})
}

func BenchmarkDecodeArrow(b *testing.B) {
	for _, n := range []int{64, 1024, 4096} {
		batch, _ := benchEdges(b, n)
		payload, err := EncodeArrow(event.KindEdge, batch, 0, n)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("edge-%d", n), func(b *testing.B) {
			benchDecode(
				b, 2, n, Message{Kind: event.KindEdge, ContentType: Arrow, Payload: payload},
			)
		})
	}
	const n = 4096
	for _, k := range []int{2, 10} {
		var batch event.Batch
		p := make([]float64, k)
		for i := range n {
			for j := range p {
				p[j] = float64(1+(i*31+j*17)%97) / 97
			}
			sum := 0.0
			for _, x := range p {
				sum += x
			}
			for j := range p {
				p[j] /= sum
			}
			units := batch.Units(k)
			if err := event.Quantise(units, p); err != nil {
				b.Fatal(err)
			}
			batch.Predictions = append(
				batch.Predictions,
				event.Prediction{Vertex: event.NumberID(uint64(i)), Units: units},
			)
		}
		payload, err := EncodeArrow(event.KindPrediction, &batch, 0, n)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("prediction-k%d-%d", k, n), func(b *testing.B) {
			benchDecode(
				b, k, n, Message{Kind: event.KindPrediction, ContentType: Arrow, Payload: payload},
			)
		})
	}
}

func BenchmarkEncodeArrow4096(b *testing.B) {
	batch, _ := benchEdges(b, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := EncodeArrow(event.KindEdge, batch, 0, 4096); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*4096), "ns/event")
}
