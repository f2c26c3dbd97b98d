// Package sqlstore keeps what heed learns in a database: to be completed.
package sqlstore
