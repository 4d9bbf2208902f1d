package files

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"gqlstream/ingest/event"
)

// BenchmarkFileEdges reads edges from a file into steps and reports rows a second.
func BenchmarkFileEdges(b *testing.B) {
	const rows = 200_000
	r := rand.New(rand.NewPCG(1, 0))
	numbers := testTable{columns: []string{"src", "dst"}, types: []string{"int", "int"}}
	names := testTable{
		columns: []string{"src", "dst", "weight"},
		types:   []string{"text", "text", "float"},
	}
	timed := testTable{
		columns: []string{"src", "dst", "time"},
		types:   []string{"int", "int", "int"},
	}
	for i := range rows {
		u, v := int64(r.IntN(100_000)), int64(100_000+r.IntN(100_000))
		numbers.rows = append(numbers.rows, []any{u, v})
		names.rows = append(names.rows, []any{fmt.Sprint("user", u), fmt.Sprint("user", v), 0.5})
		timed.rows = append(timed.rows, []any{u, v, int64(1_700_000_000 + i/1000)})
	}
	for _, bench := range []struct {
		name, file string
		table      testTable
	}{
		{"csv", "e.csv", numbers},
		{"csv.gz", "e.csv.gz", numbers},
		{"csv.zst", "e.csv.zst", numbers},
		{"csv-names", "e.csv", names},
		{"csv-times", "e.csv", timed},
		{"ndjson", "e.ndjson", numbers},
		{"parquet", "e.parquet", numbers},
		{"parquet-names", "e.parquet", names},
		{"arrow", "e.arrow", numbers},
	} {
		b.Run(bench.name, func(b *testing.B) {
			bench.table.chunk = 1 << 16
			path := writeFile(b, bench.file, bench.table.encode(b, formatName(bench.file)))
			for b.Loop() {
				readRows(b, path, rows)
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

func formatName(file string) string {
	_, name, _ := bytes.Cut([]byte(file), []byte("."))
	name, _, _ = bytes.Cut(name, []byte("."))
	return string(name)
}

func readRows(b *testing.B, path string, want int) {
	source, err := NewSource(Config{Inputs: []Input{{Path: path, Kind: event.KindEdge}}})
	if err != nil {
		b.Fatal(err)
	}
	defer source.Close()
	var batch event.Batch
	got := 0
	for {
		err := source.Next(context.Background(), &batch)
		if err == io.EOF {
			break
		}
		if err != nil {
			b.Fatal(err)
		}
		got += len(batch.Edges)
	}
	if got != want {
		b.Fatalf("%d rows, want %d", got, want)
	}
}
