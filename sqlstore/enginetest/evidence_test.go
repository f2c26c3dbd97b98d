package enginetest_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/sqlstore"
)

// clock is a clock that a test sets.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func observe(id string, at time.Time) evidence.Observation {
	return evidence.Observation{ID: id, Cell: arm, Reward: 1, Weight: 1, At: at}
}

func add(t testing.TB, store evidence.Store, observations ...evidence.Observation) evidence.Receipt {
	receipt, err := store.Commit(ctx, evidence.Batch{Observations: observations})
	require.NoError(t, err)
	return receipt
}

func count(t testing.TB, store evidence.Store) (n uint64) {
	parts, err := store.Read(ctx, nil, arm)
	require.NoError(t, err)
	for _, p := range parts {
		n += p.Tally.N()
	}
	return n
}

func historyOf(t testing.TB, store evidence.Store) (ids []string) {
	for o, err := range store.History(ctx, arm) {
		require.NoError(t, err)
		ids = append(ids, o.ID)
	}
	return ids
}

// TestOthersAreSeenInTime: a store sees its own commits at once, and those of another no later than it says.
func TestOthersAreSeenInTime(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		c := &clock{now: start}
		cfg := sqlstore.EvidenceConfig{Now: c.time, Stale: time.Minute}
		here, there := newEvidence(t, at.db(t), cfg), newEvidence(t, at.db(t), cfg)
		fresh := newEvidence(t, at.db(t), sqlstore.EvidenceConfig{Now: c.time, NoCache: true})
		assert.Zero(t, count(t, here))
		add(t, there, observe("1", start))
		assert.EqualValues(t, 1, count(t, there))
		assert.Zero(t, count(t, here), "it remembers what it has read")
		assert.EqualValues(t, 1, count(t, fresh))
		c.advance(time.Minute - 1)
		assert.Zero(t, count(t, here))
		c.advance(1)
		assert.EqualValues(t, 1, count(t, here))
		add(t, here, observe("2", start))
		assert.EqualValues(t, 2, count(t, here))
		_, err := here.Commit(ctx, evidence.Batch{Reset: []evidence.Selection{{Kind: arm.Kind, Scope: arm.Scope}}})
		require.NoError(t, err)
		assert.Zero(t, count(t, here))
	})
}

// TestReadsRaceWithCommits: whoever reads after a commit has returned sees it, cached or not, whatever is read meanwhile.
func TestReadsRaceWithCommits(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		store := newEvidence(t, at.db(t), sqlstore.EvidenceConfig{MaxCached: 1})
		stop := make(chan struct{})
		var wait sync.WaitGroup
		for range 3 {
			wait.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
						_, err := store.Read(ctx, nil, arm, evidence.Cell{Kind: "other", Item: arm.Item})
						assert.NoError(t, err)
					}
				}
			})
		}
		for i := range 50 {
			add(t, store, observe(fmt.Sprint(i), time.Now()))
			assert.EqualValues(t, i+1, count(t, store))
		}
		close(stop)
		wait.Wait()
	})
}

// TestCommitTx: a batch stands or falls with the host's transaction, and a batch that is refused leaves it as it was.
func TestCommitTx(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle := ofHost(at).handle(t)
		_, err := handle.Exec("CREATE TABLE host (what TEXT)")
		require.NoError(t, err)
		db, err := sqlstore.New(ctx, handle, at.dialect)
		require.NoError(t, err)
		store := newEvidence(t, db, sqlstore.EvidenceConfig{NoCache: true})
		for _, end := range []string{"rollback", "commit"} {
			tx, err := handle.BeginTx(ctx, nil)
			require.NoError(t, err)
			_, err = tx.Exec("INSERT INTO host VALUES ('mine')")
			require.NoError(t, err)
			receipt, err := store.CommitTx(ctx, tx, outcome(end))
			require.NoError(t, err)
			assert.Empty(t, receipt)
			receipt, err = store.CommitTx(ctx, tx, outcome(end))
			require.NoError(t, err)
			assert.Equal(t, []string{end}, receipt.Duplicates)

			refused := outcome("refused")
			refused.Policies = map[string]evidence.Policy{arm.Kind: {HalfLife: time.Hour}}
			_, err = store.CommitTx(ctx, tx, refused)
			require.ErrorIs(t, err, heed.ErrConflict)
			_, err = store.CommitTx(ctx, tx, evidence.Batch{Retract: []string{"refused"}})
			require.ErrorIs(t, err, heed.ErrNotFound)
			_, err = store.CommitTx(ctx, tx, evidence.Batch{Retract: []string{end}, Observations: []evidence.Observation{observe(end+" too", time.Now())}})
			require.NoError(t, err)
			if end == "commit" {
				require.NoError(t, tx.Commit())
			} else {
				require.NoError(t, tx.Rollback())
			}
		}
		var mine int
		require.NoError(t, handle.QueryRow("SELECT count(*) FROM host").Scan(&mine))
		assert.Equal(t, 1, mine)
		assert.Equal(t, []string{"commit too"}, historyOf(t, store))
		assert.EqualValues(t, 1, count(t, store))
	})
}

// TestPolicyOfACellWithoutEvidence: a cell that nothing counts in any more takes any policy again.
func TestPolicyOfACellWithoutEvidence(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		store := newEvidence(t, at.db(t), sqlstore.EvidenceConfig{})
		add(t, store, observe("1", time.Now()))
		_, err := store.Commit(ctx, evidence.Batch{Retract: []string{"1"}})
		require.NoError(t, err)
		b := outcome("2")
		b.Policies = map[string]evidence.Policy{arm.Kind: {HalfLife: time.Hour}}
		_, err = store.Commit(ctx, b)
		require.NoError(t, err)
		parts, err := store.Read(ctx, nil, arm)
		require.NoError(t, err)
		assert.Equal(t, time.Hour, parts[0].Tally.HalfLife)
	})
}

func TestEvidenceSweep(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		c := &clock{now: start}
		db := at.db(t)
		store := newEvidence(t, db, sqlstore.EvidenceConfig{
			Now: c.time, HistoryPerCell: 3, HistoryFor: time.Hour, IDsFor: 2 * time.Hour, MaxAudit: 2, MaxEvents: 2,
		})
		for i := range 5 {
			b := outcome(fmt.Sprint(i))
			b.Observations[0].At = start.Add(time.Duration(i) * time.Second)
			b.Audit[0].At, b.Events = start, nil
			_, err := store.Commit(ctx, b)
			require.NoError(t, err)
		}
		require.NoError(t, store.Sweep(ctx))
		assert.Equal(t, []string{"4", "3", "2"}, historyOf(t, store), "those that happened last")
		audit, err := collect(store.Audit(ctx))
		require.NoError(t, err)
		assert.Len(t, audit, 2)
		_, err = store.Commit(ctx, evidence.Batch{Retract: []string{"4", "1"}})
		assert.ErrorIs(t, err, evidence.ErrForgotten)
		_, err = store.Commit(ctx, evidence.Batch{Rebuild: []evidence.Cell{arm}})
		assert.ErrorIs(t, err, evidence.ErrForgotten)
		assert.EqualValues(t, 5, count(t, store))
		_, err = store.Commit(ctx, evidence.Batch{Retract: []string{"4"}})
		require.NoError(t, err)

		event := func(id string) evidence.Batch {
			return evidence.Batch{Events: []evidence.Event{{ID: id, Topic: "t", At: start}}}
		}
		for _, id := range []string{"a", "b"} {
			_, err = store.Commit(ctx, event(id))
			require.NoError(t, err)
		}
		_, err = store.Commit(ctx, event("c"))
		assert.ErrorIs(t, err, evidence.ErrFull)
		sent := event("c")
		sent.Sent = []string{"b"}
		_, err = store.Commit(ctx, sent)
		require.NoError(t, err, "what was sent makes room, whatever its number")

		c.advance(time.Hour + time.Second)
		require.NoError(t, store.Sweep(ctx))
		assert.Empty(t, historyOf(t, store))
		assert.EqualValues(t, 4, count(t, store), "the sums outlive the history")
		assert.Equal(t, []string{"2"}, add(t, store, observe("2", start)).Duplicates, "and so do the ids")
		c.advance(time.Hour)
		require.NoError(t, store.Sweep(ctx))
		assert.Empty(t, add(t, store, observe("2", start)).Duplicates, "for their time")
	})
}

func TestEvidenceWithoutHistory(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		db := at.db(t)
		store := newEvidence(t, db, sqlstore.EvidenceConfig{NoHistory: true})
		b := outcome("1")
		b.Observations[0].Source = "ann"
		_, err := store.Commit(ctx, b)
		require.NoError(t, err)
		assert.Empty(t, historyOf(t, store))
		later := newEvidence(t, db, sqlstore.EvidenceConfig{})
		for _, b := range []evidence.Batch{{Retract: []string{"1"}}, {Expunge: []string{"bob"}}, {Rebuild: []evidence.Cell{arm}}} {
			for _, s := range []evidence.Store{store, later} {
				_, err := s.Commit(ctx, b)
				assert.ErrorIs(t, err, evidence.ErrForgotten)
			}
		}
		assert.EqualValues(t, 1, count(t, later))
	})
}

// TestHostileTexts takes what breaks programs that put texts into statements, everywhere that a text may stand.
func TestHostileTexts(t *testing.T) {
	skipRaced(t)
	texts := []string{
		"'", "''", `"`, `\`, `\'`, "`", ";", "--", "/*", "%", "_", "?", "$1", ":a", "@a", "x'00'", "\\x00", "{}", "[]", `"]]`, "\u2028",
		"'; DROP TABLE heed_cells; --", "' OR '1'='1", "1); DELETE FROM heed_ids", "\n", "\t", "\x01", "\x7f", "é", "e\u0301", "日本", "🦉",
		"\u202e", "\ufeff", "null", "true", "1e999", "NaN", " ", "  a", "a  ",
	}
	onEach(t, func(t *testing.T, at place) {
		store := newEvidence(t, at.db(t), sqlstore.EvidenceConfig{NoCache: true})
		policies := map[string]evidence.Policy{}
		for _, text := range texts {
			policies[text] = evidence.Policy{ByOrigin: true}
		}
		for i, text := range texts {
			o := evidence.Observation{
				ID: text, Cell: evidence.Cell{Kind: text, Scope: text, Item: text, Name: text},
				Channel: text, Source: text, Session: text, Reward: 0.1, Weight: 0.3, At: start,
			}
			entry := evidence.AuditEntry{ID: text, At: start, Actor: text, Action: text, Subject: text, Reason: text, Details: map[string]string{text: text}}
			event := evidence.Event{ID: text, Topic: text, At: start, Payload: []byte(text)}
			b := evidence.Batch{
				Policies: policies, Observations: []evidence.Observation{o},
				Audit: []evidence.AuditEntry{entry}, Events: []evidence.Event{event},
			}
			_, err := store.Commit(ctx, b)
			require.NoError(t, err)
			receipt, err := store.Commit(ctx, b)
			require.NoError(t, err)
			require.Equal(t, []string{text}, receipt.Duplicates)
			for part, err := range store.List(ctx, text, text) {
				require.NoError(t, err)
				require.Equal(t, o.Cell, part.Cell)
				require.Equal(t, [2]string{text, text}, [2]string{part.Channel, part.Source})
				require.Equal(t, 0.3, part.Tally.Mass, "to the last bit")
				require.Equal(t, 0.3*0.1, part.Tally.Reward)
			}
			for got, err := range store.History(ctx, o.Cell) {
				require.NoError(t, err)
				require.Equal(t, o, got)
			}
			for got, err := range store.Audit(ctx) {
				require.NoError(t, err)
				require.Equal(t, entry, got)
				break
			}
			n := 0
			for got, err := range store.Outbox(ctx) {
				require.NoError(t, err)
				require.Equal(t, texts[n], got.ID)
				n++
			}
			require.Equal(t, i+1, n)
		}
		_, err := store.Commit(ctx, evidence.Batch{Sent: texts, Retract: texts[:5], Expunge: texts[5:10]})
		require.NoError(t, err)
		for i, text := range texts {
			found, err := collect(store.Scopes(ctx, text))
			require.NoError(t, err)
			require.Equal(t, i >= 10, len(found) == 1, "%q", text)
		}
	})
}

// TestDamagedRows: what can't be read is left out of lists and counted, and what is asked for by its name is an error.
func TestDamagedRows(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		handle := at.handle(t)
		db, err := sqlstore.New(ctx, handle, at.dialect)
		require.NoError(t, err)
		s := newStores(t, handle, db)
		for i := range 3 {
			require.NoError(t, commit(outcome(fmt.Sprint(i)))(s))
			require.NoError(t, s.choices.Add(ctx, choiceOf(i)))
		}
		for _, damage := range []string{
			`UPDATE heed_history SET observation = '{"id":' WHERE id = '1'`,
			`UPDATE heed_audit SET entry = 'x' || entry WHERE entry LIKE '%"1"%'`,
			`UPDATE heed_outbox SET happened = 'never' WHERE id = '1'`,
			`UPDATE heed_choices SET choice = '[' WHERE id = '` + choiceOf(1).ID.String() + `'`,
		} {
			result, err := handle.Exec(damage)
			require.NoError(t, err)
			n, err := result.RowsAffected()
			require.NoError(t, err)
			require.EqualValues(t, 1, n, damage)
		}
		assert.Equal(t, []string{"2", "0"}, historyOf(t, s.evidence))
		audit, err := collect(s.evidence.Audit(ctx))
		require.NoError(t, err)
		assert.Len(t, audit, 2)
		outbox, err := collect(s.evidence.Outbox(ctx))
		require.NoError(t, err)
		assert.Len(t, outbox, 2)
		_, err = s.choices.Get(ctx, choiceOf(1).ID)
		assert.Error(t, err)
		assert.NotErrorIs(t, err, heed.ErrNotFound)
		_, err = s.choices.Get(ctx, choiceOf(2).ID)
		assert.NoError(t, err)
		assert.Positive(t, db.Damaged())
	})
}

// TestAnEventWhoseIDIsNoLongerKnown waits in the outbox once, if it waits there still.
func TestAnEventWhoseIDIsNoLongerKnown(t *testing.T) {
	onEach(t, func(t *testing.T, at place) {
		now := time.Now()
		store := newEvidence(t, at.db(t), sqlstore.EvidenceConfig{Now: func() time.Time { return now }})
		batch := evidence.Batch{Events: []evidence.Event{{ID: "e", Topic: "t", At: now}}}
		_, err := store.Commit(ctx, batch)
		require.NoError(t, err)
		now = now.Add(31 * 24 * time.Hour)
		require.NoError(t, store.Sweep(ctx))
		_, err = store.Commit(ctx, batch)
		require.NoError(t, err)
		waiting, err := collect(store.Outbox(ctx))
		require.NoError(t, err)
		assert.Len(t, waiting, 1)
	})
}
