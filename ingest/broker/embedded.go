package broker

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"gqlstream/ingest/event"
)

const storeDir = "nats" // subdirectory of the state directory with the streams

// embeddedReadyWaitMax bounds how long a starting server may take to recover its
// store (measured: 0.2 s for 270 MB).
const embeddedReadyWaitMax = 2 * time.Minute

// EmbeddedConfig describes the NATS server inside this process.
type EmbeddedConfig struct {
	// Dir is the state directory. The server locks it (see AcquireLock) and keeps
	// its streams in Dir/nats.
	Dir string

	// Listen is a loopback address ("127.0.0.1:4222", "localhost:0") on which other
	// processes of this host reach the server. Empty: no port at all.
	Listen string

	Log *slog.Logger // warnings and errors of the server; nil: nowhere

	storeBytesMax int64 // for tests; 0: three quarters of the free space
}

// Embedded is a NATS server with JetStream inside this process. Every message of the log is on the
// disk before it is acknowledged. After a failed write, on a full disk for example, it accepts
// nothing any more: see WriteError.
type Embedded struct {
	server  *server.Server
	lock    *os.File // see AcquireLock
	log     *slog.Logger
	scratch string // file that Room writes
}

// StartEmbedded locks the state directory and starts a server in it. A second
// process on the same directory gets an error that matches ErrLocked at once.
func StartEmbedded(c EmbeddedConfig) (*Embedded, error) {
	options, err := serverOptions(c)
	if err != nil {
		return nil, err
	}
	lock, err := AcquireLock(c.Dir)
	if err != nil {
		return nil, err
	}
	e := &Embedded{
		lock:    lock,
		log:     cmp.Or(c.Log, slog.New(slog.DiscardHandler)),
		scratch: filepath.Join(c.Dir, storeDir, "room.tmp"),
	}
	_ = os.Remove(e.scratch) // left by a process that was killed
	err = completeSettings(options.StoreDir, e.log)
	if err == nil {
		err = e.start(options)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("embedded server in %s: %w", c.Dir, err),
			e.Close())
	}
	return e, nil
}

func (e *Embedded) start(options *server.Options) error {
	s, err := server.NewServer(options)
	if err != nil {
		return err
	}
	log := &serverLog{log: e.log}
	s.SetLogger(log, false, false)
	e.server = s
	s.Start()
	const look = 50 * time.Millisecond
	for waited := time.Duration(0); ; waited += look {
		ready := s.ReadyForConnections(look)
		switch text := log.fatal.Load(); {
		case text != nil:
			return errors.New(*text)
		case ready:
			return nil
		case waited >= embeddedReadyWaitMax:
			return fmt.Errorf("not ready after %v", embeddedReadyWaitMax)
		}
	}
}

// Connect returns a connection that does not go through the network.
func (e *Embedded) Connect() (*nats.Conn, error) {
	nc, err := nats.Connect("", append(connectionOptions(e.log), nats.InProcessServer(e.server))...)
	if err != nil {
		return nil, fmt.Errorf("connect to the embedded server: %w", err)
	}
	return nc, nil
}

// URL returns the address of the server for other processes, or "" if it has no port.
func (e *Embedded) URL() string {
	if e.server.Addr() == nil {
		return ""
	}
	return e.server.ClientURL()
}

// Close stops the server, waits until it has written everything, and unlocks the directory. Close
// connections first. A second Close does nothing.
func (e *Embedded) Close() error {
	if e.server != nil {
		e.server.Shutdown()
		e.server.WaitForShutdown()
		e.server = nil
	}
	lock := e.lock
	if e.lock = nil; lock == nil {
		return nil
	}
	return lock.Close()
}

func serverOptions(c EmbeddedConfig) (*server.Options, error) {
	if c.Dir == "" {
		return nil, errors.New("embedded server without a state directory")
	}
	o := &server.Options{
		ServerName: "gqlstream",
		DontListen: c.Listen == "",
		JetStream:  true,
		StoreDir:   filepath.Join(c.Dir, storeDir),
		SyncAlways: true,
		// Only streams in AsyncPersistMode wait for this; the log does not.
		SyncInterval: time.Second,
		MaxPayload:   event.MessageBytesMax,

		JetStreamMaxStore:      c.storeBytesMax,
		DisableJetStreamBanner: true,
		NoSigs:                 true,
	}
	if c.Listen != "" {
		host, port, err := ListenAddress(c.Listen)
		if err != nil {
			return nil, err
		}
		o.Host, o.Port = host, port
	}
	return o, nil
}

// ListenAddress splits a loopback address. Port 0 means a free one.
func ListenAddress(listen string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(listen)
	if err != nil {
		return "", 0, fmt.Errorf("embedded server: listen address %q: want host:port, for"+
			" example 127.0.0.1:4222: %w", listen, err)
	}
	port, err = strconv.Atoi(text)
	if err != nil || port < 0 || port > math.MaxUint16 {
		return "", 0, fmt.Errorf(
			"embedded server: listen address %q: the port must be 0 to"+
				" %d",
			listen,
			math.MaxUint16,
		)
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", 0, fmt.Errorf(
			"embedded server: listen address %q can be reached from other"+
				" hosts, and this server has neither users nor encryption: listen on 127.0.0.1, "+
				"or run a"+
				" nats-server with both and connect to it with --nats URL",
			listen,
		)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
}

// serverLog passes warnings and errors to the program's log, and keeps the error that stops a
// server. Notices, debugging and traces of the server are dropped.
type serverLog struct {
	log   *slog.Logger
	fatal atomic.Pointer[string]
}

func (*serverLog) Noticef(string, ...any) {}
func (*serverLog) Debugf(string, ...any)  {}
func (*serverLog) Tracef(string, ...any)  {}

func (l *serverLog) Warnf(format string, v ...any) {
	l.log.Warn("nats-server: " + fmt.Sprintf(format, v...))
}

func (l *serverLog) Errorf(format string, v ...any) {
	l.log.Error("nats-server: " + fmt.Sprintf(format, v...))
}

func (l *serverLog) Fatalf(format string, v ...any) {
	text := fmt.Sprintf(format, v...)
	l.fatal.CompareAndSwap(nil, &text)
	l.Errorf("%s", text)
}

// RoomMin is the number of bytes that fit on the disk while Room returns no error.
const RoomMin = 16 << 20

// WriteError returns the first write error of the server. From then on the server accepts nothing:
// close it, and start it again when Room returns no error. Acknowledged messages of streams in
// AsyncPersistMode may be lost, so their publishers must check the content of the streams.
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

// CheckSpace returns an error if the disk of the streams has little space left.
func (e *Embedded) CheckSpace() error {
	file, err := os.Create(e.scratch)
	if err != nil {
		return err
	}
	defer os.Remove(e.scratch)
	// written, since a disk can accept a file size that it has no space for
	block := make([]byte, 1<<20)
	for n := 0; n < RoomMin && err == nil; n += len(block) {
		_, err = file.Write(block)
	}
	return errors.Join(err, file.Sync(), file.Close())
}
