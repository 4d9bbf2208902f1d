package sinks

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// prefixDefault is the prefix of streams and subjects where none is configured.
const prefixDefault = "gql"

// prefixBytesMax keeps the names of streams and buckets within what brokers allow.
const prefixBytesMax = 64

// Names are the streams, the bucket and the subjects of one pipeline's log out. All of
// them hang on one prefix, so that several pipelines share a server.
type Names struct {
	Estimates string // stream: marks and records
	Alerts    string // stream: beginnings and ends of alerts
	History   string // stream: roll-ups by day, and notes
	Latest    string // bucket: the newest record of each community and method
	subjects  string // what the subjects of the log out begin with
}

// NewNames returns the names that hang on a prefix of letters, digits, "-" and "_";
// the empty one is prefixDefault.
func NewNames(prefix string) (Names, error) {
	prefix = cmp.Or(prefix, prefixDefault)
	if len(prefix) > prefixBytesMax || strings.ContainsFunc(prefix, func(r rune) bool { return r > 127 || !plain(byte(r)) }) {
		return Names{}, fmt.Errorf("sinks: prefix %q: want at most %d letters, digits, \"-\" and \"_\"", prefix, prefixBytesMax)
	}
	upper, lower := strings.ToUpper(prefix), strings.ToLower(prefix)
	return Names{
		Estimates: upper + "_ESTIMATES", Alerts: upper + "_ALERTS", History: upper + "_HISTORY",
		Latest: lower + "_estimates", subjects: lower + "est",
	}, nil
}

// MarkSubject returns the subject of the marks of a shard.
func (n Names) MarkSubject(shard int) string { return n.subjects + ".shard." + strconv.Itoa(shard) }

// shardOf returns the shard of a mark's subject.
func (n Names) shardOf(subject string) (shard int, ok bool) {
	text, ok := strings.CutPrefix(subject, strings.TrimSuffix(n.markSubjects(), "*"))
	shard, err := strconv.Atoi(text)
	return shard, ok && err == nil && shard >= 0
}

// EstimateSubject returns the subject of the records of a community by a method; see LatestKey.
func (n Names) EstimateSubject(community, method string, ordinal int) string {
	return n.subjects + ".estimate." + LatestKey(community, method, ordinal)
}

// LatestKey returns the key of a community and a method in the bucket. A method that is configured
// several times has the keys n = 0, 1, ... in the order of the configuration.
func LatestKey(community, method string, n int) string {
	key := Token(community) + "." + Token(method)
	if n > 0 {
		key += "." + strconv.Itoa(n)
	}
	return key
}

// historySubject returns the subject of the roll-ups of a resolution. The last two are as
// in EstimateSubject.
func (n Names) historySubject(r Resolution, community, method string, ordinal int) string {
	return n.subjects + ".history." + string(r) + "." + LatestKey(community, method, ordinal)
}

// historyStream returns the stream of the roll-ups of a resolution. Each has its own, so that
// who reads hours does not come past the minutes of everybody.
func (n Names) historyStream(r Resolution) string {
	if r == days {
		return n.History
	}
	return n.History + "_" + strings.ToUpper(string(r)) + "S"
}

// noteSubject returns the subject of the notes in the stream of history.
func (n Names) noteSubject() string { return n.subjects + ".history.note" }

// AlertSubject returns the subject of the alerts of a rule on a community.
func (n Names) AlertSubject(rule, community string) string {
	return n.subjects + ".alert." + Token(rule) + "." + Token(community)
}

// Queries returns the prefix of the subjects of questions.
func (n Names) Queries() string { return n.subjects + ".query" }

// The patterns of all marks, all records, all alerts and all roll-ups of a resolution.
func (n Names) markSubjects() string     { return n.subjects + ".shard.*" }
func (n Names) estimateSubjects() string { return n.subjects + ".estimate.>" }
func (n Names) alertSubjects() string    { return n.subjects + ".alert.>" }
func (n Names) historySubjects(r Resolution) string {
	return n.subjects + ".history." + string(r) + ".>"
}

// Token returns a name as one token of a NATS subject, which is also a part of a
// key in a bucket: letters, digits, "-" and "_" stand for themselves, any other
// byte becomes "=" and two hexadecimal digits, and the empty name is "=".
// Different names have different tokens.
func Token(name string) string {
	if name == "" {
		return "="
	}
	var b strings.Builder
	for _, c := range []byte(name) {
		if plain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "=%02X", c)
		}
	}
	return b.String()
}

func plain(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_'
}

const secretBytesMax = 4096

// ReadSecret reads a file that nobody else may read, and returns its text without outer space.
func ReadSecret(path string, bytesMin int) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s has mode %#o, others can read it: chmod 600 it", path, info.Mode().Perm())
	case info.Size() > secretBytesMax:
		return nil, fmt.Errorf("%s has %d bytes, at most %d are read", path, info.Size(), secretBytesMax)
	}
	data, err := os.ReadFile(path)
	if data = bytes.TrimSpace(data); err == nil && len(data) < bytesMin {
		err = fmt.Errorf("the secret in %s has %d bytes, want %d or more, such as the output of 'openssl rand -hex 32'", path, len(data), bytesMin)
	}
	return data, err
}
