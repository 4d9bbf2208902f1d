package group

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/nats-io/nats.go/jetstream"
)

// What a store keeps.
const (
	positionsKept = 16 // of each part of a shard; older ones go
	graphsKept    = 2
	digestTTL     = time.Hour
	transferMax   = 10 * time.Minute // for one object, however large
	getWaitMin    = time.Second      // for the first attempt to read one
)

// transfer bounds the time of one object. It sets no deadline: with one the library waits until
// then for an acknowledgement that was lost, and without one for a few seconds.
func transfer(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(transferMax, cancel)
	return ctx, func() { timer.Stop(); cancel() }
}

// GraphPart names what all workers have alike; a shard's part has the shard's number.
const GraphPart = "graph"

// Part names the part of a state that belongs to a shard.
func Part(shard int) string { return strconv.Itoa(shard) }

// Store keeps parts of the state by position of the log, for workers that take shards over, and
// compares what two workers have of the same part. Any goroutine may use it.
type Store struct {
	self    string
	objects jetstream.ObjectStore
	digests jetstream.KeyValue
}

// ErrDisagree is what an error matches when two workers have different states at one position:
// one of them has bad memory, or the program does not do the same twice.
var ErrDisagree = errors.New("they must be the same: one of the two machines cannot be relied upon, or there is a defect in gqlstream")

// OpenStore opens the store of a group.
func (m *Member) OpenStore(ctx context.Context) (*Store, error) {
	s := &Store{self: m.self.Worker}
	ctx, cancel := context.WithTimeout(ctx, 2*requestMax)
	defer cancel()
	js, name, replicas := m.config.JS, m.config.Bucket+"_state", max(m.config.Replicas, 1)
	var err error
	if s.objects, err = js.ObjectStore(ctx, name); errors.Is(err, jetstream.ErrBucketNotFound) {
		s.objects, err = js.CreateObjectStore(ctx, jetstream.ObjectStoreConfig{
			Bucket: name, Description: "gqlstream: what takes a shard over", Replicas: replicas,
		})
	}
	if err != nil {
		return nil, fmt.Errorf("group: object bucket %s: %w", name, err)
	}
	name = m.config.Bucket + "_digests"
	if s.digests, err = js.KeyValue(ctx, name); errors.Is(err, jetstream.ErrBucketNotFound) {
		s.digests, err = js.CreateKeyValue(ctx, jetstream.KeyValueConfig{
			Bucket: name, Description: "gqlstream: digests of states", TTL: digestTTL, Replicas: replicas,
		})
	}
	if err != nil {
		return nil, fmt.Errorf("group: bucket %s: %w", name, err)
	}
	return s, nil
}

// digestEntry is what a worker has of a part.
type digestEntry struct {
	Digest string `json:"digest"`
	Worker string `json:"worker"`
}

// disagreementKey holds the newest disagreement, which all workers that it names heed.
const disagreementKey = "disagreement"

type disagreement struct {
	Position uint64         `json:"position"`
	Part     string         `json:"part"`
	Has      [2]digestEntry `json:"has"`
}

func (d *disagreement) err() error {
	part := "the graph"
	if d.Part != GraphPart {
		part = "shard " + d.Part
	}
	return fmt.Errorf("group: at position %d the workers %s and %s have different states of %s (%s, %s): %w",
		d.Position, d.Has[0].Worker, d.Has[1].Worker, part, d.Has[0].Digest, d.Has[1].Digest, ErrDisagree)
}

// Compare publishes the digest of a part at a position, or compares it with that of the worker
// which was first. An error that matches ErrDisagree is told to the other one, too.
func (s *Store) Compare(ctx context.Context, config string, position uint64, part string, digest uint64) error {
	ctx, cancel := context.WithTimeout(ctx, requestMax)
	defer cancel()
	own := digestEntry{Digest: fmt.Sprintf("%016x", digest), Worker: s.self}
	data, err := json.Marshal(own)
	if err != nil {
		return err
	}
	key := fmt.Sprintf("%s.%d.%s", config, position, part)
	_, err = s.digests.Create(ctx, key, data)
	if !errors.Is(err, jetstream.ErrKeyExists) {
		return err
	}
	entry, err := s.digests.Get(ctx, key)
	for errors.Is(err, jetstream.ErrKeyNotFound) && ctx.Err() == nil { // a copy that lags was asked
		time.Sleep(watchAgain / 10)
		entry, err = s.digests.Get(ctx, key)
	}
	var first digestEntry
	if err == nil {
		err = json.Unmarshal(entry.Value(), &first)
	}
	if err != nil || first.Digest == own.Digest || first.Worker == own.Worker {
		return err
	}
	found := disagreement{Position: position, Part: part, Has: [2]digestEntry{first, own}}
	if data, err = json.Marshal(found); err == nil {
		_, err = s.digests.Put(ctx, disagreementKey, data)
	}
	return errors.Join(found.err(), err)
}

// WatchDisagreements returns an error that matches ErrDisagree as soon as another worker has
// found that its state and this one's are not the same, and nil when ctx ends.
func (s *Store) WatchDisagreements(ctx context.Context) error {
	for ctx.Err() == nil {
		watcher, err := s.digests.Watch(ctx, disagreementKey, jetstream.UpdatesOnly())
		if err == nil {
			err = s.heed(ctx, watcher)
			if stop := watcher.Stop(); errors.Is(err, ErrDisagree) || ctx.Err() != nil {
				return errors.Join(err, stop)
			}
		}
		select {
		case <-time.After(watchAgain):
		case <-ctx.Done():
		}
	}
	return nil
}

func (s *Store) heed(ctx context.Context, watcher jetstream.KeyWatcher) error {
	for {
		select {
		case entry, ok := <-watcher.Updates():
			if !ok {
				return nil
			}
			var found disagreement
			if entry == nil || json.Unmarshal(entry.Value(), &found) != nil {
				continue
			}
			if found.Has[0].Worker == s.self || found.Has[1].Worker == s.self {
				return found.err()
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// objectName begins with the digest of the configuration, which decides the bytes.
func objectName(config string, position uint64, part string) string {
	return fmt.Sprintf("%s/%020d/%s", config, position, part)
}

// Put stores a part at a position, unless it is there already, and drops what is older than the
// newest positions that have this part.
func (s *Store) Put(ctx context.Context, config string, position uint64, part string, data []byte) error {
	ctx, cancel := transfer(ctx)
	defer cancel()
	name := objectName(config, position, part)
	if _, err := s.objects.GetInfo(ctx, name); err == nil {
		return nil
	}
	if _, err := s.objects.PutBytes(ctx, name, data); err != nil {
		return fmt.Errorf("group: object %s: %w", name, err)
	}
	positions, err := s.Positions(ctx, config, part)
	kept := positionsKept
	if part == GraphPart {
		kept = graphsKept
	}
	for _, old := range positions[min(kept, len(positions)):] {
		if err == nil {
			err = s.objects.Delete(ctx, objectName(config, old, part))
		}
	}
	if err != nil && !errors.Is(err, jetstream.ErrObjectNotFound) {
		return fmt.Errorf("group: object %s: %w", name, err)
	}
	return nil
}

// Positions returns where a part is stored, newest first.
func (s *Store) Positions(ctx context.Context, config, part string) (list []uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*requestMax)
	defer cancel()
	infos, err := s.objects.List(ctx)
	if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
		return nil, err
	}
	for _, info := range infos {
		rest, ours := strings.CutPrefix(info.Name, config+"/")
		at, name, _ := strings.Cut(rest, "/")
		if position, err := strconv.ParseUint(at, 10, 64); ours && err == nil && name == part && !info.Deleted {
			list = append(list, position)
		}
	}
	slices.SortFunc(list, func(a, b uint64) int { return cmp.Compare(b, a) })
	return list, nil
}

// Get returns a part at a position.
func (s *Store) Get(ctx context.Context, config string, position uint64, part string) ([]byte, error) {
	return s.get(ctx, objectName(config, position, part))
}

// get returns an object. The library waits for ever for the rest of one that is replaced or
// deleted while it reads; so it is given a while, and a longer one each time.
func (s *Store) get(ctx context.Context, name string) ([]byte, error) {
	ctx, cancel := transfer(ctx)
	defer cancel()
	for wait := getWaitMin; ; wait *= 2 {
		attempt, end := context.WithTimeout(ctx, wait)
		data, err := s.objects.GetBytes(attempt, name)
		again := attempt.Err() != nil && ctx.Err() == nil
		if end(); err == nil {
			return data, nil
		}
		if !again {
			return nil, fmt.Errorf("group: object %s: %w", name, err)
		}
	}
}

// Shelf keeps what a follower of the log out has come to, for the worker that takes it over.
type Shelf struct {
	store *Store
	name  string
}

// Shelf returns the shelf of a follower.
func (s *Store) Shelf(follower string) Shelf { return Shelf{s, "follower/" + follower} }

// Read returns what was written last; nothing is os.ErrNotExist.
func (s Shelf) Read(ctx context.Context) ([]byte, error) {
	data, err := s.store.get(ctx, s.name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil, os.ErrNotExist
	}
	return data, err
}

// Write replaces what is kept.
func (s Shelf) Write(ctx context.Context, data []byte) error {
	ctx, cancel := transfer(ctx)
	defer cancel()
	_, err := s.store.objects.PutBytes(ctx, s.name, data)
	return err
}

// String names the shelf.
func (s Shelf) String() string { return "object " + s.name + " of the group" }

// Bundle is a part of a state: named sections, and what a taker must know beside them.
type Bundle struct {
	Header   json.RawMessage `json:"header"` // the caller's
	Sections []BundleSection `json:"sections"`
}

// BundleSection is one section of a bundle.
type BundleSection struct {
	Name  string `json:"name"`
	Bytes int    `json:"bytes"` // of the data; Encode sets it
	Data  []byte `json:"-"`
}

// Digest returns a digest of the sections, with their names.
func (b *Bundle) Digest() uint64 {
	sum := xxhash.New()
	for _, s := range b.Sections {
		fmt.Fprintf(sum, "%s %d\n", s.Name, len(s.Data))
		sum.Write(s.Data) //nolint:errcheck // a hash takes everything
	}
	return sum.Sum64()
}

// Encode returns the bytes of a bundle: a line of JSON, and the data of the sections.
func (b *Bundle) Encode() ([]byte, error) {
	for i := range b.Sections {
		b.Sections[i].Bytes = len(b.Sections[i].Data)
	}
	line, err := json.Marshal(b)
	if err != nil {
		return nil, err
	}
	data := append(line, '\n')
	for _, s := range b.Sections {
		data = append(data, s.Data...)
	}
	return data, nil
}

// DecodeBundle reads what Encode returned; the object store has verified its checksum.
func DecodeBundle(data []byte) (*Bundle, error) {
	line, rest, _ := bytes.Cut(data, []byte("\n"))
	var b Bundle
	if err := json.Unmarshal(line, &b); err != nil {
		return nil, fmt.Errorf("group: bundle: %w", err)
	}
	for i := range b.Sections {
		s := &b.Sections[i]
		if s.Bytes < 0 || s.Bytes > len(rest) {
			return nil, fmt.Errorf("group: bundle: section %s has %d bytes, there are %d", s.Name, s.Bytes, len(rest))
		}
		s.Data, rest = rest[:s.Bytes], rest[s.Bytes:]
	}
	return &b, nil
}
