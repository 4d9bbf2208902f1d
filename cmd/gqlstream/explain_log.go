package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/checkpoint"
	"gqlstream/explain"
	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/quant"
	"gqlstream/sinks"
)

// explainer explains estimates from a log and the checkpoints beside it. It keeps
// graphs only, no kernels, so it costs what the graph costs.
type explainer struct {
	config      incremental.Config
	classes     []string
	checkpoints string              // directory of the state, "" when there is none
	js          jetstream.JetStream // where the published records are; nil: nowhere
	// open opens the log after a place, until a position or the end for 0.
	open func(ctx context.Context, at resume, until event.Position) (ingest.Source, func() error, error)
	tell func(format string, args ...any)
}

// explainQuery is what is asked.
type explainQuery struct {
	community  string
	method     string   // "": the first that is published
	from, to   logPlace // from without a place: the estimate before that of to
	named      int      // changes named for each cause
	membersMin int      // communities below it are not explained
}

// explainError is a question that cannot be answered as it stands.
type explainError struct{ error }

func explainErrorf(format string, args ...any) error {
	return explainError{fmt.Errorf("explain: "+format, args...)}
}

// explain answers a question.
func (e *explainer) explain(ctx context.Context, q explainQuery) (*quant.Explanation, error) {
	options := e.options(q.method)
	published, err := e.inForce(ctx, &q, string(options.Method))
	if err != nil {
		return nil, err
	}
	log := &logCursor{explainer: e}
	defer log.close()
	if err := log.reach(ctx, q.from, q.to); err != nil {
		return nil, err
	}
	walk, err := explain.Begin(ctx, log.core.View(), log.place, explain.Options{
		Config: e.config, Community: q.community, Estimate: options, Classes: e.classes, Named: q.named,
		Progress: e.progress(),
	})
	if err != nil {
		return nil, log.unknown(err, q)
	}
	defer walk.Close()
	if err := log.reach(ctx, q.to, q.to); err != nil {
		return nil, err
	}
	x, err := walk.To(ctx, log.core.View(), log.place)
	if err != nil {
		return nil, log.unknown(err, q)
	}
	for i, end := range []*quant.ExplanationEnd{&x.From, &x.To} {
		if end.Vertices < q.membersMin {
			return nil, explainErrorf("%s has fewer than %d members at position %d, so nothing is published of it",
				q.community, q.membersMin, end.Position)
		}
		if p := published[i]; p != nil && p.Position == end.Position {
			end.Published, end.Certificate = p.Prevalence, p.Certificate
		}
	}
	x.Settle()
	return x, nil
}

// options returns how the estimate is made: as it is published, or by default.
func (e *explainer) options(method string) quant.Options {
	for _, o := range e.config.WithDefaults().Estimates {
		if method == "" || o.Method == quant.Method(method) {
			return o
		}
	}
	o := quant.DefaultOptions()
	o.Method = quant.Method(method)
	return o
}

// inForce looks up which records were in force at both places and moves the places
// there: what is explained is why one record differs from another. Without records
// the places stand.
func (e *explainer) inForce(ctx context.Context, q *explainQuery, method string) (found [2]*quant.Estimate, err error) {
	if e.js == nil {
		return found, nil
	}
	log, err := ingest.IdentityAt(ctx, e.js, ingest.DefaultStreamNames().Log, 0)
	if err != nil {
		return found, err
	}
	config := sinks.NATSConfig{Stream: ingest.DefaultStreamNames().Estimates, Log: log.Created.Format(time.RFC3339Nano)}
	for _, end := range []struct {
		at    int
		place *logPlace
	}{{1, &q.to}, {0, &q.from}} {
		byDefault := *end.place == logPlace{} || end.place.position == math.MaxUint64
		if end.at == 0 && byDefault {
			*end.place = logPlace{position: event.Position(found[1].Position) - 1}
		}
		record, ok, err := sinks.InForce(ctx, e.js, config, q.community, method, end.place.reached)
		if err != nil {
			return found, err
		}
		ok = ok && record.Config == e.config.Digest()
		if !ok && byDefault {
			return found, explainErrorf("fewer than two estimates of %s by %s were published under this configuration; "+
				"give --from and --to", q.community, method)
		}
		if !ok {
			return [2]*quant.Estimate{}, nil
		}
		found[end.at] = &record
	}
	if found[0].Position == found[1].Position {
		return found, explainErrorf("%s has one estimate by %s from --from to --to, that of position %d; it did not move",
			q.community, method, found[0].Position)
	}
	q.from, q.to = logPlace{position: event.Position(found[0].Position)}, logPlace{position: event.Position(found[1].Position)}
	return found, nil
}

// reached reports whether a record is not beyond the place.
func (p logPlace) reached(e *quant.Estimate) bool {
	if p.position > 0 {
		return e.Position <= uint64(p.position)
	}
	at, err := time.Parse(time.RFC3339Nano, e.Time)
	return err == nil && event.Time(at.UnixNano()) <= p.time
}

// progress says now and then how far the walk is.
func (e *explainer) progress() func(done, most int) {
	told := time.Now()
	return func(done, most int) {
		if now := time.Now(); most > 0 && now.Sub(told) >= progressEvery {
			told = now
			e.tell("estimate %d of %d", done, most)
		}
	}
}

// logCursor is a graph on its way along the log.
type logCursor struct {
	*explainer
	core        *incremental.Core
	place       explain.Place
	source      ingest.Source
	closeSource func() error
	batch       event.Batch
	held        bool // batch is beyond the last place that was reached
}

func (l *logCursor) close() error {
	if l.core == nil {
		return nil
	}
	l.core.Close()
	l.core = nil
	return l.closeSource()
}

// reach goes on to a place, from where it is or from a checkpoint that is nearer.
// No later place than last will be asked for.
func (l *logCursor) reach(ctx context.Context, place, last logPlace) error {
	saved, err := l.nearest(place)
	if err != nil {
		return err
	}
	if l.core == nil || saved != nil {
		if err := l.start(ctx, saved, last); err != nil {
			return err
		}
	}
	told := time.Now()
	for {
		if !l.held {
			err := l.source.Next(ctx, &l.batch)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("explain: %w", err)
			}
		}
		if l.held = place.passed(&l.batch); l.held {
			return nil
		}
		l.batch.Emit = false // an estimate would need every kernel
		l.core.Step(&l.batch)
		l.place = explain.Place{Position: l.batch.Last, Time: l.batch.Time}
		if now := time.Now(); now.Sub(told) >= progressEvery {
			told = now
			l.tell("reading the log, position %d, log time %s", l.place.Position, l.place.Time)
		}
	}
}

// start begins at a checkpoint, or with the log when there is none.
func (l *logCursor) start(ctx context.Context, saved *checkpoint.Checkpoint, last logPlace) (err error) {
	if err := l.close(); err != nil {
		return err
	}
	config := l.config
	config.VacuumEvery = -1
	at := resume{}
	l.place, l.held = explain.Place{}, false
	if saved == nil {
		l.core, err = incremental.New(config)
	} else {
		l.core, err = incremental.RestoreGraph(config, saved.Sections)
		at.place, at.identity = resumeOf(saved.Manifest)
		l.place = explain.Place{Position: at.place.Position, Time: at.place.Time}
		l.tell("begins at checkpoint %d", at.place.Position)
	}
	if err != nil {
		return usageError{err}
	}
	l.source, l.closeSource, err = l.open(ctx, at, last.position)
	if err != nil {
		l.core.Close()
		l.core = nil
		if saved == nil && errors.Is(err, ingest.ErrWrongHistory) {
			return explainErrorf("the log cannot be read from its beginning, and no checkpoint of this configuration "+
				"is early enough; choose a later --from: %w", err)
		}
	}
	return err
}

// nearest returns the newest checkpoint that is not beyond a place and spares
// reading, or nil.
func (l *logCursor) nearest(place logPlace) (*checkpoint.Checkpoint, error) {
	if l.checkpoints == "" {
		return nil, nil
	}
	dir := checkpoint.Look(checkpoint.Disk{}, filepath.Join(l.checkpoints, "checkpoints"))
	positions, err := dir.List()
	if err != nil {
		return nil, err
	}
	for _, p := range positions {
		switch {
		case p <= uint64(l.place.Position):
			return nil, nil
		case place.position > 0 && p > uint64(place.position):
			continue
		}
		saved, err := dir.Read(p)
		if err != nil || saved.Manifest.Config != l.config.Digest() {
			l.tell("checkpoint %d is passed over: damaged, replaced, or of another configuration", p)
			continue
		}
		if place.time == 0 || event.Time(saved.Manifest.LogTime) <= place.time {
			return saved, nil
		}
	}
	return nil, nil
}

// namesMax bounds how many communities an error names.
const namesMax = 8

// unknown says which communities there are where the one in question is not.
func (l *logCursor) unknown(err error, q explainQuery) error {
	if !errors.Is(err, explain.ErrUnknown) {
		return err
	}
	view := l.core.View()
	var names []string
	for c := range view.Communities() {
		if !view.Retired(graphstore.Community(c)) {
			names = append(names, view.CommunityName(graphstore.Community(c)))
		}
	}
	slices.Sort(names)
	if more := len(names) - namesMax; more > 0 {
		names = append(names[:namesMax], fmt.Sprintf("and %d more", more))
	}
	return explainErrorf("%q is not known at position %d; known there: %s",
		q.community, l.place.Position, cmp.Or(strings.Join(names, ", "), "none"))
}
