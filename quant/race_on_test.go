//go:build race

package quant_test

// stride thins out the long loops of a race build, which is ten times slower and
// looks for races, of which pure functions have none.
const stride = 8
