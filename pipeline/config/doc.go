// Package config reads the configuration of a pipeline: a YAML file, and command-line flags, which
// override it.
//
// Settings is the content of the file. Load reads it strictly: an unknown key is an error with the
// line and the nearest key. Core, Steps, AlertRules and NotifyTargets return the configurations of
// the other packages, with every violation reported at once. FillDefaults fills in omitted values,
// as gqlstream check prints them.
//
// A UsageError is a mistake that the user corrects by changing arguments or configuration; it
// decides the exit code of a command.
//
// The package starts nothing and has no state.
package config
