package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"gqlstream/ingest/broker"
	"gqlstream/internal/checkpoint"
	"gqlstream/pipeline/config"
)

// Names in a backup.
const (
	backupSums    = "SHA256SUMS" // written last: a backup without it is not whole
	backupState   = "state"      // files of the state directory
	backupStreams = "streams"    // NAME.json and NAME.packed of each stream
	streamSuffix  = ".packed"
)

// backupFiles are the files of a state directory that a backup has in addition to the checkpoints.
var backupFiles = []string{"reached", "alerting.json", "history.json"}

type backupCmd struct {
	serverFlags
	Dir string `arg:"" placeholder:"DIR" help:"Directory of the backup, which must not exist yet."`
}

func (*backupCmd) Help() string {
	return `Copies the log, the estimates, alerts, history and quarantine, and the newest
checkpoints of the state directory. Works during a run whose broker it can reach: an outside server,
or the embedded one of a run with --listen. Without --nats it opens the embedded server itself, and
no run may use it. Output files are not copied. SHA256SUMS in the backup is written last; sha256sum
-c checks it. gqlstream restore reads the backup.

Examples:
  gqlstream backup --state gqlstream-state backup-friday
  gqlstream backup --state gqlstream-state --nats nats://127.0.0.1:4222 /mnt/backups/friday`
}

// backup is one that is being written.
type backup struct {
	dir  string
	sums []string // lines of SHA256SUMS
}

// Run copies the state first and the log last, so that the log has all that the state has read.
func (c *backupCmd) Run(ctx context.Context, con console) error {
	if _, err := os.Stat(c.Dir); !errors.Is(err, fs.ErrNotExist) {
		return config.Usagef("backup: %s is there already", c.Dir)
	}
	b, err := c.openExisting(ctx, con)
	if err != nil {
		return err
	}
	out := &backup{dir: c.Dir + ".tmp"}
	if err := errors.Join(os.RemoveAll(out.dir), os.MkdirAll(out.dir, 0o700)); err != nil {
		return err
	}
	newest, err := out.copyState(c.settings.State)
	if err != nil {
		return err
	}
	names, err := pipelineStreams(ctx, b, c.names.Log, c.out.Estimates)
	if err != nil {
		return err
	}
	for _, name := range names {
		copied, bytes, err := out.copyStream(ctx, b, name)
		if err != nil {
			return err
		}
		first, last := copied.Range()
		fmt.Fprintf(con.Out, "%s: messages %d to %d, %d bytes\n", name, first, last, bytes)
		if name == c.names.Log && newest > 0 && first > newest {
			return fmt.Errorf(
				"backup: the log was purged beyond checkpoint %d meanwhile; try again",
				newest)
		}
	}
	if err := out.write(backupSums, strings.NewReader(strings.Join(out.sums, ""))); err != nil {
		return err
	}
	if err := os.Rename(out.dir, c.Dir); err != nil {
		return err
	}
	state := "no checkpoint: a restored run reads the log from its beginning"
	if newest > 0 {
		state = fmt.Sprintf("checkpoint %d", newest)
	}
	fmt.Fprintf(con.Out, "%s is whole, with %s\n", c.Dir, state)
	return syncDir(filepath.Dir(c.Dir))
}

// pipelineStreams lists the streams of a pipeline, and the stores of its groups: the estimates and
// then the log at the end. The bucket of latest values is a copy that the broker makes again.
func pipelineStreams(
	ctx context.Context, b *broker.Broker, log, estimates string,
) ([]string, error) {
	var names []string
	list := b.JS.StreamNames(ctx)
	for name := range list.Name() {
		if strings.HasPrefix(name, log+"_") && name != estimates ||
			strings.HasPrefix(name, "OBJ_"+strings.ToLower(log)+"_group_") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if _, err := b.JS.Stream(ctx, estimates); err == nil {
		names = append(names, estimates)
	}
	return append(names, log), list.Err()
}

// copyState copies the newest two intact checkpoints and the saved state of the followers, and
// returns the position of the newest. A run may drop a checkpoint meanwhile, and then others are
// there.
func (b *backup) copyState(state string) (newest uint64, err error) {
	for _, name := range backupFiles {
		if err := b.copyFile(filepath.Join(state, name),
			filepath.Join(backupState, name)); err != nil &&
			!errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
	}
	const triesMax, wanted = 3, 2
	for range triesMax {
		manifests := checkpoint.Look(checkpoint.Disk{},
			filepath.Join(state, "checkpoints")).Manifests()
		copied := []uint64{}
		for _, m := range manifests {
			if err = b.copyCheckpoint(state, m); err == nil {
				copied = append(copied, m.Position)
			}
			if len(copied) == wanted {
				return copied[0], nil
			}
		}
		if len(copied) > 0 || len(manifests) == 0 {
			return slices.Max(append(copied, 0)), nil
		}
	}
	return 0, fmt.Errorf("backup: no checkpoint of %s is intact: %w", state, err)
}

// copyCheckpoint copies a checkpoint and verifies the copy.
func (b *backup) copyCheckpoint(state string, m checkpoint.Manifest) error {
	sub := filepath.Join("checkpoints", checkpoint.FileName(m.Position))
	written := filepath.Join(b.dir, backupState, sub)
	before := len(b.sums)
	names := []string{checkpoint.ManifestFile}
	for _, s := range m.Sections {
		names = append(names, s.Name)
	}
	var err error
	for _, name := range names {
		err = cmp.Or(err,
			b.copyFile(filepath.Join(state, sub, name), filepath.Join(backupState, sub, name)))
	}
	if err == nil {
		_, err = checkpoint.Look(checkpoint.Disk{}, filepath.Dir(written)).Verify(m.Position)
	}
	if err != nil {
		b.sums = b.sums[:before]
		return errors.Join(err, os.RemoveAll(written))
	}
	return nil
}

func (b *backup) copyFile(from, to string) error {
	file, err := os.Open(from)
	if err != nil {
		return err
	}
	defer file.Close()
	return b.write(to, file)
}

// copyStream copies a stream, and returns its length in bytes.
func (b *backup) copyStream(
	ctx context.Context,
	from *broker.Broker,
	name string,
) (c broker.StreamCopy, bytes int64, err error) {
	r, w := io.Pipe()
	copied := make(chan error, 1)
	go func() { copied <- b.write(filepath.Join(backupStreams, name+streamSuffix), r) }()
	counted := &counter{w: w}
	c, err = broker.CopyStream(ctx, from, name, counted)
	w.CloseWithError(cmp.Or(err, io.EOF))
	if err = cmp.Or(err, <-copied); err != nil {
		return c, 0, err
	}
	data, err := json.MarshalIndent(c, "", "  ")
	if err == nil {
		err = b.write(filepath.Join(backupStreams, name+".json"), strings.NewReader(string(data)))
	}
	return c, counted.n, err
}

// counter counts the written bytes.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(data []byte) (int, error) {
	n, err := c.w.Write(data)
	c.n += int64(n)
	return n, err
}

// write writes and syncs a file of the backup.
func (b *backup) write(name string, r io.Reader) error {
	path := filepath.Join(b.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(file, sum), r)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil && name != backupSums {
		b.sums = append(b.sums, fmt.Sprintf("%x  %s\n", sum.Sum(nil), filepath.ToSlash(name)))
	}
	return err
}

func syncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
