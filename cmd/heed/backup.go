package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/heedhq/heed/sqlstore"
)

type backupCommand struct {
	File string `arg:"" help:"The file to write, which must not be there yet. Of PostgreSQL it is an export, and ends in .jsonl."`
}

// exportEnding ends the names of backups that heed store import reads.
const exportEnding = ".jsonl"

// Run copies a store that may be in use.
func (cmd *backupCommand) Run(s *session) error {
	return s.with(func(st *opened) error {
		how := "It is a database of SQLite, with the tables of the host: open it with --db."
		fill := func(file string) error { return st.copyTo(s.ctx, file) }
		if st.dialect == sqlstore.Postgres {
			if !strings.HasSuffix(cmd.File, exportEnding) {
				return &usageError{"of PostgreSQL, heed writes an export: give the file a name that ends in " + exportEnding +
					". Use pg_dump for a copy with the tables of the host"}
			}
			how = "heed store import fills an empty store from it. It has heed's tables alone: " +
				"pg_dump copies those of the host, too."
			fill = func(file string) error { return st.exportTo(s.ctx, file) }
		}
		if err := writeNew(cmd.File, fill); err != nil {
			return err
		}
		return s.answer(map[string]string{"backup": cmd.File}, func(p *printer) { p.line("Wrote %s. %s", show(cmd.File), how) })
	})
}

// copyTo copies a database of SQLite into an empty file, as it is at one moment, and checks the copy. Others may write meanwhile.
func (s *opened) copyTo(ctx context.Context, file string) error {
	if _, err := s.handle.ExecContext(ctx, `VACUUM INTO ?`, file); err != nil {
		return err
	}
	copied, err := place{dialect: sqlstore.SQLite, file: file}.handle(ctx, false)
	if err != nil {
		return err
	}
	faults, _, err := sqlstore.Check(ctx, copied, sqlstore.SQLite, false)
	if err == nil { // as heed keeps a store: whoever opens the copy would change it otherwise
		_, err = copied.ExecContext(ctx, `PRAGMA journal_mode = WAL`)
	}
	if err == nil && len(faults) > 0 {
		err = fmt.Errorf("the copy is not sound (%s): see heed doctor", strings.Join(faults, "; "))
	}
	return errors.Join(err, copied.Close())
}

func (s *opened) exportTo(ctx context.Context, file string) error {
	out, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(s.store.Dump(ctx, out), out.Close())
}

// unfinished ends the names of files that are being written, and given up is how long nobody has written to one that a killed process left.
const unfinished, givenUp = ".unfinished", time.Hour

// besides ends the names of the files that SQLite keeps beside one.
var besides = []string{"", "-journal", "-wal", "-shm"}

// removeLeft removes what processes that were killed have left of a file, as far as the user may.
func removeLeft(file string) error {
	dir := filepath.Dir(file)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("there is no directory %s: make it first, or choose another name", dir)
	}
	drafts := regexp.MustCompile(`^` + regexp.QuoteMeta(draftOf(file)) + `[0-9]+` + regexp.QuoteMeta(unfinished) + `(` + strings.Join(besides, `|`) + `)$`)
	for _, e := range entries {
		if !e.Type().IsRegular() || !drafts.MatchString(e.Name()) {
			continue
		}
		if info, gone := e.Info(); gone == nil && time.Since(info.ModTime()) > givenUp {
			_ = os.Remove(filepath.Join(dir, e.Name())) // somebody else's may have to stay
		}
	}
	return nil
}

// draftOf begins the names of the files in which a file is written.
func draftOf(file string) string { return "." + filepath.Base(file) + "." }

// writeNew has a file written that only the user can read. The file gets its name when all of it is on the disk, and no other file is
// overwritten. If something fails, nothing is left. A process that is killed leaves a hidden file whose name ends in [unfinished], which a
// later call removes.
func writeNew(file string, fill func(file string) error) (err error) {
	taken := fmt.Errorf("%s is there already: choose another name, or remove it", file)
	if _, err := os.Lstat(file); err == nil {
		return taken
	}
	if err := removeLeft(file); err != nil {
		return err
	}
	draft, err := os.CreateTemp(filepath.Dir(file), draftOf(file)+"*"+unfinished) // with rights 0600
	if err != nil {
		return err
	}
	defer func() {
		for _, ending := range besides {
			if gone := os.Remove(draft.Name() + ending); gone != nil && !errors.Is(gone, os.ErrNotExist) {
				err = errors.Join(err, gone)
			}
		}
	}()
	if err := errors.Join(fill(draft.Name()), draft.Sync(), draft.Close()); isFull(err) {
		return fmt.Errorf("%s was not written, as its disk is full: see df -h %s, and make room or name a file on another disk", file, filepath.Dir(file))
	} else if err != nil {
		return err
	}
	if err := os.Link(draft.Name(), file); errors.Is(err, os.ErrExist) {
		return taken
	} else if err != nil { // a file system without links
		if _, err := os.Lstat(file); err == nil {
			return taken
		}
		if err := os.Rename(draft.Name(), file); err != nil {
			return err
		}
	}
	return syncDir(filepath.Dir(file))
}

// syncDir has a directory keep its names. Systems that can't do that do it by themselves.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync()
	return d.Close()
}
