package pipeline

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest"
)

// reached is a file with the newest place of the log that this state directory has seen, and the
// end of the output log at that time. It is overwritten after every step and not synced. It
// survives the death of the process. The checkpoints and marks, which are synced, are older by up
// to a minute and a second: without this file, nothing would notice if a killed broker lost the
// events or the records after them.
type reached struct {
	path string
	file *os.File
	at   atomic.Pointer[ingest.Identity] // newest place of this run; nil: none
	log  string                          // name of the log of that place
	made int64                           // as in outputEnd
}

// outputEnd is the end of the output log. A stream that was made again has other sequences.
type outputEnd struct {
	sequence uint64 // of the last message
	made     int64  // when the broker made the stream, nanoseconds since 1970
}

// reachedBytes is the length of the file, so that one write replaces it.
const reachedBytes = 192

// nothingReached is the text of a file without a place. An empty file was cut off.
const nothingReached = "nothing"

// open opens the file for writing, and creates it if need be.
func (r *reached) open() (err error) {
	empty := r.empty()
	if r.file, err = os.OpenFile(r.path, os.O_RDWR|os.O_CREATE, 0o600); err == nil && empty {
		err = r.write(nothingReached)
	}
	return err
}

// write replaces the content of the file.
func (r *reached) write(text string) error {
	text += fmt.Sprintf(" %016x", xxhash.Sum64String(text+" "))
	_, err := r.file.WriteAt(fmt.Appendf(nil, "%-*s\n", reachedBytes-1, text), 0)
	return err
}

// record writes a place, unless the file has a later one. The main fold's goroutine calls it.
func (r *reached) record(id ingest.Identity, log string, output uint64) error {
	if now := r.at.Load(); now != nil && now.Position >= id.Position {
		return nil
	}
	r.at.Store(&id)
	r.log = log
	return r.recordOutput(output)
}

// recordOutput writes the newest place of this run again, with another end of the output log.
func (r *reached) recordOutput(sequence uint64) error {
	at := r.at.Load()
	if at == nil {
		return nil
	}
	return r.write(fmt.Sprintf("%d %s %s %d %d", at.Position, at.Digest, r.log, sequence, r.made))
}

// read returns the place and the end of the output log in the file. A damaged file has none, and
// one of an earlier release has no end.
func (r *reached) read() (at recordedPlace, end outputEnd, ok bool) {
	body, ok := r.verified()
	if !ok {
		return at, end, false
	}
	var digest string
	const fields = 3 // of the place
	n, _ := fmt.Sscanf(body, "%d %s %s %d %d", &at.Position, &digest, &at.log, &end.sequence,
		&end.made)
	at.Digest = ingest.ParseDigest(digest)
	at.RecordedBy = "the file " + r.path
	return at, end, n >= fields && at.Position > 0
}

// lostOutput returns how many messages the output log has lost at its end: messages that this
// state directory has seen, after the last one that the stream has now.
func (r *reached) lostOutput(now *jetstream.StreamInfo) uint64 {
	_, end, ok := r.read()
	if !ok || end.made != now.Created.UnixNano() || end.sequence <= now.State.LastSeq {
		return 0
	}
	return end.sequence - now.State.LastSeq
}

// verified returns the content of a whole file with the right checksum.
func (r *reached) verified() (body string, ok bool) {
	text, err := os.ReadFile(r.path)
	if err != nil || len(text) != reachedBytes {
		return "", false
	}
	body = strings.TrimRight(string(text), " \n")
	cut := strings.LastIndexByte(body, ' ') + 1
	return body[:cut], fmt.Sprintf("%016x", xxhash.Sum64String(body[:cut])) == body[cut:]
}

// empty reports whether the file is missing or empty.
func (r *reached) empty() bool {
	info, err := os.Stat(r.path)
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
}

// damaged reports whether the file has something else than a place.
func (r *reached) damaged() bool {
	if r.empty() {
		return false
	}
	_, ok := r.verified()
	return !ok
}

// forget removes the place from the file, which is open.
func (r *reached) forget() error {
	r.at.Store(nil)
	return r.write(nothingReached)
}

func (r *reached) close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}
