package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Limits of an attempt.
const (
	attemptMax     = 10 * time.Second // for one whole attempt
	answerBytesMax = 64 << 10
	answerShownMax = 200 // characters of an answer in an error
	secretBytesMin = 16
	idleConnWait   = 90 * time.Second
)

// newClient returns the client of one target. It follows no redirect and uses no proxy.
func newClient() *http.Client {
	transport := &http.Transport{
		MaxResponseHeaderBytes: answerBytesMax,
		IdleConnTimeout:        idleConnWait,
		ForceAttemptHTTP2:      true,
	}
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Timeout: attemptMax, CheckRedirect: stay, Transport: transport}
}

// post sends a body and returns nil if the answer is a success.
func post(
	ctx context.Context, client *http.Client, to string, header http.Header, body []byte,
) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = header
	request.Header.Set("User-Agent", "gqlstream")
	answer, err := client.Do(request)
	if err != nil {
		return hideURL(err)
	}
	defer answer.Body.Close()
	// the answer may be incomplete
	text, _ := io.ReadAll(io.LimitReader(answer.Body, answerBytesMax))
	switch answer.StatusCode / 100 {
	case 2:
		return nil
	case 3:
		return fmt.Errorf("the answer is %s, and redirects are not followed", answer.Status)
	}
	return fmt.Errorf("the answer is %s: %.*q", answer.Status, answerShownMax, text)
}

// hideURL removes the address from an error: its path may contain a secret.
func hideURL(err error) error {
	if outer, ok := errors.AsType[*url.Error](err); ok {
		return outer.Err
	}
	return err
}

// checkURL returns the problem of a target's address.
func checkURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("it is not an address") // the error would repeat it
	case u.Scheme != "http" && u.Scheme != "https":
		return fmt.Errorf("scheme %q is neither http nor https", u.Scheme)
	case u.Hostname() == "":
		return errors.New("it has no host")
	case u.User != nil:
		return errors.New("it holds a password; use a file")
	case u.Fragment != "":
		return errors.New("it has a fragment")
	}
	return nil
}
