package sinks

import (
	"context"
	"errors"
	"fmt"
)

// ErrLost is what an error matches when the broker has lost records that it had
// acknowledged, as it can when it is killed. They can be made again, from a checkpoint
// before them.
var ErrLost = errors.New("the broker has lost what it had acknowledged")

// ackedRecord is a record that the broker has acknowledged.
type ackedRecord struct {
	subject  string
	place    place
	sequence uint64
}

// kept returns ErrLost if the broker has gone away since it acknowledged records, and
// come back without the newest.
func (s *subjects) kept(ctx context.Context) error {
	now := s.nc.Stats().Reconnects
	if now == s.reconnects || s.acked.sequence == 0 {
		s.reconnects = now
		return nil
	}
	delete(s.known, s.acked.subject)
	last, err := s.lookUp(ctx, s.acked.subject)
	switch {
	case err != nil:
		return err
	case last.place.compare(s.acked.place) < 0:
		return fmt.Errorf("message %d: %w", s.acked.sequence, ErrLost)
	}
	s.reconnects = now
	return nil
}

// noteAcked remembers the newest record that was acknowledged, as long as the broker is
// known not to have gone away meanwhile: what comes after that proves nothing.
func (s *subjects) noteAcked(r record, sequence uint64) {
	if sequence > s.acked.sequence && s.nc.Stats().Reconnects == s.reconnects {
		s.acked = ackedRecord{r.subject, r.place, sequence}
	}
}
