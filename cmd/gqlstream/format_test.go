package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/cespare/xxhash/v2"
	"github.com/google/go-cmp/cmp"

	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/incremental/classifier"
	"gqlstream/ingest/event"
	"gqlstream/internal/checkpoint"
	"gqlstream/internal/testfile"
	"gqlstream/lab/simulate"
	"gqlstream/pipeline/config"
	"gqlstream/quant"
)

var update = flag.Bool("update", false, "write the expected texts of checkpoints")

// formats are the directories of testdata that have a backup of each format of checkpoints, made by
// the first release that wrote it. A new format adds one, and none is ever removed.
var formats = []string{"format28"}

// coreTables are the tables that every later release reads; see docs/checkpoints.md.
var coreTables = func() (names []string) {
	for _, t := range graphstore.Tables() {
		names = append(names, string(t)+".arrow")
	}
	return append(names, "pairs.arrow", "judged.arrow", "core.arrow")
}()

// oldState is a pipeline that was restored from the backup of an earlier release.
type oldState struct{ folder, config, dir string }

// restoreFormat restores the backup of an earlier release. Its log was purged.
func restoreFormat(t *testing.T, format string) oldState {
	t.Helper()
	o := oldState{
		folder: filepath.Join("testdata", format),
		dir:    filepath.Join(t.TempDir(), "state"),
	}
	o.config = filepath.Join(o.folder, "gqlstream.yaml")
	file, err := os.Open(filepath.Join(o.folder, "backup.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	for archive := tar.NewReader(packed); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, h.Name)
		if h.Typeflag == tar.TypeDir {
			err = os.MkdirAll(path, 0o700)
		} else if data, e := io.ReadAll(archive); e != nil {
			err = e
		} else {
			err = os.WriteFile(path, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	mustRun(t, "restore", "--config", o.config, "--state", o.dir, filepath.Join(root, "backup"))
	return o
}

// checkpoints returns the directory of checkpoints, and the positions in it.
func (o oldState) checkpoints(t *testing.T) (*checkpoint.Dir, []uint64) {
	t.Helper()
	dir, err := checkpoint.Open(checkpoint.Disk{}, filepath.Join(o.dir, "checkpoints"))
	if err != nil {
		t.Fatal(err)
	}
	positions, err := dir.List()
	if err != nil || len(positions) == 0 {
		t.Fatalf("no checkpoints: %v", err)
	}
	return dir, positions
}

// rewrite gives every checkpoint another version of derived tables, with columns that nobody reads.
func (o oldState) rewrite(t *testing.T, derived int) {
	t.Helper()
	dir, positions := o.checkpoints(t)
	slices.Reverse(positions) // a Save removes those at later positions
	var read []*checkpoint.Checkpoint
	for _, p := range positions {
		c, err := dir.Read(p)
		if err != nil {
			t.Fatal(err)
		}
		read = append(read, c)
	}
	for _, c := range read {
		next := checkpoint.New(c.Manifest)
		next.Manifest.Derived = derived
		for _, s := range c.Manifest.Sections {
			data := c.Sections[s.Name]
			if !slices.Contains(coreTables, s.Name) {
				data = []byte("columns of another release")
			}
			next.Add(s.Name, data)
		}
		if _, err := dir.Save(next); err != nil {
			t.Fatal(err)
		}
	}
}

// A checkpoint of every earlier format is read without its log, which was purged: with the derived
// tables if they are those of this release, and else from the core tables alone, and the run says
// so.
func TestCheckpointsOfEarlierReleasesAreRead(t *testing.T) {
	for _, format := range formats {
		for _, other := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, other derived tables %v", format, other), func(t *testing.T) {
				o := restoreFormat(t, format)
				dir, positions := o.checkpoints(t)
				m, err := dir.Verify(positions[0])
				if err != nil {
					t.Fatal(err)
				}
				want := other || m.Derived != checkpoint.Derived
				if other {
					o.rewrite(t, checkpoint.Derived+1)
				}
				output := filepath.Join(t.TempDir(), "estimates.ndjson")
				mustRun(t, "publish", "--config", o.config, "--state", o.dir,
					"--log", filepath.Join(o.folder, "later.ndjson"))
				run := []string{
					"run",
					"--config",
					o.config,
					"--state",
					o.dir,
					"--exit-when-drained",
				}
				_, said := mustRun(t, append(run, "--output", output)...)
				if strings.Contains(said, "damaged") {
					t.Errorf("an intact checkpoint is called damaged:\n%s", said)
				}
				if anew := strings.Contains(said,
					"everything else is computed again"); anew != want {
					t.Errorf("computed again: %v, want %v\n%s", anew, want, said)
				}
				text, err := os.ReadFile(output)
				if err != nil {
					t.Fatal(err)
				}
				for _, community := range []string{
					"everyone", "german", "busy", "around v1",
					"berlin",
				} {
					name := fmt.Sprintf("\"community\":%q", community)
					if tail := lastRecords(string(text), 60); !strings.Contains(tail, name) {
						t.Errorf("no estimate of %s after the upgrade", community)
					}
				}
				if _, said = mustRun(t, run...); strings.Contains(said, "computed again") {
					t.Errorf("the next start computes everything once more\n%s", said)
				}
				mustRun(t, "scrub", "--config", o.config, "--state", o.dir)
			})
		}
	}
}

// lastRecords returns the last lines of a text.
func lastRecords(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// The core tables of every earlier format keep their contents, column by column, when this release
// reads them and writes them again.
func TestCoreTablesOfEarlierReleasesHold(t *testing.T) {
	for _, format := range formats {
		o := restoreFormat(t, format)
		dir, positions := o.checkpoints(t)
		c, err := dir.Read(positions[0])
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(o.folder, "tables.txt")
		if *update {
			testfile.Write(t, path, describe(t, c.Sections))
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got := describe(t, writtenAgain(t, o.config, c.Sections))
		for line := range strings.Lines(string(want)) {
			if !strings.Contains(got, line) && !strings.HasPrefix(line, "core.arrow engine ") {
				t.Errorf("%s: written again, the tables lack: %s", format, line)
			}
		}
	}
}

// writtenAgain reads core tables and writes them as this release does.
func writtenAgain(t *testing.T, path string, sections map[string][]byte) map[string][]byte {
	t.Helper()
	settings, err := config.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	conf, err := settings.Core()
	if err != nil {
		t.Fatal(err)
	}
	core, err := incremental.RestoreTables(conf, sections, false)
	if err != nil {
		t.Fatal(err)
	}
	defer core.Close()
	again, err := core.Sections()
	if err != nil {
		t.Fatal(err)
	}
	written := map[string][]byte{}
	for _, s := range again {
		written[s.Name] = s.Data
	}
	return written
}

// describe returns a line for each column of the core tables: its type, and the digest of its
// values.
func describe(t *testing.T, sections map[string][]byte) string {
	t.Helper()
	var text strings.Builder
	for _, name := range coreTables {
		describeTable(t, &text, name, sections[name])
	}
	return text.String()
}

func describeTable(t *testing.T, w io.Writer, name string, data []byte) {
	t.Helper()
	file, err := ipc.NewFileReader(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	defer file.Close()
	rows := int64(0)
	sums := make([]*xxhash.Digest, len(file.Schema().Fields()))
	for i := range sums {
		sums[i] = xxhash.New()
	}
	for i := range file.NumRecords() {
		record, err := file.RecordAt(i)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		rows += record.NumRows()
		for j, column := range record.Columns() {
			writeValues(sums[j], column)
		}
		record.Release()
	}
	for i, f := range file.Schema().Fields() {
		fmt.Fprintf(w, "%s %s %v, %d rows: %016x\n", name, f.Name, f.Type, rows, sums[i].Sum64())
	}
}

func writeValues(w io.Writer, column arrow.Array) {
	for i := range column.Len() {
		fmt.Fprintln(w, column.ValueStr(i))
	}
}

// testdata/columns.txt lists the columns of all tables of this version. After a change of a
// core table, raise checkpoint.Format, add a column with the tag added, and a backup to
// formats. After a change of a derived table, raise checkpoint.Derived. Then write the file
// with -update.
func TestColumnsHaveAVersion(t *testing.T) {
	columns := map[string]bool{}
	for _, engine := range []string{incremental.EnginePrimal, incremental.EngineDual} {
		methods := []quant.Options{{Method: quant.Auto}}
		if engine == incremental.EnginePrimal {
			methods = append(methods, quant.Options{Method: quant.SIS})
		}
		network, err := simulate.New(simulate.DefaultConfig())
		if err != nil {
			t.Fatal(err)
		}
		core, err := incremental.New(incremental.Config{
			Classes: 2, Estimates: methods, Engine: engine, Classifier: classifier.Name,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer core.Close()
		var batch event.Batch
		for range 5 {
			if err := network.Next(t.Context(), &batch); err != nil {
				t.Fatal(err)
			}
			batch.Emit, batch.EmitAll, batch.Checkpoint = true, true, true
			core.Step(&batch)
		}
		sections, err := core.Sections()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sections {
			addColumns(t, columns, s)
		}
	}
	got := fmt.Sprintf("format %d, derived %d\n%s", checkpoint.Format, checkpoint.Derived,
		strings.Join(slices.Sorted(maps.Keys(columns)), ""))
	path := filepath.Join("testdata", "columns.txt")
	was, err := os.ReadFile(path)
	head, _, _ := strings.Cut(string(was), "\n")
	if *update && (err != nil || !strings.HasPrefix(got, head)) {
		err = os.WriteFile(path, []byte(got), 0o600)
		was = []byte(got)
	}
	if err != nil || got != string(was) {
		t.Errorf("%v: the columns of a table have changed; the comment of this test says what to "+
			"raise\n%s", err, cmp.Diff(string(was), got))
	}
}

// addColumns adds the columns of a section, with their types.
func addColumns(t *testing.T, columns map[string]bool, s incremental.Section) {
	t.Helper()
	file, err := ipc.NewFileReader(bytes.NewReader(s.Data))
	if err != nil {
		t.Fatalf("%s: %v", s.Name, err)
	}
	defer file.Close()
	kind := "derived"
	if slices.Contains(coreTables, s.Name) {
		kind = "core"
	}
	for _, f := range file.Schema().Fields() {
		columns[fmt.Sprintf("%s %s %s %v\n", kind, s.Name, f.Name, f.Type)] = true
	}
}
