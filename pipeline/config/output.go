package config

import (
	"errors"
	"fmt"
	"path/filepath"
)

// validate reports problems of the output files.
func (c Output) validate() error {
	switch {
	case c.Every < 0:
		return fmt.Errorf("output.every: %v is negative", c.Every)
	case c.StreamBytesMax != 0 && c.StreamBytesMax < streamBytesMin:
		return fmt.Errorf("output.stream_bytes_max: %d, want at least %d",
			c.StreamBytesMax, streamBytesMin)
	case c.Alerts == "-":
		return errors.New("output.alerts: want a file; standard output is for estimates")
	}
	keys := map[string]string{} // by path
	for _, o := range [][2]string{{"file", c.File}, {"alerts", c.Alerts}, {"parquet", c.Parquet}} {
		path := filepath.Clean(o[1])
		if other := keys[path]; other != "" && o[1] != "" {
			return fmt.Errorf("output: %s and %s name one path; each needs its own", other, o[0])
		} else if o[1] != "" {
			keys[path] = o[0]
		}
	}
	return nil
}

// AlsoTo names the files for the greeting.
func (c Output) AlsoTo() (text string) {
	if c.File == "-" {
		text = ", standard output"
	} else if c.File != "" {
		text = ", " + c.File
	}
	if c.Parquet != "" {
		text += ", files in " + c.Parquet
	}
	return text
}
