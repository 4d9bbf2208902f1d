package main

import (
	"cmp"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"strings"

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

	// ways to log in, and to reach JetStream, that are not read
	NSC    string `json:"nsc"`
	JWT    string `json:"user_jwt"`
	Seed   string `json:"user_seed"`
	Prefix string `json:"jetstream_api_prefix"`
	Inbox  string `json:"inbox_prefix"`
	Proxy  string `json:"socks_proxy"`
}

// unread returns an error if the context has a field that is not supported: without it, a server
// would refuse the connection for another reason. Credentials of a flag replace those of the
// context.
func (n *natsContext) unread(credentials bool) error {
	for _, x := range []struct {
		needed bool
		key    string
		help   string
	}{
		{n.NSC != "" && !credentials, "nsc", "nsc generate creds writes a file for --credentials"},
		{n.JWT+n.Seed != "" && !credentials, "user_jwt", "write both to a file for --credentials"},
		{n.Prefix != "", "jetstream_api_prefix", "use jetstream_domain"},
		{n.Inbox != "", "inbox_prefix", "replies go to _INBOX"},
		{n.Proxy != "", "socks_proxy", "connect to the server itself"},
	} {
		if x.needed {
			return config.Usagef("%s is not read here: %s", x.key, x.help)
		}
	}
	return nil
}

// addresses returns the URLs of the context, each with its user or token.
func (n *natsContext) addresses() string {
	user := url.User(n.Token)
	if n.User != "" {
		user = url.UserPassword(n.User, n.Password)
	}
	list := strings.Split(cmp.Or(n.URL, "nats://127.0.0.1:4222"), ",")
	for i, address := range list {
		list[i] = strings.TrimSpace(address)
		at, err := url.Parse(list[i])
		if err == nil && at.Host != "" && at.User == nil && n.User+n.Token != "" {
			at.User = user
			list[i] = at.String()
		}
	}
	return strings.Join(list, ",")
}

// inHome replaces ~ by the home directory, as the command nats reads it.
func inHome(path string) string {
	home, err := os.UserHomeDir()
	if rest, is := strings.CutPrefix(path, "~/"); is && err == nil {
		return filepath.Join(home, rest)
	}
	return path
}

// applyContext fills the connection from a context of the command nats. Other configuration
// takes precedence.
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
	if err := found.unread(c.Credentials != ""); err != nil {
		return config.Usagef("--context %s: %s: %w", name, path, err)
	}
	for _, file := range []*string{&found.Creds, &found.NKey, &found.Cert, &found.Key, &found.CA} {
		*file = inHome(*file)
	}
	c.URL = cmp.Or(c.URL, found.addresses())
	c.Credentials = cmp.Or(c.Credentials, found.Creds, found.NKey)
	c.CertFile, c.KeyFile = cmp.Or(c.CertFile, found.Cert), cmp.Or(c.KeyFile, found.Key)
	c.CAFile, c.Domain = cmp.Or(c.CAFile, found.CA), cmp.Or(c.Domain, found.Domain)
	return nil
}
