package broker

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/minio/highwayhash"
)

// Files of the settings of a stream or consumer, and of their checksum.
const settingsFile, settingsSumFile = "meta.inf", "meta.sum"

// completeSettings repairs settings of streams and consumers in a store if their write was
// interrupted. The server replaces the settings and then their checksum, each in one step. If the
// process is killed in between, every later start of the server passes over the stream, as if there
// were none. If a run makes the stream again it has its messages, but the next start passes over it
// again.
//
// Settings that are newer than their checksum, or have none, are whole: they get their checksum.
// Others that do not match are damaged, and applying them could remove messages. They are moved
// away, so that the settings of the run take their place. Call it before the server starts.
func completeSettings(store string, log *slog.Logger) error {
	streams, err := filepath.Glob(filepath.Join(store, "jetstream", "*", "streams", "*"))
	if err != nil {
		return err
	}
	for _, stream := range streams {
		name := filepath.Base(stream)
		if err := completeSettingsOf(stream, name, log); err != nil {
			return err
		}
		consumers, err := os.ReadDir(filepath.Join(stream, "obs"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for _, consumer := range consumers {
			dir := filepath.Join(stream, "obs", consumer.Name())
			if err := completeSettingsOf(dir, name+"/"+consumer.Name(), log); err != nil {
				return err
			}
		}
	}
	return nil
}

// completeSettingsOf repairs the settings in a folder. The name is the key of the checksum.
func completeSettingsOf(dir, name string, log *slog.Logger) error {
	path, sumPath := filepath.Join(dir, settingsFile), filepath.Join(dir, settingsSumFile)
	settings, err := os.ReadFile(path)
	if err != nil || len(settings) == 0 {
		return nil // none were written: the server writes them when the stream is made again
	}
	sum, err := settingsSum(name, settings)
	if err != nil {
		return err
	}
	stored, err := os.ReadFile(sumPath)
	switch {
	case err == nil && string(stored) == sum:
		return nil
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	case json.Valid(settings) && (err != nil || newer(path, sumPath)):
		log.Warn("the write of the settings of a stream or consumer was interrupted: completed",
			"name", name)
		return replaceFile(sumPath, []byte(sum))
	}
	log.Warn("the settings of a stream or consumer are damaged and were moved away: they are "+
		"made again, and messages stay", "name", name, "file", path+".damaged")
	return os.Rename(path, path+".damaged")
}

// settingsSum returns the server's checksum of settings.
func settingsSum(name string, settings []byte) (string, error) {
	key := sha256.Sum256([]byte(name))
	hash, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		return "", fmt.Errorf("checksum of settings: %w", err)
	}
	_, _ = hash.Write(settings) // never fails
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// newer reports whether a file was written after another one.
func newer(path, than string) bool {
	a, errA := os.Stat(path)
	b, errB := os.Stat(than)
	return errA == nil && errB == nil && a.ModTime().After(b.ModTime())
}

// replaceFile replaces a file in one step, on the disk when it returns.
func replaceFile(path string, data []byte) error {
	file, err := os.OpenFile(path+".tmp", os.O_CREATE|os.O_WRONLY|os.O_TRUNC|os.O_SYNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}
