package graphstore

import (
	"math/rand/v2"
	"testing"

	"gqlstream/ingest/event"
)

// An event that the store refuses must be named by its place in its message, whichever
// events of which messages the decoder has refused, one by one or counted together.
func TestARefusedEventHasItsPlaceInItsMessage(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 1))
		b, want := event.Batch{}, []int{}
		for position := event.Position(1); position <= 5; position++ {
			for index := range random.IntN(40) {
				last := len(b.Refused) - 1
				switch {
				case random.IntN(2) == 0:
					b.Edges = append(b.Edges, event.Edge{Position: position})
					want = append(want, index)
				case last >= 0 && b.Refused[last].Position == position && b.Refused[last].Index+b.Refused[last].More+1 == index:
					b.Refused[last].More++
				default:
					b.Refused = append(b.Refused, event.Refusal{Position: position, Kind: event.KindEdge, Index: index})
				}
			}
		}
		p := step{batch: &b}
		for _, i := range random.Perm(len(want)) { // the order of their keys, say
			if got := p.indexInMessage(event.KindEdge, i); got != want[i] {
				t.Fatalf("seed %d: event %d is said to be event %d of its message, it is %d", seed, i, got, want[i])
			}
		}
	}
}

// To name the events of a message that the store refuses, few of the decoder's refusals may
// be looked at for each, however many there are.
func TestNamingARefusedEventLooksAtFewOthers(t *testing.T) {
	const refused = 1 << 16 // every other event of its message
	looked := 0
	for rank := range refused {
		ahead := refusedAhead(rank, refused, func(j int) int { looked++; return j })
		if ahead != rank+1 {
			t.Fatalf("%d events before sound event %d are refused, want %d", ahead, rank, rank+1)
		}
	}
	if most := 17 * refused; looked > most {
		t.Errorf("%d refusals are looked at for %d events, want at most %d", looked, refused, most)
	}
}
