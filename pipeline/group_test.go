package pipeline

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cespare/xxhash/v2"

	"gqlstream/checkpoint"
)

// A worker that is to estimate shards that nobody else estimates must start again at once. One that
// only stands in waits for its turn, and until others can publish its shards, but not for ever: two
// that start again together would leave a gap.
func TestWorkersStartAgainOneAfterTheOther(t *testing.T) {
	for _, c := range []struct {
		what        string
		urgent      bool
		turn        int
		replaceable bool
		waited      time.Duration
		want        bool
	}{
		{"nobody else estimates it", true, 3, false, 0, true},
		{"stands in, first turn", false, 0, false, 0, true},
		{"stands in, second turn, at once", false, 1, true, 0, false},
		{"stands in, second turn, after the first one's", false, 1, true, standInTurn, true},
		{"stands in, third turn, too early", false, 2, true, standInTurn, false},
		{"alone has some shards", false, 1, false, standInTurn, false},
		{"alone has some shards for long", false, 1, false, standInMax, true},
		{"alone has some shards, later turn", false, 2, false, standInMax, false},
	} {
		if got := mayStartAgain(c.urgent, c.turn, c.replaceable, c.waited); got != c.want {
			t.Errorf("%s: %v, want %v", c.what, got, c.want)
		}
	}
}

// A worker must not read the log from its beginning because another release wrote its state: the log
// may not reach back, and whoever upgrades has to decide.
func TestAStateOfAnotherFormatEndsAWorkersStart(t *testing.T) {
	path := t.TempDir()
	dir, err := checkpoint.Open(checkpoint.Disk{}, path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = dir.Save(checkpoint.Manifest{Position: 9, Version: "v0"}, nil); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(path, fmt.Sprintf("%020d", 9), "manifest.json")
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), fmt.Sprintf(`"format": %d`, checkpoint.Format), fmt.Sprintf(`"format": %d`, checkpoint.Format-1), 1)
	body, _, _ := strings.Cut(text, `"checksum"`)
	text = body + `"checksum": ""` + "\n}"
	sum := fmt.Sprintf("%016x", xxhash.Sum64String(text))
	text = strings.Replace(text, `"checksum": ""`, `"checksum": "`+sum+`"`, 1)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r := restorer{dir: dir, log: slog.New(slog.DiscardHandler)}
	if _, err := r.stateAt(t.Context(), 9, true); !errors.Is(err, checkpoint.ErrFormat) || !strings.Contains(err.Error(), "v0") {
		t.Errorf("the state of another format is passed over: %v", err)
	}
}
