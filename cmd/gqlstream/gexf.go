package main

import (
	"bufio"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gqlstream/graphstore"
	"gqlstream/ingest/event"
)

// isGEXF reports whether a file is to hold the graph as Gephi reads it.
func isGEXF(path string) bool { return strings.EqualFold(filepath.Ext(path), ".gexf") }

// exportGEXF writes the graph with the data of its vertices as GEXF 1.3, and returns the numbers
// of vertices and edges. The file appears whole or not at all.
func exportGEXF(path string, view graphstore.View, classes event.ClassSet) (v, e int, err error) {
	file, err := os.CreateTemp(filepath.Dir(path), ".gexf-*")
	if err != nil {
		return 0, 0, err
	}
	defer os.Remove(file.Name())
	out := bufio.NewWriterSize(file, 1<<20)
	g := &gexf{xml: xml.NewEncoder(out), view: view, classes: classes}
	g.write()
	err = errors.Join(g.err, g.xml.Flush(), out.Flush(), file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	return g.vertices, g.edges, err
}

// gexf writes one graph. The first error stays.
type gexf struct {
	xml             *xml.Encoder
	view            graphstore.View
	classes         event.ClassSet
	vertices, edges int
	err             error
}

// gexfAttributes are the attributes of a vertex, with their types in GEXF.
var gexfAttributes = [][2]string{
	{"label", "string"},
	{"predicted", "string"},
	{"probability", "double"},
	{"version", "string"},
	{"communities", "string"},
}

func (g *gexf) token(t xml.Token) {
	if g.err == nil {
		g.err = g.xml.EncodeToken(t)
	}
}

// openElement opens an element with attributes, which come as pairs of a name and a value.
func (g *gexf) openElement(name string, pairs ...string) {
	start := xml.StartElement{Name: xml.Name{Local: name}}
	for i := 0; i < len(pairs); i += 2 {
		start.Attr = append(start.Attr, xml.Attr{
			Name: xml.Name{Local: pairs[i]}, Value: plainText(pairs[i+1]),
		})
	}
	g.token(start)
}

func (g *gexf) end(name string) { g.token(xml.EndElement{Name: xml.Name{Local: name}}) }

func (g *gexf) empty(name string, pairs ...string) {
	g.openElement(name, pairs...)
	g.end(name)
}

// plainText leaves out characters that XML does not allow.
func plainText(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0xFFFE || r == 0xFFFF {
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

func (g *gexf) write() {
	g.token(xml.ProcInst{Target: "xml", Inst: []byte(`version="1.0" encoding="UTF-8"`)})
	g.openElement("gexf", "xmlns", "http://gexf.net/1.3", "version", "1.3")
	g.openElement("graph", "defaultedgetype", "undirected")
	g.openElement("attributes", "class", "node")
	for i, a := range gexfAttributes {
		g.empty("attribute", "id", strconv.Itoa(i), "title", a[0], "type", a[1])
	}
	g.end("attributes")
	g.openElement("nodes")
	for v := range graphstore.Vertex(g.view.Vertices()) {
		g.node(v)
	}
	g.end("nodes")
	g.openElement("edges")
	for edge := range edgesOf(g.view) {
		g.empty("edge", "id", strconv.Itoa(g.edges), "source", edge.Src, "target", edge.Dst,
			"weight", strconv.FormatFloat(edge.Weight, 'g', -1, 64))
		g.edges++
	}
	g.end("edges")
	g.end("graph")
	g.end("gexf")
}

// node writes a vertex, unless nothing is known of it.
func (g *gexf) node(v graphstore.Vertex) {
	values := g.attributesOf(v)
	if g.view.Degree(v) == 0 &&
		!slices.ContainsFunc(values, func(x string) bool { return x != "" }) {
		return
	}
	id := g.view.ID(v).String()
	g.openElement("node", "id", id, "label", id)
	g.openElement("attvalues")
	for i, value := range values {
		if value != "" {
			g.empty("attvalue", "for", strconv.Itoa(i), "value", value)
		}
	}
	g.end("attvalues")
	g.end("node")
	g.vertices++
}

// attributesOf returns the values of gexfAttributes of a vertex; "" is not known.
func (g *gexf) attributesOf(v graphstore.Vertex) []string {
	values := make([]string, len(gexfAttributes))
	if label := g.view.Label(v); label.Class != event.NoClass {
		values[0] = g.classes.Name(label.Class)
	}
	if units := g.view.Prediction(v); units != nil {
		most := slices.Max(units)
		values[1] = g.classes.Name(event.Class(slices.Index(units, most)))
		values[2] = strconv.FormatFloat(float64(most)/event.One, 'f', 4, 64)
		if version := int(g.view.Version(v)); version < len(g.view.Versions()) {
			values[3] = g.view.Versions()[version]
		}
	}
	var names []string
	for _, m := range g.view.MemberOf(v) {
		names = append(names, g.view.CommunityName(m.Community))
	}
	values[4] = strings.Join(names, ", ")
	return values
}

// exportGraph is the command on a file for Gephi.
func (c *snapshotExportCmd) exportGraph(
	w io.Writer, view graphstore.View, classes event.ClassSet, position uint64,
) error {
	vertices, edges, err := exportGEXF(c.Out, view, classes)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s: %s vertices and %s edges at position %d\n",
		c.Out, grouped(vertices), grouped(edges), position)
	return err
}
