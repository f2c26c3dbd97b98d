//go:build !race

package enginetest_test

const raced = false
