package simulate

import "time"

// Shift moves a share of a community from its largest class to another, in the next tick. People
// tell when they post next.
func (s *Network) Shift(community int, share float64) {
	g := uint32(community)
	s.opinion.displace(g, share)
	s.opinion.jumped[g] = s.now
	s.settle(g)
}

// Speak has all members of a community post within a time: news about which everybody speaks.
func (s *Network) Speak(community int, within time.Duration) {
	for v, p := range s.network.vertices {
		if p.group == uint32(community) {
			s.queue.add(uint32(v), duePrediction, 1+s.delay(within/2))
		}
	}
}

// Ask has this many vertices, drawn from all, say their opinion in the next tick.
func (s *Network) Ask(vertices int) {
	for range vertices {
		s.queue.add(uint32(s.rng.IntN(len(s.network.vertices))), dueLabel, 1)
	}
}

// Retrain replaces the classifier by another one with its own errors. It predicts all vertices
// within a time.
func (s *Network) Retrain(version string, accuracy float64, within time.Duration) {
	s.version = version
	s.expert.retrain(accuracy)
	for v := range s.network.vertices {
		s.queue.add(uint32(v), duePrediction, 1+s.delay(within/2))
	}
}
