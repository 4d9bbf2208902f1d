package evaluate

import (
	"fmt"
	"image/color"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

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
	p.Add(vertical())
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
