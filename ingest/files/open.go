package files

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// Limits of file reading.
const (
	fileRowBytesMax      = 1 << 20 // one line of a text file; a longer row is refused
	fileUnpackedBytesMax = 4 << 30 // a compressed Parquet or Arrow file, which is unpacked in memory
	fileBatchRows        = 4096    // rows that Parquet hands over at a time
)

type fileFormat uint8

const (
	csvFile fileFormat = iota
	tsvFile
	ndjsonFile
	parquetFile
	arrowFile
)

var fileExtensions = map[string]fileFormat{
	".csv": csvFile, ".tsv": tsvFile,
	".ndjson": ndjsonFile, ".jsonl": ndjsonFile,
	".parquet": parquetFile, ".pq": parquetFile,
	".arrow": arrowFile, ".feather": arrowFile, ".ipc": arrowFile,
}

// formatOf tells the format of a file and its compression (".gz", ".zst" or "") from its name.
func formatOf(path string) (format fileFormat, packed string, err error) {
	name := strings.ToLower(filepath.Base(path))
	ext := filepath.Ext(name)
	if ext == ".gz" || ext == ".zst" {
		packed = ext
		ext = filepath.Ext(strings.TrimSuffix(name, ext))
	}
	format, ok := fileExtensions[ext]
	if !ok {
		return 0, "", fmt.Errorf("ingest: %s: extension %q says no format: want .csv, .tsv, .ndjson, "+
			".jsonl, .parquet, .arrow, .feather or .ipc, alone or followed by .gz or .zst", path, ext)
	}
	return format, packed, nil
}

// openedFile is a file being read.
type openedFile struct {
	format fileFormat
	packed string
	file   *os.File
	once   bool      // whether it can be read only once, as a pipe can
	unpack io.Reader // of a packed file
	close  func()    // of unpack
	stop   func()    // of what reads from it
}

func openFile(path string) (*openedFile, error) {
	format, packed, err := formatOf(path)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("ingest: %w", err)
	}
	f := &openedFile{format: format, packed: packed, file: file, close: func() {}, stop: func() {}, once: true}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		f.once = false
	} else if err == nil && info.IsDir() {
		file.Close()
		return nil, fmt.Errorf("ingest: %s is a directory, want a file", path)
	}
	if err := f.openPacked(); err != nil {
		file.Close()
		return nil, fmt.Errorf("ingest: %s: %w", path, err)
	}
	return f, nil
}

func (f *openedFile) openPacked() error {
	switch f.packed {
	case ".gz":
		r, err := gzip.NewReader(f.file)
		if err != nil {
			return fmt.Errorf("not a gzip file: %w", err)
		}
		f.unpack = r
	case ".zst":
		r, err := zstd.NewReader(f.file, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return fmt.Errorf("not a zstd file: %w", err)
		}
		f.unpack, f.close = r, r.Close
	}
	return nil
}

// Close closes the file. It may be called once.
func (f *openedFile) Close() error {
	f.stop()
	f.close()
	return f.file.Close()
}

// Read reads the unpacked bytes from the start.
func (f *openedFile) Read(p []byte) (int, error) {
	if f.unpack != nil {
		return f.unpack.Read(p)
	}
	return f.file.Read(p)
}

// random returns the unpacked file for reading here and there. A packed file, or
// one that is not regular, is read into memory.
func (f *openedFile) random() (randomFile, error) {
	if f.unpack == nil && !f.once {
		return f.file, nil
	}
	data, err := io.ReadAll(io.LimitReader(f, fileUnpackedBytesMax+1))
	if err != nil {
		return nil, err
	}
	if len(data) > fileUnpackedBytesMax {
		return nil, fmt.Errorf("more than %d GiB unpacked: unpack it on disk first",
			int64(fileUnpackedBytesMax>>30))
	}
	return bytes.NewReader(data), nil
}

// aliasString returns b as a string that shares its memory.
func aliasString(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// bytesOf returns s as bytes that share its memory.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// randomFile is the interface that the readers of Parquet and Arrow files need.
type randomFile interface {
	io.Reader
	io.ReaderAt
	io.Seeker
}
