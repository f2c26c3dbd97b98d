package main

// storeCommands look after a store.
type storeCommands struct {
	Migrate migrateCommand `cmd:""`
	Backup  backupCommand  `cmd:""`
	Export  exportCommand  `cmd:""`
	Import  importCommand  `cmd:""`
	Rebuild rebuildCommand `cmd:""`
	Forget  forgetCommand  `cmd:""`
	Audit   auditCommand   `cmd:""`
}

type migrateCommand struct{}

// Run makes the tables.
func (migrateCommand) Run(s *session) error {
	st, err := s.create()
	if err != nil {
		return err
	}
	defer st.close()
	return s.answer(map[string]string{"migrated": st.String()}, func(p *printer) {
		p.line("The tables of %s are up to date.", show(st.String()))
	})
}
