//go:build race

package storetest_test

func init() { raced = true }
