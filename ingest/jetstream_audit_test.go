package ingest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"gqlstream/ingest/broker"

	"github.com/nats-io/nats.go/jetstream"
)

// Every setting that can drop, rewrite or lose events must be refused by name,
// with advice.
func TestAuditRefusesUnsafeStreams(t *testing.T) {
	cases := []struct {
		setting string
		change  func(c *jetstream.StreamConfig)
	}{
		{"retention", func(c *jetstream.StreamConfig) { c.Retention = jetstream.InterestPolicy }},
		{"retention", func(c *jetstream.StreamConfig) { c.Retention = jetstream.WorkQueuePolicy }},
		{"max_age", func(c *jetstream.StreamConfig) { c.MaxAge = time.Hour }},
		{"discard", func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld }},
		{
			"discard",
			func(c *jetstream.StreamConfig) { c.Discard, c.MaxMsgs = jetstream.DiscardOld, 1000 },
		},
		{
			"discard",
			func(c *jetstream.StreamConfig) { c.Discard, c.MaxBytes = jetstream.DiscardOld, 1e6 },
		},
		{"max_msgs_per_subject", func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 10 }},
		{"discard_new_per_subject", func(c *jetstream.StreamConfig) {
			c.MaxMsgsPerSubject, c.DiscardNewPerSubject = 10, true
		}},
		{"allow_msg_ttl", func(c *jetstream.StreamConfig) { c.AllowMsgTTL = true }},
		{"subject_delete_marker_ttl", func(c *jetstream.StreamConfig) {
			c.AllowMsgTTL, c.SubjectDeleteMarkerTTL = true, time.Minute
		}},
		{"allow_rollup_hdrs", func(c *jetstream.StreamConfig) { c.AllowRollup = true }},
		{"deny_delete", func(c *jetstream.StreamConfig) { c.DenyDelete = false }},
		{"sources", func(c *jetstream.StreamConfig) {
			c.Sources = []*jetstream.StreamSource{{Name: "OTHER", FilterSubject: "gql.edge"}}
		}},
		{"subject_transform", func(c *jetstream.StreamConfig) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{
				Source:      "gql.edge",
				Destination: "gql.label",
			}
		}},
		{"allow_msg_counter", func(c *jetstream.StreamConfig) {
			c.AllowMsgCounter, c.Discard = true, jetstream.DiscardOld
		}},
		{"allow_msg_schedules", func(c *jetstream.StreamConfig) {
			c.AllowMsgSchedules, c.Discard = true, jetstream.DiscardOld
		}},
		{"first_seq", func(c *jetstream.StreamConfig) { c.FirstSeq = 100 }},
		{
			"subjects",
			func(c *jetstream.StreamConfig) { c.Subjects = []string{"gql.edge", "gql.label"} },
		},
		{"storage", func(c *jetstream.StreamConfig) { c.Storage = jetstream.MemoryStorage }},
		{
			"persist_mode",
			func(c *jetstream.StreamConfig) { c.PersistMode = jetstream.AsyncPersistMode },
		},
		{"no_ack", func(c *jetstream.StreamConfig) { c.NoAck = true }},
	}
	b := bareBroker(t, broker.EmbeddedConfig{})
	ctx := testContext(t)
	b.keepStore()
	for i, c := range cases {
		name := fmt.Sprint("LOG", i)
		config := broker.LogConfig(name)
		c.change(&config)
		if _, err := b.js.CreateStream(ctx, config); err != nil {
			t.Fatalf("%s: the broker itself refuses it: %v", c.setting, err)
		}
		_, err := broker.EnsureLog(ctx, b.js, broker.StreamNames{Log: name})
		if err == nil || !strings.Contains(err.Error(), "\n"+c.setting+": ") ||
			!strings.Contains(err.Error(), "stream "+name) {
			t.Errorf("%s: error %v", c.setting, err)
		}
		if err := b.js.DeleteStream(ctx, name); err != nil {
			t.Fatal(err)
		}
	}
}

// keepStore makes a stream that stays. When the last one is deleted, the broker
// removes its directory in the background, and may do so under a new one.
func (b *testBroker) keepStore() {
	b.t.Helper()
	_, err := b.js.CreateStream(testContext(b.t), jetstream.StreamConfig{Name: "KEEP"})
	if err != nil {
		b.t.Fatal(err)
	}
}

// Mirrors and sealed streams cannot be made by changing our settings; they must be
// refused as well.
func TestAuditRefusesMirrorsAndSealedStreams(t *testing.T) {
	mirror := broker.LogConfig("GQL")
	mirror.Subjects, mirror.Mirror = nil, &jetstream.StreamSource{Name: "OTHER"}
	if err := broker.AuditStream(mirror); err == nil || !strings.Contains(err.Error(), "mirror: ") {
		t.Errorf("mirror: %v", err)
	}
	sealed := broker.LogConfig("GQL")
	sealed.Sealed = true
	if err := broker.AuditStream(sealed); err == nil || !strings.Contains(err.Error(), "sealed: ") {
		t.Errorf("sealed: %v", err)
	}
}

// Settings that refuse producers, or do not concern the log, must pass. The streams that
// EnsureStreams makes must pass too, also a second time.
func TestAuditAcceptsSafeStreams(t *testing.T) {
	b := bareBroker(t, broker.EmbeddedConfig{})
	ctx := testContext(t)
	b.keepStore()
	names := broker.DefaultStreamNames()
	for name, change := range map[string]func(c *jetstream.StreamConfig){
		"byte limit":    func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 20 },
		"message limit": func(c *jetstream.StreamConfig) { c.MaxMsgs = 10 },
		"single subjects": func(c *jetstream.StreamConfig) {
			c.Subjects = []string{"single-subjects.*"}
		},
		"no direct get": func(c *jetstream.StreamConfig) { c.AllowDirect = false },
		"compression": func(c *jetstream.StreamConfig) {
			c.Compression = jetstream.S2Compression
		},
		"deny purge":     func(c *jetstream.StreamConfig) { c.DenyPurge = true },
		"atomic publish": func(c *jetstream.StreamConfig) { c.AllowAtomicPublish = true },
	} {
		names.Log = strings.ReplaceAll(name, " ", "-")
		config := broker.LogConfig(names.Log)
		change(&config)
		if _, err := b.js.CreateStream(ctx, config); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := broker.EnsureStreams(ctx, b.js, names); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := b.js.DeleteStream(ctx, names.Log); err != nil {
			t.Fatal(err)
		}
	}
}
