package main

import (
	"cmp"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"

	"gqlstream/ingest/broker"
	"gqlstream/pipeline/config"
)

// natsContext is a context of the command nats: how to reach a server.
type natsContext struct {
	URL      string `json:"url"`
	User     string `json:"user"`
	Password string `json:"password"`
	Token    string `json:"token"`
	Creds    string `json:"creds"`
	NKey     string `json:"nkey"`
	Cert     string `json:"cert"`
	Key      string `json:"key"`
	CA       string `json:"ca"`
	Domain   string `json:"jetstream_domain"`
}

// applyContext makes a connection that of a context of the command nats. What is configured besides
// wins.
func applyContext(name string, c *broker.ConnectConfig) error {
	dir, err := os.UserHomeDir()
	if dir = filepath.Join(dir, ".config"); os.Getenv("XDG_CONFIG_HOME") != "" {
		dir, err = os.Getenv("XDG_CONFIG_HOME"), nil
	}
	if err != nil {
		return config.Usage(err)
	}
	path := filepath.Join(dir, "nats", "context", filepath.Base(name)+".json")
	data, err := os.ReadFile(path)
	if err != nil {
		return config.Usagef("--context %s: %w; nats context ls lists all contexts",
			name, err)
	}
	var found natsContext
	if err := json.Unmarshal(data, &found); err != nil {
		return config.Usagef("--context %s: %s: %w", name, path, err)
	}
	address := cmp.Or(found.URL, "nats://127.0.0.1:4222")
	if at, err := url.Parse(address); err == nil && at.User == nil {
		switch {
		case found.User != "":
			at.User = url.UserPassword(found.User, found.Password)
		case found.Token != "":
			at.User = url.User(found.Token)
		}
		address = at.String()
	}
	c.URL = cmp.Or(c.URL, address)
	c.Credentials = cmp.Or(c.Credentials, found.Creds, found.NKey)
	c.CertFile, c.KeyFile = cmp.Or(c.CertFile, found.Cert), cmp.Or(c.KeyFile, found.Key)
	c.CAFile, c.Domain = cmp.Or(c.CAFile, found.CA), cmp.Or(c.Domain, found.Domain)
	return nil
}
