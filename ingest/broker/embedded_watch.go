package broker

import (
	"errors"
	"os"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// RoomMin is the number of bytes that can be written while Room has no error.
const RoomMin = 16 << 20

// WriteError returns the first error of writing of the server, which takes nothing any more then:
// it must be closed, and started anew when there is Room. What it has acknowledged of streams in
// AsyncPersistMode may be lost, so that who has published to those must see what they hold.
func (e *Embedded) WriteError() string {
	if !e.server.JetStreamEnabled() {
		return "it has turned its store off"
	}
	for _, one := range e.server.Healthz(&server.HealthzOptions{Details: true}).Errors {
		if one.Type == server.HealthzErrorStream && strings.Contains(one.Error, "write error") {
			return one.Error
		}
	}
	return ""
}

// Room reports why not much can be written beside the streams.
func (e *Embedded) Room() error {
	file, err := os.Create(e.scratch)
	if err != nil {
		return err
	}
	defer os.Remove(e.scratch)
	block := make([]byte, 1<<20) // written, since a disk can take a size that it has no room for
	for n := 0; n < RoomMin && err == nil; n += len(block) {
		_, err = file.Write(block)
	}
	return errors.Join(err, file.Sync(), file.Close())
}
