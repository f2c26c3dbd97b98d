package sqlstore

import (
	"context"
	"database/sql"
	"os"
)

// statFile returns the path of a database file of SQLite and its state, or nil if this program
// cannot see the file, such as one in a file system of the driver's own.
func statFile(ctx context.Context, conn *sql.Conn) (string, os.FileInfo, error) {
	var path sql.NullString
	err := conn.QueryRowContext(ctx,
		"SELECT max(file) FROM pragma_database_list WHERE name = 'main'").Scan(&path)
	if err != nil || path.String == "" {
		return "", nil, err
	}
	info, err := os.Stat(path.String)
	if err != nil {
		return "", nil, nil //nolint:nilerr // this program can't see it
	}
	return path.String, info, nil
}

// private lets only its owner read and write a database file that is new, while it is empty. A file
// with content was made by the host, which has decided who may read it.
func private(ctx context.Context, conn *sql.Conn) error {
	path, info, err := statFile(ctx, conn)
	if err != nil || info == nil || info.Size() > 0 || !info.Mode().IsRegular() {
		return err
	}
	return os.Chmod(path, 0o600)
}

// alignFiles gives the log next to a database file no other permissions than the file has. Most
// drivers do so themselves.
func alignFiles(ctx context.Context, conn *sql.Conn) error {
	path, info, err := statFile(ctx, conn)
	if err != nil || info == nil {
		return err
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		beside, err := os.Stat(path + suffix)
		if err == nil && beside.Mode().Perm()&^info.Mode().Perm() != 0 {
			_ = os.Chmod(path+suffix, info.Mode().Perm()) // it may be somebody else's, or gone by now
		}
	}
	return nil
}

// rewriteFile makes SQLite write its file again, with what is stored and no remains. It needs room
// for a second copy of the file, and time in proportion to its size.
func rewriteFile(ctx context.Context, conn *sql.Conn) error {
	return patiently(ctx, func() error { _, err := conn.ExecContext(ctx, "VACUUM"); return err })
}

// emptyLog has SQLite bring its log into the file, and reports whether the log is empty then. It is
// not while somebody reads from it.
func emptyLog(ctx context.Context, conn *sql.Conn) (bool, error) {
	var busy, log, moved int
	err := conn.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved)
	if locked(err) {
		return false, nil
	}
	return err == nil && busy == 0, err
}
