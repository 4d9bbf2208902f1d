package web

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"gqlstream/quant"
	"gqlstream/sinks"
)

// dial opens a connection and sends a text on it.
func dial(t testing.TB, s *Server, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

// firstLine returns the beginning of an answer, or the error in its place.
func firstLine(c net.Conn) string {
	text, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		return err.Error()
	}
	return text
}

func asking(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n\r\n" }

// Probes and pages must be answered during more than a thousand connections that send
// nothing, half a request, or nothing after a request.
func TestSilentConnectionsDelayNobody(t *testing.T) {
	s := serve(t, func(c *Config) { c.RequestsMax = 4 })
	s.Status(runningStatus(1))
	for i := range idleMax + 200 {
		dial(t, s, []string{"", "GET /api/v1/info HTTP/1.1\r\nHost: loc", asking("/healthz")}[i%3])
		if i%50 != 49 {
			continue
		}
		for _, path := range []string{"/healthz", "/readyz", "/metrics", "/api/v1/info", "/"} {
			c := dial(t, s, asking(path))
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
			if got := firstLine(c); !strings.Contains(got, "200") {
				t.Errorf("beside %d connections %s gave %q", i+1, path, got)
			}
			c.Close()
		}
	}
	if n := s.conns.open.Load(); n > 4+idleMax {
		t.Errorf("%d connections are held", n)
	}
}

// Beyond the bound the connections that wait for a request make room for a new one, and no request
// that is being answered does; beyond twice the bound the one that has waited longest is closed,
// and a probe is answered.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := serve(t, func(c *Config) {
		c.RequestsMax = 6
		c.Records = func(context.Context, sinks.RecordsQuery) ([]quant.Estimate, bool, error) {
			entered <- struct{}{}
			<-leave
			return nil, true, nil
		}
	})
	s.conns.most.Store(10)
	write(t, s, estimate("x", "auto", 1, 0.5), estimate("x", "auto", 2, 0.5))
	var busy, idle []net.Conn
	for range 6 {
		busy = append(busy, dial(t, s, asking("/api/v1/communities/x/estimates")))
		<-entered
	}
	defer func() {
		close(leave)
		for _, c := range busy {
			if got := firstLine(c); !strings.Contains(got, "200") {
				t.Errorf("a request that was being answered got %q", got)
			}
		}
	}()
	for range 4 + 1 {
		c := dial(t, s, asking("/healthz"))
		if got := firstLine(c); !strings.Contains(got, "200") {
			t.Fatalf("connection: %q", got)
		}
		idle = append(idle, c)
	}
	ends := func(c net.Conn, within time.Duration) bool {
		_ = c.SetReadDeadline(time.Now().Add(within))
		_, err := io.Copy(io.Discard, c)
		var waits net.Error
		return !errors.As(err, &waits) || !waits.Timeout()
	}
	for i, c := range idle {
		// it is idle a moment after it has got its answer
		for tries := 0; !ends(c, 20*time.Millisecond); tries++ {
			if dial(t, s, ""); tries == 500 {
				t.Fatalf("connection %d is open", i)
			}
		}
	}
	var silent []net.Conn
	for range 2 * s.conns.most.Load() {
		silent = append(silent, dial(t, s, ""))
	}
	for range 3 { // while the silent ones are new
		if got := firstLine(dial(t, s, asking("/healthz"))); !strings.Contains(got, "200") {
			t.Errorf("beside twice as many as are allowed a probe got %q", got)
		}
	}
	if !ends(silent[0], 10*time.Second) {
		t.Error("the one that has waited longest is open")
	}
}

// While every place has a request in progress, probes must be answered, and other requests
// must be told to come again.
func TestProbesAreAnsweredWhenAllPlacesAreTaken(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	s := serve(t, func(c *Config) {
		c.RequestsMax = 3
		c.Records = func(context.Context, sinks.RecordsQuery) ([]quant.Estimate, bool, error) {
			entered <- struct{}{}
			<-leave
			return nil, true, nil
		}
	})
	write(t, s, estimate("x", "auto", 1, 0.5), estimate("x", "auto", 2, 0.5))
	s.Status(runningStatus(1))
	var busy []net.Conn
	for range 3 {
		busy = append(busy, dial(t, s, asking("/api/v1/communities/x/estimates")))
		<-entered
	}
	for path, want := range map[string]string{
		"/healthz": "200", "/readyz": "200",
		"/metrics": "200", "/api/v1/info": "503", "/": "503",
	} {
		c := dial(t, s, asking(path))
		if got := firstLine(c); !strings.Contains(got, want) {
			t.Errorf("%s gave %q, want %s", path, got, want)
		}
		c.Close()
	}
	close(leave)
	for _, c := range busy {
		if got := firstLine(c); !strings.Contains(got, "200") {
			t.Errorf("a request that was being answered got %q", got)
		}
	}
}
