package sinks

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// partFormats are the forms of a part, which are also its extensions.
var partFormats = []string{"parquet", "arrow"}

const (
	// PartEveryDefault is the log time of a part where the configuration names none.
	PartEveryDefault = 10 * time.Minute

	// PartRowsMax ends a part before its time, and so bounds the memory that the rows
	// of an unfinished one take: about 50 MiB with two classes.
	PartRowsMax = 1 << 17
)

// sweepParts removes unfinished files and returns the last position in a part.
func sweepParts(dir, format string) (last uint64, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	for _, entry := range entries {
		name, unfinished := strings.CutSuffix(entry.Name(), temporarySuffix)
		_, until, isPart := parsePart(name, format)
		switch {
		case unfinished && (isPart || name == partsPositionName):
			if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
				return 0, err
			}
		case isPart && !unfinished:
			last = max(last, until)
		}
	}
	return last, nil
}

const (
	partPrefix      = "estimates-"
	temporarySuffix = ".tmp"
)

// partName orders as positions do, up to twelve digits.
func partName(first, last uint64, format string) string {
	return fmt.Sprintf("%s%012d-%012d.%s", partPrefix, first, last, format)
}

// parsePart is the inverse of partName.
func parsePart(name, format string) (first, last uint64, ok bool) {
	if _, err := fmt.Sscanf(name, partPrefix+"%d-%d."+format, &first, &last); err != nil {
		return 0, 0, false
	}
	return first, last, name == partName(first, last, format)
}

// discard removes what was not finished, which would take room on a disk that is full.
// After a crash the next open does.
func discard(name string) error {
	if err := os.Remove(name); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
