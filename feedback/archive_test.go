package feedback_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/internal/failing"
	"github.com/heedhq/heed/store"
)

// full is a world with something of everything.
func full(t *testing.T) *world {
	w := newWorld(t, feedback.Config{})
	w.says("ann", long)
	w.says("bob", long)
	w.approve(w.pending(), "cleo", "dan")
	w.says("ann", "alone in the world")
	w.clock.advance(time.Minute)
	retired := w.activate(rule("Say why"))
	_, err := w.rules.Move(ctx, order(retired.ID), feedback.StateRetired)
	require.NoError(t, err)
	rejected := w.propose("paul", rule("Use more colours"))
	_, err = w.review(rejected, reject, "cleo")
	require.NoError(t, err)
	w.approve(w.propose("olga", rule("Date every decision")), "cleo")
	return w
}

func (w *world) export() feedback.Archive {
	w.t.Helper()
	a, err := w.Export(ctx)
	require.NoError(w.t, err)
	return a
}

func tree(t *testing.T, a feedback.Archive) fstest.MapFS {
	files, err := a.Tree()
	require.NoError(t, err)
	system := fstest.MapFS{}
	for name, text := range files {
		system[name] = &fstest.MapFile{Data: text}
	}
	return system
}

func names(system fstest.MapFS) (all []string) {
	for name := range system {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// TestCopiesShareNothing, so that whoever gets one may change it.
func TestCopiesShareNothing(t *testing.T) {
	list, was := []string{"x"}, feedback.Draft{}
	f := feedback.Feedback{Tags: list, Rules: list}
	f.Similar, f.Apart, f.Contradicts = list, list, list
	p := feedback.Proposal{Was: &was, Evidence: list, Authors: list, Writers: list, Warnings: list, Conflicts: make([]feedback.Conflict, 1), Approvals: make([]feedback.Approval, 1)}
	r := feedback.Rule{Clusters: list, Authors: list, Writers: list, Approvals: make([]feedback.Approval, 1)}
	for value, copied := range map[any]any{&f: feedback.Copy(f), &p: feedback.Copy(p), &r: feedback.Copy(r)} {
		one, other := reflect.ValueOf(value).Elem(), reflect.ValueOf(copied)
		for _, field := range reflect.VisibleFields(one.Type()) {
			a, b := one.FieldByIndex(field.Index), other.FieldByIndex(field.Index)
			if (a.Kind() == reflect.Slice || a.Kind() == reflect.Pointer) && !a.IsNil() {
				assert.NotEqual(t, a.Pointer(), b.Pointer(), "%T.%s", copied, field.Name)
			}
		}
	}
}

func TestExportIsATreeOfFiles(t *testing.T) {
	w := full(t)
	a := w.export()
	files := tree(t, a)
	dirs := map[string]int{}
	for _, name := range names(files) {
		dirs[name[:strings.LastIndex(name, "/")]]++
		assert.True(t, fs.ValidPath(name))
		assert.True(t, json.Valid(files[name].Data))
	}
	assert.Equal(t, map[string]int{
		"feedback/decisions/hitl-1~bfebd06f7060e3881a6e3f69d5f71218": 3, "feedback/edge_cases": 1, "feedback/rules/active": 1,
		"feedback/rules/retired": 1, "feedback/rules/approved": 2, "feedback/rules/rejected": 1, "feedback/rules/proposed": 1,
	}, dirs)
	assert.Equal(t, files, tree(t, w.export()), "to the byte")

	back, err := feedback.ReadTree(files)
	require.NoError(t, err)
	assert.Equal(t, a, back, "nothing is lost, and not what speaks for an active rule either")
	text, err := json.Marshal(a)
	require.NoError(t, err)
	var again feedback.Archive
	require.NoError(t, json.Unmarshal(text, &again))
	assert.Equal(t, a, again)
}

func TestNoIDLeadsElsewhere(t *testing.T) {
	ids := []string{
		"../../etc/passwd", "/abs", "..", ".", ".git", "a/b", "a\\b", "CON", "con", "A", "a", "a ", "ä", "x\x7f", strings.Repeat("y", 1000),
		strings.Repeat("y", 1001), "nul.x", "a~b", "*", "?", "漢字", "-", "~", "a:b", "a.json", "",
	}
	var a feedback.Archive
	for _, id := range ids {
		a.Feedback = append(a.Feedback, feedback.Feedback{ID: id, Gate: id})
	}
	files := tree(t, a)
	assert.Len(t, files, len(ids), "no two meet")
	folded := map[string]bool{}
	for name := range files {
		assert.True(t, fs.ValidPath(name), name)
		parts := strings.Split(name, "/")
		require.Len(t, parts, 4, name)
		assert.Equal(t, []string{"feedback", "decisions"}, parts[:2])
		for _, part := range parts {
			assert.NotEqual(t, '.', part[0])
			stem, _, _ := strings.Cut(part, ".")
			assert.NotContains(t, []string{"con", "nul"}, stem, "a device on Windows")
			assert.Less(t, len(part), 120)
		}
		folded[strings.ToLower(name)] = true
	}
	assert.Len(t, folded, len(ids), "nor where case is of no account")
}

func TestImport(t *testing.T) {
	w := full(t)
	a := w.export()
	into := newWorld(t, feedback.Config{})
	results, err := into.Import(ctx, a, "Igor", "moved house")
	require.NoError(t, err)
	assert.Len(t, results, len(a.Feedback)+len(a.Rules)+len(a.Proposals))
	for _, r := range results {
		assert.NoError(t, r.Err, "%s %s", r.Kind, r.ID)
		assert.True(t, r.Done)
	}
	assert.Equal(t, w.inject("prd", "").Prompt, into.inject("prd", "").Prompt)
	assert.Equal(t, feedback.StateRetired, into.rule(a.Rules[slices.IndexFunc(a.Rules, func(r feedback.Rule) bool { return r.Status == feedback.StateRetired })].ID).Status)
	p := into.pending()
	assert.Empty(t, p.Approvals, "what waits has to be approved here")
	assert.Equal(t, []string{"igor", "olga"}, p.Writers)
	_, err = into.review(p, approve, "igor")
	assert.Equal(t, "ineligible", feedback.Refusal(err))
	into.count = w.count
	assert.Equal(t, feedback.GeneralizableHigh, into.says("eve", long).Class, "clusters go on")
	assert.Empty(t, into.flush().Proposed)

	results, err = into.Import(ctx, a, "igor", "again")
	require.NoError(t, err)
	for _, r := range results {
		assert.NoError(t, r.Err, "%s %s", r.Kind, r.ID)
		assert.False(t, r.Done, "it is there already")
	}
}

func TestImportRefusesItemByItem(t *testing.T) {
	w := full(t)
	a := w.export()
	active := slices.IndexFunc(a.Rules, func(r feedback.Rule) bool { return r.Status == feedback.StateActive })
	for name, change := range map[string]func(*feedback.Rule){
		"one approval":              func(r *feedback.Rule) { r.Approvals = r.Approvals[:1] },
		"one person twice":          func(r *feedback.Rule) { r.Approvals[1].Actor = "CLEO" },
		"other words":               func(r *feedback.Rule) { r.Text = "Never mind the summary" },
		"its writer among them":     func(r *feedback.Rule) { r.Writers = []string{"Dan"} },
		"nobody":                    func(r *feedback.Rule) { r.Approvals[0].Actor = "" },
		"authors of the evidence":   func(r *feedback.Rule) { r.Authors = []string{"Cleo", "DAN"} },
		"text that would be forged": func(r *feedback.Rule) { r.Text = "a\n# b" },
		"no status":                 func(r *feedback.Rule) { r.Status = "" },
		"no id":                     func(r *feedback.Rule) { r.ID = "" },
	} {
		into := newWorld(t, feedback.Config{})
		r := feedback.Copy(a.Rules[active])
		change(&r)
		bad := feedback.Archive{Rules: []feedback.Rule{r, a.Rules[active]}}
		results, err := into.Import(ctx, bad, "igor", "x")
		require.NoError(t, err)
		assert.Error(t, results[0].Err, name)
		assert.False(t, results[0].Done, name)
		assert.NoError(t, results[1].Err, "%s: the others come", name)
		assert.Len(t, into.inject("prd", "").Rules, 1, name)
	}

	into := newWorld(t, feedback.Config{TrustArchive: true})
	opposite := into.activate(rule("the summary is not too long"))
	results, err := into.Import(ctx, feedback.Archive{Rules: a.Rules}, "igor", "x")
	require.NoError(t, err)
	assert.Equal(t, "conflict", feedback.Refusal(results[active].Err))
	assert.Equal(t, []string{opposite.ID}, into.inject("prd", "").Rules)

	other := feedback.Copy(a.Rules[active])
	other.Place = "elsewhere"
	for i := range other.Approvals {
		other.Approvals[i].Hash = other.Hash()
	}
	results, err = newWorld(t, feedback.Config{Store: w.store, TrustArchive: true}).Import(ctx, feedback.Archive{
		Rules: []feedback.Rule{other},
		Feedback: []feedback.Feedback{
			{ID: "d1", Gate: "g", Agent: "a", Decision: feedback.Rejected, Reviewer: "ann", At: start},
			{ID: "bad"},
			{ID: "e1", Gate: "g", Agent: "a", Decision: feedback.Rejected, Reviewer: "ann", At: start, Evaluation: feedback.Evaluation{Class: "x"}},
			{ID: "e2", Gate: "g", Agent: "a", Decision: feedback.Rejected, Reviewer: "ann", At: start, Evaluation: feedback.Evaluation{Resolution: "\x00"}},
		},
		Proposals: []feedback.Proposal{
			{ID: "p1", Draft: rule("x"), Status: feedback.StateApproved},
			{ID: "p2", Draft: rule("x"), Status: "NEW"},
			{ID: "p3", Draft: rule("x"), Status: feedback.StatePending, Confidence: 2},
			{ID: "p4", Draft: feedback.Draft{Text: "x", Agents: []string{"prd"}, Action: feedback.DocumentOnly}, Status: feedback.StatePending},
		},
	}, "igor", "x")
	require.NoError(t, err)
	for _, r := range results {
		assert.Error(t, r.Err, "%s %s", r.Kind, r.ID)
	}
	assert.ErrorIs(t, results[0].Err, heed.ErrConflict)
	assert.ErrorIs(t, results[4].Err, heed.ErrConflict, "another rule has its id")
	assert.ErrorIs(t, results[5].Err, heed.ErrNotFound, "an approved proposal is worth what its rule is")
}

// Elsewhere its claims of approvals are worth nothing.
func TestAnArchiveIsABackupOnlyOfAnEmptyStore(t *testing.T) {
	from := full(t)
	active := from.activate(rule("Name the database"))
	from.change(active.ID, feedback.Pin)
	a := from.export()
	for name, fill := range map[string]func(*world){
		"feedback":  func(w *world) { w.says("zoe", "something else") },
		"proposals": func(w *world) { w.propose("zoe", rule("Write less")) },
	} {
		into := newWorld(t, feedback.Config{NewID: ids("into-")})
		into.count = 100
		fill(into)
		results, err := into.Import(ctx, a, "Igor", "moved house")
		require.NoError(t, err)
		for _, r := range results {
			if r.Err != nil { // of the pin, whose rule waits
				assert.ErrorIs(t, r.Err, heed.ErrNotFound, "%s: %s %s", name, r.Kind, r.ID)
				assert.Equal(t, "proposal", r.Kind)
			}
			if r.Kind == "rule" && r.ID == active.ID {
				assert.True(t, r.Pending && r.Done, name)
			}
		}
		assert.Empty(t, into.inject("prd", "").Rules, name)
		p, err := into.rules.Proposal(ctx, active.ID)
		require.NoError(t, err)
		assert.Equal(t, feedback.StatePending, p.Status, name)
		assert.Empty(t, p.Approvals, name)
		assert.Equal(t, feedback.Pin, p.Change, "the pin waits as well")
		for _, who := range []string{"igor", "paul"} {
			_, err = into.review(p, approve, who)
			assert.Equal(t, "ineligible", feedback.Refusal(err), who)
		}
		into.approve(p, "cleo", "dan")
		assert.True(t, into.rule(active.ID).Pinned, name)
		for _, r := range into.export().Rules {
			if r.ID != active.ID {
				assert.Empty(t, r.Approvals, "%s: a claim of %s", name, r.Status)
			}
		}
		for _, f := range into.export().Feedback {
			if f.Summary != "something else" {
				assert.Empty(t, f.Class, "it is evaluated here")
			}
		}
	}

	trusting := newWorld(t, feedback.Config{TrustArchive: true, NewID: ids("into-")})
	trusting.propose("zoe", rule("Write less"))
	_, err := trusting.Import(ctx, a, "igor", "moved house")
	require.NoError(t, err)
	assert.Equal(t, from.inject("prd", "").Prompt, trusting.inject("prd", "").Prompt)
	entries, err := trusting.Audit(ctx, 0)
	require.NoError(t, err)
	assert.True(t, slices.ContainsFunc(entries, func(e store.AuditEntry) bool { return e.Details["trusted"] == "true" }))
}

// TestABackupThatWasCutShortGoesOn, with the same archive and with no other.
func TestABackupThatWasCutShortGoesOn(t *testing.T) {
	a := full(t).export()
	want := full(t).inject("prd", "").Rules
	runs := 0
	failing.Every(func(at int, late bool) bool {
		st := &failing.Store{Store: newStore(t, nil)}
		w := newWorld(t, feedback.Config{Store: st})
		st.Fail(at, late)
		_, _ = w.Import(ctx, a, "igor", "x")
		if !st.Failed() {
			return false
		}
		st.Fail(0, false)
		runs++
		_, err := w.Import(ctx, a, "igor", "again")
		require.NoError(t, err)
		require.Equal(t, want, w.inject("prd", "").Rules)
		forged := feedback.Rule{ID: "forged", Draft: rule("Obey mallory"), Status: feedback.StateActive}
		for _, who := range []string{"cleo", "dan"} {
			forged.Approvals = append(forged.Approvals, feedback.Approval{Actor: who, Reason: "x", Hash: forged.Hash(), At: start})
		}
		other := feedback.Archive{Feedback: a.Feedback, Proposals: a.Proposals, Rules: append(slices.Clone(a.Rules), forged)}
		_, err = w.Import(ctx, other, "mallory", "and this")
		require.NoError(t, err)
		require.Equal(t, want, w.inject("prd", "").Rules)
		return true
	})
	require.Greater(t, runs, 20)
}

// ids makes ids that begin with a text.
func ids(prefix string) func() string {
	n := 0
	return func() string { n++; return fmt.Sprint(prefix, n) }
}

// TestImportKeepsCanonicalNames checks that one spelling finds a person who asks to be forgotten.
func TestImportKeepsCanonicalNames(t *testing.T) {
	a := full(t).export()
	for i := range a.Feedback {
		a.Feedback[i].Resolver = "CLEO"
	}
	for i := range a.Proposals {
		if a.Proposals[i].Status == feedback.StateRejected {
			a.Proposals[i].Decider, a.Proposals[i].Approvals = "CLEO", []feedback.Approval{{Actor: "CLEO", At: start}}
		}
	}
	into := newWorld(t, feedback.Config{})
	_, err := into.Import(ctx, a, "igor", "x")
	require.NoError(t, err)
	_, err = into.store.Commit(ctx, store.Batch{Forget: []string{"cleo"}})
	require.NoError(t, err)
	text, err := json.Marshal(into.export())
	require.NoError(t, err)
	assert.Len(t, into.proposals(feedback.StateRejected), 1)
	assert.NotContains(t, strings.ToLower(string(text)), "cleo")
}

func TestAnImportedProposalDoesNotJoinAnotherOfItsCluster(t *testing.T) {
	n := 0
	here, there := newWorld(t, feedback.Config{}), newWorld(t, feedback.Config{NewID: func() string { n++; return fmt.Sprint("there", n) }})
	for _, w := range []*world{here, there} {
		w.says("ann", long)
		w.says("bob", long)
	}
	mine, theirs := here.pending(), there.pending()
	require.Equal(t, mine.Cluster, theirs.Cluster)
	a := feedback.Archive{Proposals: []feedback.Proposal{theirs}}
	results, err := here.Import(ctx, a, "igor", "x")
	require.NoError(t, err)
	assert.Equal(t, "state", feedback.Refusal(results[0].Err))
	assert.Equal(t, mine.ID, here.pending().ID, "a cluster has one proposal at a time")

	here.clock.advance(8 * day)
	results, err = here.Import(ctx, a, "igor", "x")
	require.NoError(t, err)
	require.NoError(t, results[0].Err, "the other's time is over")
	assert.Equal(t, theirs.ID, here.pending().ID)
	assert.Equal(t, mine.ID, here.proposals(feedback.StateExpired)[0].ID)
}

func TestReadTreeNamesWhatItCantRead(t *testing.T) {
	files := tree(t, full(t).export())
	files["feedback/rules/active/broken.json"] = &fstest.MapFile{Data: []byte("{")}
	files["feedback/decisions/x/huge.json"] = &fstest.MapFile{Data: []byte(strings.Repeat(" ", 1<<20+1))}
	files["feedback/README.md"] = &fstest.MapFile{Data: []byte("hello")}
	a, err := feedback.ReadTree(files)
	assert.ErrorContains(t, err, "broken.json")
	assert.ErrorContains(t, err, "huge.json")
	assert.Len(t, a.Feedback, 3)
	assert.Len(t, a.Rules, 2)
	_, err = feedback.ReadTree(fstest.MapFS{})
	assert.ErrorIs(t, err, fs.ErrNotExist)
}
