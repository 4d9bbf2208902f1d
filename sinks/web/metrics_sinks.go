package web

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gqlstream/sinks"
)

// sinkDescs are about the sinks; there are a few of them per process.
type sinkDescs struct {
	up, holding, retries, emissions, bytes, bytesMax, age *prometheus.Desc
}

func (m *metrics) describeSinks(desc describe) {
	m.sinks = sinkDescs{
		up:        desc("sink_up", "1 when the sink takes what it gets, 0 while it fails and is tried again.", "sink"),
		holding:   desc("sink_holding", "1 while the run loop waits for the sink.", "sink"),
		retries:   desc("sink_retries_total", "Failed attempts of the sink, each of which is repeated.", "sink"),
		emissions: desc("sink_queue_emissions", "Emissions in the queue of the sink.", "sink"),
		bytes:     desc("sink_queue_bytes", "Bytes on the disk of the queue of the sink.", "sink"),
		bytesMax:  desc("sink_queue_bytes_max", "Bytes that the queue of the sink may take.", "sink"),
		age:       desc("sink_queue_age_seconds", "Seconds since the oldest emission came that is in the queue; 0 when none is.", "sink"),
	}
}

func (m *metrics) collectSinks(ch chan<- prometheus.Metric, now time.Time) {
	d := &m.sinks
	for _, s := range m.server.sinks() {
		gauge(ch, d.up, boolean(s.Condition == sinks.Delivering), s.Name)
		gauge(ch, d.holding, boolean(s.Condition == sinks.Holding), s.Name)
		count(ch, d.retries, s.Retries, s.Name)
		if s.BytesMax == 0 {
			continue
		}
		a := sinkAnswerOf(s, now)
		gauge(ch, d.emissions, float64(a.Emissions), s.Name)
		gauge(ch, d.bytes, float64(a.Bytes), s.Name)
		gauge(ch, d.bytesMax, float64(a.BytesMax), s.Name)
		gauge(ch, d.age, a.Age, s.Name)
	}
}
