package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	mrand "math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/goccy/go-yaml"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest"
	"gqlstream/internal/testfile"
	"gqlstream/pipeline"
	"gqlstream/quant"
)

// fromRoot reads a file of the project.
func fromRoot(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// promRules has the permitted fields of a file of Prometheus rules.
type promRules struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Expr        string            `yaml:"expr"`
			For         string            `yaml:"for"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

// strict decodes YAML without unknown keys.
func strict(t *testing.T, text string, into any) {
	t.Helper()
	if err := yaml.NewDecoder(strings.NewReader(text), yaml.Strict()).Decode(into); err != nil {
		t.Fatal(yaml.FormatError(err, false, true))
	}
}

// Every rule must name an action, and the handbook must have a row for every flag.
func TestHandbookKnowsRulesAndFlags(t *testing.T) {
	var rules promRules
	strict(t, fromRoot(t, "examples", "prometheus", "gqlstream-rules.yml"), &rules)
	for _, group := range rules.Groups {
		for _, r := range group.Rules {
			if r.Labels["severity"] == "" || r.Annotations["summary"] == "" ||
				r.Annotations["description"] == "" ||
				strings.Count(r.Expr, "(") != strings.Count(r.Expr, ")") {
				t.Errorf(
					"rule %s: %q, labels %v, annotations %v", r.Alert, r.Expr, r.Labels,
					r.Annotations,
				)
			}
			if _, err := time.ParseDuration(r.For); r.For != "" && err != nil {
				t.Errorf("rule %s: for %q", r.Alert, r.For)
			}
		}
	}
	handbook := fromRoot(t, "docs", "operations.md")
	for _, d := range quant.FlagDocs() {
		if row := fmt.Sprintf("| `%s` | %s |", d.Name, d.Meaning); !strings.Contains(
			handbook,
			row,
		) {
			t.Errorf("docs/operations.md lacks\n%s", row)
		}
	}
}

// compose is as much of docker-compose.yml as we use.
type compose struct {
	Services map[string]struct {
		Image       string         `yaml:"image"`
		Build       string         `yaml:"build"`
		Command     []string       `yaml:"command"`
		Ports       []string       `yaml:"ports"`
		Volumes     []string       `yaml:"volumes"`
		DependsOn   map[string]any `yaml:"depends_on"`
		Healthcheck map[string]any `yaml:"healthcheck"`
		Environment map[string]any `yaml:"environment"`
		ReadOnly    bool           `yaml:"read_only"`
		CapDrop     []string       `yaml:"cap_drop"`
		SecurityOpt []string       `yaml:"security_opt"`
		StopGrace   string         `yaml:"stop_grace_period"`
		Restart     string         `yaml:"restart"`
	} `yaml:"services"`
	Volumes map[string]any `yaml:"volumes"`
}

// There is no container engine in the tests: every file that the composition mounts
// must exist, every volume and service be declared, and nothing be open beyond
// loopback.
func TestCompositionFitsTogether(t *testing.T) {
	var c compose
	strict(t, fromRoot(t, "docker-compose.yml"), &c)
	for name, s := range c.Services {
		if (s.Image == "") == (s.Build == "") {
			t.Errorf("%s: want an image, or something to build", name)
		}
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if _, declared := c.Volumes[from]; declared {
				continue
			}
			if _, err := os.Stat(filepath.Join("..", "..", from)); !strings.HasPrefix(from, "./") ||
				err != nil {
				t.Errorf("%s: volume %s: %v", name, v, err)
			}
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s: port %s is open to everybody", name, p)
			}
		}
		for on := range s.DependsOn {
			if _, ok := c.Services[on]; !ok {
				t.Errorf("%s depends on %s", name, on)
			}
		}
	}
	docker := fromRoot(t, "Dockerfile")
	for _, want := range []string{
		"CGO_ENABLED=0", "FROM scratch", "USER 65532:65532",
		`ENTRYPOINT ["/gqlstream"]`,
	} {
		if !strings.Contains(docker, want) {
			t.Errorf("the Dockerfile lacks %s", want)
		}
	}
	for _, args := range [][]string{c.Services["gqlstream"].Command, unitCommand(t)} {
		if err := parseOnly(t, args); err != nil {
			t.Errorf("%q: %v", args, err)
		}
	}
}

// unitCommand returns the arguments in the systemd unit, its configuration replaced
// by one that exists.
func unitCommand(t *testing.T) []string {
	t.Helper()
	unit := fromRoot(t, "examples", "systemd", "gqlstream.service")
	unit = strings.ReplaceAll(unit, "\\\n", "")
	_, rest, found := strings.Cut(unit, "\nExecStart=/usr/local/bin/gqlstream ")
	line, _, _ := strings.Cut(rest, "\n")
	if !found || !strings.Contains(unit, "User=gqlstream") ||
		!strings.Contains(unit, "kill -HUP") {
		t.Errorf("the unit is\n%s", unit)
	}
	return strings.Fields(line)
}

// The composition's NATS settings, with its configuration of gqlstream, its token
// and TLS, must give a pipeline that Prometheus can scrape: the same topology with
// the processes that are here.
func TestCompositionRuns(t *testing.T) {
	dir := t.TempDir()
	options, err := server.ProcessConfigFile(
		filepath.Join("..", "..", "examples", "compose", "nats.conf"),
	)
	if err != nil {
		t.Fatal(err)
	}
	if !options.SyncAlways || !options.JetStream || options.StoreDir != "/data" {
		t.Fatalf("nats.conf: %+v", options)
	}
	options.Host, options.Port, options.HTTPPort, options.StoreDir = "127.0.0.1", -1, 0,
		filepath.Join(dir, "nats")
	options.NoSigs, options.NoLog = true, true
	server := startNATS(t, options)
	client, token := secrets(t, dir)
	conf := strings.NewReplacer("/secrets/", dir+"/", "nats://nats:4222", server.ClientURL(),
		"state: /state", "state: "+dir,
		"listen: 0.0.0.0:8090", "listen: 127.0.0.1:0", "http://alertmanager:9093",
		"http://127.0.0.1:1").
		Replace(fromRoot(t, "examples", "compose", "gqlstream.yaml"))
	path := filepath.Join(dir, "gqlstream.yaml")
	testfile.Write(t, path, conf)
	mustRun(t, "check", path)
	p := startPipeline(t, path)
	events := &crashEvents{rand: mrand.New(mrand.NewPCG(1, 1))}
	publisher, err := ingest.NewPublisher(p.Broker.NC, ingest.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer publisher.Close()
	for range 30 {
		if err := publisher.Publish(t.Context(), events.next()); err != nil {
			t.Fatal(err)
		}
	}
	if err := publisher.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	text, wanted := "", []string{
		`gqlstream_alerts{rule="majority",state="inactive"}`, "gqlstream_ready 1",
		`gqlstream_estimate_low{`, `pipeline="compose"`,
		`gqlstream_last_event_timestamp_seconds{kind="edge"}`,
		`gqlstream_stream_bytes{holds="log",stream="GQL"}`,
		`gqlstream_stream_bytes{holds="history",stream="GQL_HISTORY_MINUTES"}`,
		`gqlstream_stream_bytes{holds="history",stream="GQL_HISTORY_HOURS"}`,
		`gqlstream_stream_bytes{holds="history",stream="GQL_HISTORY"}`,
		`gqlstream_stream_bytes{holds="latest",stream="KV_gql_estimates"}`,
		"gqlstream_output_lost_messages 0",
	}
	missing := func(want string) bool { return !strings.Contains(text, want) }
	for deadline := time.Now().Add(crashStartMax); slices.ContainsFunc(wanted, missing); {
		if time.Now().After(deadline) {
			t.Fatalf("not all of %q in\n%s", wanted, text)
		}
		pause(t.Context(), 50*time.Millisecond)
		text = scrapeAs(t, client, p.Page.URL()+"metrics", token)
	}
	js, err := jetstream.New(p.Broker.NC)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := js.Stream(t.Context(), defaultNames().Alerts); err != nil {
		t.Error(err)
	}
	if bound := metricOf(t, text, "gqlstream_certificate_max"); bound > certificateWarned(t) {
		t.Errorf("our rule warns of the certificate of a default pipeline, %v", bound)
	}
}

// certificateWarned returns the certificate above which our rule warns.
func certificateWarned(t *testing.T) float64 {
	t.Helper()
	text := fromRoot(t, "examples", "prometheus", "gqlstream-rules.yml")
	_, after, found := strings.Cut(text, "gqlstream_certificate_max > ")
	number, _, _ := strings.Cut(after, "\n")
	warned, err := strconv.ParseFloat(number, 64)
	if !found || err != nil {
		t.Fatalf("the rule has %q: %v", number, err)
	}
	return warned
}

// metricOf returns the value of a metric without labels.
func metricOf(t *testing.T, text, name string) float64 {
	t.Helper()
	_, after, found := strings.Cut(text, "\n"+name+" ")
	number, _, _ := strings.Cut(after, "\n")
	value, err := strconv.ParseFloat(number, 64)
	if !found || err != nil {
		t.Fatalf("metric %s is %q: %v", name, number, err)
	}
	return value
}

// secrets writes the files that the service of that name writes.
func secrets(t *testing.T, dir string) (*http.Client, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(
			1,
		), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"gqlstream"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	const token = "0123456789abcdef0123456789abcdef"
	testfile.Write(t, filepath.Join(dir, "token"), token)
	testfile.Write(
		t,
		filepath.Join(dir, "cert.pem"),
		string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})),
	)
	testfile.Write(
		t,
		filepath.Join(dir, "key.pem"),
		string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})),
	)
	parsed, err := x509.ParseCertificate(cert)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}, token
}

func scrapeAs(t *testing.T, client *http.Client, url, token string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	reply, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err != nil || reply.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v: %s", reply.Status, err, body)
	}
	return string(body)
}

// parseOnly reads a command line without running it.
func parseOnly(t *testing.T, args []string) error {
	t.Helper()
	example := filepath.Join("..", "..", "examples", "compose", "gqlstream.yaml")
	args = slices.Clone(args)
	for i, a := range args {
		if a == "/etc/gqlstream/gqlstream.yaml" {
			args[i] = example
		}
	}
	parser, err := kong.New(&cli{}, helpTexts, kong.BindTo(t.Context(), (*context.Context)(nil)))
	if err == nil {
		_, err = parser.Parse(args)
	}
	return err
}

// startPipeline runs a configuration until the test ends.
func startPipeline(t *testing.T, path string) *pipeline.Pipeline {
	t.Helper()
	settings, err := (&runCmd{serverFlags: serverFlags{Config: path}}).configure()
	if err != nil {
		t.Fatal(err)
	}
	p, err := pipeline.Open(
		t.Context(),
		settings,
		pipeline.Options{Out: io.Discard, Log: slog.New(slog.DiscardHandler)},
	)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("the run ended: %v", err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}
