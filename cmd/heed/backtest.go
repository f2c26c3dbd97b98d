package main

import (
	"context"
	"errors"
	"iter"

	"github.com/heedhq/heed/cmd/heed/internal/past"
	"github.com/heedhq/heed/loop"
)

// A backtestReport is a backtest with the mapping of its log.
type backtestReport struct {
	past.Backtest
	Mapping string `json:"-"`
}

// backtest tests what heed would have chosen in a log, without a store.
func (cmd *pastCommand) backtest(s *session, l *pastLog) error {
	found, err := l.look(s.ctx, func(*loop.Past) error { return nil })
	if err == nil {
		err = cmd.faults(&found)
	}
	if err != nil {
		return err
	}
	b, err := past.Test(s.ctx, cmd.Seed, func() iter.Seq2[past.Row, error] { return l.rows(s.ctx) })
	if errors.Is(err, context.Canceled) {
		return errInterrupted
	} else if err != nil {
		return err
	}
	return s.answer(backtestReport{b, l.String()}, "backtest")
}
