package evaluate

import (
	"errors"
	"fmt"
	"image/color"
	"math"
	"os"
	"path/filepath"
	"slices"

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
	}
	return p
}

// dotHeight is the part of a row that the marks of its protocols spread over.
const dotHeight = 0.6

// errorPicture shows the mean absolute error by method, a mark for each protocol.
func (r *Report) errorPicture() picture {
	p := newPlot("Error by method", "mean absolute error (bars: ± 2 standard errors)", "")
	err := r.dots(p, func(row Row) (float64, float64) { return row.AE, row.AEError })
	p.X.Min = 0
	return r.dotPicture("error", p, err)
}

// coveragePicture shows how often intervals hold the truth.
func (r *Report) coveragePicture() picture {
	p := newPlot(fmt.Sprintf("Coverage of the %.0f %% intervals by method", 100*r.Confidence),
		"share of intervals that hold the truth (bars: ± 2 standard errors)", "")
	top := float64(len(r.ranking())) - 0.5
	nominal, err := plotter.NewLine(plotter.XYs{{X: r.Confidence, Y: -0.5}, {X: r.Confidence, Y: top}})
	if err == nil {
		nominal.Color, nominal.Width = ink, 1
		nominal.Dashes = []vg.Length{4, 3}
		err = r.dots(p, func(row Row) (float64, float64) { return row.Coverage, row.CoverageError }, nominal)
		p.Legend.Add("nominal", nominal)
	}
	p.X.Min, p.X.Max = 0, 1
	return r.dotPicture("coverage", p, err)
}

// dots adds a row of marks for each method, the best on top, over what lies under them.
func (r *Report) dots(p *plot.Plot, value func(Row) (mean, standardError float64), under ...plot.Plotter) error {
	ranking := r.ranking()
	names := make([]string, len(ranking))
	for i, s := range ranking {
		names[len(names)-1-i] = s.name
	}
	p.NominalY(names...)
	p.Y.Tick.LineStyle.Width = 0
	p.Y.Min, p.Y.Max = -0.5, float64(len(names))-0.5
	grid := plotter.NewGrid() // of the major ticks of the x axis
	grid.Vertical.Color, grid.Horizontal.Color = rule, nil
	p.Add(grid)
	p.Add(under...)
	protocols := r.protocols()
	for i, protocol := range protocols {
		shift := dotHeight * (0.5 - (float64(i)+0.5)/float64(len(protocols)))
		marks := &errorDots{}
		for _, row := range r.Rows {
			if row.Protocol == protocol {
				at := float64(slices.Index(names, row.Name()))
				mean, se := value(row)
				marks.XYs = append(marks.XYs, plotter.XY{X: mean, Y: at + shift})
				marks.XErrors = append(marks.XErrors, struct{ Low, High float64 }{-2 * se, 2 * se})
			}
		}
		if err := marks.add(p, protocol, draw.GlyphStyle{Color: palette[i%len(palette)], Radius: 3.2, Shape: shapes[i%len(shapes)]}); err != nil {
			return err
		}
	}
	return nil
}

// errorDots are marks with horizontal bars.
type errorDots struct {
	plotter.XYs
	plotter.XErrors
}

func (d *errorDots) add(p *plot.Plot, name string, mark draw.GlyphStyle) error {
	points, err := plotter.NewScatter(d.XYs)
	if err != nil {
		return err
	}
	bars, err := plotter.NewXErrorBars(d)
	if err != nil {
		return err
	}
	points.GlyphStyle = mark
	bars.Color, bars.Width, bars.CapWidth = mark.Color, 1.2, 0
	p.Add(bars, points)
	p.Legend.Add(name, points)
	return nil
}

// protocols returns the protocols in the order of the rows.
func (r *Report) protocols() []string {
	var out []string
	for _, row := range r.Rows {
		if !slices.Contains(out, row.Protocol) {
			out = append(out, row.Protocol)
		}
	}
	return out
}

// dotPicture puts the legend beside the plot, where it hides nothing.
func (r *Report) dotPicture(name string, p *plot.Plot, err error) picture {
	legend := p.Legend
	p.Legend = plot.NewLegend()
	legend.Top, legend.Left, legend.Padding, legend.ThumbnailWidth = true, true, 3, 0.8*vg.Centimeter
	p.X.Max += 0.02 * math.Abs(p.X.Max)
	rows := max(len(r.ranking()), 4) * max(len(r.protocols()), 2)
	return picture{
		name: name, err: err, width: plotWidth, height: frameHeight + rowHeight*vg.Length(rows)/2,
		draw: func(c draw.Canvas) {
			c.SetColor(color.White)
			c.Fill(c.Rectangle.Path())
			c = draw.Crop(c, 6, -10, 6, -8)
			box := legend.Rectangle(c)
			width := box.Max.X - box.Min.X
			p.Draw(draw.Crop(c, 0, -width-12, 0, 0))
			legend.Draw(draw.Crop(c, c.Max.X-c.Min.X-width, 0, 0, -0.9*vg.Centimeter))
		},
	}
}
