package sinks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gqlstream/quant"
)

// partsWorld is a log of emissions and what a run does after each.
type partsWorld struct {
	emissions [][]quant.Estimate
	saves     map[uint64]bool // a checkpoint is made after this position
	cuts      map[uint64]bool // the log asked for it
}

// newPartsWorld has emissions at uneven times, some of them far apart, one with a
// community that is suppressed, and checkpoints that fall anywhere.
func newPartsWorld(seed uint64, emissions int) partsWorld {
	random := rand.New(rand.NewPCG(seed, 41))
	w := partsWorld{saves: map[uint64]bool{}, cuts: map[uint64]bool{}}
	at := time.Date(2026, 3, 1, 11, 59, 0, 0, time.UTC)
	position := uint64(0)
	for range emissions {
		position += 1 + random.Uint64N(9)
		at = at.Add(time.Duration(random.Int64N(int64(4 * time.Minute))))
		var list []quant.Estimate
		for i := range 1 + random.IntN(4) {
			e := estimate(fmt.Sprint("c", i), "auto", position)
			e.Time, e.Lambda, e.Prevalence[0] = at.Format(time.RFC3339Nano), random.Float64(), random.Float64()
			if i == 2 {
				e = quant.Estimate{Community: "small", Position: position, Suppressed: true, Flags: []string{quant.FlagBelowFloor}}
				e.Time = at.Format(time.RFC3339Nano)
			}
			list = append(list, e)
		}
		w.emissions = append(w.emissions, list)
		w.saves[position] = random.IntN(4) == 0
		w.cuts[position] = w.saves[position] && random.IntN(3) == 0
	}
	return w
}

// run writes what comes after the position from, as a pipeline that was restored
// there, and returns the position of its last checkpoint.
func (w partsWorld) run(c PartsConfig) (saved uint64, err error) {
	saved = c.From
	s, err := OpenParts(c)
	if err != nil {
		return saved, err
	}
	for _, list := range w.emissions {
		p := list[0].Position
		if p <= c.From {
			continue
		}
		err := s.Write(context.Background(), list)
		if err == nil && w.cuts[p] {
			err = s.Cut(p)
		}
		if err == nil && w.saves[p] {
			err = s.Sync(p)
		}
		if err != nil {
			s.table.release() // the process is gone, its files are as they are
			if s.tail != nil {
				s.tail.file.Close()
			}
			return saved, err
		}
		if w.saves[p] {
			saved = p
		}
	}
	return saved, s.Close()
}

// contents returns the files of a directory with their bytes.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(data)
	}
	return files
}

// withoutMarks takes the marks of Sync out of the tail: where checkpoints fall is no
// part of the log.
func withoutMarks(files map[string]string) map[string]string {
	var kept []string
	for line := range strings.SplitSeq(files[tailName], "\n") {
		if !strings.HasPrefix(line, `{"synced"`) {
			kept = append(kept, line)
		}
	}
	files[tailName] = strings.Join(kept, "\n")
	return files
}

func partsConfig(dir, format string) PartsConfig {
	return PartsConfig{
		Dir: dir, Format: format, Log: "log", Every: 10 * time.Minute, rowsMax: 9,
		flush: func(*os.File) error { return nil }, // power cuts are played by tearTail
	}
}

var errCrash = errors.New("crash")

// Whatever step a process dies before, and with a power cut also whatever it did
// not sync is lost or torn, the runs that go on from a checkpoint must leave the
// files, byte by byte, that a run leaves which nothing disturbed.
func TestPartsAreTheSameAfterACrashAnywhere(t *testing.T) {
	for _, c := range []struct {
		seed      uint64
		format    string
		emissions int
	}{{4, "arrow", 14}, {3, "parquet", 4}} { // a small Parquet file takes its time
		seed, format := c.seed, c.format
		w := newPartsWorld(seed, c.emissions)
		undisturbed := t.TempDir()
		if _, err := w.run(partsConfig(undisturbed, format)); err != nil {
			t.Fatal(err)
		}
		want := withoutMarks(contents(t, undisturbed))
		if len(want) < 3 {
			t.Fatalf("seed %d: only %d files", seed, len(want))
		}
		for failAt := 1; ; failAt++ {
			dir := t.TempDir()
			ended := crashAndGoOn(t, w, partsConfig(dir, format), failAt, seed)
			got := withoutMarks(contents(t, dir))
			if !maps.Equal(got, want) {
				t.Fatalf("seed %d, crash before step %d: files %v, want %v\n%s\nwant\n%s", seed, failAt,
					slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)), got[tailName], want[tailName])
			}
			if ended {
				t.Logf("seed %d: %d files after a crash before each of %d steps", seed, len(want), failAt-1)
				break
			}
		}
	}
}

// crashAndGoOn crashes a run before the step failAt and each of the runs that go on
// after it three times as late; it reports whether no run came to its step.
func crashAndGoOn(t *testing.T, w partsWorld, c PartsConfig, failAt int, seed uint64) (undisturbed bool) {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, uint64(failAt)))
	for crashes := 0; ; crashes++ {
		steps := 0
		c.fault = func(string) error {
			if steps++; steps == failAt {
				return errCrash
			}
			return nil
		}
		saved, err := w.run(c)
		if err == nil {
			return crashes == 0
		}
		if !errors.Is(err, errCrash) {
			t.Fatalf("seed %d, crash before step %d: %v", seed, failAt, err)
		}
		if random.IntN(2) == 0 {
			tearTail(t, c.Dir, saved, random)
		}
		for _, half := range []string{tailName, partName(1, 2, c.Format)} {
			if err := os.WriteFile(filepath.Join(c.Dir, half+temporarySuffix), []byte("half"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		c.From = saved
		failAt *= 3
	}
}

// tearTail loses, as a power cut can, some of what was written after the mark of the
// last checkpoint.
func tearTail(t *testing.T, dir string, saved uint64, random *rand.Rand) {
	t.Helper()
	name := filepath.Join(dir, tailName)
	data, err := os.ReadFile(name)
	if err != nil {
		return // it had not begun
	}
	text := string(data)
	synced := strings.IndexByte(text, '\n') + 1
	mark := fmt.Sprintf(`{"synced":%d}`+"\n", saved)
	if i := strings.LastIndex(text, mark); i >= 0 {
		synced = i + len(mark)
	}
	torn := data[:synced+random.IntN(len(data)-synced+1)]
	if len(torn) > synced && random.IntN(2) == 0 {
		torn[synced+random.IntN(len(torn)-synced)] = 0 // a page that was never written
	}
	if err := os.WriteFile(name, torn, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Names must abut, so that a file that is missing shows, and nothing but parts and
// the tail may be left.
func TestPartNamesAbut(t *testing.T) {
	dir := t.TempDir()
	if _, err := newPartsWorld(1, 20).run(partsConfig(dir, "arrow")); err != nil {
		t.Fatal(err)
	}
	next := uint64(1)
	for _, name := range slices.Sorted(maps.Keys(contents(t, dir))) {
		if name == tailName {
			continue
		}
		first, last, ok := parsePart(name, "arrow")
		if !ok || first != next || last < first {
			t.Errorf("%s does not begin at %d", name, next)
		}
		next = last + 1
	}
	if next == 1 {
		t.Error("no part")
	}
}

// What went past while a directory was not written to must show as a gap between
// the names; an emission that was only late must not.
func TestPartsShowWhatTheyMissed(t *testing.T) {
	dir := t.TempDir()
	c := partsConfig(dir, "arrow")
	write := func(from uint64, positions ...uint64) {
		t.Helper()
		c.From = from
		s, err := OpenParts(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range positions {
			if err := errors.Join(s.Write(context.Background(), []quant.Estimate{estimate("a", "auto", p)}), s.Sync(p+2)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	write(0, 5, 10)
	write(12, 20) // a checkpoint at 12, after a mark: nothing is missing
	write(40, 50) // the run up to 40 had no parts
	write(52)
	names := slices.Sorted(maps.Keys(contents(t, dir)))
	if want := []string{tailName, partName(1, 20, "arrow")}; !slices.Equal(slices.Sorted(slices.Values(want)), names) {
		t.Fatalf("files %v, want %v", names, want)
	}
	c.From = 52
	s, err := OpenParts(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Cut(60), s.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, partName(41, 50, "arrow"))); err != nil {
		t.Error(err)
	}
}

// A checkpoint after which nothing was emitted must be known to the next tail as well:
// to that of a start that dies before it writes, and to that after a part. Nothing is
// missing then, and the names of the parts must abut.
func TestPartsRememberQuietCheckpoints(t *testing.T) {
	at := func(p uint64, minutes int) []quant.Estimate {
		e := estimate("a", "auto", p)
		e.Time = time.Date(2026, 3, 1, 12, minutes, 0, 0, time.UTC).Format(time.RFC3339Nano)
		return []quant.Estimate{e}
	}
	for name, change := range map[string]func(*Parts) error{
		"a start that writes nothing": func(*Parts) error { return nil },
		"a part before the next rows": func(s *Parts) error { return s.Write(context.Background(), at(20, 30)) },
	} {
		c := partsConfig(t.TempDir(), "arrow")
		step := func(from uint64, do func(*Parts) error) {
			t.Helper()
			c.From = from
			s, err := OpenParts(c)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(do(s), s.Close()); err != nil {
				t.Fatal(err)
			}
		}
		step(0, func(s *Parts) error { return errors.Join(s.Write(context.Background(), at(5, 1)), s.Sync(12)) })
		step(12, change)
		step(12, func(s *Parts) error { return errors.Join(s.Write(context.Background(), at(20, 30)), s.Cut(25)) })
		want := []string{tailName, partName(1, 5, "arrow"), partName(6, 20, "arrow")}
		if names := slices.Sorted(maps.Keys(contents(t, c.Dir))); !slices.Equal(names, slices.Sorted(slices.Values(want))) {
			t.Errorf("%s: files %v, want %v", name, names, want)
		}
	}
}

// A directory of another log, one whose tail is gone, and one whose tail is damaged
// where nothing can mend it must be refused with what to do.
func TestForeignPartsAreRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(dir string) error
		want  string
	}{
		{"another log", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, tailName), []byte(`{"tail":1,"log":"x","after":3}`+"\n"), 0o600)
		}, "another log"},
		{"no tail", func(dir string) error { return os.Remove(filepath.Join(dir, tailName)) }, "move them away"},
		{"empty tail", func(dir string) error { return os.WriteFile(filepath.Join(dir, tailName), nil, 0o600) }, "no header"},
		{"later format", func(dir string) error {
			return os.WriteFile(filepath.Join(dir, tailName), []byte(`{"tail":2,"log":"log"}`+"\n"), 0o600)
		}, "format 2"},
		{"damaged", func(dir string) error {
			data, err := os.ReadFile(filepath.Join(dir, tailName))
			damaged := strings.Replace(string(data), `"community"`, `"commun`, 1)
			return errors.Join(err, os.WriteFile(filepath.Join(dir, tailName), []byte(damaged), 0o600))
		}, "gqlstream replay"},
	} {
		dir := t.TempDir()
		w := newPartsWorld(2, 12)
		if _, err := w.run(partsConfig(dir, "arrow")); err != nil {
			t.Fatal(err)
		}
		if err := c.spoil(dir); err != nil {
			t.Fatal(err)
		}
		config := partsConfig(dir, "arrow")
		config.From = w.emissions[11][0].Position
		s, err := OpenParts(config)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		if s != nil {
			s.Close()
		}
	}
}
