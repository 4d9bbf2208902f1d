package web

import (
	"encoding/json"
	"net/url"
	"runtime"
	"strconv"
	"testing"

	"gqlstream/quant"
)

const (
	loadPages       = 1_000
	loadCommunities = 10_000
)

// BenchmarkThousandPages measures the requests of a thousand pages in a second with 10,000
// communities: an operation is one write, and one request of each page.
//
//	go test ./sinks/web -run - -bench ThousandPages -benchtime 20x
func BenchmarkThousandPages(b *testing.B) {
	list := names(loadCommunities)
	for _, c := range []struct {
		name    string
		of      func(i int) []string // that page i names
		changed int                  // communities in a write
	}{
		{
			"each follows one, all change",
			func(i int) []string { return list[i*7%loadCommunities:][:1] }, loadCommunities,
		},
		{"all follow all, one changes", func(int) []string { return nil }, 1},
		{"all follow all, hundred change", func(int) []string { return nil }, 100},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, position := serve(b, nil), uint64(1)
			all := make([]quant.Estimate, loadCommunities)
			emit := func(n int) {
				for i := range n {
					all[i] = estimate(list[i], "auto", position, 0.5)
				}
				write(b, s, all[:n]...)
			}
			emit(loadCommunities)
			for b.Loop() {
				position++
				emit(c.changed)
				for i := range loadPages {
					q := &params{
						query: url.Values{
							"community": c.of(i),
							"after":     {strconv.FormatUint(position-1, 10)},
						},
					}
					answer, err := askChanged(b.Context(), s, q)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := json.Marshal(answer); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// BenchmarkListTenThousand is the request that an open list makes every second: sorted
// again, as after a write.
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
				q := listQuery{
					listOrder: listOrder{sort: sort, search: "c0"},
					limit:     pageDefault,
					trend:     24,
				}
				if got := s.store.page(s.store.ordered(q.listOrder),
					q); got.Matched != loadCommunities {
					b.Fatal(got.Matched)
				}
			}
		})
	}
}
