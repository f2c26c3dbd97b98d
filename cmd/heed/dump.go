package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/sqlstore"
)

type exportCommand struct {
	File string `arg:"" optional:"" help:"The file to write. Without it, or with -, the export goes to standard output."`
}

// Run writes a store.
func (cmd *exportCommand) Run(s *session) error {
	return s.with(func(st *opened) error {
		if cmd.File == "" || cmd.File == "-" {
			return st.store.Dump(s.ctx, os.Stdout)
		}
		out, err := os.OpenFile(cmd.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, os.ErrExist) {
			return fmt.Errorf("%s is there already: choose another name, or remove it", cmd.File)
		} else if err != nil {
			return err
		}
		if err := errors.Join(st.store.Dump(s.ctx, out), out.Sync(), out.Close()); err != nil {
			return errors.Join(st.explain(err), os.Remove(cmd.File))
		}
		return s.answer(map[string]string{"exported": cmd.File}, func(p *printer) { p.line("Wrote %s.", show(cmd.File)) })
	})
}

type importCommand struct {
	File string `arg:"" optional:"" help:"The file to read. Without it, or with -, standard input is read."`
}

// Run fills a store.
func (cmd *importCommand) Run(s *session) error {
	at, err := s.where()
	if err != nil {
		return err
	}
	in := s.in
	if cmd.File != "" && cmd.File != "-" {
		if in, err = os.Open(cmd.File); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("there is no file %s: check its name", cmd.File)
		} else if err != nil {
			return err
		}
		defer in.Close()
	}
	handle, err := at.handle(s.ctx, true)
	if err != nil {
		return err
	}
	defer handle.Close()
	st, err := at.make(s.ctx, handle, sqlstore.Config{})
	if err != nil {
		return at.explain(err)
	}
	var wrong *heed.InputError
	switch err := st.store.Load(s.ctx, in); {
	case errors.Is(err, heed.ErrConflict):
		return fmt.Errorf("%s is not empty: name a new store, or remove the old one", at)
	case errors.As(err, &wrong):
		return fmt.Errorf("nothing was imported, as this is not what heed export writes: %w", wrong)
	case err != nil:
		return fmt.Errorf("nothing was imported: %w", at.explain(err))
	}
	return s.answer(map[string]string{"imported": at.String()}, func(p *printer) { p.line("Imported into %s.", show(at.String())) })
}
