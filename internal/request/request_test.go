package request

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const testWaitMax = time.Minute // for expected events on a busy machine

// startServer returns the address of a server of its own, which has streams if it stores, and a
// connection to it.
func startServer(t *testing.T, stores bool) (string, *nats.Conn) {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: stores, StoreDir: t.TempDir(),
		NoSigs: true, NoLog: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(testWaitMax) {
		t.Fatal("the server does not start")
	}
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return s.ClientURL(), nc
}

// answer subscribes to questions at a server, and answers them if it shall.
func answer(t *testing.T, nc *nats.Conn, answers bool) {
	t.Helper()
	_, err := nc.Subscribe("question", func(m *nats.Msg) {
		if answers {
			_ = m.Respond([]byte("answer"))
		}
	})
	if err = errors.Join(err, nc.FlushTimeout(testWaitMax)); err != nil {
		t.Fatal(err)
	}
}

// A request that a server leaves without an answer must be asked of another one.
func TestAnotherServerIsAskedAfterSilence(t *testing.T) {
	silent, first := startServer(t, false)
	good, second := startServer(t, false)
	answer(t, first, false)
	answer(t, second, true)
	nc, err := nats.Connect(silent+","+good, nats.DontRandomize(), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	var silence Silence
	for begun := time.Now(); ; {
		ctx, cancel := Context(t.Context(), nc)
		_, err := nc.RequestWithContext(ctx, "question", nil)
		cancel()
		silence.After(nc, err)
		if err == nil {
			break
		}
		if time.Since(begun) > testWaitMax {
			t.Fatalf("no server has answered: %v", err)
		}
	}
	if got := nc.ConnectedUrl(); got != good {
		t.Errorf("connected to %s, want %s", got, good)
	}
}

// A request in progress must end at once when the client reconnects, because its answer is
// lost. A request that was cancelled or answered must not touch the connection.
func TestRequestsEndWithTheirConnection(t *testing.T) {
	url, responder := startServer(t, false)
	answer(t, responder, true)
	other, _ := startServer(t, false)
	nc, err := nats.Connect(url+","+other, nats.DontRandomize(), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	answered, cancel := Context(t.Context(), nc)
	if _, err := nc.RequestWithContext(answered, "question", nil); err != nil {
		t.Fatal(err)
	}
	cancel()
	impatient, giveUp := context.WithCancel(t.Context())
	given, cancel := Context(impatient, nc)
	giveUp()
	<-given.Done()
	cancel()
	if n := nc.Stats().Reconnects; n != 0 {
		t.Errorf("%d reconnections without cause", n)
	}
	asking, cancel := Context(t.Context(), nc)
	defer cancel()
	if err := nc.ForceReconnect(); err != nil {
		t.Fatal(err)
	}
	<-asking.Done()
	if !errors.Is(asking.Err(), context.Canceled) {
		t.Errorf("the request ended with %v, not with its connection", asking.Err())
	}
}

// If a cluster loses a request during an election, the request must be sent again before its
// timeout. The caller then learns early that there is a leader.
func TestALostQuestionIsAskedAgain(t *testing.T) {
	_, nc := startServer(t, false)
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	for subject, answer := range map[string]string{
		"$JS.API.STREAM.INFO.S":       `{"config": {"name": "S"}}`,
		"$JS.API.CONSUMER.CREATE.S.*": `{"stream_name": "S", "name": "c", "config": {}}`,
	} {
		asked := 0
		if _, err := nc.Subscribe(subject, func(m *nats.Msg) {
			if asked++; asked > 1 { // the first one is lost
				_ = m.Respond([]byte(answer))
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := (cluster{js}).Stream(t.Context(), "S"); err != nil {
		t.Errorf("stream: %v", err)
	}
	if _, err := (cluster{js}).CreateConsumer(t.Context(), "S",
		jetstream.ConsumerConfig{}); err != nil {
		t.Errorf("consumer: %v", err)
	}
}

// A connection that delivers nothing must be given up after the first silent interval, not after
// the second.
func TestADeadLinkIsLeftAfterOneSilence(t *testing.T) {
	good, _ := startServer(t, false)
	link, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	dead := make(chan struct{})
	go func() {
		client, err := link.Accept()
		if err != nil {
			return
		}
		defer client.Close()
		server, err := net.Dial("tcp", strings.TrimPrefix(good, "nats://"))
		if err != nil {
			return
		}
		defer server.Close()
		go func() {
			_, _ = io.Copy(server, client) // data from the client arrives
		}()
		for buffer := make([]byte, 1024); ; {
			n, err := server.Read(buffer)
			select {
			case <-dead: // nothing comes back
				n = 0
			default:
			}
			if _, failed := client.Write(buffer[:n]); err != nil || failed != nil {
				return
			}
		}
	}()
	nc, err := nats.Connect(
		"nats://"+link.Addr().String()+","+good,
		nats.DontRandomize(),
		nats.MaxReconnects(-1),
	)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	again := nc.StatusChanged(nats.CONNECTED)
	close(dead)
	var silence Silence
	silence.After(nc, context.DeadlineExceeded)
	select {
	case <-again:
	case <-time.After(testWaitMax):
		t.Fatal("the dead link was not left")
	}
	if got := nc.ConnectedUrl(); got != good {
		t.Errorf("connected to %s", got)
	}
}

// A server that goes on saying that nobody can decide must be left for another one, and one that
// says so a few times must not: clusters elect.
func TestAServerThatCannotDecideIsLeft(t *testing.T) {
	cut, _ := startServer(t, false)
	good, _ := startServer(t, false)
	nc, err := nats.Connect(cut+","+good, nats.DontRandomize(), nats.MaxReconnects(-1))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	again := nc.StatusChanged(nats.CONNECTED)
	var silence Silence
	for range 2*unanswered - 1 {
		silence.After(
			nc,
			&jetstream.APIError{
				Code:      503,
				ErrorCode: jetstream.ErrorCode(nats.JSErrCodeJetStreamNotAvailable),
			},
		)
	}
	if got := nc.ConnectedUrl(); got != cut || nc.Stats().Reconnects > 0 {
		t.Errorf("an election made it leave for %s", got)
	}
	silence.After(
		nc,
		&jetstream.APIError{
			Code:      503,
			ErrorCode: jetstream.ErrorCode(nats.JSErrCodeJetStreamNotAvailable),
		},
	)
	select {
	case <-again:
	case <-time.After(testWaitMax):
		t.Fatal("no other server was asked")
	}
	if got := nc.ConnectedUrl(); got != good {
		t.Errorf("connected to %s", got)
	}
}

// A sender must try again after those answers of a cluster that can change a moment later,
// and not after the others.
func TestTransientErrorsAreTriedAgain(t *testing.T) {
	for code, want := range map[jetstream.APIError]bool{
		{Code: 409, ErrorCode: 10158}: true,  // a duplicate is in process
		{Code: 429, ErrorCode: 10167}: true,  // too many requests
		{Code: 503, ErrorCode: 10008}: true,  // the cluster elects
		{Code: 500, ErrorCode: 10047}: true,  // no space
		{Code: 400, ErrorCode: 10054}: false, // the message is too large
		{Code: 403, ErrorCode: 10026}: false, // not permitted
	} {
		if got := Passes(fmt.Errorf("publish: %w", &code)); got != want {
			t.Errorf("%+v is tried again: %t", code, got)
		}
	}
	for err, want := range map[error]bool{
		// a long message, and the server was killed
		&net.OpError{Op: "write", Net: "tcp", Err: syscall.ECONNRESET}: true,
		net.ErrClosed: true,
		// a bucket is watched while the cluster elects
		&nats.APIError{Code: 503, ErrorCode: 10008}:                true,
		&nats.APIError{Code: 404, ErrorCode: 10059}:                false,
		&os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}: false,
	} {
		if got := Passes(fmt.Errorf("publish: %w", err)); got != want {
			t.Errorf("%v is tried again: %t", err, got)
		}
	}
}
