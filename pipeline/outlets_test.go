package pipeline

import (
	"testing"

	"gqlstream/sinks"
)

// Every shard's part of an emission must have its place in the log: position, digest and time.
func TestPartsHaveThePlaceOfTheEmission(t *testing.T) {
	whole := sinks.Emission{Position: 7, Digest: "12ab", Time: 9}
	for shard, part := range divide(&whole, 3) {
		if part.Position != whole.Position || part.Digest != whole.Digest ||
			part.Time != whole.Time {
			t.Errorf("shard %d has %+v, want the place of %+v", shard, part, whole)
		}
	}
}
