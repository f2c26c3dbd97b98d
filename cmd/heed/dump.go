package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/heedhq/heed"
)

type exportCommand struct {
	File string `arg:"" optional:"" help:"The file to write. Without it, or with -, the export goes to standard output."`
}

// Run writes a store.
func (cmd *exportCommand) Run(s *session) error {
	return s.with(func(st *opened) error {
		if cmd.File == "" || cmd.File == "-" {
			if s.out.terminal {
				return &usageError{"an export is not for reading: name a file, or send it on to a program"}
			}
			return st.store.Dump(s.ctx, os.Stdout)
		}
		if err := writeNew(cmd.File, func(file string) error { return st.exportTo(s.ctx, file) }); err != nil {
			return err
		}
		return s.answer(map[string]string{"exported": cmd.File}, func(p *printer) { p.line("Wrote %s.", show(cmd.File)) })
	})
}

type importCommand struct {
	File string `arg:"" optional:"" help:"The file to read. Without it, or with -, standard input is read."`
}

// Run fills a store.
func (cmd *importCommand) Run(s *session) error {
	in := s.in
	if cmd.File != "" && cmd.File != "-" {
		file, err := os.Open(cmd.File)
		if errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("there is no file %s: check its name", cmd.File)
		}
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	st, err := s.create()
	if err != nil {
		return err
	}
	defer st.close()
	var wrong *heed.InputError
	switch err := st.store.Load(s.ctx, in); {
	case errors.Is(err, heed.ErrConflict):
		return fmt.Errorf("%s is not empty: name a new store, or remove the old one", st)
	case errors.As(err, &wrong):
		return fmt.Errorf("nothing was imported, as this is not what heed store export writes: %w",
			wrong)
	case err != nil:
		return fmt.Errorf("nothing was imported: %w", st.explain(err))
	}
	return s.answer(map[string]string{"imported": st.String()}, func(p *printer) {
		p.line("Imported into %s.", show(st.String()))
	})
}
