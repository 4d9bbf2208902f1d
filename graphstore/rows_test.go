package graphstore

import (
	"bytes"
	"testing"

	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/google/go-cmp/cmp"

	"gqlstream/ingest/event"
)

type testRow struct {
	Name  string
	At    event.Position
	Time  event.Time
	Kind  uint32
	Value float64
	Data  []byte
	List  []uint32
	InnerRow
}

// InnerRow is embedded, as a struct of another package would be.
type InnerRow struct {
	Share []float64
	Solid bool
}

// Rows of every kind of column must come back, and any Arrow reader must see the same rows.
func TestRowsRoundTrip(t *testing.T) {
	for _, n := range []int{0, 1, 3, chunkRowsMax + 5} {
		rows := make([]testRow, n)
		for i := range rows {
			rows[i] = testRow{
				Name: string(
					rune('a' + i%26),
				), At: event.Position(1 << 60), Time: event.Time(-i), Kind: uint32(i),
				Value: -1 / float64(i+1), InnerRow: InnerRow{Solid: i%2 == 0},
			}
			if i%3 == 1 {
				rows[i].Data, rows[i].List, rows[i].Share = []byte{
					0,
					255,
				}, []uint32{
					7,
				}, []float64{
					0.5,
					1,
				}
			}
		}
		data, err := EncodeRows(rows)
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadRows[testRow](data)
		if diff := cmp.Diff(rows, append([]testRow{}, got...)); err != nil || diff != "" {
			t.Fatalf("%d rows: %v\n%s", n, err, diff)
		}
		if _, err := ReadRows[InnerRow](data); err == nil {
			t.Error("rows of another struct were read")
		}
		file, err := ipc.NewFileReader(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if got := file.Schema().Field(8).Name; got != "solid" {
			t.Errorf("column 8 is %q", got)
		}
		file.Close()
	}
}

// A release reads the tables of earlier ones: a column that it has added is zero there. Every other
// difference is an error.
func TestTablesOfEarlierReleasesAreRead(t *testing.T) {
	type before struct {
		Name string
		Kind uint32
	}
	type after struct {
		Name  string
		Extra nullable[float64] `added:"29"`
		Kind  uint32
		More  []uint32 `added:"30"`
	}
	type other struct {
		Name  string
		Extra float64
		Kind  uint32
	}
	data, err := EncodeRows([]before{{"a", 3}, {"b", 4}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadRows[after](data)
	want := []after{{Name: "a", Kind: 3}, {Name: "b", Kind: 4}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if _, err := ReadRows[other](data); err == nil {
		t.Error("a table without a column that every release has was read")
	}
	if data, err = EncodeRows([]after{{Name: "a"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadRows[before](data); err == nil {
		t.Error("a table with a column that this release does not know was read")
	}
}
