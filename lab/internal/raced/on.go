//go:build race

package raced

const on = true
