package web

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gqlstream/quant"
)

const (
	loadStreams     = 1_000
	loadCommunities = 10_000
)

// BenchmarkThousandStreams writes to 10,000 communities while 1,000 event streams
// are open, and measures until the last of them has read the update. An operation
// is one write. Memory is of both ends: server and clients are one process.
//
//	go test ./sinks/web -run - -bench ThousandStreams -benchtime 20x
func BenchmarkThousandStreams(b *testing.B) {
	for _, c := range []struct {
		name    string
		query   func(i int) string // of stream i
		changed int                // communities in a write
	}{
		{"each follows one, all change", func(i int) string { return "&community=" + names(loadCommunities)[i*7%loadCommunities] }, loadCommunities},
		{"all follow all, one changes", func(int) string { return "" }, 1},
		{"all follow all, hundred change", func(int) string { return "" }, 100},
	} {
		b.Run(c.name, func(b *testing.B) { load(b, c.query, c.changed) })
	}
}

func load(b *testing.B, query func(int) string, changed int) {
	s := serve(b, nil)
	all := make([]quant.Estimate, loadCommunities)
	list := names(loadCommunities)
	position := uint64(0)
	emit := func(n int) time.Duration {
		position++
		for i := range n {
			all[i] = estimate(list[i], "auto", position, 0.5)
		}
		start := time.Now()
		write(b, s, all[:n]...)
		return time.Since(start)
	}
	for range 20 {
		emit(loadCommunities)
	}
	before := heap()
	arrived := make(chan uint64, loadStreams)
	var readers sync.WaitGroup
	stop := make(chan struct{})
	for i := range loadStreams {
		readers.Go(func() { reader(b, s, query(i), arrived, stop) })
	}
	for range loadStreams {
		if p := <-arrived; p != 0 {
			b.Errorf("position %d before the greeting", p)
		}
	}
	perStream := (heap() - before) / loadStreams
	var writes, reached []float64
	for b.Loop() {
		start := time.Now()
		took := emit(changed)
		for n := 0; n < loadStreams; {
			if <-arrived >= position {
				n++
			}
		}
		writes = append(writes, took.Seconds()*1000)
		reached = append(reached, time.Since(start).Seconds()*1000)
	}
	b.StopTimer()
	slices.Sort(writes)
	slices.Sort(reached)
	b.ReportMetric(writes[len(writes)/2], "ms-write")
	b.ReportMetric(reached[len(reached)/2], "ms-all-p50")
	b.ReportMetric(reached[len(reached)*99/100], "ms-all-p99")
	b.ReportMetric(float64(before)/(1<<20), "MiB-before")
	b.ReportMetric(float64(perStream)/1024, "KiB/stream")
	close(stop)
	readers.Wait()
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// reader sends 0 after the greeting and then the position of each message.
func reader(b *testing.B, s *Server, query string, arrived chan<- uint64, stop <-chan struct{}) {
	c, err := net.Dial("tcp", s.Addr().String())
	if err != nil {
		b.Error(err)
		return
	}
	defer c.Close()
	go func() { <-stop; c.Close() }()
	if _, err := io.WriteString(c, plainGet("/api/v1/stream?events=estimates"+query, "localhost")); err != nil {
		b.Error(err)
		return
	}
	in := bufio.NewReaderSize(c, 2048)
	greeted := query == "" // else the latest estimates come first
	for {
		line, err := in.ReadSlice('\n')
		text := string(line[:min(len(line), 64)])
		for err == bufio.ErrBufferFull {
			_, err = in.ReadSlice('\n')
		}
		if err != nil {
			return
		}
		var position uint64
		switch {
		case strings.HasPrefix(text, "event: hello") && greeted:
			arrived <- 0
		case strings.HasPrefix(text, `data: {"position":`):
			if _, err := fmt.Sscanf(text, `data: {"position":%d`, &position); err != nil {
				b.Error(err)
			}
			if !greeted {
				greeted, position = true, 0
			}
			arrived <- position
		case strings.HasPrefix(text, "event: reconnect"):
			b.Error("a stream was dropped")
		}
	}
}

// BenchmarkListTenThousand is the request that an open list makes every second:
// sorted anew, as after a write.
func BenchmarkListTenThousand(b *testing.B) {
	s := serve(b, nil)
	var all []quant.Estimate
	for _, name := range names(loadCommunities) {
		all = append(all, estimate(name, "auto", 1, 0.5))
	}
	for range 30 {
		write(b, s, all...)
	}
	for _, sort := range []string{"name", "share"} {
		b.Run(sort, func(b *testing.B) {
			for b.Loop() {
				q := listQuery{listOrder: listOrder{sort: sort, search: "c0"}, limit: pageDefault, trend: 24}
				if got := s.store.page(s.store.ordered(q.listOrder), q); got.Matched != loadCommunities {
					b.Fatal(got.Matched)
				}
			}
		})
	}
}
