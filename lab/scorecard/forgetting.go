package scorecard

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/lab/internal/kit"
	"github.com/heedhq/heed/loop"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

var openGate = feedback.Gate{Pending: 1 << 30}

const (
	namedBar  = "forgotten names in the files"
	othersBar = "other people who are gone"
)

func forgettingLine() card.Line {
	run := func(forget forgetting, short, long int) card.Attempt {
		return on(modernc, func(ctx context.Context, s card.Settings, p place) (card.Result, error) {
			return forgets(ctx, p, forget, card.Pick(s, short, long)), nil
		})
	}
	return card.Line{
		Name:    "forgetting",
		Promise: "No byte of the files names a forgotten person. All others are still there.",
		Attack: "People ask an agent over SQLite, react, and propose and approve rules. Half of " +
			"them are forgotten, and the files are searched for all names.",
		Bars:  card.None(namedBar, othersBar),
		Short: card.Form{Work: 40, Faults: 20, Budget: 3 * time.Minute},
		Long:  card.Form{Work: 400, Faults: 200, Budget: 30 * time.Minute},
		Run:   run(byJob, 40, 400),
		Controls: []card.Control{
			{Name: "DELETE of the rows with the name", Misses: []string{namedBar}, Run: run(byRows, 10,
				10)},
			{Name: "DELETE of all rows, and VACUUM", Misses: []string{othersBar}, Run: run(byAll, 10,
				10)},
		},
	}
}

// A forgetting removes somebody.
type forgetting func(ctx context.Context, st store.Store, handle *sql.DB, name string)

func byJob(ctx context.Context, st store.Store, _ *sql.DB, name string) {
	kit.Check(store.Run(ctx, st, store.Job{Forget: []string{name}, At: time.Now()}))
}

func byRows(ctx context.Context, _ store.Store, handle *sql.DB, name string) {
	for _, where := range []string{
		"heed_record WHERE instr(id, $1) + instr(keys, $1) + instr(body, $1)",
		"heed_observation WHERE source = $1", "heed_tally WHERE source = $1",
	} {
		kit.Must(handle.ExecContext(ctx, "DELETE FROM "+where, name))
	}
}

func byAll(ctx context.Context, _ store.Store, handle *sql.DB, _ string) {
	kit.Must(handle.ExecContext(ctx, `DELETE FROM heed_record; DELETE FROM heed_key;
		DELETE FROM heed_observation; DELETE FROM heed_tally; VACUUM;
		PRAGMA wal_checkpoint(TRUNCATE)`))
}

// forgets has every second person forgotten, and looks for all names. Work counts people.
func forgets(ctx context.Context, p place, forget forgetting, people int) (r card.Result) {
	st, handle, err := p.store(ctx, sqlstore.Config{})
	kit.Check(err)
	defer handle.Close() //nolint:errcheck // it is removed
	agent := kit.Must(loop.New(ctx, loop.Config{Store: st,
		Arms: []loop.Arm{{ID: "short"}, {ID: "long"}}, Model: says("Look at the logs."),
		Tuning: loop.Tuning{Feedback: feedback.Config{Gate: openGate}}}))
	name := func(i int) string { return fmt.Sprintf("person-%04d-of-many", i) }
	for i := range people {
		lives(ctx, agent, i, name(i), name((i+1)%people))
	}
	if !bytes.Contains(filesOf(p), []byte(name(0))) {
		kit.Check(errors.New("no name is in the files"))
	}
	for i := 0; i < people; i += 2 {
		forget(ctx, st, handle, name(i))
		r.Faults++
	}
	all := filesOf(p)
	r.Values = map[string]float64{namedBar: 0, othersBar: 0}
	for i := range people {
		there := bytes.Contains(all, []byte(name(i)))
		if r.Work++; i%2 == 0 && there {
			r.Values[namedBar]++
		} else if i%2 == 1 && !there {
			r.Values[othersBar]++
		}
	}
	return r
}

// says is a model that always says the same.
func says(text string) decision.LLM {
	return decision.LLMFunc(func(context.Context, decision.LLMRequest) (decision.LLMResponse, error) {
		return decision.LLMResponse{Text: text}, nil
	})
}

// lives has a person ask, react and propose. A friend reacts and approves.
func lives(ctx context.Context, agent *loop.Agent, n int, person, friend string) {
	worked := true
	for i := range 3 {
		id := fmt.Sprint("answer ", n, " ", i)
		kit.Must(agent.Answer(ctx, loop.Event{ID: id, Text: "The disk is full.", Person: person}))
		kit.Check(agent.React(ctx, id, loop.Reaction{Person: person, Value: 1}))
		kit.Check(agent.React(ctx, id, loop.Reaction{Person: friend, Value: -1}))
		kit.Check(agent.Outcome(ctx, id, loop.Outcome{Success: &worked, Source: person}))
	}
	rules := agent.Feedback().Rules()
	draft := feedback.Draft{Text: "Be brief", Agents: []string{fmt.Sprint("agent ", n)}}
	proposed := kit.Must(rules.Propose(ctx, feedback.Submission{Draft: draft, Actor: person,
		Reason: "seen often"}))
	kit.Must(rules.Review(ctx, feedback.Review{Proposal: proposed.ID, Decision: feedback.Approved,
		Actor: friend, Reason: "so it is", Hash: proposed.Hash()}))
}

// filesOf returns all bytes of the files of a database.
func filesOf(p place) (all []byte) {
	for _, name := range kit.Must(filepath.Glob(strings.TrimPrefix(p.DSN, "file:") + "*")) {
		all = append(all, kit.Must(os.ReadFile(name))...)
	}
	return all
}
