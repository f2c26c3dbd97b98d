package agent

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/heedhq/heed/lab/agent/world"
	"github.com/heedhq/heed/lab/internal/database"
	"github.com/heedhq/heed/sqlstore"
)

// tables are the host's own, in the database in which heed's are: what it has lived through.
var tables = []string{
	`CREATE TABLE IF NOT EXISTS agent_runs (run INTEGER PRIMARY KEY, first INTEGER NOT NULL, events INTEGER NOT NULL, over TEXT NOT NULL)`,
}

// A shelter is a database in which an assistant lives on after its process.
type shelter struct {
	handle  *sql.DB
	dialect sqlstore.Dialect
}

func openShelter(ctx context.Context, where string) (*shelter, error) {
	handle, dialect, err := database.Handle(where)
	if err != nil {
		return nil, err
	}
	if _, err := sqlstore.Open(ctx, handle, dialect); err != nil { // first, so that a new file is its owner's alone
		return nil, errors.Join(err, handle.Close())
	}
	for _, table := range tables {
		if _, err := handle.ExecContext(ctx, table); err != nil {
			return nil, errors.Join(err, handle.Close())
		}
	}
	return &shelter{handle, dialect}, nil
}

func (s *shelter) close() error { return s.handle.Close() }

// begin notes that a run begins, and returns its number and its span: the one after all that were begun before.
func (s *shelter) begin(ctx context.Context, events int) (run int, span world.Span, err error) {
	span.Events = events
	var over string
	err = s.handle.QueryRowContext(ctx, `SELECT run + 1, first + events, over FROM agent_runs ORDER BY run DESC LIMIT 1`).Scan(&run, &span.First, &over)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		if err := s.checkEmpty(ctx); err != nil {
			return 0, span, err
		}
	case err != nil:
		return 0, span, err
	default:
		if span.Begin, err = time.Parse(time.RFC3339Nano, over); err != nil {
			return 0, span, err
		}
	}
	_, err = s.handle.ExecContext(ctx, `INSERT INTO agent_runs (run, first, events, over) VALUES ($1, $2, $3, $4)`, run, span.First, events, moment(span.End()))
	return run, span, err
}

// checkEmpty tells whether nobody has learned here yet. heed exports its own tables alone, and not the runs. So
// answers here would get the ids of earlier ones.
func (s *shelter) checkEmpty(ctx context.Context) error {
	st, err := sqlstore.Open(ctx, s.handle, s.dialect)
	if err != nil {
		return err
	}
	status, err := st.Status(ctx)
	if err == nil && len(status.Cells) > 0 {
		err = errors.New("-db has heed's tables, and not those of this program: bring agent_runs too")
	}
	return err
}

// end notes when a run was over. One that is cut off counts as long as it can have been.
func (s *shelter) end(ctx context.Context, run int, at time.Time) error {
	_, err := s.handle.ExecContext(ctx, `UPDATE agent_runs SET over = $1 WHERE run = $2`, moment(at), run)
	return err
}

func moment(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }
