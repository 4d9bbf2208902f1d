package checkpoint

import (
	"bytes"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"testing"

	"gqlstream/lab/campaign"
)

// corrupt damages data as disks, copies and editors do.
func corrupt(r *rand.Rand, data []byte) []byte {
	bad := bytes.Clone(data)
	at := r.IntN(len(bad))
	span := bad[at:min(len(bad), at+1+r.IntN(8192))]
	switch r.IntN(7) {
	case 0:
		for range 1 + r.IntN(8) {
			bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
		}
	case 1:
		clear(span) // a page that was never written
	case 2:
		for i := range span {
			span[i] = byte(r.Uint32())
		}
	case 3:
		bad = bad[:at]
	case 4:
		bad = append(bad, span...)
	case 5:
		copy(span, bad[r.IntN(len(bad)):]) // a block of another place
	default:
		bad = append(bad[:at], bad[min(len(bad), at+len(span)):]...)
	}
	return bad
}

// Random damage to a larger checkpoint must be found every time, before anything
// is decoded. GQLSTREAM_CORRUPTIONS sets how often (make faults: 100000).
func TestRandomDamageIsFound(t *testing.T) {
	count, seed := campaign.Size(t, "GQLSTREAM_CORRUPTIONS", 3000), uint64(7)
	r := rand.New(rand.NewPCG(seed, 0))
	disk := newFaultyFS(seed)
	dir, err := Open(disk, "state")
	if err != nil {
		t.Fatal(err)
	}
	c := New(Manifest{Position: 5})
	for i := range 8 {
		data := make([]byte, 1+r.IntN(1<<18))
		for j := range data {
			data[j] = byte(r.Uint32() >> 28) // repetitive, as tables are
		}
		c.Add("table-"+strconv.Itoa(i), data)
	}
	size, err := dir.Save(c)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{ManifestFile}
	for _, s := range c.Manifest.Sections {
		names = append(names, s.Name)
	}
	same := 0
	for i := range count {
		name := filepath.Join("state", FileName(5), names[r.IntN(len(names))])
		n := disk.live[name]
		good := n.data
		if n.data = corrupt(r, good); bytes.Equal(n.data, good) {
			same++
		} else if _, err := dir.Read(5); err == nil {
			t.Fatalf("seed %d, damage %d to %s was not found", seed, i, name)
		}
		n.data = good
	}
	if _, err := dir.Read(5); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d kinds of damage to %d bytes, %d of which changed nothing", count, size, same)
}
