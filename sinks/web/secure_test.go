package web

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gqlstream/internal/testfile"
)

const testToken = "0123456789abcdef0123456789abcdef"

func tokenFile(t testing.TB, token string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(token+"\n"), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTokenIsAskedForEverywhereButHealth(t *testing.T) {
	s := serve(t, func(c *Config) { c.TokenFile = tokenFile(t, testToken, 0o600) })
	for _, path := range []string{
		"/", "/js/app.js", "/api/v1/info", "/api/v1/status",
		"/api/v1/communities", "/api/v1/estimates", "/metrics", "/nothing",
	} {
		for _, header := range []string{
			"X: none", "Authorization: Bearer", "Authorization: Bearer ",
			"Authorization: Bearer wrong", "Authorization: Bearer " + testToken[1:],
			"Authorization: Bearer " + testToken + "0", "Authorization: Token " + testToken,
			"Authorization: " + testToken,
			"Authorization: Basic !!!", "Cookie: token=" + testToken, "X-Token: " + testToken,
		} {
			code, h, _ := raw(t, s, plainGet(path, "localhost", header))
			if code != 401 || !strings.HasPrefix(h.Get("WWW-Authenticate"), "Basic") {
				t.Errorf("%s with %q: code %d", path, header, code)
			}
		}
		if code, _, _ := raw(t, s, plainGet(path+"?token="+testToken, "localhost")); code != 401 {
			t.Errorf("%s took the token from the address", path)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if code, _, _ := raw(t, s, plainGet(path, "localhost")); code == 401 {
			t.Errorf("%s asks for a token", path)
		}
	}
	request, _ := http.NewRequest("GET", s.URL()+"api/v1/info", nil)
	request.SetBasicAuth("any", testToken)
	if reply, err := newHTTP(t).Do(request); err != nil || reply.StatusCode != 200 {
		t.Errorf("basic: %v %v", reply, err)
	} else {
		reply.Body.Close()
	}
	if code, _, _ := raw(t, s, plainGet("/api/v1/info", "localhost",
		"Authorization: bearer "+testToken)); code != 200 {
		t.Errorf("bearer: code %d", code)
	}
}

// An address that others reach needs a token and TLS, and a name to check.
func TestUnsafeConfigurationsAreRefused(t *testing.T) {
	cert, key, _ := certificate(t)
	good := tokenFile(t, testToken, 0o600)
	for _, c := range []struct {
		name   string
		change func(*Config)
		want   string
	}{
		{"all addresses", func(c *Config) { c.Listen = "0.0.0.0:0" }, "not a loopback"},
		{"all addresses, v6", func(c *Config) { c.Listen = "[::]:0" }, "not a loopback"},
		{"no address", func(c *Config) { c.Listen = ":0" }, "not a loopback"},
		{"a name", func(c *Config) { c.Listen = "example.org:0" }, "not a loopback"},
		{"private", func(c *Config) { c.Listen = "10.0.0.1:0" }, "not a loopback"},
		{
			"token alone", func(c *Config) { c.Listen, c.TokenFile = "0.0.0.0:0", good },
			"not a loopback",
		},
		{
			"TLS alone", func(c *Config) {
				c.Listen, c.CertFile, c.KeyFile = "0.0.0.0:0", cert,
					key
			},
			"not a loopback",
		},
		{"no hosts", func(c *Config) {
			c.Listen, c.TokenFile, c.CertFile, c.KeyFile = "0.0.0.0:0",
				good, cert, key
		}, "hosts"},
		{
			"host with a port", func(c *Config) { c.Hosts = []string{"gql.example:8090"} },
			"without a port",
		},
		{
			"host with a scheme", func(c *Config) { c.Hosts = []string{"https://gql.example"} },
			"without a port",
		},
		{"half of TLS", func(c *Config) { c.CertFile = cert }, "both"},
		{"no port", func(c *Config) { c.Listen = "127.0.0.1" }, "host:port"},
		{
			"open token", func(c *Config) { c.TokenFile = tokenFile(t, testToken, 0o644) },
			"chmod 600",
		},
		{
			"short token", func(c *Config) { c.TokenFile = tokenFile(t, "short", 0o600) },
			"32 or more",
		},
		{"two words", func(c *Config) {
			c.TokenFile = tokenFile(t, testToken+" "+testToken,
				0o600)
		}, "one word"},
		{"long token", func(c *Config) {
			c.TokenFile = tokenFile(t, strings.Repeat("x", 5000),
				0o600)
		}, "at most"},
		{"no certificate", func(c *Config) { c.CertFile, c.KeyFile = good, good }, "certificate"},
		{"no token file", func(c *Config) { c.TokenFile = "/nowhere/token" }, "no such file"},
	} {
		config := Config{HTTP: HTTP{Listen: "127.0.0.1:0"}, Classes: []string{"a"}}
		c.change(&config)
		s, err := New(config)
		if err == nil {
			s.Close()
			t.Errorf("%s: started", c.name)
		} else if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", c.name, err, c.want)
		}
	}
}

// With a token, TLS and a name, other addresses are served, over HTTP/2 too.
func TestTLSServesOtherAddresses(t *testing.T) {
	cert, key, pool := certificate(t)
	s := serve(t, func(c *Config) {
		c.Listen, c.Hosts = "0.0.0.0:0", []string{"gql.example"}
		c.TokenFile, c.CertFile, c.KeyFile = tokenFile(t, testToken, 0o600), cert, key
	})
	_, port, _ := net.SplitHostPort(s.Addr().String())
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: pool, ServerName: "gql.example"},
		ForceAttemptHTTP2: true,
	}
	defer transport.CloseIdleConnections()
	do := func(host, path, token string) *http.Response {
		request, err := http.NewRequest("GET", "https://127.0.0.1:"+port+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		request.Header.Set("Authorization", "Bearer "+token)
		reply, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		return reply
	}
	for _, c := range []struct {
		host, token string
		code        int
	}{
		{"gql.example", testToken, 200},
		{"gql.example", "wrong", 401},
		{"evil.example", testToken, 421},
	} {
		reply := do(c.host, "/api/v1/info", c.token)
		reply.Body.Close()
		if reply.StatusCode != c.code || reply.ProtoMajor != 2 {
			t.Errorf(
				"%s with %q: code %d over %s, want %d over HTTP/2", c.host, c.token,
				reply.StatusCode, reply.Proto, c.code,
			)
		}
	}
	write(t, s, estimate("x", "auto", 1, 0.5))
	reply := do("gql.example", "/api/v1/estimates?community=x", testToken)
	defer reply.Body.Close()
	var got changedAnswer
	if err := json.NewDecoder(reply.Body).Decode(&got); err != nil || len(got.Estimates) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if code, _, _ := raw(t, s, plainGet("/", "gql.example")); code != 400 {
		t.Errorf("plain HTTP to TLS: code %d, want 400", code)
	}
}

// Where every address is listened on, the machine's name and the address that a connection came to
// are served, so that a scrape by either works, and the address of the page is one that can be
// opened.
func TestOwnNamesAreServed(t *testing.T) {
	cert, key, _ := certificate(t)
	s := serve(t, func(c *Config) {
		c.Listen, c.Hosts = "0.0.0.0:0", []string{"gql.example"}
		c.TokenFile, c.CertFile, c.KeyFile = tokenFile(t, testToken, 0o600), cert, key
	})
	_, port, _ := net.SplitHostPort(s.Addr().String())
	if want := "https://gql.example:" + port + "/"; s.URL() != want {
		t.Errorf("the page is at %s, want %s", s.URL(), want)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	for _, c := range []struct {
		dial, host string
		code       int
	}{
		{"127.0.0.2", "127.0.0.2", 200},
		{"127.0.0.2", "127.0.0.3", 421},
		{"127.0.0.1", machineName(), 200},
		{"127.0.0.1", "evil.example", 421},
	} {
		request, err := http.NewRequest("GET", "https://"+c.dial+":"+port+"/healthz", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = c.host + ":" + port
		reply, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		if reply.Body.Close(); reply.StatusCode != c.code {
			t.Errorf("%s by %s: code %d, want %d", c.host, c.dial, reply.StatusCode, c.code)
		}
	}
}

// certificate writes a certificate for gql.example and returns its files.
func certificate(t testing.TB) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	certPEM, keyPEM := selfSigned(t, "gql.example")
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	for path, data := range map[string][]byte{cert: certPEM, key: keyPEM} {
		testfile.Write(t, path, data)
	}
	pool = x509.NewCertPool()
	if !pool.AppendCertsFromPEM(certPEM) {
		t.Fatal("the certificate is not one")
	}
	return cert, key, pool
}

// A certificate that cannot be read must be an error of New, not of later.
func TestBadCertificateIsAnErrorOfNew(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.pem")
	testfile.Write(t, bad, "no")
	s, err := New(
		Config{
			HTTP:    HTTP{Listen: "127.0.0.1:0", CertFile: bad, KeyFile: bad},
			Classes: []string{"a"},
		},
	)
	if err == nil {
		t.Errorf("started; closing says %v", s.Close())
	}
}

func TestAddressInUseIsExplained(t *testing.T) {
	s := serve(t, nil)
	_, err := New(Config{HTTP: HTTP{Listen: s.Addr().String()}, Classes: []string{"a"}})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint(s.Addr())) {
		t.Errorf("error %v, want the address in it", err)
	}
}
