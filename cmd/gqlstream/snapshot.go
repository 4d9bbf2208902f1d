package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"gqlstream/ask"
	"gqlstream/checkpoint"
	"gqlstream/config"
	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

type snapshotCmd struct {
	List    snapshotListCmd    `cmd:"" help:"List the checkpoints of a state directory and verify each."`
	Inspect snapshotInspectCmd `cmd:"" help:"Show what one checkpoint holds."`
	Export  snapshotExportCmd  `cmd:"" help:"Write the tables of a checkpoint as Parquet, CSV or Arrow."`
}

func (*snapshotCmd) Help() string {
	return `A checkpoint is the whole state at one position of the log. Reading one changes nothing, and may be done
while run goes on.

Examples:
  gqlstream snapshot list
  gqlstream snapshot export --table scores --out scores.parquet`
}

// snapshotFlags choose a checkpoint. A process may be running on the directory:
// nothing in it is changed.
type snapshotFlags struct {
	State string `placeholder:"DIR" help:"State directory of gqlstream run. [gqlstream-state]"`
}

func (f snapshotFlags) dir() *checkpoint.Dir {
	return checkpoint.Look(checkpoint.Disk{}, filepath.Join(cmp.Or(f.State, config.StateDefault), "checkpoints"))
}

// load reads the checkpoint at a position, the newest for 0, and its graph.
func (f snapshotFlags) load(position uint64) (*checkpoint.Checkpoint, *graphstore.Store, error) {
	dir := f.dir()
	positions, err := dir.List()
	if err == nil && len(positions) == 0 {
		err = f.none()
	}
	if err != nil {
		return nil, nil, err
	}
	read, err := dir.Read(cmp.Or(position, positions[0]))
	if err != nil {
		return nil, nil, err
	}
	store, _, err := ask.Load(read)
	return read, store, err
}

// none is the error of a state directory without checkpoints.
func (f snapshotFlags) none() error {
	return config.Usagef("snapshot: there is no checkpoint in %s; run writes them every checkpoint.every, "+
		"and at the end of --exit-when-drained", cmp.Or(f.State, config.StateDefault))
}

type snapshotListCmd struct {
	snapshotFlags
}

func (*snapshotListCmd) Help() string {
	return `Lists the checkpoints, newest first. Each is read in full and verified. STATE is the digest of the
state, which gqlstream replay --digest prints too.

Example:
  gqlstream snapshot list --state gqlstream-state`
}

// Run lists checkpoints.
func (c *snapshotListCmd) Run(con console) error {
	dir := c.dir()
	positions, err := dir.List()
	if err != nil {
		return err
	}
	aside, err := dir.SetAside()
	if err != nil {
		return err
	}
	for _, name := range aside {
		fmt.Fprintf(con.Err, "%s was damaged and set aside by an earlier start; it may be removed\n", name)
	}
	if len(positions) == 0 {
		return c.none()
	}
	damaged := 0
	table := tabwriter.NewWriter(con.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "POSITION\tLOG TIME\tWRITTEN\tBYTES\tCONFIG\tSTATE\tINTACT")
	for _, p := range positions {
		read, err := dir.Read(p)
		if err != nil {
			damaged++
			fmt.Fprintf(table, "%d\t-\t-\t-\t-\t-\tno: %v\n", p, err)
			continue
		}
		m := read.Manifest
		fmt.Fprintf(table, "%d\t%s\t%s\t%d\t%s\t%s\tyes\n", m.Position, event.Time(m.LogTime),
			m.Written.Format("2006-01-02T15:04:05Z"), bytesOf(m), m.Config, checkpoint.Digest(m.Sections))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if damaged > 0 {
		return fmt.Errorf("snapshot: %d of %d checkpoints are damaged; a start sets them aside and takes the "+
			"newest intact one", damaged, len(positions))
	}
	return nil
}

func bytesOf(m checkpoint.Manifest) (n int64) {
	for _, s := range m.Sections {
		n += s.Bytes
	}
	return n
}

type snapshotInspectCmd struct {
	snapshotFlags
	Position uint64 `arg:"" optional:"" help:"Position of the checkpoint. [the newest]"`
}

func (*snapshotInspectCmd) Help() string {
	return `Shows the manifest of one checkpoint, its sections with their rows, and what the graph holds.

Examples:
  gqlstream snapshot inspect --state gqlstream-state
  gqlstream snapshot inspect --state gqlstream-state 120000`
}

// Run shows one checkpoint.
func (c *snapshotInspectCmd) Run(con console) error {
	read, store, err := c.load(c.Position)
	if err != nil {
		return err
	}
	defer store.Release()
	m, view := read.Manifest, store.View()
	table := tabwriter.NewWriter(con.Out, 0, 8, 2, ' ', 0)
	for _, row := range [][2]any{
		{"position", m.Position},
		{"log time", event.Time(m.LogTime)},
		{"stream", fmt.Sprintf("%s, created %s", m.Stream.Name, m.Stream.Created.Format("2006-01-02T15:04:05.999999999Z"))},
		{"message", m.Stream.Digest},
		{"configuration", m.Config},
		{"state", checkpoint.Digest(m.Sections)},
		{"written", fmt.Sprintf("%s by gqlstream %s, format %d", m.Written.Format("2006-01-02T15:04:05Z"), m.Version, m.Format)},
		{"vertices", view.Vertices()},
		{"edges", view.Edges()},
		{"communities", view.Communities()},
		{"model versions", strings.Join(view.Versions(), " ")},
	} {
		fmt.Fprintf(table, "%s\t%v\n", row[0], row[1])
	}
	fmt.Fprintln(table, "\nSECTION\tROWS\tBYTES\tCHECKSUM")
	for _, s := range m.Sections {
		rows, err := graphstore.CountRows(read.Sections[s.Name])
		if err != nil {
			return fmt.Errorf("section %s: %w", s.Name, err)
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\n", s.Name, rows, s.Bytes, s.Checksum)
	}
	return table.Flush()
}
