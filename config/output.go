package config

import (
	"errors"
	"fmt"
	"path/filepath"
)

// validate reports what is wrong with the files that estimates go to.
func (c Output) validate() error {
	switch {
	case c.Every < 0:
		return fmt.Errorf("output.every: %v is negative", c.Every)
	case c.Parquet != "" && c.Arrow != "" && filepath.Clean(c.Parquet) == filepath.Clean(c.Arrow):
		return errors.New("output: parquet and arrow name one directory; each needs its own")
	case c.Alerts == "-":
		return errors.New("output.alerts: want a file; standard output is for estimates")
	case c.Alerts != "" && filepath.Clean(c.Alerts) == filepath.Clean(c.File):
		return errors.New("output: file and alerts name one file; each needs its own")
	}
	return nil
}

// AlsoTo names the files for the greeting.
func (c Output) AlsoTo() (text string) {
	switch c.File {
	case "":
	case "-":
		text = ", standard output"
	default:
		text = ", " + c.File
	}
	for _, dir := range []string{c.Parquet, c.Arrow} {
		if dir != "" {
			text += ", files in " + dir
		}
	}
	return text
}
