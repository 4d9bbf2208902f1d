package pipeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"gqlstream/ingest"
	"gqlstream/internal/checkpoint"
	"gqlstream/internal/request"
	"gqlstream/sinks/web"
)

// A run reads all that it has stored once a day, slowly, so that damage is found while the other
// copies and backups still exist.
const (
	scrubAfter = 10 * time.Minute // after the start
	scrubEvery = 24 * time.Hour
	// the stream is read in parts of scrubPart messages, with a pause after each: at most 5,000
	// messages a second
	scrubPart  = 500
	scrubPause = 100 * time.Millisecond
)

// scrubbing is the result of the last slow scrub. Any goroutine may use it.
type scrubbing struct {
	mu   sync.Mutex
	last web.Scrub
}

func (s *scrubbing) result() web.Scrub {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

// watchDamage scrubs again and again. In a group one worker reads the logs, and each its own disk.
func (p *Pipeline) watchDamage(ctx context.Context) error {
	for wait := scrubAfter; request.Pause(ctx, wait) == nil; wait = scrubEvery {
		p.scrub(ctx)
	}
	return nil
}

// scrub reads the checkpoints and the logs, and reports damage.
func (p *Pipeline) scrub(ctx context.Context) {
	begun := time.Now()
	faults, read, err := p.damages(ctx)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		p.log.Warn("the stored data could not be read whole; the next scrub begins again",
			"because", err)
		return
	}
	for _, fault := range faults {
		p.log.Error("stored data is damaged; docs/operations.md (Damage on disk) explains the "+
			"repair", "what", fault)
	}
	p.log.Info("scrubbed", "messages", read, "faults", len(faults), "took",
		time.Since(begun).Round(time.Second))
	p.observed.scrubbed.mu.Lock()
	defer p.observed.scrubbed.mu.Unlock()
	p.observed.scrubbed.last = web.Scrub{Ended: time.Now(), Faults: len(faults)}
}

// damages lists the damages of the checkpoints and the logs, and returns how many messages it has
// read.
func (p *Pipeline) damages(ctx context.Context) (faults []error, read uint64, err error) {
	faults, _, err = DamagedCheckpoints(p.settings.State)
	if err != nil || p.group != nil && !p.group.leads("scrub") {
		return faults, 0, err
	}
	var places []ingest.Place
	for _, at := range p.places(ctx, p.logID) {
		places = append(places, at.Place)
	}
	for _, stream := range []string{p.names.In.Log, p.names.Out.Estimates} {
		of, check := places, (func([]byte) error)(nil)
		if stream != p.names.In.Log {
			of, check = nil, CheckRecord
		}
		n := 0
		found, err := ingest.Scrub(ctx, p.Broker.JS, stream, of, func(data []byte) error {
			if n++; n%scrubPart == 0 {
				_ = request.Pause(ctx, scrubPause) // the feed reports an end of ctx
			}
			if check == nil {
				return nil
			}
			return check(data)
		})
		if err != nil {
			return faults, read, err
		}
		read += found.Messages
		for _, hole := range found.Holes {
			faults = append(faults, fmt.Errorf("%s: messages %v cannot be read", stream, hole))
		}
		faults = append(faults, found.Bad...)
		if len(found.Unread) > 0 {
			p.log.Warn("the copies of servers that do not answer were not scrubbed",
				"stream", stream, "servers", found.Unread)
		}
	}
	return faults, read, nil
}

// DamagedCheckpoints verifies every checkpoint of a state directory, and returns their number.
// Those of other releases are intact if their manifests match their checksums.
func DamagedCheckpoints(state string) (faults []error, verified int, err error) {
	dir := checkpoint.Look(checkpoint.Disk{}, checkpointsIn(state))
	positions, err := dir.List()
	for _, position := range positions {
		_, failed := dir.Verify(position)
		if failed == nil || errors.Is(failed, checkpoint.ErrFormat) {
			continue
		}
		if now, e := dir.List(); e != nil || len(now) == 0 || now[len(now)-1] > position {
			continue // a newer one has replaced it meanwhile
		}
		faults = append(faults, failed)
	}
	return faults, len(positions), err
}

// CheckRecord returns an error unless a message of the estimates is JSON, as all are. The broker's
// checksum of a message does not cover the length of its headers; if that is damaged, the headers
// and the record are divided elsewhere.
func CheckRecord(data []byte) error {
	if !json.Valid(data) {
		return errors.New("it is not JSON")
	}
	return nil
}
