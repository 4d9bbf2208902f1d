package sinks

import (
	"bytes"
	"testing"
)

// A changed bit anywhere in a position file is noticed, in the name of its checksum too. A file of
// an earlier release, without a checksum, is read.
func TestChangedBitsInPositionFilesAreNoticed(t *testing.T) {
	data, err := progress{Log: "log", Cursor: Cursor{Sequence: 7}, Bytes: 12, From: 3}.encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := decodeProgress(data); err != nil {
		t.Fatal(err)
	}
	for i := range data[:len(data)-1] { // white space may follow the object
		for bit := range 8 {
			damaged := bytes.Clone(data)
			damaged[i] ^= 1 << bit
			if _, err := decodeProgress(damaged); err == nil {
				t.Errorf("bit %d of byte %d: %s is read", bit, i, damaged)
			}
		}
	}
	old := append(data[:bytes.Index(data, []byte(checksumKey))], '}')
	if p, err := decodeProgress(old); err != nil || p.Bytes != 12 || p.Cursor.Sequence != 7 {
		t.Errorf("the file of an earlier release is %+v, %v", p, err)
	}
}
