package evaluate

import (
	"bytes"
	"encoding/xml"
	"image"
	"image/color"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/plot/plotutil"
)

// Every picture must come as a PNG that shows something in the colours of the
// protocols and an SVG that is well-formed and names the methods; the same report
// must give the same bytes.
func TestPicturesAreWritten(t *testing.T) {
	r := sample()
	var before [][]byte
	for range 2 {
		dir := t.TempDir()
		paths, err := r.Plot(dir)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		var contents [][]byte
		for _, path := range paths {
			names = append(names, filepath.Base(path))
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			contents = append(contents, data)
			switch {
			case before != nil: // seen, if they are the same
			case filepath.Ext(path) == ".png":
				checkPNG(t, path, data)
			case filepath.Ext(path) == ".svg":
				checkSVG(t, path, data)
			}
		}
		want := []string{"error", "coverage"}
		for i, name := range want {
			if !slices.Equal(names[2*i:2*i+2], []string{name + ".png", name + ".svg"}) {
				t.Errorf("pictures %v, want %v in both forms", names, want)
				break
			}
		}
		if before != nil && !slices.EqualFunc(before, contents, bytes.Equal) {
			t.Error("the same report gives other pictures")
		}
		before = contents
	}
}

func checkPNG(t *testing.T, path string, data []byte) {
	t.Helper()
	picture, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	if size := picture.Bounds().Size(); size.X < 500 || size.Y < 300 {
		t.Errorf("%s: %v is too small to read", path, size)
	}
	if !shows(picture, plotutil.SoftColors[0]) {
		t.Errorf("%s shows no mark in the first colour", path)
	}
	if r, g, b, a := picture.At(0, 0).RGBA(); r&g&b&a != 0xFFFF {
		t.Errorf("%s is not on white", path)
	}
}

func shows(picture image.Image, c color.Color) bool {
	r, g, b, _ := c.RGBA()
	bounds := picture.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			pr, pg, pb, _ := picture.At(x, y).RGBA() // marks are thin lines, blurred at their edges
			if near(pr, r) && near(pg, g) && near(pb, b) {
				return true
			}
		}
	}
	return false
}

func near(a, b uint32) bool { return max(a, b)-min(a, b) < 0x5000 }

func checkSVG(t *testing.T, path string, data []byte) {
	t.Helper()
	decoder := xml.NewDecoder(bytes.NewReader(data))
	var text strings.Builder
	for {
		token, err := decoder.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if characters, ok := token.(xml.CharData); ok {
			text.Write(characters)
		}
	}
	if !strings.Contains(text.String(), "auto") && !strings.Contains(text.String(), "bfs") {
		t.Errorf("%s names neither a method nor a protocol", path)
	}
}
