package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gqlstream/ingest/broker"
	"gqlstream/pipeline/config"
)

type restoreCmd struct {
	serverFlags
	Dir string `arg:"" type:"existingdir" placeholder:"DIR" help:"${restore_dir}"`
}

func (*restoreCmd) Help() string {
	return `Restores the streams into the server of --nats or --config, or into the embedded server
of the state directory, and the checkpoints into the state directory. Both must be empty, so that a
restore overwrites nothing: move the state directory away, and remove streams with nats stream rm.
The backup is verified before the first write.

Examples:
  gqlstream restore --state gqlstream-state backup-friday
  gqlstream restore --state gqlstream-state --nats nats://broker:4222 /mnt/backups/friday`
}

// Run checks the backup, and then puts it back, the log first: a state without its log would be
// refused.
func (c *restoreCmd) Run(ctx context.Context, con console) error {
	begun := time.Now()
	files, err := checkBackup(c.Dir)
	if err != nil {
		return err
	}
	c.settings.State = cmp.Or(c.settings.State, config.StateDefault)
	for _, name := range append([]string{"checkpoints"}, backupFiles...) {
		if info, err := os.Stat(filepath.Join(c.settings.State, name)); err == nil &&
			info.Size() > 0 {
			return config.Usagef("restore: %s has %s already: move the directory away",
				c.settings.State, name)
		}
	}
	b, err := c.open(ctx, con)
	if err != nil {
		return err
	}
	var streams []string
	for _, name := range files {
		if name, is := strings.CutSuffix(name, streamSuffix); is {
			name = strings.TrimPrefix(name, backupStreams+"/")
			if _, err := b.JS.Stream(ctx, name); err == nil {
				return config.Usagef(
					"restore: the server has a stream %s already: nats stream rm %s",
					name, name)
			}
			streams = append(streams, name)
		}
	}
	if !slices.Contains(streams, c.names.Log) {
		return config.Usagef("restore: %s has no log %s: name the pipeline with --prefix",
			c.Dir, c.names.Log)
	}
	for _, name := range slices.Backward(streams) { // the log was copied last
		if err := c.restoreStream(ctx, con, b, name); err != nil {
			return err
		}
	}
	for _, name := range files {
		if rest, is := strings.CutPrefix(name, backupState+"/"); is {
			into := &backup{dir: c.settings.State}
			if err := into.copyFile(filepath.Join(c.Dir, name), rest); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(con.Out, "restored in %v: start run\n", time.Since(begun).Round(time.Millisecond))
	return nil
}

func (c *restoreCmd) restoreStream(
	ctx context.Context, con console, b *broker.Broker, name string,
) error {
	var copied broker.StreamCopy
	path := filepath.Join(c.Dir, backupStreams, name)
	data, err := os.ReadFile(path + ".json")
	if err == nil {
		err = json.Unmarshal(data, &copied)
	}
	if err != nil {
		return err
	}
	file, err := os.Open(path + streamSuffix)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := broker.RestoreStream(ctx, b, name, copied, bufio.NewReader(file)); err != nil {
		return err
	}
	stream, err := b.JS.Stream(ctx, name)
	if err != nil {
		return err
	}
	first, last := copied.Range()
	if now := stream.CachedInfo().State; now.LastSeq < last ||
		now.FirstSeq > first && now.Msgs > 0 {
		return fmt.Errorf("restore: stream %s has the messages %d to %d, and the backup %d to %d",
			name, now.FirstSeq, now.LastSeq, first, last)
	}
	fmt.Fprintf(con.Out, "%s: messages %d to %d\n", name, first, last)
	return nil
}

// checkBackup verifies every file of a backup, and returns their names in the order of writing.
func checkBackup(dir string) (names []string, err error) {
	text, err := os.ReadFile(filepath.Join(dir, backupSums))
	if err != nil {
		return nil, fmt.Errorf("restore: %s is not a complete backup: %w", dir, err)
	}
	for line := range strings.Lines(string(text)) {
		want, name, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || !filepath.IsLocal(filepath.FromSlash(name)) {
			return nil, fmt.Errorf("restore: %s of %s is damaged", backupSums, dir)
		}
		file, err := os.Open(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return nil, fmt.Errorf("restore: %s is incomplete: %w", dir, err)
		}
		sum := sha256.New()
		_, err = io.Copy(sum, file)
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, err
		}
		if hex.EncodeToString(sum.Sum(nil)) != want {
			return nil, fmt.Errorf("restore: %s of %s is damaged: nothing was restored", name, dir)
		}
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("restore: %s of %s is empty", backupSums, dir)
	}
	return names, nil
}
