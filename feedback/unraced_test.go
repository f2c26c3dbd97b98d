//go:build !race

// The race detector makes these tests several times slower. Nothing in them is concurrent.

package feedback_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/store"
)

// Three accounts that state many things do not push out what others said, also if the one who
// speaks is one of them. If there are no others, the latest of the window count.
func TestAFloodHidesNoCorrection(t *testing.T) {
	flood := func(w *world, people, n int) {
		for i := range n {
			w.says(fmt.Sprint("mallory", i%people), fmt.Sprintf("paint house %d in tone %d", i, i*7919))
		}
	}
	for _, one := range []struct {
		window, people, n int
		want              feedback.Classification
	}{
		{40, 1, 20, feedback.GeneralizableHigh}, {40, 1, 150, feedback.GeneralizableHigh},
		{40, 3, 150, feedback.GeneralizableHigh}, {40, 5, 150, feedback.EdgeCase},
		// At most four windows are read, and ten of a person are never too many.
		{40, 1, 162, feedback.GeneralizableHigh}, {40, 1, 163, feedback.EdgeCase},
		{44, 4, 44, feedback.EdgeCase}, {41, 4, 60, feedback.GeneralizableHigh},
		{11, 1, 30, feedback.GeneralizableHigh}, {10, 1, 30, feedback.EdgeCase},
	} {
		w := newWorld(t, feedback.Windowed(one.window))
		w.says("ann", long)
		flood(w, one.people, one.n)
		assert.Equal(t, one.want, w.says("bob", long).Class, "%+v", one)
	}
	w := newWorld(t, feedback.Windowed(40))
	w.says("ann", "Always name the database")
	flood(w, 1, 60)
	assert.Equal(t, feedback.Ambiguous, w.says("mallory0", "Never name the database").Class)
	again := newWorld(t, feedback.Windowed(40))
	again.says("ann", long)
	flood(again, 3, 75)
	forgotten := store.Job{Forget: []string{"mallory0", "mallory1", "mallory2"}}
	require.NoError(t, store.Run(ctx, again.store, forgotten))
	flood(again, 3, 75)
	assert.Equal(t, feedback.GeneralizableHigh, again.says("bob", long).Class,
		"who was forgotten and comes back is one person")
	alone := newWorld(t, feedback.Windowed(40))
	flood(alone, 1, 30)
	alone.says("mallory0", "Always name the database")
	flood(alone, 1, 39)
	assert.Equal(t, feedback.Ambiguous, alone.says("bob", "Never name the database").Class)
}

// People act at random and in any order. A rule is active only with its quorum.
func TestGateStateMachine(t *testing.T) {
	// each with as many spellings as there are of a name
	person := rapid.Custom(func(t *rapid.T) string {
		name := []byte(rapid.SampledFrom([]string{"annabel", "bob", "cleo", "dan"}).Draw(t, "name"))
		for i := range name {
			if rapid.Bool().Draw(t, "upper") {
				name[i] -= 'a' - 'A'
			}
		}
		return string(name)
	})
	rapid.Check(t, func(rt *rapid.T) {
		gate := feedback.Gate{Quorum: rapid.IntRange(1, 3).Draw(rt, "quorum")}
		gate.Outsiders = rapid.IntRange(1, gate.Quorum).Draw(rt, "outsiders")
		w := newWorld(t, feedback.Config{Gate: gate})
		w.says("annabel", long)
		w.says("bob", long)
		ids := []string{w.pending().ID}
		rt.Repeat(map[string]func(*rapid.T){
			"review": func(rt *rapid.T) {
				p, err := w.rules.Proposal(ctx, rapid.SampledFrom(ids).Draw(rt, "id"))
				require.NoError(t, err)
				verdict := rapid.SampledFrom([]feedback.Decision{approve, approve, approve,
					reject}).Draw(rt, "verdict")
				_, _ = w.review(p, verdict, person.Draw(rt, "who"))
			},
			"edit": func(rt *rapid.T) {
				d := rule(rapid.SampledFrom([]string{"Be brief", "Be terse", "Say less"}).Draw(rt, "text"))
				p, err := w.rules.Propose(ctx, feedback.Submission{
					Replaces: rapid.SampledFrom(ids).Draw(rt, "id"), Draft: d, Actor: person.Draw(rt, "who"),
					Reason: "x",
				})
				if err == nil {
					ids = append(ids, p.ID)
				}
			},
			"propose": func(rt *rapid.T) {
				p, err := w.rules.Propose(ctx, feedback.Submission{Draft: rule("Cite sources"),
					Evidence: []string{"d1"}, Actor: person.Draw(rt, "who"), Reason: "x"})
				if err == nil {
					ids = append(ids, p.ID)
				}
			},
			"wait": func(*rapid.T) { w.clock.advance(day) },
			"":     func(rt *rapid.T) { checkActivations(rt, w, gate) },
		})
	})
}

func checkActivations(rt *rapid.T, w *world, gate feedback.Gate) {
	rules, err := w.rules.List(ctx, feedback.RuleQuery{})
	require.NoError(rt, err)
	for _, r := range rules {
		p, err := w.rules.Proposal(ctx, r.ID)
		require.NoError(rt, err)
		people, outsiders := map[string]bool{}, map[string]bool{}
		for _, a := range r.Approvals {
			who := strings.ToLower(a.Actor)
			for _, writer := range p.Writers {
				if who == writer {
					rt.Fatalf("%s approved what they wrote", who)
				}
			}
			if a.Hash != r.Hash() {
				rt.Fatalf("an approval of other words")
			}
			if people[who] = true; who != "annabel" && who != "bob" {
				outsiders[who] = true
			}
		}
		if len(p.Authors) == 1 && people["bob"] { // only annabel's feedback is behind it
			outsiders["bob"] = true
		}
		if len(people) < gate.Quorum || len(outsiders) < gate.Outsiders ||
			p.Status != feedback.StateApproved {
			rt.Fatalf("active with %v, of which outsiders %v, gate %+v", people, outsiders, gate)
		}
	}
}

// A store finds a record by few keys.
func TestAProposalNamesNoMorePeopleThanItIsFoundBy(t *testing.T) {
	w := newWorld(t, feedback.Config{Similarity: everything{},
		Gate: feedback.Gate{Quorum: 10, Outsiders: 10}})
	for i := range feedback.MaxPeople + 10 {
		w.says(fmt.Sprint("reviewer", i), long)
	}
	w.flush()
	p := w.pending()
	assert.Len(t, p.Authors, feedback.MaxPeople*4/5)
	assert.Equal(t, len(p.Evidence), p.Occurrences)
	var err error
	for i := 0; err == nil && i <= feedback.MaxPeople; i++ {
		d := p.Draft
		d.Text = fmt.Sprint("Be brief ", i)
		p, err = w.rules.Propose(ctx, feedback.Submission{Replaces: p.ID, Draft: d,
			Actor: fmt.Sprint("writer", i), Reason: "x"})
	}
	assert.Equal(t, "ineligible", feedback.Refusal(err))
	p = w.pending()
	_, err = w.review(p, approve, "one more")
	assert.Equal(t, "ineligible", feedback.Refusal(err))
	assert.LessOrEqual(t, len(feedback.Stored(p)[0].Keys), 192)
	assert.Len(t, append(p.Authors, p.Writers...), feedback.MaxPeople)
}

// What heed states about a proposal is about the evidence that the proposal names, also if more
// people gave some than it may name.
func TestTheSummaryIsOfTheEvidence(t *testing.T) {
	w := newWorld(t, feedback.Config{})
	for i := range 90 {
		w.says(fmt.Sprint("p", i), long)
	}
	_, err := w.review(w.pending(), reject, "cleo")
	require.NoError(t, err)
	w.clock.advance(day)
	for i := range 3 {
		w.says(fmt.Sprint("q", i), long)
	}
	p := w.pending()
	assert.Len(t, p.Evidence, 80)
	assert.Equal(t, []int{80, 80}, []int{p.Occurrences, p.Reviewers})
	assert.Equal(t, "decisions: 80, reviewers: 80, gates: 1, from 2026-05-04 to 2026-05-04",
		p.Summary)
}

func TestSweepProposesRetirementsOfTheWorst(t *testing.T) {
	w := unfit(t, 8, feedback.Config{})
	w.propose("paul", rule("x"))
	w.clock.advance(7 * day)
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	assert.Len(t, w.proposals(feedback.StateExpired), 1)
	assert.Equal(t, []string{"r07", "r06", "r05", "r04", "r03", "r02", "r01", "r00"}, w.unfit())
	assert.Equal(t, "harmful", w.rule("r07").Effect.Status)
	for i := range 8 {
		r := w.rule(fmt.Sprintf("r%02d", i))
		assert.Equal(t, feedback.StateActive, r.Status, "retiring is for people")
		assert.False(t, r.Effect.Measured.IsZero())
	}
	w.clock.advance(day)
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	assert.Equal(t, []string{"propose-retirement:"}, w.audit("r07"), "it is proposed once")
	assert.Equal(t, "r00", w.inject("agent0", "").Rules[0])

	// A restored rule starts again.
	_, err := w.rules.Move(ctx, order("r07"), feedback.StateRetired)
	require.NoError(t, err)
	w.change("r07", feedback.Restore)
	w.clock.advance(day)
	require.NoError(t, w.Sweep(ctx, time.Time{}))
	assert.NotContains(t, w.unfit(), "r07")
	assert.Equal(t, "stabilising", w.rule("r07").Effect.Status)
}

// TestWordsNeverExpedite reads the pairs in testdata/pairs.tsv and in any other such file there: a
// language, "same", "opposite" or "other", and two texts. Two reviewers state them, and heed has
// words alone to compare. No pair is proposed at once unless it is the same text, and the approvers
// see what one has in common with the other.
func TestWordsNeverExpedite(t *testing.T) {
	files, err := filepath.Glob("testdata/*.tsv")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		total, together := map[string]int{}, map[string]int{}
		for n, line := range strings.Split(strings.TrimSpace(string(content)), "\n") {
			if strings.HasPrefix(line, "#") {
				continue
			}
			fields := strings.Split(line, "\t")
			require.Len(t, fields, 4, "%s:%d", file, n+1)
			require.Contains(t, []string{"same", "opposite", "narrower", "other"}, fields[1], "%s:%d",
				file, n+1)
			w := newWorld(t, feedback.Config{})
			w.says("ann", fields[2])
			w.says("bob", fields[3])
			assert.Empty(t, w.proposals(""), "%s:%d: %q, %q", file, n+1, fields[2], fields[3])
			total[fields[1]]++
			for _, p := range w.flush().Proposed {
				if p.Occurrences == 2 {
					together[fields[1]]++
					assert.Contains(t, p.Warnings, feedback.WarnWords)
					assert.Less(t, p.Confidence, feedback.Expedite)
				}
			}
		}
		t.Logf("%s: of %v are brought together %v", file, total, together)
		if file == unseen {
			assert.Equal(t, map[string]int{"same": 84, "opposite": 84}, total)
			assert.Empty(t, together, "words alone find no paraphrase")
		}
		if file == "testdata/later.tsv" {
			assert.Equal(t, map[string]int{"same": 1}, together)
		}
	}
}
