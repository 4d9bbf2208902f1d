package web

import (
	"crypto/sha256"
	"crypto/tls"
	"fmt"
)

// Secrets are what a server reads from files, as they were when it did.
type Secrets struct {
	token *[sha256.Size]byte // digest; nil: no token is asked for
	pair  *tls.Certificate   // nil: plain
}

// ReadSecrets reads the files of the token and the certificate, which may have changed.
// Nothing does with the server before UseSecrets.
func (s *Server) ReadSecrets() (*Secrets, error) {
	out := &Secrets{}
	if s.config.TokenFile != "" {
		token, err := readToken(s.config.TokenFile)
		if err != nil {
			return nil, err
		}
		digest := sha256.Sum256([]byte(token))
		out.token = &digest
	}
	if s.config.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(s.config.CertFile, s.config.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("web: certificate: %w", err)
		}
		out.pair = &pair
	}
	return out, nil
}

// UseSecrets lets requests and connections that come need other secrets of this server.
// Streams of events that are open stay so.
func (s *Server) UseSecrets(secrets *Secrets) { s.secrets.Store(secrets) }

// tlsConfig is nil for a plain server.
func (s *Server) tlsConfig() *tls.Config {
	if s.config.CertFile == "" {
		return nil
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			return s.secrets.Load().pair, nil
		},
	}
}
