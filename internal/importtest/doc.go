// Package importtest holds the house rules of this module as tests: which package may import which,
// that every package documents what it is for, and that every type documents how it may be shared
// between goroutines.
package importtest
