package evaluate

import (
	"fmt"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

const (
	markHeight  = 0.4 * vg.Centimeter  // of a mark in its row
	lineHeight  = 0.55 * vg.Centimeter // of the legend
	frameHeight = 4 * vg.Centimeter    // title and axis
	plotWidth   = 24 * vg.Centimeter
)

// Plot writes pictures of the report to a directory, each as PNG and SVG: error
// and coverage by method. It returns the paths written.
func (r *Report) Plot(dir string) (paths []string, err error) {
	legend := lineHeight * vg.Length(len(r.protocols())+1)
	height := frameHeight + legend + r.rowHeight()*vg.Length(len(r.ranking()))
	for _, picture := range []struct {
		name, title, x string
		value          func(Row) (mean, standardError float64)
	}{
		{
			"error", "Error by method", "mean absolute error",
			func(row Row) (float64, float64) { return row.AE, row.AEError },
		},
		{
			"coverage",
			fmt.Sprintf("Coverage of the %.0f %% intervals by method", 100*r.Confidence),
			"share of intervals that hold the truth",
			func(row Row) (float64, float64) { return row.Coverage, row.CoverageError },
		},
	} {
		p := plot.New()
		p.Title.Text = picture.title
		p.X.Label.Text = picture.x + " (bars: ± 2 standard errors)"
		p.Y.Label.Text = "method"
		p.Legend.Top, p.Legend.Padding = true, 3
		shares := picture.name == "coverage"
		if shares {
			err = r.addNominal(p)
		}
		if err == nil {
			err = r.dots(p, picture.value)
		}
		if p.X.Min = 0; shares {
			p.X.Max = 1
		}
		for _, extension := range []string{".png", ".svg"} {
			path := filepath.Join(dir, picture.name+extension)
			if err == nil {
				err = p.Save(plotWidth, height, path)
			}
			if err != nil {
				return paths, fmt.Errorf("evaluate: plot %s: %w", picture.name, err)
			}
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// rowHeight returns the height of the row of a method, which has a mark for each protocol.
func (r *Report) rowHeight() vg.Length { return markHeight * vg.Length(max(len(r.protocols()), 2)) }

// dotHeight is the part of a row that the marks of its protocols spread over.
const dotHeight = 0.6

// addNominal adds a line at the confidence.
func (r *Report) addNominal(p *plot.Plot) error {
	nominal, err := plotter.NewLine(
		plotter.XYs{
			{X: r.Confidence, Y: -0.5},
			{X: r.Confidence, Y: float64(len(r.ranking())) - 0.5},
		},
	)
	if err != nil {
		return err
	}
	nominal.Dashes = plotutil.Dashes(1)
	p.Add(nominal)
	p.Legend.Add("nominal", nominal)
	return nil
}

// dots adds a row of marks for each method, the best on top, below the legend.
func (r *Report) dots(p *plot.Plot, value func(Row) (mean, standardError float64)) error {
	ranking := r.ranking()
	names := make([]string, len(ranking))
	for i, s := range ranking {
		names[len(names)-1-i] = s.name
	}
	p.NominalY(names...)
	p.Y.Tick.LineStyle.Width = 0
	protocols := r.protocols()
	legend := lineHeight * vg.Length(len(protocols)+1)
	p.Y.Min, p.Y.Max = -0.5, float64(len(names))-0.5+float64(legend/r.rowHeight())
	grid := plotter.NewGrid() // of the major ticks of the x axis
	grid.Horizontal.Color = nil
	p.Add(grid)
	var points []any
	var bars []interface {
		plotter.XYer
		plotter.XErrorer
	}
	for i, protocol := range protocols {
		shift := dotHeight * (0.5 - (float64(i)+0.5)/float64(len(protocols)))
		marks := &errorDots{}
		for _, row := range r.Rows {
			if row.Protocol == protocol {
				at := float64(slices.Index(names, row.Method))
				mean, se := value(row)
				marks.XYs = append(marks.XYs, plotter.XY{X: mean, Y: at + shift})
				marks.XErrors = append(marks.XErrors, struct{ Low, High float64 }{-2 * se, 2 * se})
			}
		}
		bars = append(bars, marks)
		points = append(points, protocol, marks)
	}
	if err := plotutil.AddXErrorBars(p, bars...); err != nil {
		return err
	}
	return plotutil.AddScatters(p, points...)
}

// errorDots are marks with horizontal bars.
type errorDots struct {
	plotter.XYs
	plotter.XErrors
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
