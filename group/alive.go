package group

import (
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
)

// A worker whose process has ended does not listen any more, and the broker says so at once to who asks,
// long before renewals are missed. One that stands still listens, and one that looks for another server
// does not, so that this is reason for a doubt and no more.

// subject returns where a worker listens.
func (m *Member) subject(worker string) string {
	return m.config.Alive + "." + m.config.Bucket + "." + key(worker)
}

// listen begins to listen, also for the broker's answers.
func (m *Member) listen() error {
	nc := m.config.JS.Conn()
	m.inbox = nc.NewInbox()
	for subject, take := range map[string]nats.MsgHandler{
		m.subject(m.self.Worker): func(*nats.Msg) {},
		m.inbox + ".>": func(answer *nats.Msg) {
			if answer.Header.Get("Status") == "503" {
				m.miss(strings.TrimPrefix(answer.Subject, m.inbox+"."))
			}
		},
	} {
		ear, err := nc.Subscribe(subject, take)
		if err != nil {
			return fmt.Errorf("group: subject %s: %w", subject, err)
		}
		m.ears = append(m.ears, ear)
	}
	return nil
}

// deafen ends listening.
func (m *Member) deafen() (err error) {
	for _, ear := range m.ears {
		err = errors.Join(err, ear.Unsubscribe())
	}
	return err
}

// hail asks the broker whether the others listen; of those that do, nobody answers.
func (m *Member) hail() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.workers {
		if name == m.self.Worker {
			continue
		}
		if err := m.config.JS.Conn().PublishRequest(m.subject(name), m.inbox+"."+key(name), nil); err != nil {
			m.config.Log.Debug("group: a worker is not asked for", "worker", name, "error", err)
		}
	}
}

// miss takes in that nobody listens for the worker with a key.
func (m *Member) miss(of string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name, w := range m.workers {
		if key(name) != of {
			continue
		}
		if w.absent++; w.absent == absentMax {
			m.signal()
		}
	}
}
