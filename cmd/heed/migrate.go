package main

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
	if _, err := at.make(s, handle); err != nil {
		return at.explain(err)
	}
	return s.answer(map[string]string{"migrated": at.String()}, func(p *printer) { p.line("The tables of %s are up to date.", show(at.String())) })
}
