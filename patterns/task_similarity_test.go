package patterns_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/patterns"
)

// Tasks are alike by the words that say what they are about. Words that join others make nothing
// alike, and words that most tasks have make little alike.
func TestWhichTasksAreAlike(t *testing.T) {
	for name, test := range map[string]struct {
		past  []string
		task  string
		found []string
	}{
		"the": {[]string{"Paint the door of the house"}, "The disk of the server is full",
			nil},
		"der": {[]string{"Streiche die Tür von dem Haus"},
			"Die Platte von dem Server ist voll", nil},
		"le": {[]string{"Peins la porte de la maison"}, "Le disque de la base est plein",
			nil},
		"only joining": {[]string{"What is this about?"}, "What is this about?", nil},
		"one subject": {[]string{"The disk of db-2 is full"}, "Full disk on the server",
			[]string{"The disk of db-2 is full"}},
		"a long text": {[]string{"Fix the login page"},
			"Users of the shop report since Monday that nobody gets past the login page with an " +
				"address of another company", []string{"Fix the login page"}},
		"one word of many": {
			[]string{"Write the yearly report about energy for all houses and offices in town"},
			"Report of the nightly backup job that ran out of disk space on two servers again", nil},
		"the rare word first": {
			[]string{"Change the page of prices", "Change the page of teams", "Change the page of jobs",
				"Change the text of OAuth errors"},
			"Change OAuth", []string{"Change the text of OAuth errors", "Change the page of jobs",
				"Change the page of teams", "Change the page of prices"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, patterns.Config{})
			for i, description := range test.past {
				o := good()
				o.ID, o.Task, o.Description = fmt.Sprint(i), fmt.Sprint("task-", i), description
				w.record(o)
			}
			plan, err := w.Plan(ctx, test.task)
			require.NoError(t, err)
			var found []string
			for _, p := range plan.Similar {
				found = append(found, p.Description)
				assert.LessOrEqual(t, p.Similarity, 1.)
			}
			assert.Equal(t, test.found, found)
		})
	}
}
