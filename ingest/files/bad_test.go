package files

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gqlstream/ingest/event"
	"gqlstream/internal/testfile"
)

// A bad row is refused with its line, its column, its value and the expected form; the rows
// around it are read.
func TestBadRowsAreRefusedAlone(t *testing.T) {
	leakCheck(t)
	tests := []struct {
		name, header, good, bad string
		reason                  event.Reason
		detail                  string
	}{
		{
			"edge.csv",
			"src,dst,weight",
			"1,2,1",
			"1,2,abc",
			event.BadValue,
			`column weight: "abc": want a number`,
		},
		{"edge.csv", "src,dst,weight", "1,2,", "1,2,nan", event.NotFinite, "NaN"},
		{"edge.csv", "src,dst,weight", "1,2,1", "1,2,-1", event.BadWeight, "weight -1"},
		{"edge.csv", "src,dst,weight", "1,2,1", "1,2,0", event.BadWeight, "weight 0"},
		{"edge.csv", "src,dst", "1,2", "7,7", event.SelfLoop, "7"},
		{
			"edge.csv",
			"src,dst",
			"1,2",
			",2",
			event.MissingField,
			"column src: missing, want text or a whole number",
		},
		{"edge.csv", "src,dst", "1,2", "1,2,3", event.Malformed, "3 columns, the header has 2"},
		{"edge.csv", "src,dst", "1,2", "1", event.Malformed, "1 columns, the header has 2"},
		{"edge.csv", "src,dst", "1,2", `1,a"b`, event.Malformed, `bare "`},
		{"edge.csv", "src,dst", "1,2", `1,"a"b`, event.Malformed, `extraneous or missing "`},
		{"edge.csv", "src,dst", "1,2", "1,\xff", event.BadID, "not UTF-8"},
		{
			"edge.csv",
			"src,dst",
			"1,2",
			"1," + strings.Repeat("x", 257),
			event.BadID,
			"longer than 256 bytes",
		},
		{
			"edge.csv",
			"src,dst,time",
			"1,2,5",
			"1,2,soon",
			event.BadTime,
			`column time: "soon" is neither RFC 3339 nor Unix seconds`,
		},
		{
			"edge.csv",
			"src,dst,ts",
			"1,2,5",
			"1,2,17000000000",
			event.BadTime,
			`column ts: "17000000000" is out of range`,
		},
		{
			"edge.csv",
			"src,dst,op",
			"1,2,add",
			"1,2,del",
			event.BadValue,
			`column op: "del": want add or remove`,
		},
		{"edge.csv", "src,dst,ttl", "1,2,5m", "1,2,-5", event.BadValue, "column ttl:"},
		{
			"edge.ndjson",
			"",
			`{"src":1,"dst":2}`,
			`{"src":1,"dst":2`,
			event.Malformed,
			"byte 16: the text ends too early",
		},
		{
			"edge.ndjson",
			"",
			`{"src":1,"dst":2}`,
			`{"src":1,"src":3,"dst":2}`,
			event.Malformed,
			`"src" given twice`,
		},
		{
			"edge.ndjson",
			"",
			`{"src":1,"dst":2}`,
			`{"src":1.5,"dst":2}`,
			event.BadID,
			"column src: 1.5: want text or a whole number",
		},
		{
			"edge.ndjson",
			"",
			`{"src":1,"dst":2}`,
			`{"src":1}`,
			event.MissingField,
			"column dst: missing",
		},
		{
			"edge.ndjson",
			"",
			`{"src":1,"dst":2}`,
			`[1,2]`,
			event.Malformed,
			"in place of an object",
		},
		{
			"label.csv",
			"vertex,label",
			"1,2",
			"1,3",
			event.UnknownClass,
			"column label: class 3, want classes 0 to 2",
		},
		{"label.csv", "vertex,label", "1,1", "1,-2", event.UnknownClass, "column label:"},
		{
			"label.csv",
			"vertex,label,role",
			"1,2,train",
			"1,2,test",
			event.BadValue,
			`column role: "test": want calibrate, train or audit`,
		},
		{
			"label.csv",
			"vertex,label,role,pi",
			"1,2,audit,0.5",
			"1,2,audit,",
			event.MissingField,
			"pi, the probability",
		},
		{
			"label.csv",
			"vertex,label,role,pi",
			"1,2,audit,1",
			"1,2,audit,half",
			event.BadValue,
			`column pi: "half": want a number`,
		},
		{
			"label.csv",
			"vertex,label,role,pi",
			"1,2,train,",
			"1,2,train,0.5",
			event.BadValue,
			"only the role audit has pi",
		},
		{"label.csv", "vertex,label,ttl", "1,2,36h", "1,2,soon", event.BadValue, "column ttl:"},
		{"prediction.csv", "vertex,class,ttl", "1,2,60", "1,2,0", event.BadValue, "column ttl:"},
		{
			"label.ndjson",
			"",
			`{"vertex":1,"label":2}`,
			`{"vertex":1}`,
			event.MissingField,
			"column label: missing",
		},
		{
			"prediction.csv",
			"vertex,p0,p1,p2",
			"1,0.5,0.5,0",
			"1,0.5,0.5,0.5",
			event.NotNormal,
			"sum to 1.5",
		},
		{
			"prediction.csv",
			"vertex,p0,p1,p2",
			"1,0.5,0.5,0",
			"1,-0.5,1,0.5",
			event.NotNormal,
			"-0.5",
		},
		{
			"prediction.csv",
			"vertex,p0,p1,p2",
			"1,0.5,0.5,0",
			"1,0.5,0.5,",
			event.MissingField,
			"column p2: missing, want a number",
		},
		{"prediction.csv", "vertex,p0,p1,p2", "1,0.5,0.5,0", "1,Inf,0.5,0", event.NotFinite, "Inf"},
		{"prediction.csv", "vertex,class", "1,2", "1,x", event.UnknownClass, "column class:"},
		{
			"prediction.csv",
			"vertex,class",
			"1,2",
			"1,",
			event.MissingField,
			"prediction event without probabilities or class",
		},
		{
			"prediction.ndjson",
			"",
			`{"vertex":1,"class":0}`,
			`{"vertex":1,"p0":0.5,"p1":0.5}`,
			event.WrongClasses,
			"2 probabilities for 3 classes",
		},
		{
			"member.csv",
			"community,vertex,weight",
			"a,1,2",
			"a,1,1.5",
			event.BadValue,
			`column weight: "1.5": want a whole number`,
		},
		{
			"member.csv",
			"community,vertex",
			"a,1",
			",1",
			event.MissingField,
			"column community: missing",
		},
		{
			"vertex.csv",
			"id,erase,x",
			"1,,5",
			"1,maybe,5",
			event.BadValue,
			`column erase: "maybe": want false or true`,
		},
		{
			"vertex.csv",
			"id,x",
			"1,5",
			"1," + strings.Repeat("x", 5000),
			event.TooLarge,
			"column x:",
		},
		{
			"vertex.ndjson",
			"",
			`{"id":1,"attributes":{"a":1}}`,
			`{"id":1,"attributes":[1]}`,
			event.BadValue,
			"want a JSON object",
		},
	}
	for _, test := range tests {
		lines := []string{test.good, test.bad, test.good}
		if test.header != "" {
			lines = append([]string{test.header}, lines...)
		}
		inputs := inputsOf(t, map[string]string{test.name: strings.Join(lines, "\n")})
		b := merged(readAll(t, Config{Inputs: inputs, Classes: event.ClassSet{Count: 3}}))
		if b.Events() != 2 || len(b.Refused) != 1 {
			t.Errorf(
				"%s %.40q: %d events and %d refusals, want 2 and 1", test.name, test.bad,
				b.Events(), len(b.Refused),
			)
			continue
		}
		r, line := b.Refused[0], event.Position(len(lines)-1)
		if r.Reason != test.reason || !strings.Contains(r.Detail, test.detail) ||
			r.Position != line ||
			!strings.Contains(r.Detail, inputs[0].Path+":") ||
			r.Kind != inputs[0].Kind {
			t.Errorf(
				"%s %.40q: refused at %d for %s: %s\nwant line %d, %s: %s", test.name, test.bad,
				r.Position, r.Reason, r.Detail, line, test.reason, test.detail,
			)
		}
		if len(test.bad) < 1<<20 && string(r.Original) != test.bad {
			t.Errorf("%s: original %.80q, want %.80q", test.name, r.Original, test.bad)
		}
	}
}

// A file without a readable row is an error that names the file.
func TestUnreadableFilesAreErrors(t *testing.T) {
	leakCheck(t)
	gz := writeFile(t, "edge.csv.gz", []byte("src,dst\n"+strings.Repeat("1,2\n3,4\n5,6\n", 1000)))
	data, err := os.ReadFile(gz)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name, content string
		config        Config
		want          string
	}{
		{"edge.csv", "", Config{}, "empty"},
		{
			"edge.csv", "one,two\n1,2\n",
			Config{},
			`no column "src", "dst" for edge rows: the file has one, two; rename with --map ` +
				`src=COLUMN,dst=COLUMN; if line 1 is data, --columns src,dst`,
		},
		{
			"edge.csv", "u0,u9\n1,2\n",
			Config{},
			`line 1 looks like data: if the file has no line with names, --columns src,dst; ` +
				`else rename with --map`,
		},
		{"edge.csv", "src,dst,src\n1,2,3\n", Config{}, `two columns are named "src"`},
		{
			"edge.csv", "src,dst\n1,2\n",
			Config{Columns: map[string]string{"a": "sorce"}},
			`renamed to "sorce"`,
		},
		{
			"prediction.csv", "vertex,p0,p1\n1,1,0\n",
			Config{Classes: event.ClassSet{Count: 3}},
			"columns p0 to p1 for 3 classes",
		},
		{"prediction.csv", "vertex,p0,p2\n1,1,0\n", Config{}, "column p1 is missing"},
		{"prediction.csv", "vertex,score\n1,1\n", Config{}, `no column "p0", "p1", ... or "class"`},
		{"edge.csv", "src,dst\r1,2\r", Config{}, "the lines end with a carriage return alone"},
		{"out.network", "% bip unweighted\n1 2\n", Config{}, "whose sides both count from 1"},
		{"edge.csv", "\xff\xfes\x00r\x00c\x00", Config{}, "this is UTF-16: save it as UTF-8"},
		{
			"edge.csv", "src,dst\n1,2\n3," + strings.Repeat("x", 1<<21),
			Config{},
			"edge.csv: after row 2: the row after it is longer than 1048576 bytes",
		},
		{
			"edge.csv", "src,dst\n1,\"2\n" + strings.Repeat("3,4\n", 1<<19),
			Config{},
			"edge.csv: after row 1: the row after it is longer than 1048576 bytes, or a quote " +
				"in it has no end",
		},
		{"edge.ndjson", `{"src":1,"dst":2}` + "\n" + `{"src":1,"dst":"` + strings.Repeat("x",
			1<<21), Config{}, "edge.ndjson: after row 1: the line after it is longer than " +
			"1048576 bytes"},
		{"edge.csv.gz", "src,dst\n", Config{}, "not a gzip file"},
		{"edge.csv.zst", "src,dst\n", Config{}, "edge.csv.zst"},
		{"edge.csv.gz", string(data[:len(data)/2]), Config{}, "edge.csv.gz: after row"},
		{"edge.parquet", "src,dst\n1,2\n", Config{}, "not a Parquet file"},
		{"edge.parquet", "", Config{}, "not a Parquet file"},
		{"edge.arrow", "src,dst\n1,2\n", Config{}, "not an Arrow file"},
		{"edge.arrow", "", Config{}, "empty"},
		{
			"edge.arrow", "\xff\xff\xff\xff\x00\x00\x00\x00",
			Config{},
			"not an Arrow file or stream: malformed",
		},
		{
			"edge.parquet.gz", "",
			Config{},
			"packed .parquet files are not read: unpack it first",
		},
		{"edge.doc", "src,dst\n1,2\n", Config{}, "is no format"},
	} {
		path := filepath.Join(t.TempDir(), test.name)
		testfile.Write(t, path, test.content)
		kind, _ := event.ParseKind(strings.SplitN(test.name, ".", 2)[0])
		test.config.Inputs = []Input{{Path: path, Kind: kind}}
		err := readConfigQuietly(test.config)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s %.40q: %v, want %s", test.name, test.content, err, test.want)
		}
	}
	missing := Config{
		Inputs: []Input{{Path: filepath.Join(t.TempDir(), "no.csv"), Kind: event.KindEdge}},
	}
	if err := readConfigQuietly(missing); err == nil || !strings.Contains(err.Error(), "no.csv") {
		t.Errorf("a missing file: %v", err)
	}
}

// Columns may be renamed, our names win over others of the same meaning, and unread columns
// are named once.
func TestColumnsAreFoundByTheirNames(t *testing.T) {
	leakCheck(t)
	path := writeFile(
		t,
		"edge.csv",
		[]byte("\xef\xbb\xbf time , ts,src,follower,followee,type\n7,8,9,a, b ,retweet\n"),
	)
	source, err := NewSource(Config{
		Inputs:  []Input{{Path: path, Kind: event.KindEdge}},
		Columns: map[string]string{"follower": "src", "followee": "dst"},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	var b event.Batch
	if err := source.Next(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if e := b.Edges[0]; e.Src.Name != "a" || e.Dst.Name != "b" || e.Time != 7e9 || e.Weight != 1 ||
		e.Position != 1 {
		t.Errorf("edge %+v", e)
	}
	if w := source.Warnings(); len(w) != 2 || w[0] != path+": ignored columns src, type, ts" {
		t.Errorf("warnings %q", w)
	}
}

// A line of the largest permitted size must be read, whatever ends it.
func TestALineOfTheLargestSizeIsRead(t *testing.T) {
	for _, end := range []string{"", "\n", "\r\n"} {
		line := `{"src":1,"dst":2,"x":"`
		line += strings.Repeat("y", fileRowBytesMax-len(line)-2) + `"}`
		if err := readQuietly(writeFile(t, "edges.ndjson", []byte(line+end))); err != nil {
			t.Errorf("ended by %q: %v", end, err)
		}
	}
}

// A line of names as long as a row may be must be read in moments, however many names it has.
func TestHeaderOfManyColumns(t *testing.T) {
	header := []byte("src,dst")
	for i := 0; len(header) < fileRowBytesMax-10; i++ {
		header = fmt.Appendf(header, ",%x", i+0x10000)
	}
	began := time.Now()
	if err := readQuietly(writeFile(t, "edges.csv", append(header, '\n'))); err != nil {
		t.Fatal(err)
	}
	// a comparison of each name with each takes minutes
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("the header took %v", took)
	}
}
