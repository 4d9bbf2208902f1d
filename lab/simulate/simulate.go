package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"gqlstream/ingest/event"
)

// Config describes a simulated social network. Every field is taken literally, zero included;
// start from DefaultConfig. The tags make those fields flags of gqlstream simulate that are not
// left out there, with the defaults of DefaultConfig.
type Config struct {
	Seed           uint64        `default:"1" help:"Same seed and options, same events."`
	Vertices       int           `default:"20000" help:"${simulate_vertices}"`
	Communities    int           `default:"12" help:"Planted groups, each an explicit community."`
	Classes        int           `default:"2" help:"Opinions a vertex can hold."`
	EdgesPerVertex float64       `default:"5" help:"Edges per vertex, also as the network grows."`
	Activity       float64       `default:"1000" help:"${simulate_activity}"`
	Duration       time.Duration `default:"10m" help:"${simulate_duration}"`
	Start          time.Time     `help:"${simulate_start}"`
	// of the vertices that are there from the start; the others arrive evenly
	InitialShare  float64       `kong:"-"`
	StepEvery     time.Duration `kong:"-"` // simulated time of a tick, which ends a step; >= 1ms
	StepEventsMax int           `kong:"-"` // events of a step; >= 1

	GroupHomophily float64 `kong:"-"` // share of contacts sought inside the own group, 0..1
	// share of contacts sought among those of the same opinion, 0..1
	OpinionHomophily float64 `kong:"-"`
	// share of the activity that is a vertex changing its community, 0..1
	MoveShare float64 `kong:"-"`

	Drift       float64       `default:"0.4" help:"${simulate_drift}"`
	DriftPeriod time.Duration `default:"5m" help:"Period of the drift, varied by community."`
	// share of the members that swap opinions an hour, leaving the prevalence
	Churn     float64       `kong:"-"`
	JumpEvery time.Duration `default:"1m" help:"${simulate_jump_every}"`
	JumpSize  float64       `default:"0.3" help:"${simulate_jump_size}"`

	LabelShare float64       `default:"0.03" help:"${simulate_label_share}"`
	LabelRate  float64       `default:"0.5" help:"${simulate_label_rate}"`
	LabelRenew float64       `default:"0" help:"${simulate_label_renew}"`
	LabelDelay time.Duration `kong:"-"` // mean, from arrival to the label
	Accuracy   []float64     `default:"0.75" help:"${simulate_accuracy}"`
	// how far agreeing neighbours raise the accuracy of a vertex, 0..1
	Neighborly      float64       `kong:"-"`
	PostRate        float64       `default:"1000" help:"${simulate_post_rate}"`
	Posts           bool          `help:"${simulate_posts}"`
	PredictionDelay time.Duration `kong:"-"` // mean, from arrival to the first prediction
	DegradeAt       time.Duration `help:"When the classifier becomes worse, in simulated time."`
	DegradeShare    float64       `placeholder:"X" help:"${simulate_degrade_share}"`
}

// arrivalSpan is the time over which vertices arrive when there is no end.
const arrivalSpan = time.Hour

// delayMax bounds the mean delays, and with them the queue of things to come.
const delayMax = time.Hour

// rateMax bounds the rates.
const rateMax = 1e9

// DefaultConfig returns a network of 20,000 vertices and 12 communities that
// evolves for ten minutes.
func DefaultConfig() Config {
	return Config{
		Seed: 1, Vertices: 20_000, InitialShare: 0.8, Communities: 12, Classes: 2,
		EdgesPerVertex: 5, Activity: 1000, Start: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
		Duration: 10 * time.Minute, StepEvery: 100 * time.Millisecond, StepEventsMax: 4096,
		GroupHomophily: 0.8, OpinionHomophily: 0.5, MoveShare: 0.002,
		Drift: 0.4, DriftPeriod: 5 * time.Minute, Churn: 0.2,
		JumpEvery: time.Minute, JumpSize: 0.3,
		LabelShare: 0.03, LabelRate: 0.5, LabelDelay: 2 * time.Second,
		Accuracy: []float64{0.75}, Neighborly: 0.2,
		PostRate: 1000, PredictionDelay: 2 * time.Second,
	}
}

// checkRates checks how many events there may be a second.
func (c *Config) checkRates(check func(ok bool, format string, args ...any)) {
	for _, rate := range []struct {
		name  string
		value float64
	}{{"activity", c.Activity}, {"post rate", c.PostRate}, {"label rate", c.LabelRate}} {
		check(rate.value >= 0 && rate.value <= rateMax,
			"%s: %v a second, want 0 to %v", rate.name, rate.value, float64(rateMax))
	}
}

// Validate reports every violation at once.
func (c Config) Validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(c.Vertices >= 2 && c.Vertices < 1<<31, "vertices: %d, want 2 to 2^31", c.Vertices)
	check(c.Communities >= 1 && c.Communities <= c.Vertices,
		"communities: %d, want 1 to the number of vertices", c.Communities)
	check(c.Classes >= 2 && c.Classes <= 1000, "classes: %d, want 2 to 1000", c.Classes)
	check(c.EdgesPerVertex > 0 && c.EdgesPerVertex < float64(c.Vertices)/4,
		"edges per vertex: %v, want more than 0 and less than a quarter of the vertices",
		c.EdgesPerVertex)
	check(c.Start.IsZero() || c.Start.Year() >= 1700 && c.Start.Year() < 2200,
		"start: %v, want a year from 1700 to 2199",
		c.Start)
	c.checkRates(check)
	check(c.Duration >= 0, "duration: %v is negative", c.Duration)
	check(c.StepEvery >= time.Millisecond, "step every: %v, want at least 1ms", c.StepEvery)
	check(c.StepEventsMax >= 1, "step events: %d, want at least 1", c.StepEventsMax)
	check(c.Drift >= 0 && c.Drift <= 10, "drift: %v, want 0 to 10", c.Drift)
	check(c.DriftPeriod > 0, "drift period: %v, want more than 0", c.DriftPeriod)
	check(c.Churn >= 0 && c.Churn <= 1000, "churn: %v, want 0 to 1000", c.Churn)
	check(c.JumpEvery >= 0, "jump every: %v is negative", c.JumpEvery)
	check(c.JumpSize >= 0 && c.JumpSize <= 0.9, "jump size: %v, want 0 to 0.9", c.JumpSize)
	for _, share := range []struct {
		name  string
		value float64
	}{
		{"initial share", c.InitialShare},
		{"group homophily", c.GroupHomophily},
		{"opinion homophily", c.OpinionHomophily},
		{"move share", c.MoveShare},
		{"label share", c.LabelShare},
		{"label renew", c.LabelRenew},
		{"neighborly", c.Neighborly},
		{"degrade share", c.DegradeShare},
	} {
		check(share.value >= 0 && share.value <= 1, "%s: %v, want 0 to 1", share.name, share.value)
	}
	for _, delay := range []time.Duration{c.LabelDelay, c.PredictionDelay} {
		check(delay >= 0 && delay <= delayMax, "delay: %v, want 0 to %v", delay, delayMax)
	}
	check(len(c.Accuracy) == 1 || len(c.Accuracy) == c.Classes, "accuracy: %d values, want 1 or %d",
		len(c.Accuracy), c.Classes)
	for _, a := range c.Accuracy {
		lowest := confidenceMin(c.Classes)
		check(a > lowest && a < 1, "accuracy: %v, want more than %.3g and less than 1", a, lowest)
	}
	return errors.Join(errs...)
}

// Network is an evolving social network with known true prevalences. Contacts are in
// network.go, opinions in opinion.go, predictions in classifier.go, labels in report.go.
//
// Time advances in ticks. A tick moves opinions, lets vertices arrive, makes and
// drops edges, lets vertices post and be asked, and emits the reports that are due. Nothing
// in a tick costs the size of the network. One goroutine owns it.
//
// A label is the answer of a person when asked. Some are asked once, some time after they
// arrive, others later. A person with a new opinion does not renew the label unless LabelRenew
// says so. Predictions lag person by person: a person is predicted on arrival and after each
// post.
type Network struct {
	config  Config
	rng     *rand.Rand
	network network
	opinion opinions
	expert  classifier
	version string // of the classifier
	queue   queue

	batch    *event.Batch // being filled
	position event.Position
	now      event.Time
	tick     int64
	begun    bool // the current tick is under way
	arriving int  // vertices still to come in this tick
	acting   int  // edges still to change in this tick
	posting  int  // posts still to come in this tick
	asking   int  // vertices still to be asked in this tick
	owed     owed
}

// owed are the fractions of events that are left over from earlier ticks.
type owed struct{ changes, posts, labels float64 }

// take returns the whole number of events that a rate makes due in a tick, and keeps the
// fraction.
func take(owed *float64, rate float64, tick time.Duration) int {
	*owed += rate * tick.Seconds()
	n := int(*owed)
	*owed -= float64(n)
	return n
}

// New returns a network that has done nothing yet.
func New(config Config) (*Network, error) {
	if err := config.Validate(); err != nil {
		return nil, fmt.Errorf("simulate: %w", err)
	}
	s := &Network{
		config: config, queue: queue{due: map[int64][]due{}},
		rng: rand.New(rand.NewPCG(config.Seed, 0x67716c73747265)),
		now: event.Time(config.Start.UnixNano()),
	}
	s.network = newNetwork(config, s.rng)
	s.opinion = newOpinions(config, s.rng)
	s.expert, s.version = newClassifier(config), simulatedVersion
	return s, nil
}

// initial is the number of vertices that are there from the start.
func (s *Network) initial() int {
	return min(s.config.Vertices, max(2, int(s.config.InitialShare*float64(s.config.Vertices))))
}

// population is the number of vertices that have arrived by the end of this tick.
func (s *Network) population() int {
	span := cmp.Or(s.config.Duration, arrivalSpan)
	last := max(1, int64((span-1)/s.config.StepEvery))
	later := int64(s.config.Vertices - s.initial())
	return s.initial() + int(later*min(s.tick, last)/last)
}

// Next resets b and fills it with the next step: a tick, or as much of one as StepEventsMax allows.
// A batch that ends a tick has Emit set. It returns io.EOF after the last tick. Every event is a
// position of its own. The contents of b stay valid until the next call.
func (s *Network) Next(ctx context.Context, b *event.Batch) error {
	b.Reset()
	b.First = s.position + 1
	b.Last = s.position
	b.Time = s.now
	if err := ctx.Err(); err != nil {
		return err
	}
	if !s.begun && s.config.Duration > 0 && s.elapsed() >= s.config.Duration {
		return io.EOF
	}
	s.batch = b
	if !s.begun {
		s.begin()
	}
	b.Time = s.now
	for b.Events() < s.config.StepEventsMax {
		if !s.act() {
			b.Emit, s.begun = true, false
			s.tick++
			break
		}
	}
	b.Last = s.position
	return nil
}

// Now returns the simulated time of the current tick.
func (s *Network) Now() event.Time { return s.now }

// Elapsed returns the simulated time since the start, as of Now.
func (s *Network) Elapsed() time.Duration {
	return time.Duration(s.now - event.Time(s.config.Start.UnixNano()))
}

// elapsed is the simulated time of the beginning of tick.
func (s *Network) elapsed() time.Duration {
	return time.Duration(s.tick) * s.config.StepEvery
}

// begin opens a tick: opinions move, and the tick's work is counted out.
func (s *Network) begin() {
	s.begun = true
	s.now = event.Time(s.config.Start.UnixNano()) + event.Time(s.elapsed())
	s.expert.worse = s.elapsed() >= s.config.DegradeAt
	s.queue.open()
	if s.tick == 0 {
		s.arriving = s.initial()
		s.acting = int(s.config.EdgesPerVertex * float64(s.arriving))
		return
	}
	s.moveOpinions()
	s.arriving = s.population() - len(s.network.vertices)
	s.acting = take(&s.owed.changes, s.config.Activity, s.config.StepEvery)
	s.posting = take(&s.owed.posts, s.config.PostRate, s.config.StepEvery)
	s.asking = take(&s.owed.labels, s.config.LabelRate, s.config.StepEvery)
}

// act does one thing of the tick and reports whether there was one to do.
func (s *Network) act() bool {
	switch {
	case s.arriving > 0:
		s.arriving--
		s.arrive()
	case s.acting > 0:
		s.acting--
		s.change()
	case s.posting > 0:
		s.posting--
		s.predict(s.network.active(s.rng), event.Reference{})
	case s.asking > 0:
		s.asking--
		s.label(uint32(s.rng.IntN(len(s.network.vertices))))
	default:
		return s.report()
	}
	return true
}
