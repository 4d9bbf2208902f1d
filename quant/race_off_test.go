//go:build !race

package quant_test

// stride is one: every community, instance and world.
const stride = 1
