package files

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// fileRowBytesMax bounds one line of a text file; a longer row is refused.
const fileRowBytesMax = 1 << 20

type fileFormat uint8

const (
	csvFile fileFormat = iota
	tsvFile
	textFile // the first line shows the separator
	ndjsonFile
	jsonFile // one array, or objects of several lines
	parquetFile
	arrowFile
)

var fileExtensions = map[string]fileFormat{
	".csv": csvFile, ".tsv": tsvFile, ".tab": tsvFile, ".txt": textFile, ".edges": textFile,
	".edgelist": textFile, ".ncol": textFile,
	".ndjson": ndjsonFile, ".jsonl": ndjsonFile, ".json": jsonFile, ".js": jsonFile,
	".parquet": parquetFile, ".pq": parquetFile,
	".arrow": arrowFile, ".arrows": arrowFile, ".feather": arrowFile, ".ipc": arrowFile,
}

// formatOf returns the format of a file and its compression ("gzip", "zstd" or "") from its name.
func formatOf(path string) (format fileFormat, packed string, err error) {
	name := strings.ToLower(filepath.Base(path))
	ext := filepath.Ext(name)
	if packed = map[string]string{".gz": "gzip", ".zst": "zstd"}[ext]; packed != "" {
		ext = filepath.Ext(strings.TrimSuffix(name, ext))
	}
	format, ok := fileExtensions[ext]
	if !ok && strings.HasPrefix(name, "out.") { // KONECT names its files like this
		format, ok = textFile, true
	}
	if advice := readsForeign(path); !ok && advice != "" {
		return 0, "", fmt.Errorf("%s: %s files are not read; convert it: %s",
			path, strings.ToLower(filepath.Ext(path)), advice)
	}
	if !ok {
		return 0, "", fmt.Errorf(
			"%s: the extension %q is no format: want .csv, .tsv, .txt, .ndjson, "+
				".jsonl, .json, each alone or followed by .gz "+
				"or .zst, .parquet, .arrow, .feather or .ipc",
			path,
			ext,
		)
	}
	if packed != "" && format >= parquetFile {
		return 0, "", fmt.Errorf("%s: packed %s files are not read: unpack it first",
			path, ext)
	}
	return format, packed, nil
}

// openedFile is a file that is being read, uncompressed.
type openedFile struct {
	io.Reader
	format  fileFormat
	file    *os.File
	release func() // frees the decompressor
}

func openFile(path string) (*openedFile, error) {
	format, packed, err := formatOf(path)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(path); err == nil &&
		!info.Mode().IsRegular() { // it may have to be read twice
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f := &openedFile{Reader: file, format: format, file: file, release: func() {}}
	switch packed {
	case "gzip":
		f.Reader, err = gzip.NewReader(file)
	case "zstd":
		var z *zstd.Decoder
		z, err = zstd.NewReader(file, zstd.WithDecoderConcurrency(1))
		f.Reader, f.release = z, z.Close
	}
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("%s: not a %s file: %w", path, packed, err)
	}
	return f, nil
}

// Close closes the file. It may be called once.
func (f *openedFile) Close() error {
	f.release()
	return f.file.Close()
}
