// Package cluster holds the tests of the files for a NATS cluster, which are not Go.
package cluster

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"gqlstream/internal/testfile"
)

// text reads a file of the project, by its path from here.
func text(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.FromSlash(path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// setPasswords gives each role its name as the password.
func setPasswords(t *testing.T) {
	t.Helper()
	for _, role := range []string{
		"worker", "answers", "operator", "producer", "reader", "copies",
	} {
		t.Setenv(strings.ToUpper(role)+"_PASSWORD", role)
	}
}

// start starts a server by a configuration file, and returns it when it takes clients.
func start(t *testing.T, path string) *server.Server {
	t.Helper()
	options, err := server.ProcessConfigFile(path)
	if err != nil {
		t.Fatal(err)
	}
	options.NoSigs, options.NoLog = true, true
	s, err := server.NewServer(options)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(10 * time.Second) {
		t.Fatalf("the server of %s does not start", path)
	}
	return s
}

// dial connects as a role. Errors that the server sends are handed to denied.
func dial(t *testing.T, url, role string, denied chan<- error, options ...nats.Option) *nats.Conn {
	t.Helper()
	options = append(
		options,
		nats.UserInfo(role, role),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			select {
			case denied <- err:
			default:
			}
		}),
	)
	nc, err := nats.Connect(url, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// program is the path of gqlstream, which is built once for all tests of the package.
var program string

func TestMain(m *testing.M) {
	os.Exit(buildAndRun(m))
}

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "gqlstream-cluster-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "gqlstream")
	build := exec.Command("go", "build", "-o", program, "../../cmd/gqlstream")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// process is a running gqlstream with a file of its output.
type process struct {
	*exec.Cmd
	said string
}

// startProgram runs gqlstream. ended collects it and must be called once.
func startProgram(t *testing.T, args ...string) process {
	t.Helper()
	said, err := os.Create(filepath.Join(t.TempDir(), "said"))
	if err != nil {
		t.Fatal(err)
	}
	defer said.Close() // the process has its own
	command := exec.Command(program, args...)
	command.Stderr = said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = command.Process.Kill() }) // where the test failed before it ended
	return process{command, said.Name()}
}

// ended waits until the process ends, which must be without an error.
func (p process) ended(t *testing.T) {
	t.Helper()
	if err := p.Wait(); err != nil || t.Failed() {
		t.Errorf("%v: %v\n%s", p.Args[1:], err, text(t, p.said))
	}
}

// startRun runs a configuration until the test ends, and returns the address of its page.
func startRun(t *testing.T, config string, flags ...string) (page string) {
	t.Helper()
	p := startProgram(t, append([]string{"run", "--config", config}, flags...)...)
	t.Cleanup(func() {
		if err := p.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		p.ended(t)
	})
	return p.page(t)
}

// page returns the address of the page of a run, once it has one.
func (p process) page(t *testing.T) (page string) {
	t.Helper()
	address := regexp.MustCompile(`https?://127\.0\.0\.1:\d+`)
	await(t, "the page of the run", func() bool {
		page = address.FindString(text(t, p.said))
		return page != ""
	})
	return page
}

// await waits until something holds.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited a minute for %s", what)
		}
	}
}

// certificates writes ca.pem, cert.pem and key.pem for 127.0.0.1 into a folder.
func certificates(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(
			1,
		), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"gqlstream"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"ca.pem", "cert.pem"} {
		testfile.Write(
			t,
			filepath.Join(dir, name),
			string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})),
		)
	}
	testfile.Write(
		t,
		filepath.Join(dir, "key.pem"),
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})),
	)
}
