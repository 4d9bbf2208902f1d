package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"gqlstream/ingest"
	"gqlstream/ingest/broker"
	"gqlstream/internal/checkpoint"
	"gqlstream/internal/testfile"
	"gqlstream/pipeline/config"
	"gqlstream/sinks"
)

// savedStep cuts the log by the times of its events, so that a slow machine gives the same records.
const savedStep = "step: {every: 20ms, emit_every: 20ms, time: event}"

var savedConfig = strings.Replace(crashConfig, crashStep, savedStep, 1)

// savedState makes a state directory by two runs over random events and returns
// it with its configuration and the records of GQL_ESTIMATES.
func savedState(t *testing.T, seed uint64) (state, conf string, records []string) {
	t.Helper()
	state, conf = t.TempDir(), filepath.Join(t.TempDir(), "gqlstream.yaml")
	testfile.Write(t, conf, savedConfig)
	events := &crashEvents{rand: rand.New(rand.NewPCG(seed, 12)), at: crashEventsBegin}
	for run := range 2 {
		events.nobodyErased = run == 1 // so that three checkpoints are there
		publishRandom(t, state, events, 60)
		mustRun(t, "run", "--config", conf, "--state", state, "--exit-when-drained")
	}
	r := &crashRun{t: t, dir: state}
	withBroker(t, state, func(js jetstream.JetStream) {
		r.eachMessage(js, defaultNames().Estimates, func(m jetstream.Msg) {
			records = append(records, string(m.Data()))
		})
	})
	return state, conf, records
}

// withBroker calls use with the embedded server of a state directory.
func withBroker(t *testing.T, state string, use func(jetstream.JetStream)) {
	t.Helper()
	b, err := config.OpenBroker(config.Settings{State: state}, nil)
	if err != nil {
		t.Fatal(err)
	}
	use(b.JS)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}

// publishRandom publishes messages one by one, so that they get times of their own. Events with
// times are 15 ms apart.
func publishRandom(t *testing.T, state string, events *crashEvents, messages int) {
	t.Helper()
	b, err := config.OpenBroker(config.Settings{State: state}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if err := broker.EnsureStreams(t.Context(), b.JS, broker.DefaultStreamNames()); err != nil {
		t.Fatal(err)
	}
	p, err := ingest.NewPublisher(b.NC, ingest.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for range messages {
		if err := p.Publish(t.Context(), events.next()); err != nil {
			t.Fatal(err)
		}
		if err := p.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !events.at.IsZero() {
			events.at = events.at.Add(15 * time.Millisecond)
			continue
		}
		pause(t.Context(), 4*time.Millisecond) // the log's time passes
	}
}

// A replay to a position, or to the time of a record, must end with exactly the
// records that were published there, whether it begins with the log or with a
// checkpoint.
func TestReplayReturnsThePublishedRecords(t *testing.T) {
	const seed = 3
	state, conf, records := savedState(t, seed)
	type published struct {
		Position uint64
		Time     string
	}
	at, when, order := map[uint64]string{}, map[uint64]string{}, []uint64{}
	for _, record := range records {
		var p published
		if err := json.Unmarshal([]byte(record), &p); err != nil {
			t.Fatal(err)
		}
		if at[p.Position] == "" {
			order = append(order, p.Position)
		}
		at[p.Position] += record + "\n"
		when[p.Position] = p.Time
	}
	if len(order) < 6 {
		t.Fatalf("seed %d: estimates at %d positions only", seed, len(order))
	}
	replay := func(position uint64, args ...string) string {
		t.Helper()
		out, _ := mustRun(
			t,
			append([]string{"replay", "--config", conf, "--state", state}, args...)...)
		var kept strings.Builder
		for line := range strings.Lines(out) {
			var p published
			if err := json.Unmarshal([]byte(line), &p); err != nil {
				t.Fatal(err)
			}
			if p.Position > position {
				t.Errorf("seed %d: replay %v goes on to %d", seed, args, p.Position)
			}
			if p.Position == position {
				kept.WriteString(line)
			}
		}
		return kept.String()
	}
	checked := 0
	for i := 1; i < len(order); i += max(1, len(order)/5) {
		p := order[i]
		text := strconv.FormatUint(p, 10)
		for _, args := range [][]string{
			{"--to", text},
			{"--to", when[p]},
			{"--from", strconv.FormatUint(p-1, 10), "--to", text},
		} {
			if got := byRecord(t, replay(p, args...)); got != byRecord(t, at[p]) {
				t.Errorf(
					"seed %d: replay %v gives\n%s, published was\n%s", seed, args, got,
					byRecord(t, at[p]),
				)
			}
			checked++
		}
	}
	last := order[len(order)-1]
	if got := byRecord(t, replay(last, "--use-checkpoint", "--from",
		strconv.FormatUint(last-1, 10))); got != byRecord(t, at[last]) {
		t.Errorf(
			"seed %d: from a checkpoint to %d:\n%s, published was\n%s", seed, last, got, at[last],
		)
	}
	t.Logf("%d replays, estimates at %d positions", checked, len(order))
	if code, _, text := runCommand("replay", "--config", conf, "--state", state, "--to",
		"99999999"); code != exitFailed ||
		!strings.Contains(text, "before 99999999") {
		t.Errorf("to a position that is not there: exit %d, %s", code, text)
	}
	for _, args := range [][]string{
		{"--from", "x"},
		{"--to", "0"},
		{"--from", "5", "--to", "5"},
		{"--digest", "never"},
	} {
		if code, _, text := runCommand(append([]string{
			"replay", "--config", conf, "--state",
			state,
		}, args...)...); code != exitUsage {
			t.Errorf("%v: exit %d, %s", args, code, text)
		}
	}
}

// byRecord puts the lines of one position into an order of their own: communities
// are published side by side.
func byRecord(t *testing.T, lines string) string {
	t.Helper()
	all := strings.Split(strings.TrimSpace(lines), "\n")
	slices.Sort(all)
	return strings.Join(all, "\n")
}

// A replay must show for every checkpoint the digest that the checkpoint itself
// has, and a digest must change no result.
func TestDigestsOfAReplayAreThoseOfTheCheckpoints(t *testing.T) {
	const seed = 4
	state, conf, _ := savedState(t, seed)
	plain, _ := mustRun(t, "replay", "--config", conf, "--state", state)
	digests := map[string]string{}
	for _, when := range []string{"checkpoint", "emission", "step"} {
		out, lines := mustRun(t, "replay", "--config", conf, "--state", state, "--digest", when)
		if out != plain {
			t.Errorf("seed %d: --digest %s changes the estimates", seed, when)
		}
		n := 0
		for line := range strings.Lines(lines) {
			if strings.HasPrefix(line, "replay: ") {
				continue // progress, on a slow machine
			}
			var d stateDigest
			if err := json.Unmarshal([]byte(line), &d); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
			if n++; d.Checkpoint {
				digests[fmt.Sprintf("%s %d", when, d.Position)] = d.State
			}
		}
		if n == 0 {
			t.Errorf("seed %d: no digests with --digest %s", seed, when)
		}
	}
	list, _ := mustRun(t, "snapshot", "list", "--state", state)
	rows := strings.Split(strings.TrimSpace(list), "\n")[1:]
	if len(rows) == 0 {
		t.Fatal("no checkpoints")
	}
	for _, row := range rows {
		fields := strings.Fields(row)
		for _, when := range []string{"checkpoint", "step"} {
			if got := digests[when+" "+fields[0]]; got != fields[5] {
				t.Errorf(
					"seed %d: checkpoint %s has the state %s, the replay %q", seed, fields[0],
					fields[5], got,
				)
			}
		}
	}
}

// snapshot must export the contents of the graph, in every form and table, and find damage
// before it reads anything. A missing state directory, or one without checkpoints, must be
// reported, not shown as an empty table.
func TestSnapshotOfNothingSaysSo(t *testing.T) {
	for _, args := range [][]string{{"list"}, {
		"export", "--table", "edges", "--out",
		filepath.Join(t.TempDir(), "x.csv"),
	}} {
		dir := filepath.Join(t.TempDir(), "nowhere")
		code, out, complaint := runCommand(
			append(append([]string{"snapshot"}, args...), "--state", dir)...)
		if code != exitUsage || out != "" || !strings.Contains(complaint, "no checkpoint in "+dir) {
			t.Errorf("snapshot %v ends with %d: %s%s", args, code, out, complaint)
		}
	}
}

func TestSnapshotsCanBeRead(t *testing.T) {
	const seed = 5
	state, conf, _ := savedState(t, seed)
	dir := t.TempDir()
	for _, table := range []string{
		"edges", "vertices", "adjacency", "attributes", "communities",
		"members", "versions", "expiry", "meta",
	} {
		sizes := map[string]string{}
		for _, format := range []string{"parquet", "csv"} {
			out := filepath.Join(dir, table+"."+format)
			_, said := mustRun(
				t, "snapshot", "export", "--state", state, "--table", table, "--out", out,
			)
			sizes[strings.Fields(strings.TrimPrefix(said, out+": "))[0]] = format
		}
		if len(sizes) != 1 {
			t.Errorf("table %s has different numbers of rows: %v", table, sizes)
		}
		file, err := os.Open(filepath.Join(dir, table+".csv"))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(file).ReadAll()
		file.Close()
		if err != nil || sizes[strconv.Itoa(len(rows)-1)] == "" {
			t.Errorf("table %s: %d rows of CSV, %v, said %v", table, len(rows)-1, err, sizes)
		}
	}
	// The exported graph gives the estimate of the whole log, in both forms.
	once := map[string]string{}
	for _, format := range []string{"parquet", "csv"} {
		out, _ := mustRun(
			t, "estimate", "--classes", "2", "--method", "pcc", "--everyone", "--format", "json",
			"--edges", filepath.Join(dir, "edges."+format),
		)
		once[out] = format
	}
	if len(once) != 1 {
		t.Errorf("the forms give different estimates: %v", once)
	}
	newest := strings.Fields(strings.Split(mustList(t, state), "\n")[1])[0]
	section := filepath.Join(state, "checkpoints", fmt.Sprintf("%020s", newest), "vertices.arrow")
	data, err := os.ReadFile(section)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 1
	testfile.Write(t, section, data)
	for _, args := range [][]string{{"list"}, {
		"export", "--table", "edges", "--out",
		filepath.Join(dir, "x.csv"),
	}} {
		code, out, text := runCommand(
			append(append([]string{"snapshot"}, args...), "--state", state)...)
		if code != exitFailed || !strings.Contains(out+text, "vertices.arrow") {
			t.Errorf("%v of a damaged checkpoint: exit %d\n%s%s", args, code, out, text)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "x.csv")); err == nil {
		t.Error("a damaged checkpoint was exported")
	}
	_, said := mustRun(t, "run", "--config", conf, "--state", state, "--exit-when-drained")
	if !strings.Contains(said, "a damaged checkpoint is ignored") ||
		!strings.Contains(said, "msg=restored") {
		t.Errorf("a start beside a damaged checkpoint says\n%s", said)
	}
}

// A run must start from the core tables of an intact checkpoint if the checkpoint lacks derived
// tables that this version reads, even if the manifest names this version.
func TestDerivedTablesThatCannotBeReadAreComputedAnew(t *testing.T) {
	state, conf, _ := savedState(t, 3)
	dir, err := checkpoint.Open(checkpoint.Disk{}, filepath.Join(state, "checkpoints"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := dir.Load(func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	other := checkpoint.New(c.Manifest)
	for name, data := range c.Sections {
		if name == "shard-0-kernels.arrow" {
			continue // as a version would that keeps them elsewhere
		}
		other.Add(name, data)
	}
	newest := filepath.Join(state, "checkpoints", checkpoint.FileName(c.Manifest.Position))
	if err := os.RemoveAll(newest); err != nil {
		t.Fatal(err)
	}
	if _, err := dir.Save(other); err != nil {
		t.Fatal(err)
	}
	args := []string{"run", "--config", conf, "--state", state, "--exit-when-drained"}
	if _, said := mustRun(t, args...); !strings.Contains(said, "computed again") ||
		strings.Contains(said, "damaged") {
		t.Fatalf("derived tables that cannot be read: %s", said)
	}
	if _, said := mustRun(t, args...); strings.Contains(said, "computed again") {
		t.Errorf("the checkpoint after that cannot be read: %s", said)
	}
}

// Another configuration must begin with the core tables where the beginning of the log is gone, and
// publish the communities of that configuration.
func TestAnotherConfigurationAfterAPurge(t *testing.T) {
	state, conf, _ := savedState(t, 7)
	run := []string{"run", "--config", conf, "--state", state, "--exit-when-drained"}
	mustRun(t, run...)
	mustRun(t, "purge", "--config", conf, "--state", state)
	text, err := os.ReadFile(conf)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(
		string(text), "communities:", "communities:\n  - {name: all again, everyone: true}", 1,
	)
	if other == string(text) {
		t.Fatalf("the configuration has no communities:\n%s", text)
	}
	other = strings.Replace(other, "{method: sis-nacc}", "{method: acc}", 1)
	testfile.Write(t, conf, other)
	output := filepath.Join(t.TempDir(), "estimates.ndjson")
	run = append(run, "--output", output)
	if code, _, said := runCommand(run...); code != exitUsage ||
		!strings.Contains(said, "--accept-new-config") {
		t.Fatalf("exit %d: %s", code, said)
	}
	_, said := mustRun(t, append(run, "--accept-new-config")...)
	if !strings.Contains(said, "computed again") {
		t.Errorf("the run says nothing of the core tables:\n%s", said)
	}
	published, err := os.ReadFile(output)
	if err != nil || !strings.Contains(string(published), `"community":"all again"`) ||
		!strings.Contains(string(published), `"community":"everyone"`) {
		t.Errorf("%v: %s", err, lastRecords(string(published), 5))
	}
	if _, said := mustRun(t, run...); strings.Contains(said, "computed again") {
		t.Errorf("the next start computes everything once more:\n%s", said)
	}
}

func mustList(t *testing.T, state string) string {
	t.Helper()
	out, _ := mustRun(t, "snapshot", "list", "--state", state)
	return out
}

// A slip in the configuration must not make a run read the whole log again and publish a
// second set of records.
func TestRunRefusesTheStateOfAnotherConfiguration(t *testing.T) {
	state, conf, _ := savedState(t, 7)
	slip := []string{"run", "--config", conf, "--state", state, "--exit-when-drained"}
	for _, flags := range [][]string{
		{"--alpha", "0.2"},
		{"--alpha", "0.2", "--classes", "left,rigth"},
	} {
		slip := append(slip, flags...)
		if code, _, said := runCommand(slip...); code != exitUsage ||
			!strings.Contains(said, "--accept-new-config") {
			t.Fatalf("exit %d: %s", code, said)
		}
		if _, said := mustRun(t, append(slip, "--accept-new-config")...); !strings.Contains(
			said,
			"reading the log from its beginning",
		) {
			t.Errorf("the log is not read anew:\n%s", said)
		}
		if _, said := mustRun(t, slip...); !strings.Contains(said, "msg=restored") {
			t.Errorf("what was accepted is not restored:\n%s", said)
		}
	}
	later := &crashEvents{rand: rand.New(rand.NewPCG(8, 12)), at: crashEventsBegin.Add(time.Minute)}
	publishRandom(t, state, later, 20)
	mustRun(t, append(slip, "--alpha", "0.2", "--classes", "left,rigth")...)
	if err := os.RemoveAll(filepath.Join(state, "checkpoints")); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{
		{"--alpha", "0.2", "--classes", "rigth,left"},
		{"--classes", "left,rigth"},
	} {
		if code, _, said := runCommand(append(slip, flags...)...); code != exitUsage ||
			!strings.Contains(said, `"left" "rigth"`) {
			t.Fatalf("without a checkpoint: exit %d: %s", code, said)
		}
	}
	code, _, said := runCommand(
		"explain", "--config", conf, "--state", state, "--community", "everyone",
	)
	if code == 0 || !strings.Contains(said, "the newest estimates are of configuration") {
		t.Fatalf("explain: exit %d: %s", code, said)
	}
}

// defaultNames returns the names that hang on the default prefix.
func defaultNames() sinks.Names {
	n, err := sinks.NewNames("")
	if err != nil {
		panic(err)
	}
	return n
}
