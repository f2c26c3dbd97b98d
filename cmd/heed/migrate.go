package main

import "github.com/heedhq/heed/sqlstore"

type migrateCommand struct{}

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
	if _, err := at.make(s.ctx, handle, sqlstore.Config{}); err != nil {
		return at.explain(err)
	}
	return s.answer(map[string]string{"migrated": at.String()}, func(p *printer) { p.line("The tables of %s are up to date.", show(at.String())) })
}
