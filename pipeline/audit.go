package pipeline

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/internal/request"
	"gqlstream/sinks/web"
)

// audits are the results of auditing the streams. The goroutine of watchOutput writes them, and any
// may read them.
type audits struct {
	every   time.Duration
	discard bool // the discarding of old records has been reported

	mu    sync.Mutex // guards the fields below
	lacks []web.Lack // of each stream and each server asked, as reported
}

// missing returns the missing messages of the streams.
func (a *audits) missing() []web.Lack {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.lacks)
}

// record records the missing messages of a stream or a server, and reports whether they are new.
func (a *audits) record(l web.Lack) (news bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for i := range a.lacks {
		if one := &a.lacks[i]; one.Stream == l.Stream && one.Server == l.Server {
			news = one.Messages != l.Messages && l.Messages > 0
			one.Messages = l.Messages
			return news
		}
	}
	a.lacks = append(a.lacks, l)
	return l.Messages > 0
}

// streamsAuditMax bounds how long an audit of the streams may take.
const streamsAuditMax = 10 * time.Second

// auditStreams checks that the input log is still the one that was read and has safe settings. It
// reports messages that either log lacks, the first discarded records of the output log, and
// missing replicas. It ignores a broker that does not answer.
func (p *Pipeline) auditStreams(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, streamsAuditMax)
	defer cancel()
	if out, err := p.Broker.JS.Stream(ctx, p.names.Out.Estimates); err == nil {
		p.auditReplicas(out)
		state := out.CachedInfo().State
		p.auditHoles(ctx, out, uint64(state.NumDeleted), "")
		if state.FirstSeq > 1 && !p.observed.audits.discard {
			p.observed.audits.discard = true
			p.log.Warn(
				"the stream of estimates drops its oldest records, and explanations cannot go "+
					"back further; see output.stream_bytes_max",
				"stream", p.names.Out.Estimates, "begins", state.FirstTime)
		}
	}
	stream, err := p.Broker.JS.Stream(ctx, p.names.In.Log)
	if err != nil {
		return nil //nolint:nilerr // the source reports the error
	}
	p.auditReplicas(stream)
	if at := p.reached.at.Load(); at != nil {
		if err := at.Check(ctx, p.Broker.JS); errors.Is(err, ingest.ErrWrongHistory) {
			return err
		}
	}
	if holes, err := ingest.Holes(ctx, stream); err == nil {
		lacks := uint64(0)
		for _, hole := range holes {
			lacks += uint64(hole.Last - hole.First + 1)
		}
		p.auditHoles(ctx, stream, lacks, fmt.Sprint(holes))
	}
	return broker.AuditStream(stream.CachedInfo().Config)
}

// auditHoles reports messages that a stream, or one of its servers, has begun to lack.
func (p *Pipeline) auditHoles(ctx context.Context, s jetstream.Stream, lacks uint64, where string) {
	conf, first := s.CachedInfo().Config, s.CachedInfo().State.FirstSeq
	if p.observed.audits.record(web.Lack{Stream: conf.Name, Messages: lacks}) {
		p.log.Error("messages of a stream are gone: the broker has lost them, or somebody has "+
			"deleted"+
			" them. Published records stay; docs/operations.md explains the repair",
			"stream", conf.Name, "messages", lacks, "positions", where)
	}
	if conf.Replicas <= 1 {
		return
	}
	const discards = 1000 // that a full stream may drop while it is asked
	tolerated := uint64(0)
	if conf.Discard == jetstream.DiscardOld && first > 1 {
		tolerated = discards
	}
	r, err := request.ProbeReplica(ctx, p.Broker.JS, conf.Name, tolerated)
	if err != nil {
		return // the next audit asks again
	}
	if p.observed.audits.record(web.Lack{Stream: conf.Name, Server: r.Server, Messages: r.Lacks}) {
		p.log.Error(
			"one server's copy of a stream lacks messages; docs/operations.md (Damage on disk)"+
				" says how the servers copy the stream again", "stream", conf.Name, "server",
			r.Server, "messages", r.Lacks)
	}
}

// auditReplicas warns about a stream that has lost copies. Ending the run would not help, and the
// remaining copies are in use.
func (p *Pipeline) auditReplicas(stream jetstream.Stream) {
	if err := request.AuditReplicas(stream, p.names.In.Replicas); err != nil {
		p.log.Warn("the loss of one server would lose messages of a stream", "because", err)
	}
}
