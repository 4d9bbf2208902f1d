package sinks

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"
)

// startedTooLate is a goroutine of the library that waits for ever on no channel when a
// publisher is cleaned up before it was scheduled for the first time.
const startedTooLate = "github.com/nats-io/nats.go/jetstream." +
	"(*jetStream).resetPendingAcksOnReconnect"

// sourcing is a goroutine of the server that may outlive the server by seconds when that
// ends while a bucket begins to copy a stream.
const sourcing = "github.com/nats-io/nats-server/v2/server.(*stream).trySetupSourceConsumer.func3"

// serverEnv makes the test binary a server that can be killed: DIRECTORY is its value,
// and serverPortEnv says where it listens.
const (
	serverEnv     = "GQLSTREAM_TEST_SERVER"
	serverPortEnv = "GQLSTREAM_TEST_PORT"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(serverEnv); dir != "" {
		serve(dir)
	}
	goleak.VerifyTestMain(
		m,
		goleak.IgnoreTopFunction(startedTooLate),
		goleak.IgnoreTopFunction(sourcing),
	)
}

// serve is a server until it is killed. It prints its port.
func serve(dir string) {
	port, err := strconv.Atoi(os.Getenv(serverPortEnv))
	if err != nil || port == 0 {
		port = server.RANDOM_PORT
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "killed", Host: "127.0.0.1", Port: port, JetStream: true, StoreDir: dir,
		NoSigs: true, SyncAlways: true,
	})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	s.Start()
	if !s.ReadyForConnections(time.Minute) {
		fmt.Println("not ready")
		os.Exit(1)
	}
	fmt.Println(s.ClientURL())
	select {}
}

// DefaultNames returns the names that hang on prefixDefault.
func DefaultNames() Names {
	n, err := NewNames("")
	if err != nil {
		panic(err)
	}
	return n
}

// Publish stores an emission if it is due. It must be called once for each position, in order.
func (w *Writer) Publish(ctx context.Context, e Emission) error {
	if !w.Admit(&e) {
		return nil
	}
	return w.Store(ctx, e)
}
