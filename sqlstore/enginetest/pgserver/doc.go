// Package pgserver runs private servers of PostgreSQL, for tests and for the scorecard.
package pgserver
