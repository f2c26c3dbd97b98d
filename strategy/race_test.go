//go:build race

package strategy_test

func init() { raced = true }
