package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"unique"

	"github.com/charmbracelet/x/term"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/dump"
	"github.com/heedhq/heed/internal/view"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// storeCommands look after a store.
type storeCommands struct {
	Migrate migrateCommand `cmd:""`
	Backup  backupCommand  `cmd:""`
	Export  exportCommand  `cmd:""`
	Import  importCommand  `cmd:""`
	Forget  forgetCommand  `cmd:""`
	Audit   auditCommand   `cmd:""`

	Freeze   freezeCommand `cmd:""`
	Unfreeze freezeCommand `cmd:""`
}

type freezeCommand struct{ change }

// Run stops the learning of an agent in all processes, or begins it again.
func (cmd *freezeCommand) Run(s *session) error {
	freeze := s.command == "freeze"
	return agents.with(s, func(v *view.Source) error {
		about, state, already := "This has the agent %v learn again, in every process", "learns again",
			"is not frozen"
		if freeze {
			about, state, already = "This stops the learning of the agent %v, in every process",
				"no longer learns, and goes on answering", "is frozen already"
		}
		if err := cmd.confirm(s, about, v.Name); err != nil {
			return err
		}
		if err := v.Store.Declare(s.ctx, answers.Freezes(v.Name).Kind, store.Audit); err != nil {
			return err
		}
		changed, err := answers.Freeze(s.ctx, v.Store, v.Name,
			answers.Frozen{Frozen: freeze, At: s.now()}, store.AuditEntry{
				Actor: cmd.Actor, Action: v.Name + "." + s.command, Reason: cmd.Reason})
		switch {
		case err != nil:
			return err
		case !changed:
			return fmt.Errorf("%s %s", show(v.Name), already)
		}
		return s.told(map[string]any{"agent": v.Name, "frozen": freeze}, "The agent %v %v.", v.Name,
			plain(state))
	})
}

type migrateCommand struct{}

// Run makes the tables.
func (migrateCommand) Run(s *session) error {
	return s.within(true, func() error {
		return s.told(map[string]string{"migrated": s.at.String()}, "The tables of %v are up to date.",
			s.at.String())
	})
}

type auditCommand struct {
	Limit atMost `default:"20"`
	view.ChangeQuery
}

// Run lists what changed.
func (cmd *auditCommand) Run(s *session) error {
	with := func(s *session, do func(*view.Source) error) error {
		return s.with(func() error { return do(s.source()) })
	}
	what := "audit entries"
	if cmd.Kind == "" {
		what += " other than single statements (--kind statement)"
	}
	return listed(s, with, what, "audit", func(v *view.Source) ([]view.Changed, error) {
		return paged(s, cmd.Limit, cmd.ChangeQuery, v.Changes)
	})
}

type backupCommand struct {
	File string `arg:""`
}

// Run copies a store that may be in use.
func (cmd *backupCommand) Run(s *session) error {
	return s.with(func() error {
		if s.at.dialect == sqlstore.Postgres {
			return &usageError{"copy PostgreSQL with pg_dump, which has the tables of the host, too, " +
				"or with heed store export"}
		}
		if err := writeNew(s.ctx, cmd.File, s.at.copyTo); err != nil {
			return err
		}
		return s.told(map[string]string{"backup": cmd.File}, "Wrote %v. It is a database of SQLite, "+
			"with the tables of the host: open it with --db.", cmd.File)
	})
}

// copyTo copies a database of SQLite into an empty file, in its state at one moment, and checks the
// copy. Others may write at the same time.
func (o *opened) copyTo(ctx context.Context, to *os.File) error {
	if _, err := o.handle.ExecContext(ctx, `VACUUM INTO ?`, to.Name()); err != nil {
		return err
	}
	copied, err := place{dialect: sqlstore.SQLite, file: to.Name()}.handle(ctx, false)
	if err != nil {
		return err
	}
	faults, _, err := sqlstore.Check(ctx, copied, sqlstore.SQLite, false)
	if len(faults) > 0 {
		err = fmt.Errorf("the copy is not sound (%s): see heed doctor", strings.Join(faults, "; "))
	}
	// as heed keeps a store: the first to open the copy would change it otherwise
	_, failed := copied.ExecContext(ctx, `PRAGMA journal_mode = WAL`)
	return errors.Join(err, failed, copied.Close())
}

// dump writes the store, or what a tenant has.
func (o *opened) dump(ctx context.Context, to *os.File) error {
	if o.tenant == "" {
		return o.store.Dump(ctx, to)
	}
	from := piped(func(to io.Writer) error { return o.store.Dump(ctx, to) })
	defer from.Close()
	return dump.Only(to, from, o.tenant)
}

// writeNew has a file written that only the user can read. The file gets its name when all of it is
// on the disk, and no other file is overwritten. After a failure no file is left. A process that is
// killed leaves a hidden directory, .heed-*.
func writeNew(
	ctx context.Context, file string, fill func(context.Context, *os.File) error,
) (err error) {
	taken := fmt.Errorf("%s is there already: choose another name, or remove it", file)
	if _, err := os.Lstat(file); err == nil {
		return taken
	}
	dir := filepath.Dir(file)
	hidden, err := os.MkdirTemp(dir, ".heed-*")
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no directory %s: make it first, or choose another name", dir)
	} else if err != nil {
		return permitted(err, "write into", dir)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(hidden)) }() // SQLite's files, too
	draft := filepath.Join(hidden, "draft")
	out, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE, 0o600)
	if err == nil {
		err = errors.Join(fill(ctx, out), out.Sync(), out.Close())
	}
	if errors.Is(err, syscall.ENOSPC) || troubleOf(err) == full {
		return fmt.Errorf("%s was not written: its disk is full: see df -h %s, and make room or "+
			"name a file on another disk", file, dir)
	} else if err != nil {
		return err
	}
	if err = os.Link(draft, file); errors.Is(err, os.ErrExist) {
		return taken
	} else if err != nil { // a file system without links
		err = os.Rename(draft, file)
	}
	if names, failed := os.Open(dir); err == nil && failed == nil {
		_ = names.Sync() // systems that can't do that do it by themselves
		err = names.Close()
	}
	return err
}

type exportCommand struct {
	File string `arg:"" optional:""`
}

// Run writes a store.
func (cmd *exportCommand) Run(s *session) error {
	return s.with(func() error {
		if cmd.File == "" || cmd.File == "-" {
			if term.IsTerminal(os.Stdout.Fd()) {
				return &usageError{"an export is not for reading: name a file, or send it on to a program"}
			}
			return s.at.dump(s.ctx, os.Stdout)
		}
		if err := writeNew(s.ctx, cmd.File, s.at.dump); err != nil {
			return err
		}
		return s.told(map[string]string{"exported": cmd.File}, "Wrote %v.", cmd.File)
	})
}

type importCommand struct {
	File string `arg:"" optional:""`
}

// openFile opens a file that the user named: - is standard input.
func openFile(name string) (*os.File, error) {
	if name == "-" {
		return os.Stdin, nil
	}
	file, err := os.Open(name)
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("there is no file %s: check its name", name)
	}
	return file, permitted(err, "read", name)
}

// permitted explains an error about missing rights to a file or directory.
func permitted(err error, to, name string) error {
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("you may not %s %s: check its rights, or name another one", to, name)
	}
	return err
}

// Run fills a store.
func (cmd *importCommand) Run(s *session) (err error) {
	in, err := openFile(cmp.Or(cmd.File, "-"))
	if err != nil {
		return err
	}
	defer in.Close()
	return s.within(true, func() error {
		var wrong *heed.InputError
		err := s.at.store.Load(s.ctx, in)
		switch {
		case errors.Is(err, heed.ErrConflict):
			return fmt.Errorf("%s is not empty: name a new store, or remove the old one", s.at)
		case errors.As(err, &wrong):
			return fmt.Errorf("nothing was imported: this is not what heed store export writes: %w",
				wrong)
		case err != nil:
			return fmt.Errorf("nothing was imported: %w", s.at.explain(err))
		}
		return s.told(map[string]string{"imported": s.at.String()}, "Imported into %v.", s.at.String())
	})
}

// piped returns what a function writes. The function ends if the caller closes it.
func piped(write func(io.Writer) error) io.ReadCloser {
	lines, to := io.Pipe()
	go func() { to.CloseWithError(write(to)) }()
	return lines
}

// A dumped is a row of a dump with its kind, which has the name of a tenant. The kind of an id is
// not known.
type dumped struct {
	dump.Row
	kind string
}

// rows yields the rows of the store in its state at one moment.
func (o *opened) rows(ctx context.Context) iter.Seq2[dumped, error] {
	return func(yield func(dumped, error) bool) {
		lines := piped(func(to io.Writer) error { return o.store.Dump(ctx, to) })
		defer lines.Close()
		reader, err := dump.NewReader(lines)
		cells := make(map[[8]byte]string) // by the start of the hash, because there may be many
		for err == nil {
			var r dumped
			if r.Row, err = reader.Next(); errors.Is(err, io.EOF) {
				return
			}
			switch {
			case r.Record != nil:
				r.kind = r.Record.Kind
			case r.Cell != nil:
				r.kind = r.Cell.Kind
				cells[[8]byte(r.Cell.Hash[:])] = unique.Make(r.kind).Value()
			case r.Tally != nil:
				r.kind = cells[[8]byte(r.Tally.Cell[:])]
			case r.Observation != nil:
				r.kind = cells[[8]byte(r.Observation.Cell[:])]
			case r.Lost != nil:
				r.kind = cells[[8]byte(r.Lost.Cell[:])]
			}
			if err == nil && !yield(r, nil) {
				return
			}
		}
		yield(dumped{}, err)
	}
}
