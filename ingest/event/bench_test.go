package event

import (
	"bytes"
	"fmt"
	"testing"
)

// benchEdges returns n edges with numeric ids, as a message of each form.
func benchEdges(b *testing.B, n int) (*Batch, []byte) {
	b.Helper()
	var batch Batch
	for i := range n {
		batch.Edges = append(batch.Edges, Edge{
			Src: NumberID(uint64(i * 7919 % 168000)), Dst: NumberID(uint64(168000 + i)), Weight: 1,
			Time: Time(1700000000+i) * 1e9,
		})
	}
	return &batch, bytes.Join(jsonEvents(KindEdge, &batch), []byte("\n"))
}

// benchDecode decodes one message of n events again and again.
func benchDecode(b *testing.B, k, n int, m Message) {
	b.Helper()
	d := newDecoder(b, k)
	var batch Batch
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
		kind          Kind
	}{
		{"edge", `{"src":123456,"dst":654321,"time":1700000000}`, KindEdge},
		{"edge-weight-op", `{"op":"add","src":123456,"dst":654321,"weight":2.5,"time":1700000000.25}`, KindEdge},
		{"edge-text-rfc3339", `{"src":"user-123456","dst":"user-654321","time":"2024-01-02T03:04:05.123Z"}`, KindEdge},
		{"label", `{"vertex":123456,"class":1,"time":1700000000}`, KindLabel},
		{"prediction-k2", `{"vertex":123456,"probabilities":[0.8125,0.1875],"version":"m1"}`, KindPrediction},
		{"member", `{"community":"news","vertex":123456}`, KindMember},
		{"vertex", `{"vertex":123456,"attributes":{"language":"de","age":31}}`, KindVertex},
	} {
		b.Run(c.name, func(b *testing.B) {
			benchDecode(b, 2, 1, Message{Kind: c.kind, ContentType: JSON, Payload: []byte(c.payload)})
		})
	}
}

func BenchmarkDecodeNDJSON1024(b *testing.B) {
	_, lines := benchEdges(b, 1024)
	benchDecode(b, 2, 1024, Message{Kind: KindEdge, ContentType: NDJSON, Payload: lines})
}

func BenchmarkDecodeArrow(b *testing.B) {
	for _, n := range []int{64, 1024, 4096} {
		batch, _ := benchEdges(b, n)
		payload, err := EncodeArrow(KindEdge, batch, 0, n)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("edge-%d", n), func(b *testing.B) {
			benchDecode(b, 2, n, Message{Kind: KindEdge, ContentType: Arrow, Payload: payload})
		})
	}
	const n = 4096
	for _, k := range []int{2, 10} {
		var batch Batch
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
			if err := Quantise(units, p); err != nil {
				b.Fatal(err)
			}
			batch.Predictions = append(batch.Predictions, Prediction{Vertex: NumberID(uint64(i)), Units: units})
		}
		payload, err := EncodeArrow(KindPrediction, &batch, 0, n)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("prediction-k%d-%d", k, n), func(b *testing.B) {
			benchDecode(b, k, n, Message{Kind: KindPrediction, ContentType: Arrow, Payload: payload})
		})
	}
}

func BenchmarkEncodeArrow4096(b *testing.B) {
	batch, _ := benchEdges(b, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := EncodeArrow(KindEdge, batch, 0, 4096); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*4096), "ns/event")
}

func BenchmarkQuantise(b *testing.B) {
	for _, k := range []int{2, 10, 100} {
		b.Run(fmt.Sprintf("k%d", k), func(b *testing.B) {
			p, units := make([]float64, k), make([]uint32, k)
			for i := range p {
				p[i] = float64(i+1) * 2 / float64(k*(k+1))
			}
			b.ReportAllocs()
			for b.Loop() {
				if err := Quantise(units, p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
