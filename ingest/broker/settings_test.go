package broker

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/internal/testfile"
)

// storeWithSettings returns a state directory with a stopped store: the default streams, a message
// of the log, and a durable consumer.
func storeWithSettings(t *testing.T) (dir string) {
	t.Helper()
	b := startBroker(t, "")
	if _, err := b.js.Publish(testContext(t), "gql.edge", []byte("one")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.js.CreateConsumer(testContext(t), "GQL", jetstream.ConsumerConfig{
		Durable: "queue", AckPolicy: jetstream.AckExplicitPolicy,
	}); err != nil {
		t.Fatal(err)
	}
	b.stop()
	return b.dir
}

// startSettings starts a server in dir and returns its warnings of settings.
func startSettings(t *testing.T, dir string) (b *testBroker, warnings string) {
	t.Helper()
	var said bytes.Buffer
	b = bareBroker(t, EmbeddedConfig{Dir: dir, Log: slog.New(slog.NewTextHandler(&said, nil))})
	return b, said.String()
}

func settingsOf(dir string, below ...string) string {
	parts := []string{dir, storeDir, "jetstream", "$G", "streams", "GQL"}
	return filepath.Join(append(parts, below...)...)
}

// hasItsMessage fails unless the log has its message and its consumer.
func hasItsMessage(t *testing.T, b *testBroker) {
	t.Helper()
	stream, err := b.js.Stream(testContext(t), "GQL")
	if err != nil {
		t.Fatal(err)
	}
	if m, err := stream.GetMsg(testContext(t), 1); err != nil || string(m.Data) != "one" {
		t.Errorf("message %v, %v", m, err)
	}
	if _, err := stream.Consumer(testContext(t), "queue"); err != nil {
		t.Errorf("the consumer: %v", err)
	}
}

// A kill between the settings and their checksum must not lose a stream or a consumer, and a whole
// store must stay as it is.
func TestInterruptedSettingsAreCompleted(t *testing.T) {
	for name, interrupt := range map[string]func(dir string) error{
		"none": nil,
		"a new stream": func(dir string) error {
			return os.Remove(settingsOf(dir, settingsSumFile))
		},
		"a new consumer": func(dir string) error {
			return os.Remove(settingsOf(dir, "obs", "queue", settingsSumFile))
		},
		"another description": func(dir string) error {
			path := settingsOf(dir, settingsFile)
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text = bytes.Replace(text, []byte("the log of all events"), []byte("a log"), 1)
			if err := os.WriteFile(path, text, 0o600); err != nil {
				return err
			}
			later := time.Now().Add(time.Second)
			return os.Chtimes(path, later, later)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := storeWithSettings(t)
			if interrupt != nil {
				if err := interrupt(dir); err != nil {
					t.Fatal(err)
				}
			}
			b, warnings := startSettings(t, dir)
			hasItsMessage(t, b)
			if strings.Contains(warnings, "was interrupted") != (interrupt != nil) {
				t.Errorf("warnings: %q", warnings)
			}
			b.stop()
			if b, warnings = startSettings(t, dir); strings.Contains(warnings, "settings") {
				t.Errorf("warnings of the next start: %q", warnings)
			}
			hasItsMessage(t, b)
		})
	}
}

// Damaged settings must not be applied, since a limit would remove messages. The stream must
// be there with its messages after it was made again, and stay there.
func TestDamagedSettingsAreMadeAgain(t *testing.T) {
	dir := storeWithSettings(t)
	path := settingsOf(dir, settingsFile)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before := time.Now().Add(-time.Hour)
	damaged := bytes.Replace(text, []byte(`"max_msgs":-1`), []byte("\"max_msgs\":\r1"), 1)
	if bytes.Equal(damaged, text) {
		t.Fatalf("no limit in %s", text)
	}
	testfile.Write(t, path, damaged)
	if err := os.Chtimes(path, before, before); err != nil {
		t.Fatal(err)
	}
	b, warnings := startSettings(t, dir)
	if !strings.Contains(warnings, "are damaged") {
		t.Errorf("warnings: %q", warnings)
	}
	if _, err := b.js.Stream(testContext(t), "GQL"); err == nil {
		t.Error("damaged settings were applied")
	}
	if err := EnsureStreams(testContext(t), b.js, DefaultStreamNames()); err != nil {
		t.Fatal(err)
	}
	b.stop()
	if b, warnings = startSettings(t, dir); strings.Contains(warnings, "settings") {
		t.Errorf("warnings of the next start: %q", warnings)
	}
	hasItsMessage(t, b)
}
