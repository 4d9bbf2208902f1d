package group

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/request"
)

// How often a member renews its presence, and when it is dropped.
const (
	renewEvery = 250 * time.Millisecond
	// a worker is dead after this many own renewals without one of it
	renewalsMax = 4
	// lifetime of an entry, for readers that have not seen the worker before
	presenceTTL = 8 * renewEvery
	requestMax  = 5 * time.Second // for one request to the broker, which may be electing
	watchAgain  = 200 * time.Millisecond
)

// Presence is a worker's entry about itself.
type Presence struct {
	Worker   string    `json:"worker"`
	Since    time.Time `json:"since"`            // when its process began
	Config   string    `json:"config"`           // digest of the configuration
	Build    string    `json:"build"`            // version of the program
	Arch     string    `json:"arch"`             // GOARCH, and the level of its instructions
	Position uint64    `json:"position"`         // last position of the log that was applied
	Page     string    `json:"page,omitempty"`   // address of its page
	Shards   []int     `json:"shards"`           // that it estimates now
	Drains   bool      `json:"drains,omitempty"` // it is handing its shards over
	// Needs names the follower of this worker that is furthest behind in the output log, and Taken
	// is the sequence that it has stored: no worker may discard later records.
	Needs    string `json:"needs,omitempty"`
	Taken    uint64 `json:"taken,omitempty"`
	revision uint64 // of the entry
}

// Config configures a worker of a group.
type Config struct {
	JS       jetstream.JetStream
	Bucket   string // bucket of the group; see Bucket
	Replicas int
	Log      *slog.Logger
	Self     Presence
}

// Bucket returns the name of the bucket of a group in a pipeline with a prefix.
func Bucket(prefix, name string) string {
	return strings.ToLower(cmp.Or(prefix, "gql")) + "_group_" + name
}

// Member is a worker's place in its group. Any goroutine may use it.
type Member struct {
	config  Config
	kv      jetstream.KeyValue
	cancel  context.CancelFunc
	running sync.WaitGroup

	Disagreed chan error // capacity 1: another worker has a different state, so this one must end

	mu       sync.Mutex
	self     Presence
	workers  map[string]*latestEntry
	renewals uint64 // own renewals that came back
}

// latestEntry is the newest entry of a worker.
type latestEntry struct {
	Presence
	at uint64 // own renewals when the entry came
}

// Join joins a group, and returns when the live workers are known. It refuses if one of them has
// another configuration or architecture, or uses this worker's name. It waits for workers of
// another build to end.
func Join(ctx context.Context, c Config) (*Member, error) {
	kv, err := openBucket(ctx, c.JS, jetstream.KeyValueConfig{
		Bucket:      c.Bucket,
		Description: "gqlstream: live workers of the group",
		TTL:         presenceTTL,
		Storage:     jetstream.MemoryStorage,
		Replicas:    max(c.Replicas, 1),
	})
	if err != nil {
		return nil, err
	}
	m := &Member{
		config:    c,
		kv:        kv,
		self:      c.Self,
		Disagreed: make(chan error, 1),
		workers:   map[string]*latestEntry{},
	}
	if err = m.admit(ctx); err != nil {
		return nil, err
	}
	ctx, m.cancel = context.WithCancel(context.WithoutCancel(ctx))
	m.running.Go(func() { m.watch(ctx) })
	m.running.Go(func() { m.renewAlways(ctx) })
	return m, nil
}

// bucketBytesMax bounds the bucket if an account requires a limit.
const bucketBytesMax = 1 << 20

func openBucket(
	ctx context.Context,
	js jetstream.JetStream,
	c jetstream.KeyValueConfig,
) (jetstream.KeyValue, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*requestMax)
	defer cancel()
	kv, err := js.KeyValue(ctx, c.Bucket)
	if errors.Is(err, jetstream.ErrBucketNotFound) {
		kv, err = js.CreateKeyValue(ctx, c)
		if request.BytesRequired(err) {
			c.MaxBytes = bucketBytesMax
			kv, err = js.CreateKeyValue(ctx, c)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("group: bucket %s: %w", c.Bucket, err)
	}
	return kv, nil
}

// admit is called before other goroutines use the member.
func (m *Member) admit(ctx context.Context) error {
	seen := uint64(0)
	// renewals of this name: the entry of a killed worker may remain while servers elect
	renewals := 0
	for begun, said := time.Now(), false; ; {
		live, err := list(ctx, m.kv)
		if err != nil {
			return fmt.Errorf("group: bucket %s: %w", m.config.Bucket, err)
		}
		var other *Presence
		clear(m.workers)
		for i := range live {
			p := &live[i]
			namesake := p.Worker == m.self.Worker
			if namesake && p.revision > seen {
				seen, renewals = p.revision, renewals+1
			}
			if err := m.self.refuse(p); err != nil &&
				(!namesake || renewals > 2) { // the second may have been under way
				return err
			}
			if namesake && time.Since(begun) < 2*presenceTTL || p.Build != m.self.Build {
				other = p
			}
			m.workers[p.Worker] = &latestEntry{Presence: *p}
		}
		m.workers[m.self.Worker] = &latestEntry{Presence: m.self}
		if other == nil {
			return nil
		}
		if !said && other.Build != m.self.Build {
			m.config.Log.Warn(
				"this worker waits for the end of the workers of another build: drain them",
				"worker", other.Worker, "build", other.Build, "own", m.self.Build)
			said = true
		}
		if err := request.Pause(ctx, renewEvery); err != nil {
			return err
		}
	}
}

// refuse returns the reason why this worker cannot join a group with another one: their records
// would differ.
func (p *Presence) refuse(o *Presence) error {
	var why string
	switch {
	case o.Config != p.Config:
		why = fmt.Sprintf("has the configuration %s, and this one has %s", o.Config, p.Config)
	case o.Arch != p.Arch:
		why = fmt.Sprintf("has the architecture %s, and this one has %s", o.Arch, p.Arch)
	case o.Worker == p.Worker && !o.Since.Equal(p.Since):
		return fmt.Errorf("group: a worker %s has run since %s: choose another name with --worker",
			o.Worker, o.Since.UTC().Format(time.RFC3339))
	default:
		return nil
	}
	return fmt.Errorf(
		"group: worker %s %s: the workers of a group must have the same configuration and "+
			"architecture",
		o.Worker, why)
}

// list returns the workers with a renewal within presenceTTL, by name.
func list(ctx context.Context, kv jetstream.KeyValue) (live []Presence, err error) {
	ctx, cancel := context.WithTimeout(ctx, 2*requestMax)
	defer cancel()
	watcher, err := kv.WatchAll(ctx, jetstream.IgnoreDeletes())
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, watcher.Stop()) }()
	for {
		select {
		case entry := <-watcher.Updates():
			if entry == nil {
				slices.SortFunc(live,
					func(a, b Presence) int { return cmp.Compare(a.Worker, b.Worker) })
				return live, nil
			}
			var p Presence
			if json.Unmarshal(entry.Value(), &p) == nil && p.Worker != "" {
				p.revision = entry.Revision()
				live = append(live, p)
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (m *Member) renewAlways(ctx context.Context) {
	ticker := time.NewTicker(renewEvery)
	defer ticker.Stop()
	for {
		if err := m.renew(ctx); err != nil && ctx.Err() == nil {
			m.config.Log.Debug("group: a renewal was not stored", "error", err)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func (m *Member) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx,
		renewalsMax*renewEvery/2) // short, so that the next renewal is in time if this one is lost
	defer cancel()
	m.mu.Lock()
	data, err := json.Marshal(m.self)
	m.mu.Unlock()
	if err != nil {
		return err
	}
	_, err = m.kv.Put(ctx, key(m.self.Worker), data)
	return err
}

func (m *Member) watch(ctx context.Context) {
	for ctx.Err() == nil {
		watcher, err := m.kv.WatchAll(ctx)
		for heard := err == nil; heard; {
			var entry jetstream.KeyValueEntry
			select {
			case entry, heard = <-watcher.Updates():
			// replace a watcher that does not even see this worker's renewals
			case <-time.After(2 * presenceTTL):
				heard = false
			case <-ctx.Done():
				heard = false
			}
			if entry != nil {
				m.processEntry(entry)
			}
		}
		if err == nil {
			err = watcher.Stop()
		}
		if err != nil && ctx.Err() == nil {
			m.config.Log.Debug("group: the workers cannot be watched", "error", err)
		}
		_ = request.Pause(ctx, watchAgain)
	}
}

// processEntry processes one renewal, or the departure of a worker.
func (m *Member) processEntry(entry jetstream.KeyValueEntry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var p Presence
	switch {
	case entry.Key() == disagreementKey:
		m.endIfNamed(entry.Value())
	case entry.Key() == drainKey(m.self.Worker):
		m.self.Drains = m.self.Drains || bytes.Equal(entry.Value(), drainRequest(m.self.Since))
	case entry.Operation() != jetstream.KeyValuePut:
		maps.DeleteFunc(m.workers, func(name string, _ *latestEntry) bool {
			return key(name) == entry.Key() && name != m.self.Worker
		})
	case json.Unmarshal(entry.Value(), &p) != nil || p.Worker == "":
		return
	case p.Worker == m.self.Worker:
		m.renewals++
		maps.DeleteFunc(m.workers, func(name string, w *latestEntry) bool {
			return name != m.self.Worker && m.renewals >= w.at+renewalsMax
		})
	case p.Config == m.self.Config && p.Arch == m.self.Arch:
		// an incompatible worker is refused at its start
		m.workers[p.Worker] = &latestEntry{Presence: p, at: m.renewals}
	}
}

// live lists the workers that take shards, in order.
func (m *Member) live() (names []string) {
	for name, w := range m.workers {
		if !w.Drains && (name != m.self.Worker || !m.self.Drains) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Name returns the name of this worker.
func (m *Member) Name() string { return m.config.Self.Worker }

// Workers returns the newest entries of the live workers, without those that are handing their work
// over.
func (m *Member) Workers() (all []Presence) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range m.live() {
		if name == m.self.Worker {
			all = append(all, m.self) // newer than the one that came back
		} else {
			all = append(all, m.workers[name].Presence)
		}
	}
	return all
}

// Say changes this worker's entry from its next renewal on.
func (m *Member) Say(change func(*Presence)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	change(&m.self)
}

// Slowest returns the follower of another worker that is furthest behind in the output log.
func (m *Member) Slowest() (name string, taken uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, w := range m.workers {
		if w.Worker != m.self.Worker && w.Needs != "" && (name == "" || w.Taken < taken) {
			name, taken = w.Needs+" of worker "+w.Worker, w.Taken
		}
	}
	return name, taken
}

// Leave ends the membership: the others take this worker's shards over at once.
func (m *Member) Leave() error {
	m.cancel()
	m.running.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), presenceTTL)
	defer cancel()
	if err := m.kv.Delete(ctx, key(m.self.Worker)); err != nil {
		return fmt.Errorf("group: bucket %s: %w", m.config.Bucket, err)
	}
	return nil
}
