package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"

	"gqlstream/ingest/event"

	"github.com/goccy/go-yaml"
)

// readStrictly reads a YAML file into what c points to. An unknown key is an error
// that names the line and the nearest key.
func readStrictly(path string, c any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return Usage(err)
	}
	var mistakes []string
	for {
		err := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(c)
		if err != nil && !errors.Is(err, io.EOF) { // an empty file is one without keys
			text := strings.TrimSpace(yaml.FormatError(err, false, true))
			_, rest, unknown := strings.Cut(text, `unknown field "`)
			if unknown {
				key, _, _ := strings.Cut(rest, `"`)
				text += "\n" + event.Nearest(key, configKeys(reflect.TypeOf(c)))
			}
			mistakes = append(mistakes, fmt.Sprintf("%s: %s", path, text))
			if rest, ok := withoutKey(data, text); unknown && ok && len(mistakes) < mistakesMax {
				data = rest // the others are said as well
				continue
			}
		}
		if len(mistakes) > 0 {
			return Usagef("%s", strings.Join(mistakes, "\n"))
		}
		return nil
	}
}

// mistakesMax bounds how many unknown keys are named.
const mistakesMax = 20

// withoutKey returns a file without the key that the YAML library complains about, which
// is where its message begins, "[line:column]", and without what is under it.
func withoutKey(data []byte, complaint string) (rest []byte, ok bool) {
	var line, column int
	if _, err := fmt.Sscanf(complaint, "[%d:%d]", &line, &column); err != nil {
		return nil, false
	}
	lines := strings.Split(string(data), "\n")
	if line > len(lines) || strings.TrimSpace(lines[line-1][:min(column-1, len(lines[line-1]))]) != "" {
		return nil, false // the key is not alone in its line
	}
	for end := line; ; end++ {
		lines[end-1] = ""
		if end == len(lines) || len(lines[end])-len(strings.TrimLeft(lines[end], " ")) < column && strings.TrimSpace(lines[end]) != "" {
			return []byte(strings.Join(lines, "\n")), true
		}
	}
}
