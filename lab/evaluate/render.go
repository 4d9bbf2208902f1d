package evaluate

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
)

// Write writes the report as markdown, for reading, or json, which is all of it.
func (r *Report) Write(w io.Writer, format string) error {
	switch format {
	case "markdown", "":
		return r.markdown(w)
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	return fmt.Errorf("evaluate: format %q: want markdown or json", format)
}

func (r *Report) markdown(w io.Writer) error {
	out := bufio.NewWriter(w)
	fmt.Fprintf(out, "%d vertices, %d edges, %d classes; "+
		"%d labelled vertices, %d of them for calibration; splits: %d; seed: %d; kernel: %s.\n",
		r.Vertices, r.Edges, r.Classes, r.Labelled, r.Calibration, r.Splits, r.Seed, r.Kernel)
	protocol := ""
	for _, row := range r.Rows {
		if row.Protocol != protocol {
			protocol = row.Protocol
			fmt.Fprintf(out, "\n### %s (communities: %d)\n\n", protocol, row.Communities)
			fmt.Fprintf(out, "| method | AE | ± | RAE | in the %.0f %% interval | ± | width |\n",
				100*r.Confidence)
			fmt.Fprintln(out, "|---|---:|---:|---:|---:|---:|---:|")
		}
		fmt.Fprintf(out, "| `%s` | %.4f | %.4f | %.3f | %.1f %% | %.1f | %.3f |\n", row.Method,
			row.AE, row.AEError, row.RAE, 100*row.Coverage, 100*row.CoverageError, row.Width)
	}
	if text := r.warning(); text != "" {
		fmt.Fprintf(out, "\n%s\n", text)
	}
	fmt.Fprintf(out, "\n%s\n", r.Advice)
	return out.Flush()
}
