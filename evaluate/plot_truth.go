package evaluate

import (
	"fmt"
	"image/color"
	"math"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// intervalsMax is how many intervals a panel shows; of more, every n-th.
const intervalsMax = 600

var white = color.White

// truthPicture shows a method's estimates and intervals against the truth, a panel
// for each protocol, a mark for each community and class.
func (r *Report) truthPicture(s standing) picture {
	panels := make([]*plot.Plot, len(s.rows))
	out := picture{name: "truth-" + strings.NewReplacer(" (", "-", ")", "").Replace(s.name)}
	for i, row := range s.rows {
		panels[i], out.err = r.truthPanel(row)
		if out.err != nil {
			return out
		}
	}
	out.width, out.height = panelSide*vg.Length(len(panels)), panelSide
	out.draw = func(c draw.Canvas) {
		fill(c)
		tiles := draw.Tiles{Rows: 1, Cols: len(panels), PadX: 10, PadTop: 6, PadBottom: 4, PadLeft: 6, PadRight: 12}
		for i, panel := range plot.Align([][]*plot.Plot{panels}, tiles, c)[0] {
			panels[i].Draw(panel)
		}
	}
	return out
}

// truthPanel is the panel of one method under one protocol.
func (r *Report) truthPanel(row Row) (*plot.Plot, error) {
	title := fmt.Sprintf("%s, %s: %.1f %% held", row.Name(), row.Protocol, 100*row.Coverage)
	p := newPlot(title, "true share (squares: the interval misses it)", "estimated share")
	list := r.intervals(row)
	end := list.end()
	diagonal, err := plotter.NewLine(plotter.XYs{{}, {X: end, Y: end}})
	if err != nil {
		return nil, err
	}
	diagonal.Color, diagonal.Width = color.Gray{0x99}, 1
	grid := vertical()
	grid.Horizontal.Color = rule
	p.Add(grid, diagonal, list)
	p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 0, end, 0, end
	return p, nil
}

// intervals collects the estimates of one row, thinned evenly.
func (r *Report) intervals(row Row) intervals {
	step := 1 + (row.Communities*r.Classes-1)/intervalsMax
	var out intervals
	n := 0
	for i := range r.Outcomes {
		o := &r.Outcomes[i]
		if o.Protocol != row.Protocol || o.Method != row.Method || o.Kernel != row.Kernel {
			continue
		}
		for class := range o.Truth {
			if n++; n%step == 0 {
				out = append(out, interval{o.Truth[class], o.Estimate[class], o.Low[class], o.High[class], o.holds(class)})
			}
		}
	}
	return out
}

type interval struct {
	truth, estimate, low, high float64
	held                       bool
}

// intervals draws estimates with their intervals, those that miss the truth on top.
type intervals []interval

// end is where both axes end: the first fifth that holds everything.
func (list intervals) end() float64 {
	most := 0.0
	for _, v := range list {
		most = max(most, v.truth, v.high)
	}
	return min(max(math.Ceil(5*most)/5, 0.2), 1)
}

// Colours of intervals that hold the truth and that miss it.
var heldColor, missedColor = palette[0], palette[4]

// Plot implements plot.Plotter.
func (list intervals) Plot(c draw.Canvas, p *plot.Plot) {
	x, y := p.Transforms(&c)
	for _, held := range []bool{true, false} {
		style, mark := intervalStyle(held)
		for _, v := range list {
			if v.held == held {
				c.StrokeLine2(style, x(v.truth), y(v.low), x(v.truth), y(v.high))
				c.DrawGlyph(mark, vg.Point{X: x(v.truth), Y: y(v.estimate)})
			}
		}
	}
}

func intervalStyle(held bool) (draw.LineStyle, draw.GlyphStyle) {
	shade, shape := missedColor, draw.GlyphDrawer(draw.SquareGlyph{})
	if held {
		shade, shape = heldColor, draw.CircleGlyph{}
	}
	line := color.NRGBAModel.Convert(shade).(color.NRGBA)
	line.A = 0x60
	return draw.LineStyle{Color: line, Width: 0.8}, draw.GlyphStyle{Color: shade, Radius: 1.5, Shape: shape}
}
