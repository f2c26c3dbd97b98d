// Package servertest runs what tests need, such as a private PostgreSQL, so that nothing
// is left when the tests are killed.
package servertest
