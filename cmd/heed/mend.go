package main

import (
	"errors"
	"fmt"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/mending"
	"github.com/heedhq/heed/store"
)

type mendCommand struct {
	Cell  string `required:"" placeholder:"CELL" help:"The cell, as heed doctor --deep names it."`
	Reset bool   `help:"Forget all evidence of the cell, in place of making its sums anew from its history."`
	change
}

// A mendedCell is a cell that was mended.
type mendedCell struct {
	Cell  string `json:"cell"`
	Reset bool   `json:"reset"`
}

// Run mends a cell.
func (cmd *mendCommand) Run(s *session) error {
	if err := given("cell", cmd.Cell); err != nil {
		return err
	}
	about, action := "This makes the sums of cell %s anew from its history", "mend"
	if cmd.Reset {
		about, action = "This forgets all evidence of cell %s, and of no other", "mend.reset"
	}
	return s.with(func(st *opened) error {
		if err := cmd.confirm(s, fmt.Sprintf(about, show(cmd.Cell))); err != nil {
			return err
		}
		if err := st.store.Declare(s.ctx, store.Audit); err != nil {
			return err
		}
		err := mending.Mend(s.ctx, st.store, mending.Cell{Key: cmd.Cell, Reset: cmd.Reset, Why: cmd.entry(action, cmd.Cell, nil)})
		switch {
		case errors.Is(err, heed.ErrNotFound):
			return fmt.Errorf("no row belongs to cell %s. If you have mended it already, look again with heed doctor --deep", show(cmd.Cell))
		case errors.Is(err, evidence.ErrForgotten), !cmd.Reset && errors.Is(err, heed.ErrDamaged):
			return fmt.Errorf("the history of cell %s is damaged, or not known to be whole: restore the store from a copy, or forget the cell "+
				"with heed mend --cell=%s --reset", show(cmd.Cell), show(cmd.Cell))
		case err != nil:
			return err
		}
		return s.answer(mendedCell{cmd.Cell, cmd.Reset}, func(p *printer) {
			if cmd.Reset {
				p.line("Forgot all evidence of cell %s.", show(cmd.Cell))
			} else {
				p.line("Made the sums of cell %s anew from its history.", show(cmd.Cell))
			}
		})
	})
}
