package main

import (
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/internal/servertest"
)

// cluster is PostgreSQL for the tests: that at HEED_POSTGRES_DSN, or a private one, started with
// the first test that asks.
var cluster postgres

type postgres struct {
	once sync.Once
	*servertest.Server
	err error
}

// dsn returns where it is. Without PostgreSQL the test is skipped, or fails if
// HEED_POSTGRES=require.
func (p *postgres) dsn(t testing.TB) string {
	if dsn := os.Getenv("HEED_POSTGRES_DSN"); dsn != "" {
		return dsn
	}
	p.once.Do(func() { p.Server, p.err = servertest.New("-c fsync=off") })
	if errors.Is(p.err, servertest.ErrNone) && os.Getenv("HEED_POSTGRES") != "require" {
		t.Skip(p.err)
	}
	require.NoError(t, p.err)
	return fmt.Sprintf("postgres://heed@127.0.0.1:%d/postgres?sslmode=disable", p.Port())
}

// database makes a database of its own on the server, and returns its DSN.
func (p *postgres) database(t *testing.T, name string) string {
	server, err := sql.Open("pgx", p.dsn(t))
	require.NoError(t, err)
	_, err = server.Exec("DROP DATABASE IF EXISTS " + name)
	require.NoError(t, err)
	_, err = server.Exec("CREATE DATABASE " + name)
	require.NoError(t, err)
	t.Cleanup(func() {
		_, err := server.Exec(
			"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", name)
		assert.NoError(t, err)
		_, err = server.Exec("DROP DATABASE " + name)
		assert.NoError(t, err)
		assert.NoError(t, server.Close())
	})
	return inDatabase(t, p.dsn(t), name)
}

func inDatabase(t *testing.T, dsn, name string) string {
	address, err := url.Parse(dsn)
	require.NoError(t, err)
	address.Path = "/" + name
	return address.String()
}

func (p *postgres) stop() {
	if p.Server == nil {
		return
	}
	if err := p.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
