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
// that is read. %[1]s is the path in quotes, %[2]s that of the new file.
var foreignFormats = map[string]string{
	".gml":     `networkx: networkx.to_pandas_edgelist(networkx.read_gml(%[1]s))`,
	".graphml": `networkx: networkx.to_pandas_edgelist(networkx.read_graphml(%[1]s))`,
	".gexf":    `networkx: networkx.to_pandas_edgelist(networkx.read_gexf(%[1]s))`,
	".net":     `networkx: networkx.to_pandas_edgelist(networkx.read_pajek(%[1]s))`,
	".xlsx":    `pandas: pandas.read_excel(%[1]s,dtype=str)`,
	".xls":     `pandas: pandas.read_excel(%[1]s,dtype=str)`,
	".ods":     `pandas: pandas.read_excel(%[1]s,dtype=str)`,
	".sav":     `pandas: pandas.read_spss(%[1]s)`,
	".dta":     `pandas: pandas.read_stata(%[1]s)`,
	".pkl":     `pandas: pandas.read_pickle(%[1]s)`,
	".orc":     `pandas: pandas.read_orc(%[1]s)`,
	".rds":     `Rscript -e "write.csv(readRDS(%[1]s),%[2]s,row.names=FALSE)"`,
	".zip":     "unzip %[1]s",
	".bz2":     "bunzip2 %[1]s",
	".xz":      "unxz %[1]s",
	".sqlite":  `sqlite3 -header -csv %[1]s "select * from TABLE" > %[2]s`,
	".db":      `sqlite3 -header -csv %[1]s "select * from TABLE" > %[2]s`,
}

// readsForeign returns advice for a file whose extension is no format, or "".
func readsForeign(path string) string {
	ext := strings.ToLower(filepath.Ext(path))
	form, known := foreignFormats[ext]
	if !known {
		return ""
	}
	csv := pythonText(strings.TrimSuffix(path, filepath.Ext(path)) + ".csv")
	module, table, isPython := strings.Cut(form, ": ")
	if !isPython {
		return fmt.Sprintf(strings.ReplaceAll(form, "%[2]s", csv), pythonText(path))
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
