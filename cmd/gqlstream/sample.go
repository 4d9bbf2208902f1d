package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"time"

	"gqlstream/incremental"
	"gqlstream/ingest/event"
)

// sampleVertices is the size of the history that resultsDigest estimates, sampleDays its length.
const sampleVertices, sampleDays = 300, 8

// resultsDigest names the estimates that a configuration gives of a small history that never
// changes. Another version that computes otherwise gives another digest, although the configuration
// and its digest are the same. The last bits may also differ between processor architectures.
//
// The history has no attributes but side, so communities by other attributes have no members.
func resultsDigest(conf incremental.Config) (string, error) {
	return digestOf(conf, sampleHistory(conf.Classes))
}

func digestOf(conf incremental.Config, history []*event.Batch) (string, error) {
	conf.Owned, conf.MembersMin = nil, 1
	core, err := incremental.New(conf)
	if err != nil {
		return "", err
	}
	defer core.Close()
	hash := sha256.New()
	for _, batch := range history {
		result := core.Step(batch)
		for i := range result.Estimates {
			record, err := json.Marshal(&result.Estimates[i])
			if err != nil {
				return "", fmt.Errorf("results of the sample: %w", err)
			}
			hash.Write(record)
		}
	}
	return fmt.Sprintf("%x", hash.Sum(nil)[:8]), nil
}

// sampleHistory returns a history of one batch a day, and an erasure. It has every kind of event:
// a ring with chords; communities by members and attributes; labels of all roles, some with an end;
// predictions of two model versions; posts that answer each other.
func sampleHistory(classes int) (history []*event.Batch) {
	s := sampler{classes: classes}
	for s.day = range sampleDays {
		s.begin()
		switch s.day {
		case 0:
			s.graph()
			s.labels(0, 3)
			s.predictions("one", 1)
		case 2:
			s.labels(1, 9) // most of them again, or of another class
		case 4:
			s.withdraw()
		default:
			version := "one"
			if s.day > 4 {
				version = "two"
			}
			s.predictions(version, 2)
			s.posts(version)
		}
		history = append(history, s.batch)
		if s.day == 5 {
			s.begin()
			stamp := s.stamp()
			s.batch.Vertices = append(s.batch.Vertices, event.Vertex{
				Vertex: event.NumberID(6), Erase: true,
				Time: stamp.time, Position: stamp.position, Index: stamp.index,
			})
			history = append(history, s.batch)
		}
	}
	return history
}

// sampler makes the batches of sampleHistory.
type sampler struct {
	classes, day int
	position     event.Position
	index        uint32
	batch        *event.Batch
}

type sampleStamp struct {
	time     event.Time
	position event.Position
	index    uint32
}

// begin makes the next batch.
func (s *sampler) begin() {
	s.position++
	s.index = 0
	at := time.Date(2026, 1, 1+s.day, 0, 0, int(s.position), 0, time.UTC)
	s.batch = &event.Batch{
		First: s.position, Last: s.position, Time: event.Time(at.UnixNano()),
		Emit: true, EmitAll: s.day%2 == 0,
	}
}

// stamp returns time, position and index of the next event.
func (s *sampler) stamp() sampleStamp {
	s.index++
	return sampleStamp{s.batch.Time, s.position, s.index}
}

// class returns the true class of a vertex.
func (s *sampler) class(v uint64) int { return int(v*v/7) % s.classes }

// graph has edges of different weights, some with an end, two communities by members, one of
// them with multiplicities, and the attribute side.
func (s *sampler) graph() {
	for v := range uint64(sampleVertices) {
		for _, chord := range []uint64{1, 7, 31} {
			at := s.stamp()
			edge := event.Edge{
				Src: event.NumberID(v), Dst: event.NumberID((v + chord) % sampleVertices),
				Weight: float64(1 + v%2), Time: at.time, Position: at.position, Index: at.index,
			}
			if v%10 == 0 {
				edge.TTL = 36 * time.Hour
			}
			s.batch.Edges = append(s.batch.Edges, edge)
		}
		if v%2 == 0 {
			s.member("sample", v, 1)
		}
		if v%3 == 0 {
			s.member("weighted", v, uint32(1+v%5))
		}
		at := s.stamp()
		s.batch.Vertices = append(s.batch.Vertices, event.Vertex{
			Vertex: event.NumberID(v),
			Attributes: []event.Attribute{{Key: "side", Value: event.Value{
				Kind: event.StringValue, Text: [...]string{"west", "east"}[v/150%2],
			}}},
			Time: at.time, Position: at.position, Index: at.index,
		})
	}
}

func (s *sampler) member(community string, v uint64, multiplicity uint32) {
	at := s.stamp()
	s.batch.Members = append(s.batch.Members, event.Member{
		Community: community, Vertex: event.NumberID(v), Multiplicity: multiplicity,
		Time: at.time, Position: at.position, Index: at.index,
	})
}

// labels says the class of every nth vertex, moved by turn. One of ten is for training, two are
// audits.
func (s *sampler) labels(turn, nth uint64) {
	for v := uint64(0); v < sampleVertices; v += nth {
		at := s.stamp()
		label := event.Label{
			Vertex: event.NumberID(v), Class: event.Class((s.class(v) + int(turn)) % s.classes),
			Time: at.time, Position: at.position, Index: at.index,
		}
		switch v / nth % 10 {
		case 3:
			label.Role = event.Train
		case 5, 6:
			label.Role, label.Pi = event.Audit, event.One/4
		case 8:
			label.TTL = 60 * time.Hour
		}
		s.batch.Labels = append(s.batch.Labels, label)
	}
}

// units are probabilities of a class, wrong for one vertex of six.
func (s *sampler) units(v uint64) []uint32 {
	said := s.class(v)
	if (v+uint64(s.day))%6 == 0 {
		said = (said + 1) % s.classes
	}
	rest := uint32(event.One / (4 * s.classes))
	units := make([]uint32, s.classes)
	for k := range units {
		units[k] = rest
	}
	units[said] = event.One - rest*uint32(s.classes-1)
	return units
}

// predictions says the class of every nth vertex, each time of others.
func (s *sampler) predictions(version string, nth uint64) {
	for v := uint64(s.day) % nth; v < sampleVertices; v += nth {
		at := s.stamp()
		s.batch.Predictions = append(s.batch.Predictions, event.Prediction{
			Vertex: event.NumberID(v), Units: s.units(v), Version: version,
			Time: at.time, Position: at.position, Index: at.index,
		})
	}
}

// posts are written by every seventh vertex, and answer another one's.
func (s *sampler) posts(version string) {
	for v := uint64(s.day) % 7; v < sampleVertices; v += 7 {
		at := s.stamp()
		s.batch.Posts = append(s.batch.Posts, event.Post{
			Author: event.NumberID(v), Units: s.units(v), Version: version, Weight: 1,
			ReplyTo: event.Reference{
				ID: event.NumberID((v + 100 + uint64(s.day)) % sampleVertices), Given: true,
			},
			Time: at.time, Position: at.position, Index: at.index,
		})
	}
}

// withdraw takes back edges, labels and memberships.
func (s *sampler) withdraw() {
	for v := uint64(0); v < sampleVertices; v += 12 {
		at := s.stamp()
		s.batch.Edges = append(s.batch.Edges, event.Edge{
			Src: event.NumberID(v), Dst: event.NumberID(v + 1), Remove: true,
			Time: at.time, Position: at.position, Index: at.index,
		})
		at = s.stamp()
		s.batch.Labels = append(s.batch.Labels, event.Label{
			Vertex: event.NumberID(v + 3), Class: event.NoClass,
			Time: at.time, Position: at.position, Index: at.index,
		})
		s.member("sample", v, 0)
	}
}
