//go:build race

package attribution_test

func init() { raced = true }
