package main

import (
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/heedhq/heed/sqlstore"
)

type migrateCommand struct{}

func (migrateCommand) Help() string {
	return `Examples:

    heed --db agent.db migrate

Tables are only added to. Hosts of an older heed refuse to open a store whose tables are newer than they are: bring them up to
date first.`
}

// Run makes the tables.
func (migrateCommand) Run(s *session) error {
	at, err := s.where()
	if err != nil {
		return err
	}
	handle, err := at.handle(s.ctx, true)
	if err != nil {
		return err
	}
	defer handle.Close()
	if err := at.migrate(s, handle); err != nil {
		return err
	}
	return s.answer(map[string]string{"migrated": at.String()}, func(p *printer) { p.line("The tables of %s are up to date.", show(at.String())) })
}

// migrate makes the tables that are missing.
func (p place) migrate(s *session, handle *sql.DB) error {
	err := sqlstore.Migrate(s.ctx, handle, p.dialect)
	var server *pgconn.PgError
	there := errors.As(err, &server) && server.Code == "42P07" // duplicate_table
	if there || err != nil && strings.Contains(err.Error(), "already exists") {
		return fmt.Errorf("%s has tables that are newer than its heed_schema says, which somebody has changed by hand: restore it from a copy", p)
	}
	return p.explain(err)
}
