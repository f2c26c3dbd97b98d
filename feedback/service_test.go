package feedback_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/memstore"
	"github.com/heedhq/heed/store"
)

func TestRecordKeepsEveryField(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	f := w.correction("Ann", " too long ")
	f.Epic, f.Task, f.DiffPath, f.ApprovedSHA = "epic", "task", "corrections/1.diff", "sha-b"
	f.Duration, f.Comment, f.Tags = 95*time.Second, "half would do",
		[]string{"scope-creep", "quality", "quality"}
	f.At = f.At.In(time.FixedZone("", 3600))
	duplicate, err := w.Record(ctx, f)
	require.NoError(t, err)
	assert.False(t, duplicate)
	got := w.get("d1")
	assert.Empty(t, got.Class, "it is kept before it is evaluated")
	assert.Equal(t, "medium", got.Severity)
	f.Reviewer, f.Summary, f.Severity, f.Tags, f.At = "ann", "too long", "medium",
		[]string{"quality", "scope-creep"}, f.At.UTC()
	assert.NotZero(t, got.Recorded)
	got.Recorded, got.Revision = time.Time{}, 0
	assert.Equal(t, f, got)
}

func TestRecordCountsOnce(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	f := w.correction("ann", "too long")
	_, err := w.Record(ctx, f)
	require.NoError(t, err)
	w.clock.advance(time.Hour)
	again, err := w.Record(ctx, f)
	require.NoError(t, err)
	assert.True(t, again)
	_, total, err := w.List(ctx, feedback.Listing{})
	require.NoError(t, err)
	assert.Equal(t, 1, total)

	w.add(f) // once it is evaluated, the same still is the same
	again, err = w.Record(ctx, f)
	require.NoError(t, err)
	assert.True(t, again)

	for _, change := range []func(*feedback.Feedback){
		func(f *feedback.Feedback) { f.Summary = "too short" },
		func(f *feedback.Feedback) { f.Reviewer = "bob" },
		func(f *feedback.Feedback) { f.Tags = []string{"scope"} },
		func(f *feedback.Feedback) { f.At = f.At.Add(time.Microsecond) },
	} {
		changed := f
		change(&changed)
		_, err = w.Record(ctx, changed)
		assert.ErrorIs(t, err, heed.ErrConflict)
	}
	assert.Equal(t, "too long", w.get(f.ID).Summary)
}

func TestRecordRefusesWhatIsNotValid(t *testing.T) {
	w := newWorld(t, feedback.Config{Agents: []string{"prd"}})
	for _, test := range []struct {
		field  string
		change func(*feedback.Feedback)
	}{
		{"ID", func(f *feedback.Feedback) { f.ID = "" }},
		{"ID", func(f *feedback.Feedback) { f.ID = strings.Repeat("x", 1025) }},
		{"Gate", func(f *feedback.Feedback) { f.Gate = "" }},
		{"Agent", func(f *feedback.Feedback) { f.Agent = "" }},
		{"Agent", func(f *feedback.Feedback) { f.Agent = "unknown" }},
		{"Epic", func(f *feedback.Feedback) { f.Epic = "\xff" }},
		{"Decision", func(f *feedback.Feedback) { f.Decision = "approved" }},
		{"Decision", func(f *feedback.Feedback) {
			f.Decision, f.DiffPath = feedback.Approved,
				"x.diff"
		}},
		{"Decision", func(f *feedback.Feedback) {
			f.Decision, f.ApprovedSHA = feedback.Approved,
				"other"
		}},
		{"ApprovedSHA", func(f *feedback.Feedback) {
			f.Decision, f.ApprovedSHA = feedback.Rejected,
				"sha"
		}},
		{"Reviewer", func(f *feedback.Feedback) { f.Reviewer = "" }},
		{"Reviewer", func(f *feedback.Feedback) { f.Reviewer = "ann " }},
		{"Reviewer", func(f *feedback.Feedback) { f.Reviewer = "аnn" }}, // the first letter is Cyrillic
		{"At", func(f *feedback.Feedback) { f.At = time.Time{} }},
		{"At", func(f *feedback.Feedback) { f.At = f.At.Add(6 * time.Minute) }},
		{"Duration", func(f *feedback.Feedback) { f.Duration = -1 }},
		{"Severity", func(f *feedback.Feedback) { f.Severity = "huge" }},
		{"Summary", func(f *feedback.Feedback) { f.Summary = strings.Repeat("ä", 501) }},
		{"Comment", func(f *feedback.Feedback) { f.Comment = "a\x00b" }},
		{"Tags[0]", func(f *feedback.Feedback) { f.Tags = []string{""} }},
		{"Tags", func(f *feedback.Feedback) { f.Tags = many(101) }},
		{"Rules[0]", func(f *feedback.Feedback) { f.Rules = []string{"\x00"} }},
	} {
		f := w.correction("ann", "too long")
		test.change(&f)
		_, err := w.Record(ctx, f)
		var fault *heed.InputError
		if assert.ErrorAs(t, err, &fault, test.field) {
			assert.Equal(t, test.field, fault.Field)
		}
	}
	_, total, err := w.List(ctx, feedback.Listing{})
	require.NoError(t, err)
	assert.Zero(t, total)

	most := w.correction("ann", strings.Repeat("ä", 500))
	_, err = w.Record(ctx, most)
	assert.NoError(t, err)
}

func many(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(i))
	}
	return all
}

func TestRedactionComesFirst(t *testing.T) {
	w := newWorld(t, feedback.Config{Redact: func(
		text string) string {
		return strings.ReplaceAll(text, "hunter2", "[secret]")
	}})
	f := w.correction("ann", "do not print hunter2")
	f.Comment, f.Tags = "hunter2 again", []string{"secrets", "hunter2"}
	w.add(f)
	assert.Equal(t, []string{"secrets", "hunter2"}, f.Tags, "the caller's stay as they are")
	got := w.get(f.ID)
	assert.Equal(t, []string{"[secret]", "secrets"}, got.Tags)
	assert.Equal(t, "do not print [secret]", got.Summary)
	assert.Equal(t, "[secret] again", got.Comment)
	w = newWorld(t, feedback.Config{Redact: func(string) string { panic("no") }})
	_, err := w.Record(ctx, w.correction("ann", "x"))
	assert.ErrorAs(t, err, new(*heed.PanicError))
}

func TestConcurrentRecords(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	var wg sync.WaitGroup
	for i := range 100 {
		f := w.correction("ann", fmt.Sprint("thing ", i%7))
		for range 2 {
			wg.Go(func() {
				_, err := w.Record(ctx, f)
				assert.NoError(t, err)
				_, err = w.Evaluate(ctx, f.ID)
				assert.NoError(t, err)
			})
		}
	}
	wg.Wait()
	_, total, err := w.List(ctx, feedback.Listing{})
	require.NoError(t, err)
	assert.Equal(t, 100, total)
	_, total, err = w.rules.Proposals(ctx, feedback.ProposalQuery{}, 0)
	require.NoError(t, err)
	assert.Equal(t, 7, total, "one for each thing, as they differ in their numbers")
}

func TestAContextThatIsDoneChangesNothing(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	p := w.propose("paul", rule("be brief"))
	done, cancel := context.WithCancel(ctx)
	cancel()
	f := w.correction("ann", "too long")
	_, recorded := w.Record(done, f)
	_, evaluated := w.Evaluate(done, f.ID)
	_, all := w.EvaluateAll(done)
	_, _, flushed := w.Flush(done)
	_, reviewed := w.rules.Review(done, feedback.Review{Proposal: p.ID, Decision: feedback.Rejected,
		Actor: "cleo", Reason: "no"})
	_, injected := w.rules.Inject(done, "prd", "", "")
	swept := w.Sweep(done, time.Time{})
	for i, err := range []error{recorded, evaluated, all, flushed, reviewed, injected, swept} {
		assert.ErrorIs(t, err, context.Canceled, "%d", i)
	}
	_, err := w.Feedback(ctx, f.ID)
	assert.ErrorIs(t, err, heed.ErrNotFound)
	assert.Equal(t, feedback.StatePending, w.pending().Status)
}

func TestList(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	for i := range 5 {
		f := w.correction("ann", fmt.Sprint("Thing ", i))
		if i == 3 {
			f.Gate, f.Comment = "HITL-2", "A Ratelimit is Missing"
		}
		w.add(f)
		w.clock.advance(day)
	}
	list := func(l feedback.Listing) string {
		records, total, err := w.List(ctx, l)
		require.NoError(t, err)
		got := ""
		for _, r := range records {
			got += r.ID
		}
		return fmt.Sprint(got, " of ", total)
	}
	assert.Equal(t, "d5d4d3d2d1 of 5", list(feedback.Listing{}))
	assert.Equal(t, "d5d4 of 5", list(feedback.Listing{Limit: 2}),
		"the total is that without the limit")
	assert.Equal(t, "d4 of 1", list(feedback.Listing{Words: "MISSING ratelimit"}))
	assert.Equal(t, "d4 of 1", list(feedback.Listing{Gate: "HITL-2", Class: feedback.EdgeCase}),
		"an edge case")
	assert.Equal(t, "d2 of 1", list(feedback.Listing{Since: start.Add(day),
		Until: start.Add(2 * day)}))
	assert.Equal(t, " of 0", list(feedback.Listing{Agent: "other"}))
}

func TestErase(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	f := w.correction("ann", "the summary is too long")
	w.add(f)
	w.says("bob", "the summary is too long")
	p := w.pending()
	require.Equal(t, []string{"d1", "d2"}, p.Evidence)
	w.approve(p, "cleo")
	require.NoError(t, w.Erase(ctx, feedback.Act{ID: "d1", Actor: "ann", Reason: "as is my right"}))
	_, err := w.Feedback(ctx, "d1")
	assert.ErrorIs(t, err, heed.ErrNotFound)
	duplicate, err := w.Record(ctx, f)
	require.NoError(t, err)
	assert.True(t, duplicate, "it does not come back")
	matches, err := w.Similar(ctx, f, 0)
	require.NoError(t, err)
	assert.Len(t, matches, 1)
	_, err = w.Evaluate(ctx, "d1")
	assert.ErrorIs(t, err, heed.ErrNotFound)
	before := p.Hash()
	p = w.pending()
	assert.Empty(t, p.Approvals)
	assertStale(t, w, p, before)
	assert.Equal(t, 2, p.Occurrences, "proposals keep their counts")
	assert.Equal(t, []string{"d1", "d2"}, p.Evidence)
	assert.Equal(t, []string{"evaluate:", "promote:", "erase:ann"}, w.audit("d1"))
	w.says("eve", "the summary is too long")
	assert.Equal(t, []string{"d1", "d2", "d3"}, w.pending().Evidence, "it still names what is erased")
	require.NoError(t, w.Erase(ctx, feedback.Act{ID: "d1", Actor: "ann", Reason: "again"}))
	assert.ErrorIs(t, w.Erase(ctx, feedback.Act{ID: "unknown", Actor: "ann", Reason: "why not"}),
		heed.ErrNotFound)
	assert.ErrorAs(t, w.Erase(ctx, feedback.Act{ID: "d2", Actor: "ann", Reason: " "}),
		new(*heed.InputError))
	var kept store.Snapshot
	require.NoError(t, w.store.Read(ctx, &kept, nil,
		[]store.Ref{{Kind: "feedback.record", ID: "d1"}}))
	text, err := kept.Records[0].Body.JSON()
	require.NoError(t, err)
	assert.NotContains(t, string(text), "summary is", "nothing of it is left")
	assert.Empty(t, kept.Records[0].Keys)
}

func TestConfigIsCheckedAndReadBack(t *testing.T) {
	_, err := feedback.New(ctx, feedback.Config{
		Threshold: 2, Agents: []string{""},
		Gate: feedback.Gate{
			Quorum: 11, Outsiders: 12, Pending: -1,
		},
	})
	var fields []string
	for fault := range heed.ConfigErrors(err) {
		fields = append(fields, fault.Field)
	}
	assert.ElementsMatch(t, []string{
		"Store", "Threshold", "Agents[0]",
		"Gate.Quorum",
		"Gate.Outsiders", "Gate.Pending",
	}, fields)

	s, err := feedback.New(ctx, feedback.Config{Store: &memstore.Store{}, Agents: []string{"a"}})
	require.NoError(t, err)
	cfg := s.Config()
	assert.Equal(t, heed.Trigrams{}, cfg.Similarity)
	assert.Equal(t, 0.4, cfg.Threshold)
	assert.Equal(t, 1000, feedback.Window(cfg))
	assert.Equal(t, feedback.Gate{
		Quorum: 2, Outsiders: 1, Pending: 200,
	}, cfg.Gate)
	cfg.Agents[0] = "changed"
	assert.Equal(t, []string{"a"}, s.Config().Agents)

	spec := feedback.SpecConfig()
	assert.Equal(t, 0.8, spec.Threshold)
	spec.Store = &memstore.Store{}
	_, err = feedback.New(ctx, spec)
	assert.NoError(t, err)
}

func TestCanonicalID(t *testing.T) {
	for id, want := range map[string]string{"Ann": "ann", "ANN@example.org": "ann@example.org",
		"a b": "a b", "ÄNN": "änn", "A\u0308nn": "änn"} {
		got, err := feedback.CanonicalID(id)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	for _, id := range []string{"", " ", " ann", "ann\t", "ann\n", "a\u200bnn", "аnn", "ａｎｎ",
		"ann\x00", "\xff", strings.Repeat("a", 1025)} {
		_, err := feedback.CanonicalID(id)
		assert.Error(t, err, "%q", id)
	}
	w := newWorld(t, feedback.Config{})
	assert.Equal(t, "änn", w.says("ÄNN", "x").Reviewer)
}

// Two spellings of a name do not approve twice.
func TestSpellingsOfANameAreOnePerson(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	p := w.propose("paul", rule("Be brief"))
	for _, spelling := range []string{"Jos\u00e9", "jose\u0301", "JOS\u00c9"} {
		var err error
		p, err = w.review(p, approve, spelling)
		require.NoError(t, err)
		assert.Equal(t, feedback.StatePending, p.Status)
	}
	require.Len(t, p.Approvals, 1)
	assert.Equal(t, "jos\u00e9", p.Approvals[0].Actor)
	_, err := w.review(p, approve, "j\u043es\u00e9") // with a Cyrillic o
	var refused *heed.InputError
	require.ErrorAs(t, err, &refused)
	assert.Equal(t, feedback.StateApproved, w.approve(p, "山田").Status)
}
