package evaluate

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	plotDPI     = 144 // of PNG
	rowHeight   = 0.62 * vg.Centimeter
	frameHeight = 3.4 * vg.Centimeter // title and axis
	plotWidth   = 20 * vg.Centimeter
)

// palette tells colours apart for every common kind of colour vision (Okabe and
// Ito, 2008), the easiest to tell apart first.
var palette = []color.Color{
	color.RGBA{0x00, 0x72, 0xB2, 0xFF}, // blue
	color.RGBA{0xE6, 0x9F, 0x00, 0xFF}, // orange
	color.RGBA{0x00, 0x9E, 0x73, 0xFF}, // green
	color.RGBA{0xCC, 0x79, 0xA7, 0xFF}, // purple
	color.RGBA{0xD5, 0x5E, 0x00, 0xFF}, // vermilion
	color.RGBA{0x56, 0xB4, 0xE9, 0xFF}, // sky
}

var (
	ink  = color.Gray{0x33}
	rule = color.Gray{0xDD}
)

// shapes go with the colours, so that a picture can be read in grey.
var shapes = []draw.GlyphDrawer{
	draw.CircleGlyph{}, draw.BoxGlyph{}, draw.PyramidGlyph{}, draw.RingGlyph{}, draw.SquareGlyph{}, draw.TriangleGlyph{},
}

// Plot writes pictures of the report to a directory, each as PNG and SVG: error
// and coverage by method. It returns the paths written.
func (r *Report) Plot(dir string) ([]string, error) {
	var paths []string
	for _, p := range []picture{r.errorPicture(), r.coveragePicture()} {
		if p.err != nil {
			return paths, fmt.Errorf("evaluate: plot %s: %w", p.name, p.err)
		}
		written, err := p.save(dir)
		paths = append(paths, written...)
		if err != nil {
			return paths, fmt.Errorf("evaluate: plot %s: %w", p.name, err)
		}
	}
	return paths, nil
}

// picture is something to be drawn on a canvas of a size.
type picture struct {
	name          string // of the file, without extension
	width, height vg.Length
	draw          func(draw.Canvas)
	err           error
}

// save writes the picture as PNG and SVG.
func (p *picture) save(dir string) ([]string, error) {
	bitmap := vgimg.NewWith(vgimg.UseWH(p.width, p.height), vgimg.UseDPI(plotDPI))
	p.draw(draw.New(bitmap))
	vector := vgsvg.New(p.width, p.height)
	p.draw(draw.New(vector))
	var paths []string
	for _, form := range []struct {
		extension string
		canvas    vg.CanvasWriterTo
	}{{".png", vgimg.PngCanvas{Canvas: bitmap}}, {".svg", vector}} {
		path := filepath.Join(dir, p.name+form.extension)
		file, err := os.Create(path)
		if err != nil {
			return paths, err
		}
		_, err = form.canvas.WriteTo(file)
		if err = errors.Join(err, file.Close()); err != nil {
			return paths, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// newPlot returns a plot in the one style of all pictures.
func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = color.White
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Title.Padding = 8
	for style, size := range map[*text.Style]vg.Length{
		&p.Title.TextStyle: 12, &p.X.Label.TextStyle: 11, &p.Y.Label.TextStyle: 11,
		&p.X.Tick.Label: 10, &p.Y.Tick.Label: 10, &p.Legend.TextStyle: 10,
	} {
		style.Font = font.From(font.Font{Typeface: "Liberation", Variant: "Sans"}, size)
		style.Color = ink
	}
	for _, axis := range []*plot.Axis{&p.X, &p.Y} {
		axis.Label.Padding = 6
		axis.LineStyle.Color, axis.Tick.LineStyle.Color = ink, ink
		axis.Tick.Marker = ticks{}
	}
	return p
}

// ticks are at 1, 2 or 5 times a power of ten, about five to an axis.
type ticks struct{}

// Ticks implements plot.Ticker.
func (ticks) Ticks(low, high float64) []plot.Tick {
	if !(high > low) {
		return nil
	}
	const most = 7
	step := math.Pow(10, math.Floor(math.Log10((high-low)/most)))
	for _, factor := range []float64{1, 2, 5, 10} {
		if (high-low)/(step*factor) <= most {
			step *= factor
			break
		}
	}
	digits := max(0, int(-math.Floor(math.Log10(step)+1e-9)))
	var out []plot.Tick
	// Adding zero turns -0 into 0.
	for i := math.Ceil(low/step-1e-9) + 0; i*step <= high+step*1e-9; i++ {
		out = append(out, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step, 'f', digits, 64)})
	}
	return out
}

// vertical adds lines at the major ticks of the x axis, behind what follows.
func vertical() *plotter.Grid {
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = rule, nil
	return grid
}
