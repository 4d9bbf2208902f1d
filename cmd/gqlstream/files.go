package main

import (
	"fmt"
	"io"
	"strings"

	"gqlstream/ingest"
	"gqlstream/ingest/event"
)

// fileFlags name the files that make a log. The extension decides the form: .csv,
// .tsv, .ndjson, .parquet, .arrow, alone or with .gz or .zst.
type fileFlags struct {
	Edges       []string          `type:"existingfile" placeholder:"FILE" help:"Edges: src,dst[,weight][,time][,op][,ttl]."`
	Labels      []string          `type:"existingfile" placeholder:"FILE" help:"Labels: vertex,label[,role][,time][,ttl]."`
	Predictions []string          `type:"existingfile" placeholder:"FILE" help:"Predictions: vertex,p0,p1,... or vertex,class."`
	Members     []string          `type:"existingfile" placeholder:"FILE" help:"Members: community,vertex[,weight]."`
	Vertices    []string          `type:"existingfile" placeholder:"FILE" help:"Vertices: vertex, and a column for each attribute."`
	Log         []string          `type:"existingfile" placeholder:"FILE" help:"Logs of all kinds of events, as gqlstream simulate writes them."`
	Map         map[string]string `placeholder:"OURS=THEIRS" mapsep:"," help:"Names of columns: --map src=follower,dst=followee."`
}

// any reports whether a file was given.
func (f *fileFlags) any() bool { return len(f.inputs()) > 0 }

func (f *fileFlags) inputs() []ingest.FileInput {
	var inputs []ingest.FileInput
	for _, table := range []struct {
		kind  event.Kind
		paths []string
	}{
		{event.KindEdge, f.Edges},
		{event.KindLabel, f.Labels},
		{event.KindPrediction, f.Predictions},
		{event.KindMember, f.Members},
		{event.KindVertex, f.Vertices},
	} {
		for _, path := range table.paths {
			inputs = append(inputs, ingest.FileInput{Path: path, Kind: table.kind})
		}
	}
	for _, path := range f.Log {
		inputs = append(inputs, ingest.FileInput{Path: path, Log: true})
	}
	return inputs
}

// columns returns the renaming as the readers want it, theirs to ours.
func (f *fileFlags) columns() map[string]string {
	out := map[string]string{}
	for ours, theirs := range f.Map {
		out[theirs] = ours
	}
	return out
}

// reportFiles says what the files held that was not used: warnings, and refused
// rows by reason with the first examples.
func reportFiles(w io.Writer, log *ingest.FileLog, examples []event.Refusal) {
	for _, warning := range log.Warnings() {
		fmt.Fprintln(w, "warning:", warning)
	}
	for reason, n := range log.Refused() {
		fmt.Fprintf(w, "refused: %d rows, %s\n", n, reason)
	}
	for _, r := range examples {
		fmt.Fprintf(w, "  row %d, %s: %s\n", r.Position, r.Kind, strings.TrimSpace(r.Detail))
	}
}

// examplesMax bounds how many refused rows are shown.
const examplesMax = 5
