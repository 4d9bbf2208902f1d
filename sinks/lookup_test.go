package sinks

import (
	"fmt"
	"testing"

	"gqlstream/quant"
)

// The record in force at a place must be the newest that is not beyond it, of the
// method asked for, whatever other communities and logs have in the stream.
func TestRecordInForce(t *testing.T) {
	b := startBroker(t)
	write := func(sink *NATS, position uint64, community string) {
		var records []quant.Estimate
		for i, method := range []string{"auto", "pcc"} {
			records = append(records, quant.Estimate{
				Community: community, Position: position, Method: method,
				Prevalence: []float64{float64(position), float64(i)}, NEff: []float64{1, 1}, Flags: []string{},
			})
		}
		if err := sink.Write(b.ctx(), records); err != nil {
			t.Fatal(err)
		}
	}
	old, now := b.nats("old"), b.nats("now")
	for p := range uint64(7) {
		write(old, 500+p, "a")
	}
	for p := uint64(10); p <= 200; p += 10 {
		write(now, p, "a")
		if p%30 == 0 {
			write(now, p+1, "b")
		}
	}
	for _, c := range []struct {
		community, method string
		at, want          uint64 // want 0: none
	}{
		{"a", "auto", 9, 0},
		{"a", "auto", 10, 10},
		{"a", "pcc", 19, 10},
		{"a", "pcc", 20, 20},
		{"a", "auto", 1 << 40, 200},
		{"a", "cc", 100, 0},
		{"b", "pcc", 30, 0},
		{"b", "pcc", 95, 91},
		{"c", "auto", 100, 0},
	} {
		t.Run(fmt.Sprintf("%s %s %d", c.community, c.method, c.at), func(t *testing.T) {
			got, ok, err := InForce(b.ctx(), b.js, NATSConfig{Log: "now"}, c.community, c.method,
				func(e *quant.Estimate) bool { return e.Position <= c.at })
			if err != nil || ok != (c.want > 0) || got.Position != c.want || ok && got.Method != c.method {
				t.Fatalf("got %d by %q, %v, %v; want %d", got.Position, got.Method, ok, err, c.want)
			}
		})
	}
	if _, ok, err := InForce(b.ctx(), b.js, NATSConfig{Stream: "NONE"}, "a", "auto",
		func(*quant.Estimate) bool { return true }); ok || err != nil {
		t.Fatalf("without a stream: %v, %v", ok, err)
	}
}
