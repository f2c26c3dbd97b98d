package enginetest_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/stream"
)

func (p place) file() string {
	return strings.TrimPrefix(strings.SplitN(p.dsn, "?", 2)[0],
		"file:")
}

// Nobody else can read the files that heed makes. The host's own files stay as they are.
func TestFilesArePrivate(t *testing.T) {
	for _, b := range files() {
		t.Run(b.name, func(t *testing.T) {
			at := b.place(t)
			st := at.store(t, sqlstore.Config{})
			_, err := st.Commit(ctx, store.Batch{Observations: []evidence.Observation{observe("1",
				time.Now())}})
			require.NoError(t, err)
			for _, suffix := range []string{"", "-wal", "-shm"} {
				info, err := os.Stat(at.file() + suffix)
				require.NoError(t, err)
				assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), suffix)
			}

			at = b.place(t)
			handle, err := at.open()
			require.NoError(t, err)
			_, err = handle.Exec("CREATE TABLE host (n INTEGER)")
			require.NoError(t, err)
			require.NoError(t, handle.Close())
			require.NoError(t, os.Chmod(at.file(), 0o640))
			_ = at.store(t, sqlstore.Config{})
			info, err := os.Stat(at.file())
			require.NoError(t, err)
			assert.Equal(t, os.FileMode(0o640), info.Mode().Perm())
		})
	}
}

// forms returns a text, and what of it stands in base64, wherever it begins there.
func forms(text string) []string {
	all := []string{text}
	for skip := range 3 {
		whole := base64.StdEncoding.EncodeToString([]byte(strings.Repeat(" ", skip) + text))
		first := (skip*8 + 5) / 6 // the first digit that has nothing of what stands before
		all = append(all, whole[first:(skip+len(text))*8/6])
	}
	return all
}

// traces returns how often a text is in the files of a database.
func (p place) traces(t testing.TB, text string) (n int) {
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		raw, err := os.ReadFile(p.file() + suffix)
		if !os.IsNotExist(err) {
			require.NoError(t, err)
		}
		for _, form := range forms(text) {
			n += bytes.Count(bytes.ToLower(raw), []byte(strings.ToLower(form)))
		}
	}
	return n
}

const person = "Zaphod-77"

// personal fills a store with a person, among many others, in all places where heed keeps a name.
func personal(t testing.TB, st *sqlstore.Store, changes int) {
	require.NoError(t, st.Declare(ctx,
		store.Kind{Name: "note", Caused: []string{"of"}, Decided: []string{"by.*", "payload.~.by"}},
		store.Kind{Name: "whole", Caused: []string{"of"}, Whole: true}))
	outbox := stream.Outbox
	outbox.Decided = []string{"payload.~.by"}
	require.NoError(t, st.Declare(ctx, outbox))
	type note struct {
		Of, Text string
		By       []string
		Payload  []byte
	}
	for i := range changes {
		name := fmt.Sprint("user-", i)
		if i%7 == 0 {
			name = person
		}
		at := time.Now()
		var b store.Batch
		b.ID = fmt.Sprint("batch of ", name, i)
		b.Policies = map[string]evidence.Policy{"by origin": {ByOrigin: true}}
		for _, kind := range []string{"plain", "by origin"} {
			o := observe(fmt.Sprint(name, " ", i), at)
			o.Source, o.Cell.Kind, o.Cell.Item = name, kind, fmt.Sprint(i%20)
			b.Observations = append(b.Observations, o)
		}
		own := observe(fmt.Sprint("own of", name, i), at)
		own.Source, own.Cell = name, evidence.Cell{Kind: "people", Item: name}
		b.Observations = append(b.Observations, own)
		n := note{Of: name, Text: strings.Repeat("prose ", i%200), By: []string{"somebody", name}, Payload: fmt.Appendf(nil, `{"by":%q}`, name)}
		for k, kind := range []string{"note", "whole"} {
			b.Records = append(b.Records, store.Record{
				Ref: store.Ref{Kind: kind, ID: fmt.Sprint(i)}, At: at.Add(time.Duration(k*i) * time.Second),
				Keys: []string{store.PersonKey(name), store.Key("n", fmt.Sprint(i%10))}, Body: store.Of(n),
			})
		}
		event := stream.Event{ID: fmt.Sprint(i), Topic: "t", At: at, Payload: n.Payload}
		b.Records = append(b.Records, event.Waiting(name))
		receipts, err := st.Commit(ctx, b)
		require.NoError(t, err)
		if i%3 == 0 { // what was there before lies in pages that are used again
			n.Text = "short"
			r := b.Records[0]
			r.Revision, r.Body, r.At = receipts[0].Revision, store.Of(n), at.Add(-time.Hour)
			_, err := st.Commit(ctx, store.Batch{Records: []store.Record{r}})
			require.NoError(t, err)
		}
	}
}

// After a person was forgotten, no file of the database has a trace of the name.
func TestForgottenInFiles(t *testing.T) {
	skipRaced(t)
	for _, b := range files() {
		t.Run(b.name, func(t *testing.T) {
			at := b.place(t)
			st := at.store(t, sqlstore.Config{})
			personal(t, st, 200)
			require.Greater(t, at.traces(t, person), 50, "this test does not see names")
			status, err := st.Status(ctx)
			require.NoError(t, err)
			assert.True(t, status.Erased, "a commit that forgets no person leaves no names to erase")
			err = store.Run(ctx, st, store.Job{Forget: []string{person}})
			require.NoError(t, err)
			assert.Zero(t, at.traces(t, person))
			n := 0
			for r, err := range st.Find(ctx, store.Query{Kind: "note"}) {
				require.NoError(t, err)
				text, err := r.Body.JSON()
				require.NoError(t, err)
				assert.NotContains(t, string(text), person)
				n++
			}
			assert.Equal(t, 200, n)
		})
	}
}

// After a correction was erased, no file of the database has a trace of its text.
func TestErasedInFiles(t *testing.T) {
	skipRaced(t)
	for _, b := range files() {
		t.Run(b.name, func(t *testing.T) {
			at := b.place(t)
			service, err := feedback.New(ctx, feedback.Config{Store: at.store(t, sqlstore.Config{})})
			require.NoError(t, err)
			for i := range 40 {
				id, text := fmt.Sprint("d", i), fmt.Sprint("Say how many of the ", i, " tests have failed")
				if i == 20 {
					text = "My number is 0170-5550123, call me"
				}
				_, err := service.Record(ctx, feedback.Feedback{
					ID: id, Gate: "review", Agent: "coder", Decision: feedback.Rejected, Reviewer: "ann",
					Summary: text, At: time.Now(),
				})
				require.NoError(t, err)
				_, err = service.Evaluate(ctx, id)
				require.NoError(t, err)
			}
			require.NotZero(t, at.traces(t, "0170-5550123"), "this test does not see texts")
			order := feedback.Act{ID: "d20", Actor: "ops", Reason: "personal"}
			require.NoError(t, service.Erase(ctx, order))
			assert.Zero(t, at.traces(t, "0170-5550123"))
		})
	}
}

// While somebody reads what was before, the log keeps it. The first Sweep afterwards empties it.
func TestForgottenBesideAReader(t *testing.T) {
	skipRaced(t)
	for _, b := range files() {
		t.Run(b.name, func(t *testing.T) {
			at := b.place(t)
			st := at.store(t, sqlstore.Config{})
			personal(t, st, 40)
			handle, err := at.open()
			require.NoError(t, err)
			defer handle.Close() //nolint:errcheck // the test is over
			reader, err := handle.Conn(ctx)
			require.NoError(t, err)
			_, err = reader.ExecContext(ctx, "BEGIN DEFERRED") // some drivers begin with a lock
			require.NoError(t, err)
			var n int
			require.NoError(t,
				reader.QueryRowContext(ctx, "SELECT count(*) FROM heed_record").Scan(&n))
			err = store.Run(ctx, st, store.Job{Forget: []string{person}})
			require.NoError(t, err)
			assert.NotZero(t, at.traces(t, person), "this test does not see what is left")
			status, err := st.Status(ctx)
			require.NoError(t, err)
			assert.False(t, status.Erased)
			_, err = reader.ExecContext(ctx, "ROLLBACK")
			require.NoError(t, err)
			require.NoError(t, st.Sweep(ctx, time.Time{}))
			assert.Zero(t, at.traces(t, person))
			status, err = st.Status(ctx)
			require.NoError(t, err)
			assert.True(t, status.Erased)
		})
	}
}
