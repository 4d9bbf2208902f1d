// Package config reads the configuration of a pipeline: a YAML file, and the flags of
// a command that win over it.
//
// Settings is the file as it stands. Load reads it strictly: an unknown key is an error
// that names the line and the nearest key. Core, Steps, AlertRules and NotifyTargets
// return what the packages of a pipeline want, with every violation reported at once;
// FillDefaults fills in what is left out, as gqlstream check prints it.
//
// A UsageError is a mistake that the user mends by changing arguments or
// configuration; it decides the exit code of a command.
//
// The package starts nothing and keeps no state.
package config
