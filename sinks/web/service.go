package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
	"github.com/nats-io/nuid"
)

// serviceName and serviceVersion are shown by tools for NATS services.
const (
	serviceName    = "gqlstream"
	serviceVersion = "1.0.0" // of the questions, not of the program
)

// queueGroup is the one of all processes that answer, as the micro library names it.
const queueGroup = "q"

// service answers questions on NATS, as the micro library does: tools that list and ask services
// find it. It is not made with that library, because a service of it writes an answer to any
// subject that the question names. A client with the right to ask could make a run write on the
// subjects of its own log.
type service struct {
	server   *Server
	nc       *nats.Conn
	identity micro.ServiceIdentity
	started  time.Time
	inboxes  []string        // prefixes of reply subjects, dots included
	ctx      context.Context //nolint:containedctx // of answers that take long
	slow     sync.WaitGroup  // answers that take longer than others of their endpoint may wait
	subs     []*nats.Subscription

	mu        sync.Mutex
	endpoints []*micro.EndpointStats
	fields    [][]string // of each endpoint
	warned    time.Time  // when a refused reply was last reported
}

// Inboxes that every service replies to: the default ones of clients, and those of a server for
// questions from another account, which clients cannot name.
const (
	inboxDefault = "_INBOX"
	accountInbox = "_R_"
)

// AnswerOn answers questions on NATS, under subject.info and so on, until stop is called. All
// processes that do so share the requests. A question is answered only if the subject of its reply
// begins with one of the inboxes, inboxDefault if there is none. Others are counted.
func (s *Server) AnswerOn(
	nc *nats.Conn, subject string, inboxes ...string,
) (stop func() error, err error) {
	if len(inboxes) == 0 {
		inboxes = []string{inboxDefault}
	}
	ctx, cancel := context.WithCancel(context.Background())
	v := &service{
		server: s, nc: nc, started: time.Now().UTC(), ctx: ctx,
		identity: micro.ServiceIdentity{
			Name: serviceName, ID: nuid.Next(), Version: serviceVersion,
			Metadata: map[string]string{
				"pipeline": s.config.Pipeline, "version": s.config.Version,
			},
		},
	}
	for _, inbox := range append(slices.Clone(inboxes), accountInbox) {
		v.inboxes = append(v.inboxes, strings.TrimSuffix(inbox, ".")+".")
	}
	for _, rt := range routes() {
		if rt.name != "" && err == nil {
			err = v.addEndpoint(&rt, subject)
		}
	}
	for _, verb := range []micro.Verb{micro.PingVerb, micro.InfoVerb, micro.StatsVerb} {
		if err == nil {
			err = v.addVerb(verb)
		}
	}
	stop = func() error {
		cancel()
		defer v.slow.Wait()
		var errs []error
		for _, sub := range v.subs {
			if err := sub.Drain(); !errors.Is(err, nats.ErrConnectionClosed) {
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	}
	if err != nil {
		_ = stop()
		return nil, fmt.Errorf("answers on %s: %w", subject, err)
	}
	return stop, nil
}

// addEndpoint answers the questions of a route.
func (v *service) addEndpoint(rt *route, subject string) error {
	stats := &micro.EndpointStats{
		Name: rt.name, Subject: subject + "." + rt.name, QueueGroup: queueGroup,
	}
	v.mu.Lock()
	v.endpoints, v.fields = append(v.endpoints, stats), append(v.fields, rt.fields())
	v.mu.Unlock()
	sub, err := v.nc.QueueSubscribe(stats.Subject, queueGroup, func(m *nats.Msg) {
		switch {
		case !v.mayReply(m):
		case rt.wait > 0:
			v.slow.Go(func() { v.answer(rt, stats, m) })
		default:
			v.answer(rt, stats, m)
		}
	})
	v.subs = append(v.subs, sub)
	return err
}

// addVerb answers tools that query services: all services, services of this name, and this
// instance.
func (v *service) addVerb(verb micro.Verb) error {
	subjects := [][2]string{{}, {serviceName, ""}, {serviceName, v.identity.ID}}
	for _, of := range subjects {
		subject, err := micro.ControlSubject(verb, of[0], of[1])
		if err != nil {
			return err
		}
		sub, err := v.nc.Subscribe(subject, func(m *nats.Msg) {
			if data, err := json.Marshal(v.describe(verb)); err == nil && v.mayReply(m) {
				_ = m.Respond(data)
			}
		})
		if err != nil {
			return err
		}
		v.subs = append(v.subs, sub)
	}
	return nil
}

// describe returns the answer to a verb.
func (v *service) describe(verb micro.Verb) any {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch verb {
	case micro.PingVerb:
		return micro.Ping{ServiceIdentity: v.identity, Type: micro.PingResponseType}
	case micro.StatsVerb:
		stats := micro.Stats{
			ServiceIdentity: v.identity, Type: micro.StatsResponseType, Started: v.started,
		}
		for _, e := range v.endpoints {
			now := *e
			now.AverageProcessingTime = e.ProcessingTime / time.Duration(max(e.NumRequests, 1))
			stats.Endpoints = append(stats.Endpoints, &now)
		}
		return stats
	}
	info := micro.Info{
		ServiceIdentity: v.identity, Type: micro.InfoResponseType,
		Description: "label-prevalence estimates of communities",
	}
	for i, e := range v.endpoints {
		info.Endpoints = append(info.Endpoints, micro.EndpointInfo{
			Name: e.Name, Subject: e.Subject, QueueGroup: e.QueueGroup,
			Metadata: map[string]string{"parameters": strings.Join(v.fields[i], " ")},
		})
	}
	return info
}

// refusedReplyEvery is how often a refused reply is reported at most.
const refusedReplyEvery = time.Minute

// mayReply reports whether a question may be answered where it says, and counts it if not.
func (v *service) mayReply(m *nats.Msg) bool {
	isInbox := func(inbox string) bool { return strings.HasPrefix(m.Reply, inbox) }
	if slices.ContainsFunc(v.inboxes, isInbox) {
		return true
	}
	v.server.repliesRefused.Add(1)
	v.mu.Lock()
	defer v.mu.Unlock()
	if now := time.Now(); now.Sub(v.warned) >= refusedReplyEvery {
		v.warned = now
		v.server.config.Logger.Warn("a question on NATS names a reply subject that is no inbox:"+
			" it is not answered", "question", m.Subject, "reply", m.Reply,
			"refused", v.server.repliesRefused.Load())
	}
	return false
}

// answer answers one question and counts it.
func (v *service) answer(rt *route, stats *micro.EndpointStats, m *nats.Msg) {
	begun := time.Now()
	refusal := v.server.answerRequest(v.ctx, rt, m, v.nc.MaxPayload())
	v.mu.Lock()
	defer v.mu.Unlock()
	stats.NumRequests++
	stats.ProcessingTime += time.Since(begun)
	if refusal != nil {
		stats.NumErrors++
		stats.LastError = fmt.Sprintf("%d:%s", refusal.Code, refusal.Message)
	}
}

// fields are the parameters that a request on NATS may have.
func (rt *route) fields() (list []string) {
	if strings.Contains(rt.pattern, "{name}") {
		list = append(list, "community")
	}
	return append(
		list,
		slices.DeleteFunc(slices.Clone(rt.params), func(p string) bool { return p == "format" })...)
}

// answerRequest is the door of NATS. An error is an answer too, {"error": "..."}, with the
// code and the text in the headers of a micro service.
func (s *Server) answerRequest(
	ctx context.Context, rt *route, m *nats.Msg, bytesMax int64,
) (refusal *Refusal) {
	query, refusal := rt.read(m.Data)
	var value any
	if refusal == nil {
		value, refusal = s.ask(ctx, rt, query)
	}
	reply := nats.NewMsg(m.Reply)
	if refusal == nil {
		var err error
		if reply.Data, err = json.Marshal(value); err != nil {
			refusal = refuse(http.StatusInternalServerError, "internal error")
		} else if int64(len(reply.Data)) > bytesMax {
			refusal = refuse(http.StatusRequestEntityTooLarge,
				"the answer has %d bytes, more than the server's limit of %d; ask for less",
				len(reply.Data), bytesMax)
		}
	}
	if refusal != nil {
		reply.Header.Set(micro.ErrorHeader, refusal.Message)
		reply.Header.Set(micro.ErrorCodeHeader, strconv.Itoa(refusal.Code))
		// nolint:errchkjson // strings
		reply.Data, _ = json.Marshal(map[string]string{"error": refusal.Message})
	}
	_ = m.RespondMsg(reply)
	return refusal
}

// read parses a request: a JSON object with the parameters, or nothing.
func (rt *route) read(data []byte) (query url.Values, refusal *Refusal) {
	query = url.Values{}
	if len(bytes.TrimSpace(data)) == 0 {
		return query, nil
	}
	given := map[string]any{}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&given); err != nil {
		return nil, refuse(http.StatusBadRequest, "want a JSON object with some of %s",
			strings.Join(rt.fields(), ", "))
	}
	for field, value := range given {
		if !slices.Contains(rt.fields(), field) {
			return nil, refuse(http.StatusBadRequest, "unknown parameter %q", field)
		}
		switch value.(type) {
		case string, json.Number:
			query.Set(field, fmt.Sprint(value))
		default:
			return nil, refuse(http.StatusBadRequest, "%s: want a string or a number", field)
		}
	}
	return query, nil
}
