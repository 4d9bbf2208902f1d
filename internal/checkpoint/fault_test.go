package checkpoint

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"math/rand/v2"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"
)

var errInjected = errors.New("injected fault")

// faultyFS is a file system in memory that fails one operation and can lose, at a
// crash, everything that was not synced: file contents since the last Sync
// (perhaps torn in the middle), and directory entries since the last SyncDir.
type faultyFS struct {
	rand    *rand.Rand
	failAt  int  // number of the operation that fails, from 1; 0: none
	crashed bool // after the fault everything fails, as in a crash
	crash   bool // the fault is a crash
	ops     int
	mu      sync.Mutex // sections are read at the same time

	live, durable map[string]*node // by path; directories end in /
}

type node struct {
	data, synced []byte
}

func newFaultyFS(seed uint64) *faultyFS {
	return &faultyFS{
		rand:    rand.New(rand.NewPCG(seed, 3)),
		live:    map[string]*node{},
		durable: map[string]*node{},
	}
}

// step counts one operation and reports whether it fails.
func (f *faultyFS) step() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.crashed {
		return errInjected
	}
	f.ops++
	if f.ops == f.failAt {
		f.crashed = f.crash
		return errInjected
	}
	return nil
}

// restart returns the file system after a crash: durable entries with their synced
// contents, and a random part of the rest.
func (f *faultyFS) restart() *faultyFS {
	after := newFaultyFS(f.rand.Uint64())
	for name, n := range f.durable {
		after.put(name, f.survivor(n))
	}
	if f.rand.IntN(2) == 0 { // the entries made it to the disk on their own
		after.live, after.durable = map[string]*node{}, map[string]*node{}
		for name, n := range f.live {
			after.put(name, f.survivor(n))
		}
	}
	return after
}

func (f *faultyFS) put(name string, data []byte) {
	n := &node{data: data, synced: slices.Clone(data)}
	f.live[name], f.durable[name] = n, n
}

// survivor returns the contents of a file after a crash: the synced bytes, and a torn piece
// of the others.
func (f *faultyFS) survivor(n *node) []byte {
	if len(n.data) <= len(n.synced) {
		return slices.Clone(n.synced)
	}
	torn := slices.Clone(n.data[:len(n.synced)+f.rand.IntN(len(n.data)-len(n.synced)+1)])
	if len(torn) > len(n.synced) && f.rand.IntN(2) == 0 {
		torn[len(n.synced)+f.rand.IntN(len(torn)-len(n.synced))] ^= 0xff
	}
	return torn
}

func (f *faultyFS) Mkdir(dir string) error {
	if err := f.step(); err != nil {
		return err
	}
	if f.live[dir+"/"] == nil {
		f.live[dir+"/"] = &node{}
	}
	return nil
}

type faultyFile struct {
	fs *faultyFS
	n  *node
}

func (f *faultyFS) Create(name string) (File, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	if f.live[name] != nil {
		return nil, fs.ErrExist
	}
	f.live[name] = &node{}
	return &faultyFile{f, f.live[name]}, nil
}

func (f *faultyFile) Write(p []byte) (int, error) {
	if err := f.fs.step(); err != nil {
		short := f.fs.rand.IntN(len(p) + 1)
		f.n.data = append(f.n.data, p[:short]...)
		return short, err
	}
	f.n.data = append(f.n.data, p...)
	return len(p), nil
}

func (f *faultyFile) Sync() error {
	if err := f.fs.step(); err != nil {
		return err
	}
	f.n.synced = slices.Clone(f.n.data)
	return nil
}

func (f *faultyFile) Close() error { return f.fs.step() }

func (f *faultyFS) Open(name string) (io.ReadCloser, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	n := f.live[name]
	if n == nil {
		return nil, fs.ErrNotExist
	}
	return io.NopCloser(bytes.NewReader(n.data)), nil
}

// Rename moves the entries of a directory; they are durable after SyncDir of the parent.
// Synced contents stay synced.
func (f *faultyFS) Rename(from, to string) error {
	if err := f.step(); err != nil {
		return err
	}
	for name, n := range f.live {
		if rest, ok := strings.CutPrefix(name, from+"/"); ok {
			delete(f.live, name)
			f.live[to+"/"+rest] = n
		}
	}
	return nil
}

func (f *faultyFS) RemoveAll(name string) error {
	if err := f.step(); err != nil {
		return err
	}
	for other := range f.live {
		if other == name || strings.HasPrefix(other, name+"/") {
			delete(f.live, other)
		}
	}
	return nil
}

func (f *faultyFS) List(dir string) ([]string, error) {
	if err := f.step(); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for name := range f.live {
		if rest, ok := strings.CutPrefix(name, dir+"/"); ok && rest != "" {
			first, _, _ := strings.Cut(rest, "/")
			seen[first] = true
		}
	}
	var names []string
	for name := range seen {
		names = append(names, name)
	}
	sort.Strings(names)
	return names, nil
}

// SyncDir makes the entries below dir as durable as they are now. Entries deeper
// down become durable with their own directory; a rename brings synced ones along.
func (f *faultyFS) SyncDir(dir string) error {
	if err := f.step(); err != nil {
		return err
	}
	durable := map[string]*node{}
	for name, n := range f.durable {
		if !strings.HasPrefix(name, dir+"/") || f.live[name] != nil {
			durable[name] = n
		}
	}
	for name, n := range f.live {
		if path.Dir(strings.TrimSuffix(name, "/")) == dir || f.moved(dir, name, n) {
			durable[name] = n
		}
	}
	f.durable = durable
	return nil
}

// moved reports whether an entry below dir was durable under another name.
func (f *faultyFS) moved(dir, name string, n *node) bool {
	if !strings.HasPrefix(name, dir+"/") {
		return false
	}
	for _, other := range f.durable {
		if other == n {
			return true
		}
	}
	return false
}
