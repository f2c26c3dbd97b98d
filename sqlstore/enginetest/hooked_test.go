package enginetest_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// A hooked driver calls a function before each statement, which may wait or fail it. After a COMMIT
// that succeeded it calls the function with "COMMITTED".
type hooked struct {
	engine driver.Driver
	dsn    string
	hook   atomic.Pointer[func(statement string) error]
	rows   atomic.Int64 // that queries have returned
}

// hookedAt opens a place through a hooked driver.
func hookedAt(t testing.TB, at place) (*hooked, *sql.DB) {
	plain, err := at.open()
	require.NoError(t, err)
	h := &hooked{engine: plain.Driver(), dsn: at.dsn}
	require.NoError(t, plain.Close())
	return h, sql.OpenDB(h)
}

func (h *hooked) set(hook func(statement string) error) { h.hook.Store(&hook) }

func (h *hooked) statement(text string) error {
	if hook := h.hook.Load(); hook != nil && *hook != nil {
		return (*hook)(text)
	}
	return nil
}

func (h *hooked) Connect(context.Context) (driver.Conn, error) {
	conn, err := h.engine.Open(h.dsn)
	return &hookedConn{conn, h}, err
}

func (h *hooked) Driver() driver.Driver { return h.engine }

type hookedConn struct {
	driver.Conn
	of *hooked
}

func (c *hookedConn) ExecContext(ctx context.Context, query string,
	args []driver.NamedValue) (driver.Result, error) {
	to, ok := c.Conn.(driver.ExecerContext)
	if !ok {
		return nil, driver.ErrSkip // ncruces has no such shortcut: the statement is prepared
	}
	if err := c.of.statement(query); err != nil {
		return nil, err
	}
	return to.ExecContext(ctx, query, args)
}

func (c *hookedConn) QueryContext(ctx context.Context, query string,
	args []driver.NamedValue) (driver.Rows, error) {
	to, ok := c.Conn.(driver.QueryerContext)
	if !ok {
		return nil, driver.ErrSkip
	}
	if err := c.of.statement(query); err != nil {
		return nil, err
	}
	rows, err := to.QueryContext(ctx, query, args)
	return c.of.counted(rows), err
}

func (c *hookedConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if err := c.of.statement("BEGIN"); err != nil {
		return nil, err
	}
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	return &hookedTx{tx, c.of}, err
}

func (c *hookedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	stmt, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	return &hookedStmt{stmt, c.of, query}, err
}

type hookedTx struct {
	driver.Tx
	of *hooked
}

func (t *hookedTx) Commit() error {
	if err := t.of.statement("COMMIT"); err != nil {
		return errors.Join(err, t.Tx.Rollback())
	}
	if err := t.Tx.Commit(); err != nil {
		return err
	}
	return t.of.statement("COMMITTED")
}

type hookedStmt struct {
	driver.Stmt
	of    *hooked
	query string
}

func (s *hookedStmt) ExecContext(
	ctx context.Context, args []driver.NamedValue,
) (driver.Result, error) {
	if err := s.of.statement(s.query); err != nil {
		return nil, err
	}
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
}

func (s *hookedStmt) QueryContext(
	ctx context.Context, args []driver.NamedValue,
) (driver.Rows, error) {
	if err := s.of.statement(s.query); err != nil {
		return nil, err
	}
	rows, err := s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
	return s.of.counted(rows), err
}

// counted returns rows that are counted when they are read.
func (h *hooked) counted(rows driver.Rows) driver.Rows {
	if rows == nil {
		return nil
	}
	return &hookedRows{rows, h}
}

type hookedRows struct {
	driver.Rows
	of *hooked
}

func (r *hookedRows) Next(into []driver.Value) error {
	err := r.Rows.Next(into)
	if err == nil {
		r.of.rows.Add(1)
	}
	return err
}
