package enginetest_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

// olderHeed is a commit whose programs have tables of the same version as this one.
const olderHeed = "44f5c70b"

const addsEach = 25 // of a process in its short form

var tablesVersion = regexp.MustCompile(`tablesVersion = (\d+)`)

// olderProgram builds the tests of an earlier heed, for the processes that they can be.
func olderProgram(t *testing.T) string {
	if os.Getenv("HEED_LONG") == "" {
		t.Skip("builds an earlier heed: HEED_LONG=1 runs it")
	}
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	if exec.Command("git", "-C", root, "cat-file", "-e", olderHeed+"^{commit}").Run() != nil {
		t.Skip(olderHeed, " is not in this clone")
	}
	dir := t.TempDir()
	run := func(name string, args ...string) {
		cmd := exec.Command(name, args...)
		cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK="+filepath.Join(dir, "go.work"))
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	file := filepath.Join(dir, "older.tar")
	run("git", "-C", root, "archive", "-o", file, olderHeed)
	run("tar", "-xf", file, "-C", dir)
	var versions []string
	for _, at := range []string{root, dir} {
		text, err := os.ReadFile(filepath.Join(at, "sqlstore", "tables.go"))
		require.NoError(t, err)
		found := tablesVersion.FindSubmatch(text)
		require.NotNil(t, found)
		versions = append(versions, string(found[1]))
	}
	require.Equal(t, versions[0], versions[1], "name a later commit in olderHeed")
	program := filepath.Join(dir, "older.test")
	run("go", "-C", filepath.Join(dir, "sqlstore", "enginetest"), "test", "-c", "-buildvcs=false",
		"-o", program, ".")
	return program
}

// TestTwoHeeds has programs of an earlier heed and of this one work on one store at once, whichever
// of them made the tables.
func TestTwoHeeds(t *testing.T) {
	older := olderProgram(t)
	for _, b := range backends {
		for maker, program := range map[string]string{"older": older, "newer": os.Args[0]} {
			t.Run(b.name+"/"+maker, func(t *testing.T) {
				at := b.place(t)
				start := func(program, process, name string) *exec.Cmd {
					cmd := child(t, process, append(at.env(), "HEED_LONG=", "HEED_TEST_NAME="+name)...)
					cmd.Path, cmd.Args[0] = program, program
					return cmd
				}
				require.NoError(t, start(program, "open a store", "maker").Run())
				var wait sync.WaitGroup
				for i, program := range []string{older, os.Args[0], older, os.Args[0]} {
					cmd := start(program, "sum", fmt.Sprint(i))
					wait.Go(func() { assert.NoError(t, cmd.Run()) })
				}
				wait.Wait()
				var s store.Snapshot
				st := at.store(t, sqlstore.Config{})
				require.NoError(t, st.Declare(ctx, store.Kind{Name: "note"}))
				number := store.Ref{Kind: "note", ID: "number"}
				require.NoError(t, st.Read(ctx, &s, []evidence.Cell{arm}, []store.Ref{number}))
				n, err := store.Decode[int](s.Records[0].Body)
				require.NoError(t, err)
				assert.Equal(t, 4*addsEach, n)
				require.Len(t, s.Parts, 1)
				assert.EqualValues(t, 4*addsEach+1, s.Parts[0].Tally.N())
			})
		}
	}
}
