package main

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"testing"
)

// The graph for Gephi must be XML; its edges end at its nodes, and its nodes have their
// predictions and labels. Names with characters that XML cannot hold must stay readable.
func TestSnapshotIsExportedForGephi(t *testing.T) {
	dir := t.TempDir()
	log := filepath.Join(dir, "log.ndjson")
	if err := os.WriteFile(log, []byte(`{"kind":"edge","src":"a<b","dst":"c&d","weight":2}
{"kind":"edge","src":"c&d","dst":"e"}
{"kind":"label","vertex":"e","class":1}
{"kind":"prediction","vertex":"a<b","probabilities":[0.25,0.75],"version":"m1"}
{"kind":"member","community":"one","vertex":"e"}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	state := filepath.Join(dir, "state")
	mustRun(t, "publish", "--state", state, "--classes", "2", "--log", log)
	mustRun(t, "run", "--state", state, "--classes", "2", "--http", "off", "--exit-when-drained")
	out := filepath.Join(dir, "graph.gexf")
	mustRun(t, "snapshot", "export", "--state", state, "--out", out)
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Nodes []struct {
			ID     string `xml:"id,attr"`
			Values []struct {
				For   string `xml:"for,attr"`
				Value string `xml:"value,attr"`
			} `xml:"attvalues>attvalue"`
		} `xml:"graph>nodes>node"`
		Edges []struct {
			Source string  `xml:"source,attr"`
			Target string  `xml:"target,attr"`
			Weight float64 `xml:"weight,attr"`
		} `xml:"graph>edges>edge"`
	}
	if err := xml.Unmarshal(data, &got); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	known := map[string]map[string]string{}
	for _, n := range got.Nodes {
		known[n.ID] = map[string]string{}
		for _, v := range n.Values {
			known[n.ID][v.For] = v.Value
		}
	}
	if len(known) != 3 || len(got.Edges) != 2 || got.Edges[0].Weight != 2 {
		t.Fatalf("nodes %v, edges %v", known, got.Edges)
	}
	for _, e := range got.Edges {
		if known[e.Source] == nil || known[e.Target] == nil {
			t.Errorf("an edge from %q to %q, which are no nodes", e.Source, e.Target)
		}
	}
	if e, a := known["e"], known["a<b"]; e["0"] != "1" || e["4"] != "one" ||
		a["1"] != "1" || a["2"] != "0.7500" || a["3"] != "m1" {
		t.Errorf("known of e %v, of a<b %v", e, a)
	}
}
