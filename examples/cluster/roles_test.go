package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// attempt is a role that tries an action, and an observer of the effect.
type attempt struct {
	t        *testing.T
	role     string
	c        client
	observer client // the worker, which sees every stream of the pipeline
	n        int    // differs between attempts
}

// wrote reports how many messages the streams of the pipeline have on a subject.
func (a *attempt) wrote(subject string) (n uint64) {
	for _, name := range []string{
		"GQL", "GQL_QUARANTINE", "GQL_ESTIMATES", "GQL_ALERTS", "GQL_HISTORY", "KV_gql_estimates",
		"GQL_ASK", "OBJ_gql_group_g_state",
	} {
		stream, err := a.observer.js.Stream(a.t.Context(), name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			continue // which an attempt or a command makes
		}
		if err != nil {
			a.t.Fatal(err)
		}
		info, err := stream.Info(a.t.Context(), jetstream.WithSubjectFilter(subject))
		if err != nil {
			a.t.Fatal(err)
		}
		n += info.State.Subjects[subject]
	}
	return n
}

// waitMax is how long a client waits for an answer that it may not get.
const waitMax = 400 * time.Millisecond

func (a *attempt) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(a.t.Context(), waitMax)
}

// publish reports whether the pipeline stored a message of the role on a subject.
func (a *attempt) publish(subject, payload string) bool {
	before := a.wrote(subject)
	m := nats.NewMsg(subject)
	m.Data = []byte(payload)
	ctx, cancel := a.context()
	defer cancel()
	_, _ = a.c.RequestMsgWithContext(ctx, m)
	return a.wrote(subject) > before
}

// replyOn reports whether the role had anything written on a subject of the pipeline by a request
// that wants its answer there. It first asks with an inbox, which is answered in the same order.
func (a *attempt) replyOn(question, reply string, payload []byte) bool {
	m := &nats.Msg{Subject: question, Reply: reply, Data: payload}
	if err := a.c.PublishMsg(m); err != nil {
		a.t.Fatal(err)
	}
	ctx, cancel := a.context()
	defer cancel()
	_, _ = a.c.RequestWithContext(ctx, question, payload)
	return a.wrote(reply) > 0
}

// request reports whether a request has an answer without an error.
func (a *attempt) request(subject, payload string) bool {
	ctx, cancel := a.context()
	defer cancel()
	m, err := a.c.RequestWithContext(ctx, subject, []byte(payload))
	if err != nil {
		return false
	}
	var answer struct {
		Error any `json:"error"`
	}
	return json.Unmarshal(m.Data, &answer) == nil && answer.Error == nil
}

// follow reports whether the role gets a message of a stream by a consumer of its own.
func (a *attempt) follow(stream string) bool {
	ctx, cancel := a.context()
	defer cancel()
	consumer, err := a.c.js.OrderedConsumer(ctx, stream, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return false
	}
	m, err := consumer.Next(jetstream.FetchContext(ctx))
	return err == nil && m.Subject() != ""
}

// listen reports whether the role receives a message of somebody else on a subject.
func (a *attempt) listen(pattern, subject string) bool {
	sub, err := a.c.SubscribeSync(pattern)
	if err != nil {
		return false
	}
	defer func() { _ = sub.Unsubscribe() }()
	_ = a.c.Flush()
	if err := a.observer.Publish(subject, []byte("{}")); err != nil {
		a.t.Fatal(err)
	}
	_ = a.observer.Flush()
	m, err := sub.NextMsg(waitMax)
	return err == nil && m.Subject == subject
}

// deliver reports whether a consumer of the role makes the server write on a subject of the
// pipeline.
func (a *attempt) deliver(stream, subject string) bool {
	config := fmt.Sprintf(`{"stream_name": %q, "config": {"deliver_subject": %q,`+
		` "ack_policy": "none", "deliver_policy": "all", "name": "push%d"}}`, stream, subject, a.n)
	a.request("$JS.API.CONSUMER.CREATE."+stream, config)
	a.request(fmt.Sprintf("$JS.API.CONSUMER.CREATE.%s.push%d", stream, a.n), config)
	a.request("JS.PIPELINE.API.CONSUMER.CREATE."+stream, config)
	_ = a.observer.Flush()
	return a.wrote(subject) > 0
}

// changeWebhook reports whether the role changed the queue of the webhook, or took from it.
func (a *attempt) changeWebhook() bool {
	queue := func() jetstream.ConsumerInfo {
		consumer, err := a.observer.js.Consumer(a.t.Context(), "GQL_ALERTS", "webhook-ops")
		if err != nil {
			return jetstream.ConsumerInfo{} // the run makes it again at its next look
		}
		return *consumer.CachedInfo()
	}
	var before jetstream.ConsumerInfo
	await(a.t, "the queue of the webhook", func() bool { // the run repairs earlier damage
		before = queue()
		return !before.Created.IsZero() && before.Config.FilterSubject == ""
	})
	update := `{"stream_name": "GQL_ALERTS", "action": "", "config": {"durable_name": ` +
		`"webhook-ops",` +
		` "ack_policy": "explicit", "filter_subject": "gqlest.alert.none", "description": "x"}}`
	a.request("$JS.API.CONSUMER.CREATE.GQL_ALERTS.webhook-ops.gqlest.alert.none", update)
	a.request("JS.PIPELINE.API.CONSUMER.CREATE.GQL_ALERTS", update)
	a.request("$JS.API.CONSUMER.DELETE.GQL_ALERTS.webhook-ops", "")
	after := queue() // readers have a consumer of that name on their copy then
	return after.Config.FilterSubject != "" || !after.Created.Equal(before.Created)
}

// attempts are the rows of the table in docs/permissions.md, and how each is tried. Of several
// tries one that succeeds is enough.
var attempts = map[string]func(a *attempt) bool{
	"publish edges, labels, predictions, posts, members and vertices": func(a *attempt) bool {
		all := true
		for _, kind := range []string{"edge", "label", "prediction", "post", "member", "vertex"} {
			all = a.publish("gql."+kind, "{}") && all
		}
		return all
	},
	"publish `gql.control`": func(a *attempt) bool {
		return a.publish("gql.control", `{"op": "flush"}`)
	},
	"publish estimates, alerts and refusals": func(a *attempt) bool {
		tried := false
		for _, subject := range []string{
			"gqlest.estimate.try.%d", "gqlest.alert.try.%d", "gqlq.try%d",
			"gqlest.history.day.try.%d",
			"gqlest.shard.%d000",
		} {
			tried = a.publish(fmt.Sprintf(subject, a.n), "{}") || tried
		}
		return tried
	},
	"write the bucket of latest estimates": func(a *attempt) bool {
		return a.publish(fmt.Sprintf("$KV.gql_estimates.try.%d", a.n), "{}")
	},
	"ask questions": func(a *attempt) bool { return a.request("gqlest.query.info", "") },
	"have an answer written elsewhere than to an inbox": func(a *attempt) bool {
		tried := false
		for i, reply := range replies(a.n) {
			for _, question := range []string{"gqlest.query.info", "$SRV.PING"} {
				tried = a.replyOn(question, fmt.Sprint(reply, i), nil) || tried
			}
		}
		return tried
	},
	"have an acknowledgement written elsewhere than to an inbox": func(a *attempt) bool {
		tried := false
		for i, reply := range replies(a.n) {
			tried = a.replyOn("gql.edge", fmt.Sprint(reply, 10+i), []byte("{}")) || tried
		}
		return tried
	},
	"have an answer of the broker written elsewhere than to an inbox": func(a *attempt) bool {
		tried := false
		for i, reply := range replies(a.n) {
			reply = fmt.Sprint(reply, 20+i)
			tried = a.replyOn("$JS.API.INFO", reply, nil) ||
				a.replyOn("$JS.API.STREAM.INFO.GQL_ESTIMATES", reply, nil) || tried
		}
		return tried
	},
	"have a consumer's messages written into the pipeline": func(a *attempt) bool {
		return a.deliver("GQL_ESTIMATES", fmt.Sprint("gql.push", a.n))
	},
	"read the log": func(a *attempt) bool {
		return a.request("$JS.API.STREAM.MSG.GET.GQL", `{"seq": 1}`) ||
			a.request("$JS.API.DIRECT.GET.GQL", `{"seq": 1}`) || a.follow("GQL") ||
			a.listen("gql.>", "gql.edge")
	},
	"read the quarantine": func(a *attempt) bool {
		return a.request("$JS.API.STREAM.MSG.GET.GQL_QUARANTINE", `{"seq": 1}`) ||
			a.follow("GQL_QUARANTINE")
	},
	"follow estimates and the bucket": func(a *attempt) bool {
		return a.follow("GQL_ESTIMATES") && a.follow("KV_gql_estimates")
	},
	"change or delete the queue of a webhook": (*attempt).changeWebhook,
	"change the settings of the log, so also skip a message": func(a *attempt) bool {
		stream, err := a.observer.js.Stream(a.t.Context(), "GQL")
		if err != nil {
			a.t.Fatal(err)
		}
		config := stream.CachedInfo().Config
		data, err := json.Marshal(config)
		if err != nil {
			a.t.Fatal(err)
		}
		return a.request("$JS.API.STREAM.UPDATE.GQL", string(data))
	},
	"make or delete copies for readers": func(a *attempt) bool {
		name := fmt.Sprint("COPY", a.n)
		made := a.request(
			"$JS.API.STREAM.CREATE."+name,
			`{"name": "`+name+`", "storage": "memory"}`,
		)
		if _, err := a.observer.js.Stream(a.t.Context(), name); err == nil {
			return false // it is a stream of the pipeline's account
		}
		return made
	},
	"delete messages of the log": func(a *attempt) bool {
		return a.request("$JS.API.STREAM.PURGE.GQL", `{"filter": "gql.nothing"}`)
	},
	"publish questions for people who label": func(a *attempt) bool {
		return a.publish("gqlask", `{"vertex": "x"}`)
	},
	"read questions for people who label": func(a *attempt) bool {
		return a.request("$JS.API.STREAM.MSG.GET.GQL_ASK", `{"seq": 1}`) || a.follow("GQL_ASK")
	},
	"have events of others dropped by their message id":  (*attempt).takeID,
	"hear the answers to the pipeline and its operators": (*attempt).listenInbox,
	"write the buckets of a group": func(a *attempt) bool {
		return a.tryGroup("$KV.gql_group_g.worker.x")
	},
	"write the object bucket of a group": func(a *attempt) bool {
		bucket := jetstream.ObjectStoreConfig{
			Bucket:  "gql_group_g_state",
			Storage: jetstream.MemoryStorage,
		}
		if _, err := a.observer.js.CreateOrUpdateObjectStore(a.t.Context(), bucket); err != nil {
			a.t.Fatal(err)
		}
		return a.publish(fmt.Sprintf("$O.gql_group_g_state.M.x%d", a.n), "{}")
	},
	"drain a worker of a group": func(a *attempt) bool {
		return a.tryGroup("$KV.gql_group_g.drain.x")
	},
}

// replies are subjects that only the pipeline may write.
func replies(n int) []string {
	return []string{
		fmt.Sprintf("gql.reply%d-", n), fmt.Sprintf("gql.skip.%d00", n),
		fmt.Sprintf("gqlest.estimate.reply%d.", n), fmt.Sprintf("gqlest.alert.reply%d.", n),
		fmt.Sprintf("gqlq.reply%d-", n), fmt.Sprintf("gqlest.shard.%d00", 1000+n),
		fmt.Sprintf("$KV.gql_estimates.reply%d.", n),
	}
}

// listenInbox reports whether the role hears an answer to the worker.
func (a *attempt) listenInbox() bool {
	sub, err := a.c.SubscribeSync("_INBOX.>")
	if err != nil {
		return false
	}
	defer func() { _ = sub.Unsubscribe() }()
	_ = a.c.Flush()
	if _, err := a.observer.js.Stream(a.t.Context(), "GQL"); err != nil {
		a.t.Fatal(err)
	}
	_, err = sub.NextMsg(waitMax)
	return err == nil
}

// takeID reports whether the broker drops an event because the role published one with its id
// before.
func (a *attempt) takeID() bool {
	id := fmt.Sprint("guessed-", a.n, "-", time.Now().UnixNano())
	m := nats.NewMsg("gql.edge")
	m.Data = []byte("{}")
	m.Header.Set(jetstream.MsgIDHeader, id)
	ctx, cancel := a.context()
	defer cancel()
	_, _ = a.c.RequestMsgWithContext(ctx, m)
	ack, err := a.observer.js.Publish(
		a.t.Context(), "gql.edge", []byte("{}"), jetstream.WithMsgID(id),
	)
	if err != nil {
		a.t.Fatal(err)
	}
	return ack.Duplicate
}

// tryGroup reports whether the role can write a key of the bucket of a group.
func (a *attempt) tryGroup(subject string) bool {
	bucket, err := a.observer.js.CreateOrUpdateKeyValue(a.t.Context(),
		jetstream.KeyValueConfig{Bucket: "gql_group_g", Storage: jetstream.MemoryStorage})
	if err != nil {
		a.t.Fatal(err)
	}
	key := strings.TrimPrefix(subject, "$KV.gql_group_g.")
	_ = bucket.Purge(a.t.Context(), key)
	ctx, cancel := a.context()
	defer cancel()
	_, _ = a.c.RequestWithContext(ctx, subject, []byte("x"))
	_, err = bucket.Get(a.t.Context(), key)
	return err == nil
}

// permissionsTable reads the table of roles and actions of the page.
func permissionsTable(t *testing.T) (roles []string, rows map[string][]bool) {
	t.Helper()
	rows = map[string][]bool{}
	for line := range strings.Lines(text(t, "../../docs/permissions.md")) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case cells[0] == "may":
			for _, role := range cells[1:] {
				roles = append(roles, strings.Trim(role, "`"))
			}
		case len(roles) > 0 && len(cells) == 1+len(roles) && !strings.HasPrefix(cells[0], "-"):
			if attempts[cells[0]] == nil {
				t.Errorf("docs/permissions.md has a row that is not tried: %q", cells[0])
			}
			for i, cell := range cells[1:] {
				if cell != "yes" && cell != "no" {
					t.Errorf("%s, %s: %q is neither yes nor no", cells[0], roles[i], cell)
				}
				rows[cells[0]] = append(rows[cells[0]], cell == "yes")
			}
		}
	}
	return roles, rows
}

// Each role must be allowed exactly the actions that the table of the page lists for it. The server
// has the example accounts, and a pipeline runs on it.
func TestRolesHaveTheRightsOfTheTable(t *testing.T) {
	roles, rows := permissionsTable(t)
	if want := []string{
		"worker", "answers", "operator", "producer", "reader",
		"copies",
	}; !slices.Equal(roles, want) {
		t.Fatalf("the table has the roles %q, want %q", roles, want)
	}
	url := startWithPermissions(t)
	startPipeline(t, url)
	copyStreams(t, url)
	observer := connect(t, url, "worker")
	for v := range 4 { // something to read
		payload := fmt.Sprintf(`{"vertex": %d, "probabilities": [0.7, 0.3], "time": %d}`, v, 1e9+v)
		if _, err := observer.js.Publish(t.Context(), "gql.prediction",
			[]byte(payload)); err != nil {
			t.Fatal(err)
		}
		payload = fmt.Sprintf(`{"community": "berlin", "vertex": %d}`, v)
		if _, err := observer.js.Publish(t.Context(), "gql.member", []byte(payload)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := observer.js.Publish(t.Context(), "gql.edge", []byte("refused")); err != nil {
		t.Fatal(err)
	}
	publishControl(t, observer.js, "flush")
	_, err := observer.js.CreateStream(t.Context(),
		jetstream.StreamConfig{Name: "GQL_ASK", Subjects: []string{"gqlask"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, url, "operator").js.Publish(t.Context(), "gqlask",
		[]byte("{}")); err != nil {
		t.Fatal(err)
	}
	reader := attempt{t, "reader", connect(t, url, "reader"), observer, 0}
	await(t, "estimates in the copies", func() bool {
		return attempts["follow estimates and the bucket"](&reader)
	})
	n, tried := 0, 0
	for action, try := range attempts {
		allowed := rows[action]
		if len(allowed) != len(roles) {
			t.Errorf("docs/permissions.md has no row %q", action)
			continue
		}
		for i, role := range roles {
			n++
			a := attempt{t, role, connect(t, url, role), observer, n}
			got := try(&a)
			for begun := time.Now(); allowed[i] && !got && time.Since(begun) < 30*time.Second; {
				got = try(&a) // a busy machine answers late
			}
			if got != allowed[i] {
				t.Errorf("%s: %s: %t, the page says %t", role, action, got, allowed[i])
			}
			a.c.Close()
			tried++
		}
	}
	t.Logf("%d attempts", tried)
}
