package web

import (
	"crypto/tls"
	"os"
	"strings"
	"testing"
)

// A token and a certificate that change must hold from UseSecrets on, for new requests
// and connections; files that are not fit must be refused and change nothing.
func TestSecretsAreReadAgain(t *testing.T) {
	cert, key, _ := certificate(t)
	otherCert, otherKey, pool := certificate(t)
	path, other := tokenFile(t, testToken, 0o600), strings.Repeat("y", 40)
	s := serve(t, func(c *Config) { c.TokenFile, c.CertFile, c.KeyFile = path, cert, key })
	check := func(token string, code int, ours bool) {
		t.Helper()
		conn, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.Write([]byte(plainGet("/api/v1/info", "localhost", "Authorization: Bearer "+token, "Connection: close"))); err != nil {
			t.Fatal(err)
		}
		line := make([]byte, len("HTTP/1.1 200"))
		if _, err := conn.Read(line); err != nil || !strings.HasSuffix(string(line), map[int]string{200: " 200", 401: " 401"}[code]) {
			t.Errorf("the answer is %q, %v, want %d", line, err, code)
		}
		second, err := tls.Dial("tcp", s.Addr().String(), &tls.Config{RootCAs: pool, ServerName: "gql.example"})
		if (err == nil) != ours {
			t.Errorf("with the other certificate: %v", err)
		}
		if err == nil {
			second.Close()
		}
	}
	write := func(name, content string, mode os.FileMode) {
		t.Helper()
		if err := os.WriteFile(name, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(name, mode); err != nil {
			t.Fatal(err)
		}
	}
	check(testToken, 200, false)
	write(path, other, 0o644)
	if _, err := s.ReadSecrets(); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a token that others can read: %v", err)
	}
	write(path, other, 0o600)
	for from, to := range map[string]string{otherCert: cert, otherKey: key} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if check(testToken, 200, false); from == otherCert {
			write(to, "no certificate", 0o600)
			if _, err := s.ReadSecrets(); err == nil {
				t.Error("a certificate that is none was taken")
			}
		}
		write(to, string(data), 0o600)
	}
	secrets, err := s.ReadSecrets()
	if err != nil {
		t.Fatal(err)
	}
	check(testToken, 200, false)
	s.UseSecrets(secrets)
	check(testToken, 401, true)
	check(other, 200, true)
}
