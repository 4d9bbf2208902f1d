package broker

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/request"
)

// ConnectConfig describes a connection to a NATS server outside this process.
type ConnectConfig struct {
	// nats://host:4222, or several separated by commas
	URL string `yaml:"url"`
	// path of a credentials file, or of the seed of an nkey; empty: none
	Credentials string `yaml:"credentials"`
	// file with the authority that signed the server's certificate; empty: the authorities that the
	// system trusts
	CAFile   string `yaml:"ca_file"`
	CertFile string `yaml:"cert_file"` // client certificate, with its key; empty: none
	KeyFile  string `yaml:"key_file"`  // of the client certificate
	// JetStream domain behind a leaf node; empty: the server's own
	Domain string       `yaml:"domain"`
	Log    *slog.Logger `yaml:"-"` // for connection troubles; nil: none
}

func (c *ConnectConfig) options() ([]nats.Option, error) {
	options := connectionOptions(c.Log)
	if c.Credentials != "" {
		credentials, err := readCredentials(c.Credentials)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Credentials, err)
		}
		options = append(options, credentials)
	}
	if c.CAFile != "" {
		options = append(options, nats.RootCAs(c.CAFile))
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return nil, errors.New(
			"a client certificate and its key go together, and one of them is missing")
	}
	if c.CertFile != "" {
		options = append(options, nats.ClientCert(c.CertFile, c.KeyFile))
	}
	return options, nil
}

// ValidateFiles reports the configured files that cannot be read.
func (c *ConnectConfig) ValidateFiles() error {
	var errs []error
	for _, path := range []string{c.Credentials, c.CAFile, c.CertFile, c.KeyFile} {
		if path == "" {
			continue
		}
		if _, err := os.ReadFile(path); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// readCredentials returns the option for a credentials file, which holds a JWT, or for a file that
// holds only the seed of an nkey.
func readCredentials(path string) (nats.Option, error) {
	if text, err := os.ReadFile(path); err == nil && bytes.Contains(text, []byte("NATS USER JWT")) {
		return nats.UserCredentials(path), nil
	}
	return nats.NkeyOptionFromSeed(path)
}

// Connect connects to an outside server. A server that cannot be reached now is an
// error; a connection that breaks later is restored for as long as it takes.
func Connect(c ConnectConfig) (*nats.Conn, error) {
	options, err := c.options()
	if err != nil {
		return nil, err
	}
	nc, err := nats.Connect(c.URL, options...)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w",
			Redacted(c.URL), redactError(err, c.URL))
	}
	return nc, nil
}

// Redacted returns URLs, separated by commas, from the last host on that has a password or token
// before it, so that no secret is left, even with unusual characters.
func Redacted(urls string) string {
	if at := strings.LastIndexByte(urls, '@'); at >= 0 {
		return "xxxxx" + urls[at:]
	}
	return urls
}

// redactError returns err without the parts of the URLs that it repeats: a password with a slash,
// for example, ends the host early, and its beginning appears in the error as a port.
func redactError(err error, urls string) error {
	var bad *url.Error
	if errors.As(err, &bad) && Redacted(urls) != urls {
		return errors.New(
			"this is no URL: its port is no number, or its name or password has a character" +
				" that must be written as % and two digits there, such as %2F for /",
		)
	}
	return err
}

// A dead link, after a crash of the host or behind a firewall that drops packets, is given up after
// pingEvery times (pingsUnansweredMax + 1). The client's defaults take minutes.
const (
	pingEvery          = 2 * time.Second
	pingsUnansweredMax = 2
)

// connectionOptions make the client reconnect for ever, and report to log; its default is standard
// error.
func connectionOptions(log *slog.Logger) []nats.Option {
	log = cmp.Or(log, slog.New(slog.DiscardHandler))
	return []nats.Option{
		nats.Name("gqlstream"),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(200 * time.Millisecond),
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(pingsUnansweredMax),
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

// Config names the NATS server of a pipeline: an outside one by its URL, or the embedded one of a
// state directory.
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
	Where    string // description of the server
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
