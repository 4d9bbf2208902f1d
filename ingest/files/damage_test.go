//go:build unix

package files

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gqlstream/ingest/event"
)

// damage changes a file in up to three places: bits, bytes, lengths, parts that are cut out,
// doubled or exchanged, and a lost end. Half of the places lie in the last kilobyte, where a
// footer is.
func damage(r *rand.Rand, whole []byte) []byte {
	data := bytes.Clone(whole)
	for range 1 + r.IntN(3) {
		if len(data) < 16 {
			return data
		}
		at := r.IntN(len(data) - 8)
		if last := len(data) - 1024; last > 0 && r.IntN(2) == 0 {
			at = last + r.IntN(1016)
		}
		n := min(1+r.IntN(64), len(data)-at)
		switch r.IntN(9) {
		case 0:
			data[at] ^= 1 << r.IntN(8)
		case 1:
			data[at] = byte(r.Uint32())
		case 2: // a length or an offset
			binary.LittleEndian.PutUint32(data[at:], 1<<r.IntN(32)-uint32(r.IntN(2)))
		case 3:
			binary.LittleEndian.PutUint64(data[at:], 1<<r.IntN(64)-uint64(r.IntN(2)))
		case 4: // a varint of Parquet
			copy(data[at:], binary.AppendUvarint(nil, 1<<r.IntN(40)))
		case 5:
			clear(data[at : at+n])
		case 6:
			data = append(data[:at:at], data[at+n:]...)
		case 7:
			other := r.IntN(len(data) - n + 1)
			copy(data[at:at+n], bytes.Clone(data[other:other+n]))
		case 8:
			data = data[:at]
		}
	}
	return data
}

// processorTime returns the time that processors have worked for this process.
func processorTime(tb testing.TB) time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// keep copies a damaged file to where it outlives the test.
func keep(t *testing.T, path, name string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.CreateTemp("", "*-"+name)
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	if _, err := kept.Write(data); err != nil {
		t.Fatal(err)
	}
	return kept.Name()
}

// slowest is more processor time than reading or refusing a damaged file of this test may take.
const slowest = 2 * time.Second

// damageTable is a whole file that a campaign damages, as edges of CSV and NDJSON or as a file of
// another program.
type damageTable struct {
	name string
	data []byte
	rows int
}

// damageTables returns the tables of a folder, and each of them as CSV and as NDJSON.
func damageTables(t *testing.T, folder string) (all []damageTable) {
	for _, f := range programFiles(t, folder) {
		data, err := os.ReadFile(filepath.Join(folder, f.File))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, damageTable{f.File, data, f.Rows})
		var rows, objects bytes.Buffer
		table, lines := csv.NewWriter(&rows), json.NewEncoder(&objects)
		for _, e := range f.Edges {
			at := e[3].(json.Number).String()
			src, dst, weight := e[0].(string), e[1].(string), e[2].(json.Number)
			if table.Write([]string{src, dst, weight.String(), at}) != nil ||
				lines.Encode(
					map[string]any{"src": src, "dst": dst, "weight": weight, "time": at},
				) != nil {
				t.Fatal(f.File)
			}
		}
		table.Flush()
		all = append(all, damageTable{f.File + ".csv", rows.Bytes(), len(f.Edges)},
			damageTable{f.File + ".ndjson", objects.Bytes(), len(f.Edges)})
	}
	return all
}

// damagedRows returns how many rows a damaged table has, or -1 where the damage can change it.
func (d *damageTable) damagedRows(data []byte) int {
	switch filepath.Ext(d.name) {
	case ".ndjson":
		return lines(data)
	case ".csv":
		if bytes.ContainsAny(data, "\"\r#%=;\t|") {
			return -1 // a line may be no row then
		}
		return lines(data)
	}
	return d.rows
}

// damageConfig reads a damaged table, as edges or as vertices.
func damageConfig(path string, kind event.Kind) Config {
	config := Config{
		Inputs: []Input{{Path: path, Kind: kind}}, Zone: time.UTC, Columns: map[string]string{},
	}
	if filepath.Ext(path) == ".csv" {
		config.Header = []string{"src,dst,weight,time", "vertices=vertex,dst,weight,time"}
	}
	if kind == event.KindVertex && config.Header == nil {
		config.Columns = map[string]string{"src": "vertex"}
	}
	return config
}

// hasNoEnd reports whether a warning says that rows of a stream may be missing.
func hasNoEnd(config Config) bool {
	source, err := NewSource(config)
	if err != nil {
		return false
	}
	defer source.Close()
	return strings.Contains(strings.Join(source.Warnings(), "\n"), "no mark of its end")
}

// A damaged table is an error, or is read with other values: without a panic, with every row
// accounted for, and soon. $GQLSTREAM_FILES_FOR is the processor time of a campaign.
func TestDamagedFilesOfOtherPrograms(t *testing.T) {
	const seed = 11
	seeds, last := uint64(1), time.Duration(0)
	if text := os.Getenv("GQLSTREAM_FILES_FOR"); text != "" {
		var err error
		if last, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
		seeds, _ = strconv.ParseUint(os.Getenv("GQLSTREAM_FILES_SEED"), 10, 64)
	}
	began, tries, refused := processorTime(t), map[string]int{}, map[string]int{}
	used := map[string]time.Duration{}
	dir := t.TempDir()
	var tables []damageTable
	for _, folder := range programFolders() {
		tables = append(tables, damageTables(t, folder)...)
	}
	for round := uint64(0); round == 0 || processorTime(t)-began < last; round++ {
		r := rand.New(rand.NewPCG(seed+seeds, round))
		for _, f := range tables {
			form := filepath.Ext(f.name)
			path, data := filepath.Join(dir, "x"+form), damage(r, f.data)
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			kind := []event.Kind{event.KindEdge, event.KindEdge, event.KindVertex}[r.IntN(3)]
			before := processorTime(t)
			rows, _, _, err := account(t, path, damageConfig(path, kind))
			tries[form]++
			if err != nil {
				refused[form]++
			} else if want := f.damagedRows(data); want >= 0 && rows != want &&
				rows > 0 && !(rows < want && hasNoEnd(damageConfig(path, kind))) {
				// a file without rows has a warning
				t.Errorf("seed %d round %d %s: %d rows are read of %d; see %s",
					seeds, round, f.name, rows, want, keep(t, path, f.name))
			}
			took := processorTime(t) - before
			if used[form] += took; took > slowest {
				t.Errorf("seed %d round %d %s: %v of processor time, %v; see %s",
					seeds, round, f.name, took, err, keep(t, path, f.name))
			}
		}
	}
	for form, n := range tries {
		t.Logf("%s: %d tries in %v of processor time, %d refused", form, n,
			used[form].Round(time.Millisecond), refused[form])
		if text := form == ".csv" || form == ".ndjson"; !text && refused[form]*5 < n {
			t.Errorf("seed %d: %d of %d damaged files of %s are errors, want more than a fifth",
				seeds, refused[form], n, form)
		}
	}
}
