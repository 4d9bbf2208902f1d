//go:build unix && !race

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/lab/campaign"
	"gqlstream/sinks"
)

const (
	replicaDamagesOfLog = 8       // damages in the life of one cluster
	replicaBlockBytes   = 120_000 // limit of a new stream, so that its blocks have 32 kB
	replicaFilledBytes  = 90_000  // after which the limit goes
)

// In a cluster of three servers the files of one server's copy of a log are damaged, while a run
// goes on. Either the servers mend the copy, or a scrub must name the server; then the way on that
// it names must make the copy whole. No record may differ from those of an undisturbed run.
// GQLSTREAM_REPLICA_DAMAGES sets the number of damages (make faults: 100).
func TestDamagedCopiesAreMendedOrNamed(t *testing.T) {
	count := campaign.Size(t, "GQLSTREAM_REPLICA_DAMAGES", 2)
	seed := campaign.Seed(t, 1)
	tally := map[string]int{}
	for done := 0; done < count; seed++ {
		r := newReplicaRun(t, seed)
		n := min(count-done, replicaDamagesOfLog)
		for i := range n {
			tally[r.try(done+i)]++
		}
		r.publisher.Close()
		r.drain()
		r.compare()
		r.close()
		done += n
		t.Logf("seed %d: %d damages so far: %v; %d records, %d differences", seed, done, tally,
			r.report.records, r.report.different)
	}
}

// replicaRun is a run on a cluster whose copies are damaged.
type replicaRun struct {
	*clusterRun
	events    *crashEvents
	publisher *ingest.Publisher
}

// newReplicaRun starts a run on a cluster whose logs have several blocks.
func newReplicaRun(t *testing.T, seed uint64) *replicaRun {
	t.Helper()
	c := newClusterRun(t, seed, recoveries{})
	p, err := ingest.NewPublisher(c.nodes.nc,
		ingest.PublisherConfig{Producer: "crash", RetryFor: crashStartMax})
	c.must(err)
	r := &replicaRun{c, &crashEvents{rand: rand.New(rand.NewPCG(seed, 12))}, p}
	ctx, cancel := context.WithTimeout(t.Context(), groupWaitMax)
	defer cancel()
	names := broker.DefaultStreamNames()
	names.Replicas, names.LogBytes = len(r.nodes.list), replicaBlockBytes
	r.must(broker.EnsureStreams(ctx, r.nodes.js, names))
	_, err = r.nodes.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: estimatesName, Subjects: []string{"gqlest.shard.*", "gqlest.estimate.>"},
		Replicas: len(r.nodes.list), MaxBytes: replicaBlockBytes, AllowAtomicPublish: true,
	})
	r.must(err)
	r.start()
	for _, name := range []string{estimatesName, logName} {
		for {
			s, err := r.nodes.js.Stream(ctx, name)
			r.must(err)
			if s.CachedInfo().State.Bytes > replicaFilledBytes {
				conf := s.CachedInfo().Config
				conf.MaxBytes = -1
				if name == estimatesName {
					conf.MaxBytes = sinks.EstimatesBytesDefault
				}
				_, err := r.nodes.js.UpdateStream(ctx, conf)
				r.must(err)
				break
			}
			r.publish(ctx, 5)
		}
	}
	return r
}

// publish stores messages and waits until their estimates are published. It returns false if the
// run has refused the copy that it reads.
func (r *replicaRun) publish(ctx context.Context, messages int) (goesOn bool) {
	r.t.Helper()
	for range messages {
		r.must(r.publisher.Publish(ctx, r.events.next()))
	}
	r.must(r.publisher.Flush(ctx))
	r.report.messages += messages
	r.tries = 0
	for end := r.end(ctx); r.published(ctx) < end; pause(ctx, 50*time.Millisecond) {
		r.must(ctx.Err())
		select {
		case <-r.done:
			r.process = nil
			if strings.Contains(lastLine(r.said()), "gqlstream scrub") {
				return false
			}
			if r.tries++; r.tries > startsMax {
				r.t.Fatalf("seed %d: the run does not start\n%s", r.seed, r.said())
			}
			r.start()
		default:
		}
	}
	return true
}

// try damages one copy and returns what came of it.
func (r *replicaRun) try(i int) string {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), 2*groupWaitMax)
	defer cancel()
	stream := []string{logName, estimatesName}[i%2]
	leads := i/2%2 == 0
	kind := damageKinds[(i+i/len(damageKinds))%len(damageKinds)]
	victim := r.nodes.leader(stream)
	if !leads {
		victim = (victim + 1 + r.rand.IntN(2)) % len(r.nodes.list)
	}
	n := r.nodes.list[victim]
	killed := r.rand.IntN(2) == 0
	if killed {
		n.kill()
	} else {
		n.end()
	}
	path := r.damage(victim, stream, kind, killed)
	what := fmt.Sprintf("damage %d: %s of %s on n%d, led %v, killed %v", i, kind, path, victim,
		leads, killed)
	n.start(r.t)
	r.publish(ctx, 5)
	r.awaitCurrent(ctx, stream)
	if leads {
		r.makeLeader(ctx, stream, fmt.Sprint("n", victim))
	}
	if r.process != nil {
		r.killRun() // it reads the log again, perhaps from the damaged copy
	}
	outcome, goesOn := "mended by the servers", r.process != nil && r.publish(ctx, 5)
	if code, out, said := r.scrub(); code != exitFine {
		if outcome = "named by a scrub"; !goesOn {
			outcome = "refused by a start, and named by a scrub"
		}
		if !strings.Contains(out, fmt.Sprintf("server n%d: ", victim)) {
			r.t.Errorf("%s: the scrub does not name the server\n%s%s", what, out, said)
		}
		r.copyAgain(ctx, stream, fmt.Sprint("n", victim))
		if code, out, said := r.scrub(); code != exitFine {
			r.t.Errorf("%s: after another copy\n%s%s", what, out, said)
		}
	} else if !goesOn {
		r.t.Errorf("%s: a start refuses what a scrub finds whole\n%s", what, r.said())
	}
	if r.process == nil {
		r.start()
		r.publish(ctx, 5)
	}
	r.t.Logf("seed %d: %s: %s", r.seed, what, outcome)
	return fmt.Sprintf("%s, led %v, %s, %s", stream, leads, kind, outcome)
}

// scrub scrubs, and again while a stream has no leader: that is not damage.
func (r *replicaRun) scrub() (code int, out, said string) {
	for range 30 {
		code, out, said = runCommand("scrub", "--config", r.config, "--state", r.dir, "--nats",
			r.nodes.urls((*node).doorAddress))
		if !strings.Contains(said, "no responders") {
			break
		}
		time.Sleep(time.Second)
	}
	return code, out, said
}

// damage damages a file with messages of a stream on a server that has ended, and returns its name.
func (r *replicaRun) damage(server int, stream, kind string, killed bool) string {
	r.t.Helper()
	dir := filepath.Join(filepath.Dir(r.nodes.list[server].config), fmt.Sprint(server),
		"jetstream", "$G", "streams", stream, "msgs")
	if killed {
		if err := os.Remove(filepath.Join(dir, "index.db")); err != nil && !os.IsNotExist(err) {
			r.t.Fatal(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.blk"))
	if err != nil || len(files) == 0 {
		r.t.Fatalf("seed %d: %d blocks of %s, %v", r.seed, len(files), stream, err)
	}
	path := files[r.rand.IntN(len(files))]
	damageFile(r.t, r.rand, path, kind)
	return filepath.Base(path) + fmt.Sprintf(" (of %d) of %s", len(files), stream)
}

// awaitCurrent waits until all copies of a stream follow its leader.
func (r *replicaRun) awaitCurrent(ctx context.Context, stream string) {
	r.t.Helper()
	for ; ; pause(ctx, 100*time.Millisecond) {
		s, err := r.nodes.js.Stream(ctx, stream)
		if err == nil && s.CachedInfo().Cluster != nil {
			peers := s.CachedInfo().Cluster.Replicas
			if len(peers) == len(r.nodes.list)-1 && !slices.ContainsFunc(peers,
				func(p *jetstream.PeerInfo) bool { return !p.Current || p.Offline }) {
				return
			}
		}
		if ctx.Err() != nil {
			r.t.Fatalf("seed %d: not all copies of %s follow: %v", r.seed, stream, err)
		}
	}
}

// makeLeader lets a server lead a stream.
func (r *replicaRun) makeLeader(ctx context.Context, stream, server string) {
	r.t.Helper()
	body := fmt.Appendf(nil, `{"placement": {"preferred": %q}}`, server)
	for ; fmt.Sprint("n", r.nodes.leader(stream)) != server; pause(ctx, 500*time.Millisecond) {
		r.must(ctx.Err())
		_, _ = r.nodes.nc.Request("$JS.API.STREAM.LEADER.STEPDOWN."+stream, body, time.Second)
	}
}

// copyAgain lets the servers copy a stream again from one that is whole, as the manual says.
func (r *replicaRun) copyAgain(ctx context.Context, stream, damaged string) {
	r.t.Helper()
	if leader := r.nodes.leader(stream); fmt.Sprint("n", leader) == damaged {
		r.makeLeader(ctx, stream, fmt.Sprint("n", (leader+1)%len(r.nodes.list)))
	}
	for _, replicas := range []int{1, len(r.nodes.list)} {
		s, err := r.nodes.js.Stream(ctx, stream)
		r.must(err)
		conf := s.CachedInfo().Config
		conf.Replicas = replicas
		_, err = r.nodes.js.UpdateStream(ctx, conf)
		r.must(err)
		for done := false; !done; pause(ctx, 100*time.Millisecond) {
			s, err := r.nodes.js.Stream(ctx, stream)
			r.must(ctx.Err())
			done = err == nil && s.CachedInfo().Cluster != nil &&
				len(s.CachedInfo().Cluster.Replicas) == replicas-1
		}
	}
	r.awaitCurrent(ctx, stream)
}

// end ends the server in order.
func (n *node) end() {
	_ = n.process.Process.Signal(syscall.SIGTERM)
	<-n.ended
	n.process = nil
}
