package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"gqlstream/graphstore"
	"gqlstream/incremental"
	"gqlstream/ingest"
	"gqlstream/ingest/event"
	"gqlstream/quant"
	"gqlstream/sinks"
)

// fileConfig is the YAML configuration of `run`, `replay` and `check`. Every
// field has a default except classes. Flags of the same name win over the file.
type fileConfig struct {
	Pipeline    string            `yaml:"pipeline"`
	Classes     classList         `yaml:"classes"`
	Communities []communityConfig `yaml:"communities"`
	Estimates   []estimateConfig  `yaml:"estimates"`
	Classifier  string            `yaml:"classifier"`
	Density     string            `yaml:"label_density"`
	HalfLife    time.Duration     `yaml:"label_half_life"`
	Kernel      string            `yaml:"kernel"`
	Alpha       float64           `yaml:"alpha"`
	Tolerance   float64           `yaml:"tolerance"`
	Models      modelsConfig      `yaml:"models"`
	Engine      string            `yaml:"engine"`
	Step        stepConfig        `yaml:"step"`
	Windows     windowsConfig     `yaml:"windows"`
	Late        lateConfig        `yaml:"late"`
	Privacy     privacyConfig     `yaml:"privacy"`
	Limits      limitsConfig      `yaml:"limits"`
	State       string            `yaml:"state"`
	Checkpoint  checkpointConfig  `yaml:"checkpoint"`
	NATS        natsConfig        `yaml:"nats"`
	Output      outputConfig      `yaml:"output"`
	HTTP        httpConfig        `yaml:"http"`
	Alerts      []alertConfig     `yaml:"alerts"`
	Notify      notifyConfig      `yaml:"notify"`
}

// classList is a list of class names, or a number of classes named 0, 1, ...
type classList []string

func (c *classList) UnmarshalYAML(data []byte) error {
	var n int
	if err := yaml.Unmarshal(data, &n); err == nil {
		names, err := classesFromFlag(strconv.Itoa(n))
		*c = names
		return err
	}
	var names []string
	if err := yaml.Unmarshal(data, &names); err != nil {
		return errors.New("classes: want a list of names, or their number") // the library's error says less
	}
	*c = names
	return nil
}

// classesFromFlag reads "3" or "left,right".
func classesFromFlag(text string) (classList, error) {
	if n, err := strconv.Atoi(text); err == nil {
		if n < 1 || n > graphstore.ClassesMax {
			return nil, fmt.Errorf("classes: %d is not between 1 and %d", n, graphstore.ClassesMax)
		}
		names := make(classList, n)
		for i := range names {
			names[i] = strconv.Itoa(i)
		}
		return names, nil
	}
	return strings.Split(text, ","), nil
}

// communityConfig defines a tracked community.
type communityConfig = incremental.CommunityDefinition

type estimateConfig struct {
	Method       string     `yaml:"method"`
	Preset       string     `yaml:"preset"`
	Lambda       lambdaText `yaml:"lambda"`
	Confidence   float64    `yaml:"confidence"`
	Simultaneous bool       `yaml:"simultaneous"`
}

// lambdaText is a number between 0 and 1, or auto; empty is the default.
type lambdaText string

func (l lambdaText) value() (float64, error) {
	switch l {
	case "":
		return quant.LambdaDefault, nil
	case "auto":
		return quant.LambdaAuto, nil
	}
	x, err := strconv.ParseFloat(string(l), 64)
	if err != nil || math.IsNaN(x) || x < 0 {
		return 0, fmt.Errorf("lambda: %q is neither a number between 0 and 1 nor auto", string(l))
	}
	return x, nil
}

type stepConfig struct {
	Every     time.Duration `yaml:"every"`
	EventsMax int           `yaml:"events_max"`
	EmitEvery time.Duration `yaml:"emit_every"`
	Time      string        `yaml:"time"`
}

type modelsConfig struct {
	SwitchAt   float64       `yaml:"switch_at"`
	LapseAfter time.Duration `yaml:"lapse_after"`
}

type privacyConfig struct {
	MembersMin *int `yaml:"min_members"`
}

type limitsConfig struct {
	Vertices    int `yaml:"vertices"`
	Edges       int `yaml:"edges"`
	Communities int `yaml:"communities"`
}

// checkpointConfig says how often state is written. It counts in the log's time
// and decides the last bits of results, so it is a part of the digest.
type checkpointConfig struct {
	Every time.Duration `yaml:"every"` // 0: a minute; < 0: only where the log asks for one
}

type natsConfig struct {
	URL         string `yaml:"url"`         // empty: the embedded server
	Credentials string `yaml:"credentials"` // file, for an external server
	Listen      string `yaml:"listen"`      // embedded: a port for producers on this host
}

type httpConfig struct {
	Listen    string   `yaml:"listen"`     // empty: 127.0.0.1:8090; off: no page
	Hosts     []string `yaml:"hosts"`      // further host names that requests may name
	TokenFile string   `yaml:"token_file"` // required beyond loopback, with TLS
	CertFile  string   `yaml:"cert_file"`
	KeyFile   string   `yaml:"key_file"`

	MetricsMax int `yaml:"metrics_max"` // communities in /metrics; 0: 1,000
}

type outputConfig struct {
	File          string        `yaml:"file"`    // JSON lines, "-" is standard output
	Parquet       string        `yaml:"parquet"` // directories of parts
	Arrow         string        `yaml:"arrow"`
	Every         time.Duration `yaml:"every"`           // log time of a part; 0: sinks.PartEveryDefault
	Alerts        string        `yaml:"alerts"`          // JSON lines of the beginnings and ends of alerts
	QueueBytesMax int           `yaml:"queue_bytes_max"` // on the disk, for each sink that is not on the broker
}

// membersMinDefault is the privacy floor of `run` (DESIGN section 10).
const membersMinDefault = 11

// loadConfig reads a configuration file strictly: an unknown key is an error that
// names the line. An empty path gives the defaults.
func loadConfig(path string) (fileConfig, error) {
	var c fileConfig
	if path == "" {
		return c, nil
	}
	return c, readStrictly(path, &c)
}

// readStrictly reads a YAML file into what c points to. An unknown key is an error
// that names the line and the nearest key.
func readStrictly(path string, c any) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return usageError{err}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data), yaml.Strict())
	if err := decoder.Decode(c); err != nil && !errors.Is(err, io.EOF) { // an empty file is one without keys
		text := strings.TrimSpace(yaml.FormatError(err, false, true))
		if key, ok := unknownKey(text); ok {
			text += "\n" + event.Nearest(key, configKeys(reflect.TypeOf(c)))
		}
		return usagef("%s: %s", path, text)
	}
	return nil
}

// unknownKey returns the key that the YAML library complains about.
func unknownKey(text string) (string, bool) {
	_, rest, found := strings.Cut(text, `unknown field "`)
	key, _, closed := strings.Cut(rest, `"`)
	return key, found && closed
}

// configKeys returns every key that a configuration can have, at any depth.
func configKeys(t reflect.Type) (keys []string) {
	switch t.Kind() {
	case reflect.Slice, reflect.Pointer:
		return configKeys(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if key, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ","); key != "" {
				keys = append(append(keys, key), configKeys(t.Field(i).Type)...)
			}
		}
	}
	return keys
}

// core returns the configuration of the core, with every violation reported.
func (c fileConfig) core() (incremental.Config, error) {
	out := incremental.Config{
		Pipeline: c.Pipeline, Classes: len(c.Classes), Classifier: c.Classifier, Density: c.Density, Kernel: c.Kernel, Alpha: c.Alpha,
		Tolerance: c.Tolerance, Engine: c.Engine, MembersMin: membersMinDefault,
		Limits: incremental.Limits(c.Limits), VacuumEvery: c.Checkpoint.Every,
		Windows: graphstore.Windows(c.Windows), HalfLife: c.HalfLife,
		Models: incremental.Models(c.Models),
	}
	late, lateErr := c.Late.policy()
	out.Late = late
	if c.Privacy.MembersMin != nil {
		out.MembersMin = *c.Privacy.MembersMin
	}
	errs := []error{lateErr}
	if len(c.Classes) == 0 {
		errs = append(errs, errors.New("classes: missing; give their names, or how many there are"))
	}
	for _, community := range c.Communities {
		rule, err := community.Rule()
		errs = append(errs, err)
		out.Communities = append(out.Communities, rule)
	}
	for i, e := range c.Estimates {
		options, err := e.options()
		if err != nil {
			errs = append(errs, fmt.Errorf("estimates[%d]: %w", i, err))
		}
		out.Estimates = append(out.Estimates, options)
	}
	errs = append(errs, c.Output.validate())
	if len(c.Classes) > 0 {
		errs = append(errs, c.Classes.set().Validate(), out.Validate())
	}
	if n := c.Output.QueueBytesMax; n != 0 && n < sinks.QueueBytesMin {
		errs = append(errs, fmt.Errorf("output.queue_bytes_max: %d, want at least %d", n, sinks.QueueBytesMin))
	}
	if err := errors.Join(errs...); err != nil {
		return out, usageError{err}
	}
	return out, nil
}

func (e estimateConfig) options() (quant.Options, error) {
	o := quant.DefaultOptions()
	if e.Method != "" {
		o.Method = quant.Method(e.Method)
	}
	if e.Preset != "" {
		o.Preset = quant.Preset(e.Preset)
	}
	if e.Confidence != 0 {
		o.Confidence = e.Confidence
	}
	o.Simultaneous = e.Simultaneous
	lambda, err := e.Lambda.value()
	o.Lambda = lambda
	return o, err
}

// effective fills in the defaults, as check prints them.
func (c *fileConfig) effective(core incremental.Config, steps ingest.StepConfig) {
	core, steps = core.WithDefaults(), steps.WithDefaults()
	c.Kernel, c.Alpha, c.Tolerance = core.Kernel, core.Alpha, core.Tolerance
	c.Engine = cmp.Or(core.Engine, incremental.EngineDefault)
	c.Density = cmp.Or(core.Density, incremental.DensityUniform)
	c.Privacy.MembersMin = &core.MembersMin
	c.Models.SwitchAt = cmp.Or(core.Models.SwitchAt, graphstore.SwitchAtDefault)
	c.Models.LapseAfter = cmp.Or(core.Models.LapseAfter, graphstore.LapseAfterDefault)
	c.Step.Every, c.Step.EmitEvery, c.Step.EventsMax = steps.Every, steps.EmitEvery, steps.EventsMax
	c.State = cmp.Or(c.State, stateDefault)
	c.Checkpoint.Every = core.VacuumEvery
	c.Output.Every = cmp.Or(c.Output.Every, sinks.PartEveryDefault)
	c.Step.Time = cmp.Or(c.Step.Time, "received")
	c.Late.effective()
	c.Output.QueueBytesMax = cmp.Or(c.Output.QueueBytesMax, sinks.QueueBytesDefault)
	c.Estimates = nil
	for _, o := range core.Estimates {
		lambda := lambdaText(strconv.FormatFloat(o.Lambda, 'g', -1, 64))
		if o.Lambda == quant.LambdaAuto {
			lambda = "auto"
		}
		c.Estimates = append(c.Estimates, estimateConfig{
			Method: string(o.Method), Preset: string(o.Preset), Lambda: lambda,
			Confidence: o.Confidence, Simultaneous: o.Simultaneous,
		})
	}
}
