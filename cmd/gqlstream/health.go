package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"gqlstream/pipeline/config"
	"gqlstream/sinks/web"
)

// configInstalled is where packages, the image and the unit have the configuration.
const configInstalled = "/etc/gqlstream/gqlstream.yaml"

type healthCmd struct {
	Config string `short:"c" type:"existingfile" placeholder:"FILE" help:"${health_config}"`
	HTTP   string `name:"http" placeholder:"ADDRESS" help:"Address of the page. [127.0.0.1:8090]"`
	Ready  bool   `help:"Require a run that has caught up with the log, not only one that answers."`
}

func (*healthCmd) Help() string {
	return `Asks the page of the run on this machine. Exits with 0 if the run is healthy, with 1 if
it is not or does not answer. Serves as the health check of containers, whose image has no shell.

Examples:
  gqlstream health
  gqlstream health --config gqlstream.yaml --ready`
}

// healthWaitMax bounds how long a run may take to answer.
const healthWaitMax = 4 * time.Second

// Run asks the page once.
func (c *healthCmd) Run(ctx context.Context, con console) error {
	url, err := c.url()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, healthWaitMax)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return config.Usage(err)
	}
	request.Host = "localhost" // which every page answers to
	// The certificate is for the names that others use. This asks no secret and sends none.
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true,
	}}
	reply, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("health: %w", err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(io.LimitReader(reply.Body, 1<<10))
	if err == nil && reply.StatusCode != http.StatusOK {
		err = errors.New("health: " + strings.TrimSpace(string(text)))
	}
	if err == nil {
		_, err = con.Out.Write(text)
	}
	return err
}

// url returns the address to ask.
func (c *healthCmd) url() (string, error) {
	path := c.Config
	if _, err := os.Stat(configInstalled); err == nil && path == "" && c.HTTP == "" {
		path = configInstalled
	}
	settings, err := config.Load(path)
	if err != nil {
		return "", err
	}
	if c.HTTP != "" {
		settings.HTTP.Listen = c.HTTP
	}
	if settings.HTTP.Listen == "" {
		settings.HTTP.Listen = web.ListenDefault
	}
	host, port, err := net.SplitHostPort(settings.HTTP.Listen)
	if err != nil {
		return "", config.Usagef("health: the run has no page: http.listen is %s",
			settings.HTTP.Listen)
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	scheme, question := "http", "/healthz"
	if settings.HTTP.CertFile != "" {
		scheme = "https"
	}
	if c.Ready {
		question = "/readyz"
	}
	return scheme + "://" + net.JoinHostPort(host, port) + question, nil
}
