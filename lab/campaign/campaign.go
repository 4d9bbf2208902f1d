// Package campaign reads how large a test over random histories shall be. A test has a
// small size that every run of the tests can afford, and an environment variable of its
// own for a long one, which the Makefile sets. Tests alone import it.
package campaign

import (
	"os"
	"strconv"
	"testing"
)

// Size returns the number in an environment variable, at least 1, or the usual one if the
// variable is not set. Anything else in it fails the test.
func Size(t testing.TB, variable string, usual int) int {
	t.Helper()
	return number(t, variable, usual, 1)
}

// Seed returns the first seed of a campaign: GQLSTREAM_SEED, or the usual one if it is not set.
func Seed(t testing.TB, usual int) uint64 {
	t.Helper()
	return uint64(number(t, "GQLSTREAM_SEED", usual, 0))
}

func number(t testing.TB, variable string, usual, least int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		t.Fatalf("%s=%q: want a number from %d", variable, text, least)
	}
	return n
}
