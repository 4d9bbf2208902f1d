package web

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gqlstream/quant"
)

// campaign says how many callers ask for how many pages, and for how long.
// GQLSTREAM_CAMPAIGN=5m makes it the long one of make load.
type campaign struct {
	lasts                       time.Duration
	communities, pages, callers int
}

func campaignOf(t *testing.T) campaign {
	text := os.Getenv("GQLSTREAM_CAMPAIGN")
	if text == "" {
		return campaign{time.Second, 500, 50, 4}
	}
	lasts, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return campaign{lasts, loadCommunities, loadPages, 8}
}

// Whatever callers send while pages ask and estimates come, requests must get an answer
// that is not a failure of the server, pages must be answered, and no connection may be
// left at the end.
func TestServerOutlivesRubbishUnderLoad(t *testing.T) {
	c, seed := campaignOf(t), uint64(11)
	s := serve(t, nil)
	list := names(c.communities)
	all := make([]quant.Estimate, len(list))
	emit := func(position uint64) {
		for i := range all {
			all[i] = estimate(list[i], "auto", position, 0.5)
		}
		write(t, s, all...)
		s.Status(runningStatus(position))
	}
	emit(1)
	before, routines := heap(), runtime.NumGoroutine()
	end := time.Now().Add(c.lasts)
	var group, readers sync.WaitGroup
	counts := make([]tally, c.pages+c.callers)
	for i := range c.pages {
		query := "after=0"
		if i%10 > 0 { // one in ten follows all
			query = "community=" + list[i*7%len(list)]
		}
		readers.Go(func() { counts[i].follow(t, s, query, end) })
	}
	for i := range c.callers {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		group.Go(func() {
			for time.Now().Before(end) {
				counts[c.pages+i].call(t, s, rubbish(random, list))
			}
		})
	}
	writes := uint64(1)
	for tick := time.NewTicker(time.Second / 2); time.Now().Before(end); <-tick.C {
		writes++
		emit(writes)
	}
	group.Wait()
	readers.Wait()
	sum := total(counts)
	t.Logf(
		"seed %d, %v: %d writes of %d estimates; %d pages got %d answers, %d MB; %s", seed, c.lasts,
		writes, len(all), c.pages, sum.messages, sum.bytes>>20, sum.answers(),
	)
	settled(t, s, routines)
	t.Logf("heap before %d MiB, after %d MiB", before>>20, heap()>>20)
	if sum.messages < c.pages || sum.codes["200"] == 0 || sum.codes["400"] == 0 {
		t.Error("the campaign asked too little")
	}
}

// settled waits until the server has nothing of the campaign left.
func settled(t *testing.T, s *Server, routines int) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		if runtime.NumGoroutine() <= routines+8 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines run, %d did before", runtime.NumGoroutine(), routines)
		}
		runtime.Gosched()
	}
}

// tally counts the answers to one caller or reader.
type tally struct {
	codes           map[string]int
	times           []float64 // milliseconds to the end of an answer
	messages, bytes int
}

func total(list []tally) tally {
	out := tally{codes: map[string]int{}}
	for _, c := range list {
		for code, n := range c.codes {
			out.codes[code] += n
		}
		out.times = append(out.times, c.times...)
		out.messages, out.bytes = out.messages+c.messages, out.bytes+c.bytes
	}
	slices.Sort(out.times)
	return out
}

func (c *tally) answers() string {
	n := len(c.times)
	if n == 0 {
		return "no answers"
	}
	return fmt.Sprintf(
		"%d requests, %v, median %.1f ms, 99th percentile %.1f ms", n, c.codes, c.times[n/2],
		c.times[n*99/100],
	)
}

// follow asks for changes as often as it can until the end.
func (c *tally) follow(t *testing.T, s *Server, query string, end time.Time) {
	client := newHTTP(t)
	defer client.CloseIdleConnections()
	for time.Now().Before(end) {
		reply, err := client.Get(s.URL() + "api/v1/estimates?" + query)
		if err != nil {
			t.Errorf("a page got no answer: %v", err)
			return
		}
		n, err := io.Copy(io.Discard, reply.Body)
		reply.Body.Close()
		if err != nil || reply.StatusCode != 200 && reply.StatusCode != 503 {
			t.Errorf("a page got %d, %v", reply.StatusCode, err)
		}
		c.messages, c.bytes = c.messages+1, c.bytes+int(n)
	}
}

// call sends bytes and reads the answer, if there is one. Only bytes that are no HTTP may
// stay without.
func (c *tally) call(t *testing.T, s *Server, request string) {
	begun := time.Now()
	conn, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	_ = conn.SetDeadline(begun.Add(30 * time.Second))
	_, _ = io.WriteString(conn, request)
	_ = conn.(*net.TCPConn).CloseWrite()
	answer, _ := io.ReadAll(conn)
	code := "none"
	if fields := strings.Fields(string(answer[:min(len(answer), 64)])); len(fields) > 1 {
		code = fields[1]
	}
	if c.codes == nil {
		c.codes = map[string]int{}
	}
	c.codes[code]++
	c.times = append(c.times, 1000*time.Since(begun).Seconds())
	if n, _ := strconv.Atoi(code); n >= 500 && n != 503 && n != 501 && n != 505 {
		t.Errorf("%q got %s", request, answer[:min(len(answer), 500)])
	}
}

// rubbish makes a request: a good one, one with values that make no sense, or bytes.
func rubbish(random *rand.Rand, list []string) string {
	values := []string{
		"",
		"1",
		"-1",
		"9999999999999999999",
		"0x10",
		"1e999",
		"NaN",
		"true",
		"auto",
		"pcc",
		"name",
		"share",
		"desc",
		"2026-01-01T00:00:00Z",
		"%zz",
		"%00",
		strings.Repeat("a", 3000),
	}
	value := func() string {
		if random.IntN(3) == 0 {
			return url.QueryEscape(hostileNames()[random.IntN(len(hostileNames()))])
		}
		return values[random.IntN(len(values))]
	}
	all := routes()
	r := all[random.IntN(len(all))]
	name := list[random.IntN(len(list))]
	if random.IntN(4) == 0 {
		name = url.PathEscape(hostileNames()[random.IntN(len(hostileNames()))])
	}
	path := strings.Replace(r.pattern, "{name}", name, 1) + "?"
	for _, p := range r.params {
		if random.IntN(3) == 0 {
			path += p + "=" + value() + "&"
		}
	}
	host, headers := "localhost", []string(nil)
	switch random.IntN(12) {
	case 0:
		host = value()
	case 1:
		headers = []string{"Origin: https://evil.example", "Sec-Fetch-Site: cross-site"}
	case 2:
		headers = []string{"X: " + strings.Repeat("b", 20_000)}
	case 3:
		return strings.Replace(
			plainGet(path, host),
			"GET",
			[]string{
				"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE",
				"\x16\x03\x01",
			}[random.IntN(7)],
			1,
		)
	case 4: // bytes
		text := []byte(plainGet(path, host))
		for range 1 + random.IntN(8) {
			text[random.IntN(len(text))] = byte(random.Uint32())
		}
		return string(text)
	case 5: // half of it
		text := plainGet(path, host)
		return text[:random.IntN(len(text))]
	}
	return plainGet(path, host, headers...)
}
