package pipeline

import (
	"errors"
	"log/slog"
	"net"
	"slices"
	"testing"

	"gqlstream/sinks/web"
)

// Parts must be closed in the reverse order of opening, each once, and no error may get lost.
func TestClosersCloseTheLastFirst(t *testing.T) {
	var order []int
	failed := errors.New("failed")
	var c closers
	for i := range 3 {
		c.add(func() error {
			order = append(order, i)
			if i == 1 {
				return failed
			}
			return nil
		})
	}
	if err := c.close(); !errors.Is(err, failed) || !slices.Equal(order, []int{2, 1, 0}) {
		t.Errorf("closed in the order %v: %v", order, err)
	}
	if err := c.close(); err != nil || len(order) != 3 {
		t.Errorf("closed again: %v, %v", order, err)
	}
}

// A start that fails late must close all that it has opened. Otherwise the next start would find
// the state directory locked.
func TestAFailedStartClosesEverything(t *testing.T) {
	settings := settingsOfServer(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	settings.HTTP.Listen = taken.Addr().String()
	options := Options{Log: slog.New(slog.DiscardHandler)}
	if p, err := Open(t.Context(), settings, options); err == nil || p != nil {
		t.Fatalf("the page has an address that is in use: %v", err)
	}
	settings.HTTP.Listen = web.ListenOff
	p, err := Open(t.Context(), settings, options)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
