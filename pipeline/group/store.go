package group

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/request"
)

// Contents of a store.
const (
	completeKept = 2 // positions with the graph and all shards
	graphsKept   = 2 // newest positions with only the graph
	// newest positions of each shard, for workers with the graph on their own disk
	positionsKept = 16
	// age of chunks without an object, left by a killed worker
	strayAge = 10 * time.Minute
	// for the first attempt to read an object; doubled for each further one
	getWaitMin = 2 * time.Second
	getWaitMax = 10 * time.Minute // for the last attempt
)

// GraphPart names the part that all workers share; a shard's part has the shard's number.
const GraphPart = "graph"

// Part names the part of a state that belongs to a shard.
func Part(shard int) string { return strconv.Itoa(shard) }

// Store holds parts of states by position of the log, for workers that take shards over, and
// compares the parts of two workers. Any goroutine may use it.
type Store struct {
	member  *Member
	shards  int
	bucket  string // of the objects
	objects jetstream.ObjectStore
	stream  jetstream.Stream // of the objects
	// age, relative to the newest message, at which Drop drops chunks without an object
	stray time.Duration
}

// OpenStore opens the store of a group with that many shards. It refuses buckets with fewer
// replicas than required.
func (m *Member) OpenStore(ctx context.Context, shards int) (s *Store, err error) {
	s = &Store{member: m, shards: shards, bucket: m.stateBucket(), stray: strayAge}
	ctx, cancel := context.WithTimeout(ctx, 2*requestMax)
	defer cancel()
	js := m.config.JS
	if s.objects, err = js.ObjectStore(ctx, s.bucket); errors.Is(err, jetstream.ErrBucketNotFound) {
		s.objects, err = js.CreateObjectStore(
			ctx,
			jetstream.ObjectStoreConfig{
				Bucket:      s.bucket,
				Description: "gqlstream: checkpoints for the take-over of shards",
				Replicas:    max(m.config.Replicas, 1),
			},
		)
	}
	if err != nil {
		return nil, fmt.Errorf("group: object bucket %s: %w", s.bucket, err)
	}
	for _, name := range m.Streams() {
		var find error
		s.stream, find = js.Stream(ctx, name)
		if err = cmp.Or(err, find); err == nil {
			err = request.AuditReplicas(s.stream, m.config.Replicas)
		}
	}
	return s, err
}

// stateBucket returns the name of the bucket of parts of states.
func (m *Member) stateBucket() string { return m.config.Bucket + "_state" }

// Streams lists the streams of the group's two buckets: live workers, and parts of states.
func (m *Member) Streams() []string {
	return []string{"KV_" + m.config.Bucket, "OBJ_" + m.stateBucket()}
}

// key of the newest disagreement: the workers that it names end
const disagreementKey = "disagreement"

type disagreement struct {
	Workers [2]string `json:"workers"`
	Text    string    `json:"text"`
}

// endIfNamed ends this worker if a disagreement names it.
func (m *Member) endIfNamed(data []byte) {
	var d disagreement
	if json.Unmarshal(data, &d) == nil && slices.Contains(d.Workers[:], m.self.Worker) {
		select {
		case m.Disagreed <- errors.New(d.Text):
		default:
		}
	}
}

// Compare compares this worker's digests of the parts at a position with the digests stored by
// another worker, if there are any. If they differ, both workers end: see Disagreed. Two workers
// that store a part at the same time do not see each other's, so only a later comparison finds the
// difference for certain.
func (s *Store) Compare(
	ctx context.Context, config string, position uint64, part string, own map[string]string,
) error {
	ctx, cancel := context.WithTimeout(ctx, requestMax)
	defer cancel()
	info, err := s.objects.GetInfo(ctx, objectName(config, position, part))
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	self, worker := s.member.self.Worker, info.Description
	for _, what := range []string{GraphPart, part} {
		theirs, ours := info.Metadata[what], own[what]
		if theirs == ours || theirs == "" || ours == "" {
			continue
		}
		found := fmt.Errorf(
			"group: at position %d the workers %s and %s have different states of part %s (%s, "+
				"%s): "+
				"they must be equal: one of the two machines has a fault, or gqlstream has a "+
				"defect",
			position,
			worker,
			self,
			what,
			theirs,
			ours,
		)
		data, err := json.Marshal(disagreement{[2]string{worker, self}, found.Error()})
		if err == nil {
			s.member.endIfNamed(data)
			_, err = s.member.kv.Put(ctx, disagreementKey, data)
		}
		return errors.Join(found, err)
	}
	return nil
}

// objectName begins with the digest of the configuration, on which the bytes depend.
func objectName(config string, position uint64, part string) string {
	return fmt.Sprintf("%s/%020d/%s", config, position, part)
}

// Put stores a part at a position, unless it is there already, with this worker's digests of the
// part and of the graph.
func (s *Store) Put(
	ctx context.Context, config string, position uint64, part string, state any,
	digests map[string]string,
) error {
	name := objectName(config, position, part)
	if _, err := s.objects.GetInfo(ctx, name); err == nil {
		return nil
	}
	var data bytes.Buffer
	err := gob.NewEncoder(&data).Encode(state)
	if err == nil {
		_, err = s.objects.Put(ctx, jetstream.ObjectMeta{
			Name:        name,
			Description: s.member.self.Worker,
			Metadata:    map[string]string{GraphPart: digests[GraphPart], part: digests[part]},
		}, &data)
	}
	if err != nil {
		return fmt.Errorf("group: object %s: %w", name, err)
	}
	return nil
}

// Drop drops objects that no worker can need, remains of deleted objects, and chunks of workers
// that ended while storing. Objects of another format have names that differ before the point, and
// stay.
func (s *Store) Drop(ctx context.Context, config string) error {
	family, _, _ := strings.Cut(config, ".")
	infos, all, err := s.list(ctx, config)
	needed := map[string]bool{}
	for part, positions := range all.needed(s.shards) {
		for _, position := range positions {
			needed[objectName(config, position, part)] = true
		}
	}
	belong := map[string]bool{}
	for _, info := range infos {
		belong["$O."+s.bucket+".C."+info.NUID] = true
		if needed[info.Name] || !info.Deleted && !strings.HasPrefix(info.Name, family) {
			continue
		}
		for _, subject := range []string{
			"M." + base64.URLEncoding.EncodeToString([]byte(info.Name)), "C." + info.NUID,
		} {
			if err == nil {
				err = s.stream.Purge(ctx, jetstream.WithPurgeSubject("$O."+s.bucket+"."+subject))
			}
		}
	}
	chunks, failed := s.stream.Info(ctx, jetstream.WithSubjectFilter("$O."+s.bucket+".C.>"))
	if err = cmp.Or(err, failed); err != nil {
		return err
	}
	for subject := range chunks.State.Subjects {
		if belong[subject] {
			continue
		}
		if last, e := s.stream.GetLastMsgForSubject(ctx, subject); e == nil &&
			chunks.State.LastTime.Sub(last.Time) >= s.stray {
			err = errors.Join(err, s.stream.Purge(ctx, jetstream.WithPurgeSubject(subject)))
		}
	}
	return err
}

// stored lists the positions of each part, newest first.
type stored map[string][]uint64

// needed removes the positions that no worker can need. A worker that takes shards over starts at a
// position with the graph and all shards: the newest of them stay until there are newer ones. The
// newest graphs stay too, because their shards may follow.
func (all stored) needed(shards int) stored {
	graphs := all[GraphPart]
	complete := slices.DeleteFunc(slices.Clone(graphs), func(position uint64) bool {
		for shard := range shards {
			if !slices.Contains(all[Part(shard)], position) {
				return true
			}
		}
		return false
	})
	common := slices.Concat(graphs[:min(graphsKept, len(graphs))],
		complete[:min(completeKept, len(complete))])
	needed := stored{}
	for part, positions := range all {
		needed[part] = slices.Concat(positions[:min(positionsKept, len(positions))], common)
	}
	needed[GraphPart] = common
	return needed
}

// Positions returns the positions with a graph, in the store or in a list, newest first; before
// them, again, those for which the store has all of some shards.
func (s *Store) Positions(
	ctx context.Context, config string, local []uint64, shards []int,
) ([]uint64, error) {
	_, all, err := s.list(ctx, config)
	positions := slices.Concat(local, all[GraphPart])
	slices.SortFunc(positions, func(a, b uint64) int { return cmp.Compare(b, a) })
	whole := slices.DeleteFunc(slices.Clone(positions), func(position uint64) bool {
		return slices.ContainsFunc(shards,
			func(shard int) bool { return !slices.Contains(all[Part(shard)], position) })
	})
	return slices.Concat(whole, positions), err
}

// list returns all objects, deleted ones too, and the positions of the parts of one configuration,
// or of any.
func (s *Store) list(
	ctx context.Context,
	config string,
) (infos []*jetstream.ObjectInfo, all stored, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*requestMax)
	defer cancel()
	infos, err = s.objects.List(ctx, jetstream.ListObjectsShowDeleted())
	if err != nil && !errors.Is(err, jetstream.ErrNoObjectsFound) {
		return nil, nil, fmt.Errorf("group: bucket %s: %w", s.bucket, err)
	}
	all = stored{}
	for _, info := range infos {
		of, rest, _ := strings.Cut(info.Name, "/")
		at, part, _ := strings.Cut(rest, "/")
		if position, err := strconv.ParseUint(at, 10, 64); (of == config || config == "") &&
			err == nil &&
			!info.Deleted {
			all[part] = append(all[part], position)
		}
	}
	for _, positions := range all {
		slices.SortFunc(positions, func(a, b uint64) int { return cmp.Compare(b, a) })
	}
	return infos, all, nil
}

// OldestGraph returns the oldest position for which a group stores the graph, and the bucket, or 0.
// A worker with an empty disk starts there.
func OldestGraph(
	ctx context.Context,
	js jetstream.JetStream,
	prefix string,
) (oldest uint64, bucket string, err error) {
	stores := js.ObjectStoreNames(ctx)
	for name := range stores.Name() {
		if !strings.HasPrefix(name, Bucket(prefix, "")) {
			continue
		}
		objects, err := js.ObjectStore(ctx, name)
		if err != nil {
			return 0, "", fmt.Errorf("group: object bucket %s: %w", name, err)
		}
		_, all, err := (&Store{bucket: name, objects: objects}).list(ctx, "")
		if err != nil {
			return 0, "", err
		}
		if graphs := all[GraphPart]; len(graphs) > 0 &&
			(oldest == 0 || graphs[len(graphs)-1] < oldest) {
			oldest, bucket = graphs[len(graphs)-1], name
		}
	}
	return oldest, bucket, stores.Error()
}

// Get reads a part at a position into *state.
func (s *Store) Get(
	ctx context.Context, config string, position uint64, part string, state any,
) error {
	data, err := s.get(ctx, objectName(config, position, part))
	if err == nil {
		err = gob.NewDecoder(bytes.NewReader(data)).Decode(state)
	}
	return err
}

// get returns an object. The library waits for ever for the rest of an object that is replaced or
// deleted during the read, and a broker may not answer now. So each attempt has a limit, and the
// next one a longer limit. Giving up would mean reading the whole log.
func (s *Store) get(ctx context.Context, name string) ([]byte, error) {
	for wait := getWaitMin; ; wait *= 2 {
		attempt, end := context.WithTimeout(ctx, wait)
		data, err := s.objects.GetBytes(attempt, name)
		again := err != nil && wait < getWaitMax &&
			(attempt.Err() != nil || errors.Is(err, os.ErrDeadlineExceeded) || request.Passes(err))
		if again {
			<-attempt.Done()
		}
		if end(); err == nil {
			return data, nil
		}
		if !again || ctx.Err() != nil {
			return nil, fmt.Errorf("group: object %s: %w", name, err)
		}
	}
}

// StateStore stores the state of a follower for the worker that takes it over.
type StateStore struct {
	store *Store
	name  string
}

// StateStore returns the storage of a follower.
func (s *Store) StateStore(follower string) StateStore {
	return StateStore{s, "follower/" + follower}
}

// Read returns the newest contents; if there are none, the error is os.ErrNotExist.
func (s StateStore) Read(ctx context.Context) ([]byte, error) {
	data, err := s.store.get(ctx, s.name)
	if errors.Is(err, jetstream.ErrObjectNotFound) {
		return nil, os.ErrNotExist
	}
	return data, err
}

// Write replaces the contents.
func (s StateStore) Write(ctx context.Context, data []byte) error {
	_, err := s.store.objects.PutBytes(ctx, s.name, data)
	return err
}

// String names the storage.
func (s StateStore) String() string { return "object " + s.name + " of the group" }
