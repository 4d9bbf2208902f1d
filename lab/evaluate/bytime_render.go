package evaluate

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"

	"gqlstream/ingest/event"
)

// Write writes the report as markdown or json.
func (r *TimeReport) Write(w io.Writer, format string) error {
	if format == "json" {
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%d labels, each predicted before it was read; %d came before an estimate. "+
		"Communities with %d labels in a period of %v are compared.\n\n",
		r.Labels, r.Unpredicted, periodLabelsMin, r.Period)
	if len(r.Rows) == 0 {
		fmt.Fprintln(out, "No community has enough labels: use a longer --period, or more labels.")
		return out.Flush()
	}
	fmt.Fprintf(out, "| from | method | communities | labels | error | by chance | beyond chance "+
		"| in the %.0f %% interval |\n", 100*r.Confidence)
	fmt.Fprintln(out, "|---|---|---:|---:|---:|---:|---:|---:|")
	for _, row := range r.Rows {
		from := "all"
		if row.From != 0 {
			from = row.From.String()
		}
		fmt.Fprintf(out, "| %s | `%s` | %d | %d | %.4f | %.4f | %.4f | %.1f %% |\n",
			from, row.Method, row.Compared, row.Labels, row.Error, row.Chance, row.Beyond,
			100*row.Coverage)
	}
	fmt.Fprint(out, "\n### Calibration\n\n"+
		"| method | estimated share | labels of the class |\n|---|---:|---:|\n")
	for _, b := range r.Bins {
		fmt.Fprintf(out, "| `%s` | %.3f | %.3f of %d |\n", b.Method, b.Said, b.Observed, b.Labels)
	}
	fmt.Fprint(out, "\nLabels of people who were not drawn at random predict labels of that kind, "+
		"not the community.\n")
	return out.Flush()
}

// Plot writes pictures to a directory, each as PNG and SVG: error beyond chance and coverage by
// period, and calibration. It returns the paths written.
func (r *TimeReport) Plot(dir string) (paths []string, err error) {
	for _, picture := range []struct {
		name, title, x, y string
		points            func(method string) plotter.XYs
	}{
		{
			"time-error", "Error beyond chance", "time (UTC)", "of the labels' shares",
			r.line(func(row TimeRow) float64 { return row.Beyond }),
		},
		{
			"time-coverage", fmt.Sprintf("Coverage of the %.0f %% intervals", 100*r.Confidence),
			"time (UTC)", "share of intervals that hold",
			r.line(func(row TimeRow) float64 { return row.Coverage }),
		},
		{
			"time-calibration", "Calibration", "estimated share", "share of the labels",
			r.calibration,
		},
	} {
		p := plot.New()
		p.Title.Text = picture.title
		p.X.Label.Text = picture.x
		p.Y.Label.Text = picture.y
		p.Legend.Top = true
		if picture.name == "time-calibration" {
			p.Add(plotter.NewFunction(func(x float64) float64 { return x }))
			p.X.Min, p.X.Max, p.Y.Max = 0, 1, 1
		} else {
			p.X.Tick.Marker = plot.TimeTicks{Format: timeFormat(r.Period)}
		}
		p.Y.Min = 0
		p.Add(plotter.NewGrid())
		var lines []any
		for _, method := range r.methods() {
			lines = append(lines, method, picture.points(method))
		}
		if err = plotutil.AddLinePoints(p, lines...); err != nil {
			return paths, fmt.Errorf("evaluate: plot %s: %w", picture.name, err)
		}
		for _, extension := range []string{".png", ".svg"} {
			path := filepath.Join(dir, picture.name+extension)
			if err = p.Save(plotWidth, plotWidth/2, path); err != nil {
				return paths, fmt.Errorf("evaluate: plot %s: %w", picture.name, err)
			}
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// timeFormat is how an axis writes times that are a period apart.
func timeFormat(period time.Duration) string {
	if period >= 24*time.Hour {
		return "2006-01-02"
	}
	return "01-02\n15:04:05"
}

// line returns the values of a method in a picture, by period.
func (r *TimeReport) line(value func(TimeRow) float64) func(method string) plotter.XYs {
	return func(method string) (points plotter.XYs) {
		for _, row := range r.Rows {
			if row.Method == method && row.From != 0 {
				points = append(points, plotter.XY{X: float64(row.From) / 1e9, Y: value(row)})
			}
		}
		return points
	}
}

// calibration returns the bins of a method.
func (r *TimeReport) calibration(method string) (points plotter.XYs) {
	for _, b := range r.Bins {
		if b.Method == method {
			points = append(points, plotter.XY{X: b.Said, Y: b.Observed})
		}
	}
	return points
}

// methods returns the methods in the order of the rows over all periods.
func (r *TimeReport) methods() (names []string) {
	for _, row := range r.Rows {
		if row.From == event.Time(0) && !slices.Contains(names, row.Method) {
			names = append(names, row.Method)
		}
	}
	return names
}
