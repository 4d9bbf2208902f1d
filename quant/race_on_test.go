//go:build race

package quant_test

// stride shortens the long loops of a race build, which is ten times slower; pure functions have no
// races.
const stride = 8
