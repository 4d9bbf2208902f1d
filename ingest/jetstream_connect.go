package ingest

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
)

// ConnectConfig describes a connection to a NATS server outside this process.
type ConnectConfig struct {
	URL         string       // nats://host:4222, or several separated by commas
	Credentials string       // path of a credentials file; empty: none
	Log         *slog.Logger // connection troubles; nil: nowhere
}

// Connect connects to an outside server. A server that cannot be reached now is an
// error; a connection that breaks later is restored for as long as it takes.
func Connect(c ConnectConfig) (*nats.Conn, error) {
	options := connectionOptions(c.Log)
	if c.Credentials != "" {
		options = append(options, nats.UserCredentials(c.Credentials))
	}
	nc, err := nats.Connect(c.URL, options...)
	if err != nil {
		return nil, fmt.Errorf("ingest: connect to %s: %w", c.URL, err)
	}
	return nc, nil
}

// connectionOptions make the client reconnect for ever and report to log instead
// of to standard error, which is its default.
func connectionOptions(log *slog.Logger) []nats.Option {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return []nats.Option{
		nats.Name("gqlstream"),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(200 * time.Millisecond),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			log.Warn("nats", "error", err)
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				log.Warn("nats: connection lost", "error", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			log.Info("nats: connected again", "url", nc.ConnectedUrlRedacted())
		}),
	}
}
