//go:build unix

package files

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"gqlstream/ingest/event"
	"gqlstream/internal/testfile"
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

// damageTable is a whole file that a campaign damages: a file of another program, or its edges as
// CSV, NDJSON or JSON.
type damageTable struct {
	name string
	data []byte
	rows int
}

// damageTables returns the tables of a folder, and each of them as CSV, as NDJSON, as a JSON array,
// and as objects of several lines whose edges are objects inside.
func damageTables(t *testing.T, folder string) (all []damageTable) {
	for _, f := range programFiles(t, folder) {
		data, err := os.ReadFile(filepath.Join(folder, f.File))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, damageTable{f.File, data, f.Rows})
		var rows, objects, nested bytes.Buffer
		table, lines := csv.NewWriter(&rows), json.NewEncoder(&objects)
		list, inside := []any{}, json.NewEncoder(&nested)
		inside.SetIndent("", " ")
		for _, e := range f.Edges {
			at := e[3].(json.Number).String()
			src, dst, weight := e[0].(string), e[1].(string), e[2].(json.Number)
			edge := map[string]any{"src": src, "dst": dst, "weight": weight, "time": at}
			list = append(list, edge)
			if table.Write([]string{src, dst, weight.String(), at}) != nil ||
				lines.Encode(edge) != nil || inside.Encode(map[string]any{"edge": edge}) != nil {
				t.Fatal(f.File)
			}
		}
		table.Flush()
		array, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		n := len(f.Edges)
		all = append(all, damageTable{f.File + ".csv", rows.Bytes(), n},
			damageTable{f.File + ".ndjson", objects.Bytes(), n},
			damageTable{f.File + ".array.json", array, n},
			damageTable{f.File + ".nested.json", nested.Bytes(), n})
	}
	return all
}

// jsonValuesIn returns how many rows a JSON text has, or -1 if it is not sound. Numbers and texts
// must have a space between them.
func jsonValuesIn(data []byte) (n int) {
	d := json.NewDecoder(bytes.NewReader(data))
	for {
		var value json.RawMessage
		if err := d.Decode(&value); err == io.EOF {
			return n
		} else if err != nil {
			return -1
		}
		var list []json.RawMessage
		if n == 0 && json.Unmarshal(value, &list) == nil && list != nil {
			if d.More() {
				return -1
			}
			return len(list)
		}
		at := d.InputOffset()
		if last := data[at-1]; last != '}' && last != ']' && at < int64(len(data)) &&
			bytes.IndexByte([]byte(" \t\r\n"), data[at]) < 0 {
			return -1
		}
		n++
	}
}

// damagedRows returns how many rows a damaged table has, or -1 where the damage can change it.
func (d *damageTable) damagedRows(data []byte) int {
	switch filepath.Ext(d.name) {
	case ".json":
		return jsonValuesIn(data)
	case ".ndjson":
		return ndjsonRows(data)
	case ".csv":
		if bytes.ContainsAny(data, "\"\r#%=;\t|") {
			return -1 // a line may be no row then
		}
		return lines(data)
	}
	return d.rows
}

// ndjsonRows returns how many rows a file of objects has, one a line. If the first line has
// several, objects may share lines in the whole file; elsewhere such a line is one row that is
// refused.
func ndjsonRows(data []byte) int {
	first, _, _ := bytes.Cut(bytes.TrimLeft(data, "\r\n"), []byte("\n"))
	if jsonValuesIn(first) > 1 {
		return jsonValuesIn(data)
	}
	return lines(data)
}

// damageConfig reads a damaged table, as edges or as vertices.
func damageConfig(path string, kind event.Kind) Config {
	config := Config{
		Inputs: []Input{{Path: path, Kind: kind}}, Zone: time.UTC, Columns: map[string]string{},
	}
	if filepath.Ext(path) == ".csv" {
		config.Header = []string{"src,dst,weight,time", "vertices=vertex,dst,weight,time"}
	}
	from := ""
	if strings.HasSuffix(path, ".nested.json") {
		from = "edge."
		config.Columns = map[string]string{
			"edge.src": "src", "edge.dst": "dst", "edge.weight": "weight", "edge.time": "time",
		}
	}
	if kind == event.KindVertex && config.Header == nil {
		config.Columns = map[string]string{from + "src": "vertex"}
	}
	return config
}

// formOfDamage returns what a table is damaged as: its extension, and for JSON the form before it.
func formOfDamage(name string) string {
	form := filepath.Ext(name)
	if form == ".json" {
		form = filepath.Ext(strings.TrimSuffix(name, form)) + form
	}
	return form
}

func isDocument(form string) bool { return strings.HasSuffix(form, ".json") }

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
			form := formOfDamage(f.name)
			path, data := filepath.Join(dir, "x"+form), damage(r, f.data)
			testfile.Write(t, path, data)
			kind := []event.Kind{event.KindEdge, event.KindEdge, event.KindVertex}[r.IntN(3)]
			before := processorTime(t)
			rows, _, wrong, err := account(t, path, damageConfig(path, kind))
			tries[form]++
			want := f.damagedRows(data)
			switch {
			case err != nil:
				refused[form]++
			case rows == 0: // has a warning
			case isDocument(form) && want < 0 && wrong == 0:
				t.Errorf("seed %d round %d %s: it is no JSON, and its %d rows are read; see %s",
					seeds, round, f.name, rows, keep(t, path, f.name))
			case want < 0 || rows == want ||
				rows < want && hasNoEnd(damageConfig(path, kind)):
			default:
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
		text := form == ".csv" || form == ".ndjson" || isDocument(form)
		if !text && refused[form]*5 < n {
			t.Errorf("seed %d: %d of %d damaged files of %s are errors, want more than a fifth",
				seeds, refused[form], n, form)
		}
	}
}
