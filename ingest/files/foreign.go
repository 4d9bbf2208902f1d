package files

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// foreignFormats are formats that are not read, by extension: the command that makes a file of them
// that is read. %[1]s is the path in quotes, %[2]s that of the new CSV file, and %[3]s that of an
// NDJSON file.
var foreignFormats = map[string]string{
	".gml":     `networkx: networkx.to_pandas_edgelist(networkx.read_gml(%[1]s))`,
	".graphml": `networkx: networkx.to_pandas_edgelist(networkx.read_graphml(%[1]s))`,
	".gexf":    `networkx: networkx.to_pandas_edgelist(networkx.read_gexf(%[1]s))`,
	".net":     `networkx: networkx.to_pandas_edgelist(networkx.read_pajek(%[1]s))`,
	".dot":     `networkx: networkx.to_pandas_edgelist(networkx.nx_pydot.read_dot(%[1]s))`,
	".mtx": `awk '/^%/{next} !n++{next} n==2{print (NF>2?"src,dst,weight":"src,dst")} {$1=$1} 1' ` +
		`OFS=, %[1]s > %[2]s`,
	".xlsx":   `pandas: pandas.read_excel(%[1]s,dtype=str)`,
	".xls":    `pandas: pandas.read_excel(%[1]s,dtype=str)`,
	".ods":    `pandas: pandas.read_excel(%[1]s,dtype=str)`,
	".sav":    `pandas: pandas.read_spss(%[1]s)`,
	".dta":    `pandas: pandas.read_stata(%[1]s)`,
	".pkl":    readPickle,
	".pickle": readPickle,
	".orc":    `pandas: pandas.read_orc(%[1]s)`,
	".avro": `python3 -c "import json,fastavro; [print(json.dumps(r,default=str)) ` +
		`for r in fastavro.reader(open(%[1]s,'rb'))]" > %[3]s`,
	".rdata":   readRData,
	".rda":     readRData,
	".rds":     `Rscript -e "write.csv(readRDS(%[1]s),%[2]s,row.names=FALSE)"`,
	".zip":     "unzip %[1]s",
	".bz2":     "bunzip2 %[1]s",
	".xz":      "unxz %[1]s",
	".sqlite":  readSQLite,
	".sqlite3": readSQLite,
	".db":      readSQLite,
}

const (
	readPickle = `pandas: pandas.read_pickle(%[1]s)`
	readSQLite = `sqlite3 -header -csv %[1]s "select * from TABLE" > %[2]s`
	readRData  = `Rscript -e "e=new.env(); load(%[1]s,e); ` +
		`write.csv(get(ls(e)[1],e),%[2]s,row.names=FALSE)"`
	readFeather = `pandas: pandas.read_feather(%[1]s)` // of version 1
)

// readsForeign returns advice for a file with the extension of an unknown format, or "".
func readsForeign(path string) string {
	ext := strings.ToLower(filepath.Ext(path))
	form, known := foreignFormats[ext]
	if !known {
		return ""
	}
	return foreignAdvice(path, form)
}

// foreignAdvice returns the command of a form for a file.
func foreignAdvice(path, form string) string {
	ext := strings.ToLower(filepath.Ext(path))
	stem := strings.TrimSuffix(path, filepath.Ext(path))
	csv, lines := pythonText(stem+".csv"), pythonText(stem+".ndjson")
	module, table, isPython := strings.Cut(form, ": ")
	if !isPython {
		return strings.NewReplacer("%[1]s", pythonText(path), "%[2]s", csv, "%[3]s", lines).
			Replace(form)
	}
	table = namedVertices(path, ext, fmt.Sprintf(table, pythonText(path)))
	return fmt.Sprintf(`python3 -c "import %s; %s.to_csv(%s,index=False)"`, module, table, csv)
}

// namedVertices makes igraph's names of vertices their ids. Its GML and GraphML files number the
// vertices, which no other file does.
func namedVertices(path, ext, table string) string {
	file, err := os.Open(path)
	if err != nil {
		return table
	}
	defer file.Close()
	head := make([]byte, peekBytes)
	n, _ := io.ReadFull(file, head)
	switch head = head[:n]; {
	case ext == ".gml" && !bytes.Contains(head, []byte("label ")):
		of := map[bool]string{true: "name", false: "id"}[bytes.Contains(head, []byte("name "))]
		return strings.Replace(table, "))", ",label='"+of+"'))", 1)
	case ext == ".graphml" && bytes.Contains(head, []byte("Created by igraph")) &&
		bytes.Contains(head, []byte(`attr.name="name"`)):
		graph := strings.TrimSuffix(strings.TrimPrefix(table, "networkx.to_pandas_edgelist("), ")")
		return fmt.Sprintf("g=%s; networkx.to_pandas_edgelist(networkx.relabel_nodes(g,"+
			"dict(g.nodes(data='name'))))", graph)
	}
	return table
}
