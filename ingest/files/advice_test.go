package files

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gqlstream/ingest/event"
)

// Columns of probabilities that are not recognised are refused with a flag that helps.
func TestUnknownProbabilitiesNameTheFlag(t *testing.T) {
	for _, test := range []struct {
		classes []string
		header  string
		want    string
	}{
		{nil, "vertex,left,right", "--map p_left=left,p_right=right"},
		{nil, "vertex,prob_left,prob_right", "--map p_left=prob_left,p_right=prob_right"},
		{nil, "vertex,label,score", "if label is the predicted class: --map class=label"},
		{[]string{"left", "right"}, "vertex,left,right", "--map p_left=left,p_right=right"},
		{[]string{"for", "against"}, "vertex,p_left,p_right", "--map p_for=COLUMN,p_agai"},
		{[]string{"for", "against"}, "vertex,x", "--map class=x"},
	} {
		c := newColumns(event.KindPrediction, nil, test.classes)
		_, err := c.setHeader(strings.Split(test.header, ","))
		if err == nil || !strings.Contains(err.Error(), test.want) ||
			strings.Contains(err.Error(), "p_p_") {
			t.Errorf("%v, %s: %v, want %s", test.classes, test.header, err, test.want)
		}
	}
}

// A format that is not read says how to make a file of it that is.
func TestForeignFormatsAreRefusedWithAdvice(t *testing.T) {
	for file, want := range map[string]string{
		"g.graphml": `networkx.to_pandas_edgelist(networkx.read_graphml('DIR/g.graphml'))`,
		"g.GEXF":    `networkx.read_gexf('DIR/g.GEXF')).to_csv('DIR/g.csv',index=False)"`,
		"it's.xlsx": `pandas.read_excel('DIR/it\x27s.xlsx',dtype=str).to_csv('DIR/it\x27s.csv'`,
		"e.rds":     `write.csv(readRDS('DIR/e.rds'),'DIR/e.csv',row.names=FALSE)`,
		"a.zip":     `unzip 'DIR/a.zip'`,
		"a.csv.bz2": `bunzip2 'DIR/a.csv.bz2'`,
		"a.db":      `sqlite3 -header -csv 'DIR/a.db' "select * from TABLE" > 'DIR/a.csv'`,
		"a.sqlite3": `sqlite3 -header -csv 'DIR/a.sqlite3' "select * from TABLE" > 'DIR/a.csv'`,
		"a.pickle":  `pandas.read_pickle('DIR/a.pickle').to_csv('DIR/a.csv',index=False)"`,
		"a.avro":    `fastavro.reader(open('DIR/a.avro','rb'))]" > 'DIR/a.ndjson'`,
		"a.RData":   `load('DIR/a.RData',e); write.csv(get(ls(e)[1],e),'DIR/a.csv',row.`,
		"a.xyz":     `the extension ".xyz" is no format`,
	} {
		path := writeFile(t, file, []byte("x"))
		_, err := NewSource(Config{Inputs: []Input{{Path: path, Kind: event.KindEdge}}})
		want = strings.ReplaceAll(want, "DIR", filepath.Dir(path))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v\nwant %s", file, err, want)
		}
	}
	for text, want := range map[string]string{
		"node\n[\nid 0\nlabel \"u0\"\n]": "a.gml'))",
		"node\n[\nid 0\nname \"u0\"\n]":  "a.gml',label='name'))",
		"node\n[\nid 0\n]":               "a.gml',label='id'))",
	} {
		path := writeFile(t, "a.gml", []byte(text))
		if got := readsForeign(path); !strings.Contains(got, want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	path := writeFile(t, "a.graphml", []byte(`<!-- Created by igraph --><key attr.name="name"/>`))
	if got := readsForeign(path); !strings.Contains(got, "dict(g.nodes(data='name'") {
		t.Error(got)
	}
}

// Posts that are given as edges have two ways out: as posts, or their answers as edges.
func TestPostsGivenAsEdges(t *testing.T) {
	path := writeFile(t, "edge.csv",
		[]byte("id,author_id,author.id,in_reply_to_user_id,source\n7,1,1,2,Web\n"))
	_, err := NewSource(Config{Inputs: []Input{{Path: path, Kind: event.KindEdge}}})
	want := "they look like posts: --posts reads them"
	if err == nil || !strings.Contains(err.Error(), want) ||
		!strings.Contains(err.Error(), "--map src=author_id,dst=in_reply_to_user_id --skip-ref") {
		t.Errorf("%v, want %s", err, want)
	}
}

// A file with other lines before its columns is refused with advice.
func TestLinesBeforeTheColumns(t *testing.T) {
	for text, want := range map[string]string{
		"Exported on 2024-05-01\n\nsrc,dst\n1,2\n": "line 3 has the names of the columns",
		"// x\nSource;Target\n1;2\n":               "line 2 has the names of the columns",
		"'src','dst'\n'1','2'\n":                   "values in quotes of another kind: write",
		"\x1f\x8b\x08":                             "this is no text but gzip: add .gz",
		"PK\x03\x04":                               "a zip archive or a spreadsheet",
		"PAR1":                                     "this is no text but Parquet",
		"SQLite format 3\x00\x10":                  "no text but SQLite: call it .sqlite",
		"Obj\x01\x04":                              "no text but Avro: call it .avro",
		"FEA1\x00":                                 "no text but Feather, version 1",
		"\x80\x05\x95\x00":                         "no text but a pickle: call it .pkl",
		"a,b\n1,2\n":                               "rename with --map src=COLUMN",
		"% made by x\n\n% y\nExport\nsrc,dst\n":    "line 5 has the names of the columns",
		"»src«;»dst«\n»1«;»2«\n":                   "values in quotes of another kind",
		"“src”,“dst”\n“1”,“2”\n":                   "values in quotes of another kind",
		"src^dst\n1^2\n":                           "the line is one value: values are separated",
		"src,dst,weight\n1,2,\"1,5\"\n":            "\"1,5\": want a number; --map weight= reads",
		"src;dst;weight\n1;2;1.000,5\n":            "\"1.000,5\": want a number; --map weight=",
		"src,dst\n1,2\n# half\n1,2\n":              "edge.csv:3: a comment between the rows",
	} {
		path := writeFile(t, "edge.csv", []byte(text))
		s, err := NewSource(Config{Inputs: []Input{{Path: path, Kind: event.KindEdge}}})
		if err == nil {
			var b event.Batch
			_ = s.Next(t.Context(), &b)
			err = errors.New(fmt.Sprint(b.Refused))
			s.Close()
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// Names of columns among the rows are left out with a warning: files were joined, or --columns was
// given for a file with names.
func TestNamesAmongTheRowsAreLeftOut(t *testing.T) {
	for text, header := range map[string]string{
		"src,dst\n1,2\nsrc,dst\n2,3\n":                 "",
		"Source;Target\r\n1;2\r\nSource;Target\r\n2;3": "",
		"Source,Target\n1,2\n2,3\n":                    "src,dst",
		"From To n\n1 2 1\n2 3 1\n":                    "edges=src,dst,",
	} {
		config := Config{}
		if header != "" {
			config.Header = []string{header}
		}
		b, s := readTables(t, config, map[string]string{"edge.csv": text})
		warnings := strings.Join(s.Warnings(), "\n")
		if tally := s.Tallies()[0]; !slices.Equal(ends(b), []string{"1>2", "2>3"}) ||
			tally.Rows != 3 || tally.LeftOut != 1 || len(b.Refused) > 0 ||
			!strings.Contains(warnings, "1 rows are names of columns: left out") {
			t.Errorf("%q: %v, %+v, %v, %s", text, ends(b), tally, b.Refused, warnings)
		}
	}
}
