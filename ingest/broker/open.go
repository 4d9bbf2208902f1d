package broker

import (
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/request"
)

// Config names the NATS server of a pipeline: an outside one by its URL, or the one
// that this process starts in its state directory.
type Config struct {
	ConnectConfig        // to an outside server; without a URL: the embedded one
	Dir           string // state directory of the embedded server
	Listen        string // loopback address of the embedded server; empty: no port
}

// Broker is the NATS server in use and this process's connection to it.
type Broker struct {
	Embedded *Embedded // nil for an outside server
	NC       *nats.Conn
	JS       jetstream.JetStream
	Where    string // the server in words
}

// Open connects to the outside server that c names, or starts the embedded one.
func Open(c Config) (*Broker, error) {
	b := &Broker{}
	var err error
	if c.URL != "" {
		b.Where = "an outside server"
		b.NC, err = Connect(c.ConnectConfig)
	} else {
		b.Embedded, err = StartEmbedded(EmbeddedConfig{Dir: c.Dir, Listen: c.Listen, Log: c.Log})
		if err == nil {
			b.Where = "the embedded server in " + c.Dir
			if url := b.Embedded.URL(); url != "" {
				b.Where += ", open at " + url
			}
			b.NC, err = b.Embedded.Connect()
		}
	}
	if err == nil {
		b.JS, err = request.JetStream(b.NC, c.Domain)
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Close closes the connection and stops the embedded server.
func (b *Broker) Close() error {
	if b.NC != nil {
		b.NC.Close()
	}
	if b.Embedded != nil {
		return b.Embedded.Close()
	}
	return nil
}
