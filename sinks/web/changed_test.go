package web

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"gqlstream/quant"
)

// changedOf asks for the changes after a position.
func changedOf(t testing.TB, s *Server, after uint64, communities ...string) changedAnswer {
	t.Helper()
	query := url.Values{"after": {fmt.Sprint(after)}, "community": communities}
	return into[changedAnswer](t, s, "/api/v1/estimates?"+query.Encode())
}

func TestChangedBeginsWithTheLatest(t *testing.T) {
	s := serve(t, nil)
	write(
		t, s, estimate("a", "auto", 7, 0.1), estimate("a", "pcc", 7, 0.2),
		estimate("b", "auto", 7, 0.3),
	)
	first := changedOf(t, s, 0, "b", "a", "b", "nobody")
	if len(first.Estimates) != 3 || first.Position != 7 || first.Instance != s.instance {
		t.Errorf("%d estimates at %d, want 3 at 7", len(first.Estimates), first.Position)
	}
	write(t, s, estimate("c", "auto", 8, 0.1), estimate("b", "auto", 8, 0.4))
	next := changedOf(t, s, first.Position, "a", "b")
	if len(next.Estimates) != 1 || next.Estimates[0].Community != "b" ||
		next.Estimates[0].Prevalence[1] != 0.4 {
		t.Errorf("then %+v", next)
	}
	if all := changedOf(t, s, first.Position); len(all.Estimates) != 2 || all.Position != 8 {
		t.Errorf("of all %+v", all)
	}
}

// An answer without changes has a few bytes, whatever the number of communities.
func TestNoNewsIsShort(t *testing.T) {
	s := serve(t, nil)
	for i, name := range names(1000) {
		write(t, s, estimate(name, "auto", uint64(i+1), 0.5))
	}
	if _, _, body := get(t, s, "/api/v1/estimates?after=1000"); len(body) > 100 {
		t.Errorf("%d bytes: %s", len(body), body)
	}
}

// Records from before the server began, and records that are suppressed for all methods,
// must have their place in the order of positions too.
func TestChangedFollowsPositions(t *testing.T) {
	s := serve(t, nil)
	loaded := []quant.Estimate{
		estimate("a", "auto", 5, 0.1),
		estimate("b", "auto", 3, 0.1),
		estimate("c", "", 4, 0.1),
	}
	loaded[2].Suppressed, loaded[2].Prevalence = true, nil
	s.Load(loaded)
	for after, want := range map[uint64]int{0: 3, 3: 2, 4: 1, 5: 0} {
		if got := changedOf(t, s, after); len(got.Estimates) != want || got.Position != 5 {
			t.Errorf("after %d: %d at %d, want %d", after, len(got.Estimates), got.Position, want)
		}
	}
	write(
		t, s, estimate("c", "auto", 6, 0.1), estimate("c", "pcc", 6, 0.1),
	) // in place of the one without a method
	hidden := estimate("c", "", 7, 0)
	hidden.Suppressed, hidden.Prevalence = true, nil
	write(t, s, hidden)
	if got := changedOf(t, s, 6); len(got.Estimates) != 2 || !got.Estimates[0].Suppressed ||
		!got.Estimates[1].Suppressed {
		t.Errorf("suppressed: %+v", got)
	}
	if got := changedOf(t, s, 0); len(got.Estimates) != 4 {
		t.Errorf("%d of all, want 4", len(got.Estimates))
	}
}

// Whatever the timing of writers and readers, a reader who asks again and again must go
// forward only, miss no community and get the last write.
func TestChangedNeverGoesBack(t *testing.T) {
	s := serve(t, nil)
	const rounds = 200
	var readers sync.WaitGroup
	for i := range 8 {
		var of []string
		if i%2 == 1 {
			of = []string{"c00001", "c00003"}
		}
		readers.Go(func() {
			last, latest := uint64(0), map[string]uint64{}
			for last < rounds {
				got := changedOf(t, s, last, of...)
				if got.Position < last {
					t.Errorf("reader %d: position %d after %d", i, got.Position, last)
				}
				last = got.Position
				for _, x := range got.Estimates {
					if x.Position <= latest[x.Community] {
						t.Errorf(
							"reader %d: %s at %d after %d", i, x.Community, x.Position,
							latest[x.Community],
						)
					}
					latest[x.Community] = x.Position
				}
			}
			for _, name := range []string{"c00001", "c00003"} {
				if latest[name] != rounds {
					t.Errorf("reader %d: %s is at %d", i, name, latest[name])
				}
			}
		})
	}
	for round := range uint64(rounds) {
		var list []quant.Estimate
		for _, name := range names(5) {
			list = append(list, estimate(name, "auto", round+1, 0.5))
		}
		write(t, s, list...)
	}
	readers.Wait()
}

// The cost of a request must not grow with the communities that did not change: among ten
// thousand it takes about as long as among ten.
func TestTheCostOfARequestDependsOnChanges(t *testing.T) {
	least := func(communities int) time.Duration {
		s := newStore(Config{Classes: []string{"no", "yes"}, CommunitiesMax: communities})
		var all []quant.Estimate
		for _, name := range names(communities) {
			all = append(all, estimate(name, "auto", 1, 0.5))
		}
		s.write(all, time.Now())
		s.write(
			[]quant.Estimate{estimate(all[communities/2].Community, "auto", 2, 0.5)},
			time.Now(),
		)
		best := time.Hour
		for range 200 {
			begun := time.Now()
			for range 10 {
				if list, position := s.changed(nil, 1); len(list) != 1 || position != 2 {
					t.Fatal(len(list), position)
				}
			}
			best = min(best, time.Since(begun))
		}
		return best
	}
	if few, many := least(10), least(10_000); many > 20*few+time.Microsecond {
		t.Errorf("among 10,000 communities an ask takes %v, among 10 %v", many/10, few/10)
	}
}

// A hostile name must stay one string of JSON, and be found again by itself.
func TestNamesComeBackAsTheyWere(t *testing.T) {
	s := serve(t, nil)
	for i, name := range hostileNames() {
		write(t, s, estimate(name, "auto", uint64(i+1), 0.5))
		if got := changedOf(t, s, uint64(i), name); len(got.Estimates) != 1 ||
			got.Estimates[0].Community != name {
			t.Errorf("%q came as %+v", name, got)
		}
	}
}

func TestCloseFreesTheAddressAtOnce(t *testing.T) {
	s, err := New(Config{HTTP: HTTP{Listen: "127.0.0.1:0"}, Classes: []string{"no", "yes"}})
	if err != nil {
		t.Fatal(err)
	}
	client := newHTTP(t)
	for range 20 {
		reply, err := client.Get(s.URL() + "api/v1/estimates")
		if err != nil || reply.StatusCode != http.StatusOK {
			t.Fatal(reply, err)
		}
		reply.Body.Close()
	}
	start := time.Now()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took > shutdownWaitMax {
		t.Errorf("closing took %v", took)
	}
	if err := s.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
	s.Write([]quant.Estimate{estimate("a", "auto", 1, 0.5)})
}

// As many communities as the description allows may be named, repeated ones counted.
func TestChangesOfTooManyNamesAreRefused(t *testing.T) {
	s := serve(t, nil)
	for names, want := range map[int]int{
		namesMax:     http.StatusOK,
		namesMax + 1: http.StatusBadRequest,
	} {
		reply, err := newHTTP(t).Get(
			s.URL() + "api/v1/estimates?after=0" + strings.Repeat("&community=a", names))
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
		if reply.StatusCode != want {
			t.Errorf("%d names: code %d, want %d", names, reply.StatusCode, want)
		}
	}
}
