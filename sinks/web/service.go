package web

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"
)

// serviceName and serviceVersion are what tools for NATS services show.
const (
	serviceName    = "gqlstream"
	serviceVersion = "1.0.0" // of the questions, not of the program
)

// AnswerOn answers questions on NATS, under subject.info and so on, until stop is called.
// All processes that do so share the requests.
func (s *Server) AnswerOn(nc *nats.Conn, subject string) (stop func() error, err error) {
	service, err := micro.AddService(nc, micro.Config{
		Name: serviceName, Version: serviceVersion, Description: "label-prevalence estimates of communities",
		Metadata: map[string]string{"pipeline": s.config.Pipeline, "version": s.config.Version},
	})
	if err != nil {
		return nil, fmt.Errorf("web: service on %s: %w", subject, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	group := service.AddGroup(subject)
	var slow sync.WaitGroup // answers that take longer than others of their endpoint may wait
	for _, rt := range routes() {
		if rt.name == "" || err != nil {
			continue
		}
		answer := func(r micro.Request) { s.answerRequest(ctx, &rt, r, nc.MaxPayload()) }
		if rt.wait > 0 {
			answer = func(r micro.Request) { slow.Go(func() { s.answerRequest(ctx, &rt, r, nc.MaxPayload()) }) }
		}
		err = group.AddEndpoint(
			rt.name,
			micro.HandlerFunc(answer),
			micro.WithEndpointMetadata(
				map[string]string{"parameters": strings.Join(rt.fields(), " ")},
			),
		)
	}
	stop = func() error {
		cancel()
		defer slow.Wait()
		return service.Stop()
	}
	if err != nil {
		_ = stop()
		return nil, fmt.Errorf("web: service on %s: %w", subject, err)
	}
	return stop, nil
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
func (s *Server) answerRequest(ctx context.Context, rt *route, r micro.Request, bytesMax int64) {
	query, refusal := rt.read(r.Data())
	var value any
	if refusal == nil {
		value, refusal = s.ask(ctx, rt, query)
	}
	var data []byte
	if refusal == nil {
		var err error
		if data, err = json.Marshal(value); err != nil {
			refusal = refuse(http.StatusInternalServerError, "internal error")
		} else if int64(len(data)) > bytesMax {
			refusal = refuse(http.StatusRequestEntityTooLarge, "the answer has %d bytes, and the server takes %d; ask for less", len(data), bytesMax)
		}
	}
	if refusal == nil {
		_ = r.Respond(data)
		return
	}
	data, _ = json.Marshal(
		map[string]string{"error": refusal.Message},
	) //nolint:errchkjson // strings
	_ = r.Error(strconv.Itoa(refusal.Code), refusal.Message, data)
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
		return nil, refuse(
			http.StatusBadRequest,
			"want a JSON object with some of %s",
			strings.Join(rt.fields(), ", "),
		)
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
