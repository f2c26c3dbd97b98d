package main

import (
	"fmt"
	"hash/maphash"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/loop"
)

// logOf writes a log of these lines.
func logOf(t *testing.T, lines ...string) string {
	file := filepath.Join(t.TempDir(), "log.csv")
	require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	return file
}

// Twenty rows at fault are named, and the others are counted, whether a log is imported or tested.
func TestALogWithManyFaults(t *testing.T) {
	t.Parallel()
	for faults, more := range map[int]string{20: "", 21: "heed: and 1 more\n",
		25: "heed: and 5 more\n"} {
		lines := []string{"question,answer,user,model,thumb"}
		for i := range 100 {
			thumb := "up"
			if i < faults {
				thumb = "perhaps"
			}
			lines = append(lines, fmt.Sprintf("why?,so,p%d,a,%s", i, thumb))
		}
		log := logOf(t, lines...)
		db := filepath.Join(t.TempDir(), "a.db")
		for _, args := range [][]string{{"--db", db, "import", log, "--new"},
			{"import", "--backtest", log}} {
			r := call{args: args}.run(t)
			assert.Equal(t, failed, r.code)
			assert.Empty(t, r.out)
			assert.Equal(t, 20, strings.Count(r.err, `thumb: is "perhaps"`), r.err)
			assert.Contains(t, r.err, fmt.Sprintf("heed: %d of 100 rows can't be read", faults))
			assert.Equal(t, more != "", strings.Contains(r.err, "more\n"), r.err)
			assert.Contains(t, r.err, more)
		}
	}
	good := logOf(t, "question,answer,user,thumb", "why?,so,ann,up")
	mapping, err := within([]string{"import", good, "--propose"})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(good+".json", []byte(mapping), 0o600))
	bad := logOf(t, "question,answer,user,thumb", "why?,so,ann,perhaps")
	r := call{args: []string{"--db", filepath.Join(t.TempDir(), "a.db"), "import", bad, "--new",
		"--map", good + ".json", "--skip"}}.run(t)
	assert.Contains(t, r.err, "1 of 1 rows can't be read", "nothing is left of it")
}

// What a store does not take of an answer is a fault of its row.
func TestWhatAStoreDoesNotTake(t *testing.T) {
	t.Parallel()
	in := func(later time.Duration) loop.Past {
		return loop.Past{Event: loop.Event{At: time.Now().Add(later)}}
	}
	arms := map[string]bool{"large": true, "small": true}
	for name, test := range map[string]struct {
		past      loop.Past
		known     map[string]bool
		at, fault string
	}{
		"an arm":                {loop.Past{Arm: "small"}, arms, "", ""},
		"no arm":                {loop.Past{}, arms, "", ""},
		"an arm of a new store": {loop.Past{Arm: "tiny"}, nil, "", ""},
		"another arm":           {loop.Past{Arm: "tiny"}, arms, "arm", "arms are large, small"},
		"a person":              {loop.Past{Event: loop.Event{Person: "ann"}}, nil, "", ""},
		"an instrument that asks": {loop.Past{Event: loop.Event{Person: "ci"}}, nil, "person",
			"instrument"},
		"an instrument that reacts": {loop.Past{Reactions: []loop.Reaction{{Person: "ann"},
			{Person: "ci"}}}, nil, "person", "instrument"},
		"an instrument that corrects": {loop.Past{Corrections: []loop.Correction{{Reviewer: "ci"}}},
			nil, "person", "instrument"},
		"a clock that is a little fast": {in(4 * time.Minute), nil, "", ""},
		"the future":                    {in(6 * time.Minute), nil, "at", "is in the future"},
	} {
		err := (&pastCommand{Instruments: []string{"ci"}}).own(&test.past, test.known)
		if test.fault == "" {
			require.NoError(t, err, name)
			continue
		}
		var input *heed.InputError
		require.ErrorAs(t, err, &input, name)
		assert.Equal(t, test.at, input.Field, name)
		assert.Contains(t, input.Reason, test.fault, name)
	}
}

// The report of an import has what the log has, in whatever order its rows are.
func TestAnImportIsReported(t *testing.T) {
	t.Parallel()
	log := logOf(t, "id,timestamp,question,answer,user,model,thumb",
		"a,2026-01-08T10:05:00Z,where?,there,ann,a,up", "b,2026-01-08T10:01:00Z,why?,so,ann,b,up",
		"c,2026-01-08T10:09:00Z,why?,so,bob,b,up", "d,2026-01-08T10:03:00Z,where?,there,bob,b,up",
		"e,2026-01-08T10:04:00Z,why?,as it is,bob,b,up",
		"f,2026-01-08T10:06:00Z,why?,as it is,ann,b,up")
	dir := t.TempDir()
	db, lessons := filepath.Join(dir, "a.db"), filepath.Join(dir, "lessons.json")
	args := []string{"--db", db, "--agent", "desk", "import", log, "--new", "--suggest", lessons}
	r := imported(t, args...)
	assert.Equal(t, "desk", r.Agent)
	assert.Equal(t, []int{6, 0, 2, 3}, []int{r.Rows, r.Bad, r.People, r.Suggested})
	assert.Equal(t, map[string]int{"a": 1, "b": 5}, r.Arms)
	assert.Equal(t, "10:01:00 to 10:09:00",
		r.From.Format(time.TimeOnly)+" to "+r.Until.Format(time.TimeOnly))
	taught, err := loop.ReadLessons(lessons)
	require.NoError(t, err)
	var suggested []string
	for _, h := range taught.Heuristics {
		suggested = append(suggested, h.ID+" "+h.Condition+" "+h.Action)
	}
	assert.Equal(t, []string{"past-1 where? there", "past-2 why? as it is", "past-3 why? so"},
		suggested)
	assertFails(t, call{args: args}.run(t), failed, lessons+" is there already")

	assertFails(t, call{args: []string{"--db", db, "import", dir}}.run(t), failed,
		dir+" is no file that can be read twice")
	assertFails(t, call{args: []string{"--db", db, "--now", "2026-01-09", "import", log}}.run(t),
		misuse, "--now is for looking")
}

// However long a log is, a bounded number of its answers is compared. Those that are known still
// count.
func TestPraisesAreBounded(t *testing.T) {
	t.Parallel()
	all, seed := make(praises), maphash.MakeSeed()
	said := func(question, who string) {
		all.add(seed, &loop.Past{Event: loop.Event{Text: question}, Text: "so",
			Reactions: []loop.Reaction{{Person: who, Value: 1}}})
	}
	said("first?", "ann")
	for i := range uint64(maxPraised - 2) {
		all[i] = &praised{}
	}
	said("last?", "ann")
	require.Len(t, all, maxPraised)
	for _, question := range []string{"first?", "one more?", "last?"} {
		said(question, "bob")
		said(question, "kim")
	}
	require.Len(t, all, maxPraised)
	assert.Equal(t, []string{"first?", "last?"}, func() (found []string) {
		for _, h := range all.heuristics() {
			found = append(found, h.Condition)
		}
		return found
	}())
}
