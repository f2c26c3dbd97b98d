package patternstest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/conformance"
	"github.com/heedhq/heed/patterns"
)

var storeRules = []conformance.Rule[NewStore]{
	{Name: "what is committed is read back", Check: readsBack},
	{Name: "what is missing is ErrNotFound", Check: missing},
	{Name: "a pattern is stored with the next revision", Check: revisions},
	{Name: "a stale revision is a conflict", Check: conflicts},
	{Name: "a refused commit changes nothing", Check: allOrNothing},
	{Name: "input that is not valid is refused", Check: invalidInput},
	{Name: "patterns come in the order in which they were first stored", Check: patternOrder},
	{Name: "a query selects patterns", Check: queries},
	{Name: "transitions come newest first, each once", Check: transitions},
	{Name: "entries come newest first, each once", Check: entries},
	{Name: "names are told apart to the byte", Check: names},
	{Name: "copies go in and come out", Check: copies},
	{Name: "concurrent changes are not lost", Check: concurrent},
	{Name: "a context that is over changes nothing", Check: cancelled},
	{Name: "a loop may end early and may call the store", Check: storeLoops},
}

func pattern(id string) patterns.Pattern {
	return patterns.Pattern{
		ID: patterns.PatternID(id), Kind: patterns.Positive, Content: "Do " + id, State: patterns.Candidate,
		CreatedAt: start, UpdatedAt: start,
	}
}

// full has something in every field.
func full() patterns.Pattern {
	return patterns.Pattern{
		ID: "p", Kind: "kind of tomorrow", Content: "Split by file type\n\"« ünïcode 🙂 »\"", Tags: []string{"go", "Tests"},
		Examples: []string{"t1", "t2"}, Reason: "Failed 5/7 times", Twin: "anti-p", State: "state of tomorrow",
		Override: &patterns.Override{State: patterns.Proven, Decision: patterns.Decision{Actor: "a", Reason: "r"}, At: start},
		Base:     patterns.Counts{Successes: 1, Failures: 2}, Inverted: patterns.Counts{Successes: 3, Failures: 1 << 40},
		ArchivedAt: start.Add(time.Hour), CreatedAt: start, UpdatedAt: start.Add(time.Minute),
	}
}

func transition(id, of string) patterns.Transition {
	return patterns.Transition{
		ID: id, Pattern: patterns.PatternID(of), From: patterns.Candidate, To: patterns.Established, At: start, Actor: "a", Cause: "c",
	}
}

func entry(id, task string) patterns.Entry {
	return patterns.Entry{
		Outcome: patterns.Outcome{
			ID: id, Task: task, Description: "d", Strategy: "s", Patterns: []patterns.PatternID{"p", "q"}, Criteria: []string{"c"},
			Duration: time.Minute + time.Nanosecond, Errors: 2, Retries: 1, Success: true, Files: []string{"a.go"},
			FailureMode: "m", FailureDetail: "f", Source: "who", At: start,
		},
		Score: patterns.Score{
			Value: 86, Class: patterns.Helpful, Duration: patterns.Fast, Errors: patterns.Some, Retries: patterns.Some, Reason: "why",
		},
	}
}

func put(t tb, s patterns.Store, all ...patterns.Pattern) {
	t.Helper()
	must(t, s.Commit(background, patterns.Changes{Patterns: all}))
}

func get(t tb, s patterns.Store, id patterns.PatternID) patterns.Pattern {
	t.Helper()
	p, err := s.Pattern(background, id)
	must(t, err)
	return p
}

func readsBack(t tb, newStore NewStore) {
	s := open(t, newStore)
	review := patterns.Entry{
		Outcome: patterns.Outcome{ID: "r", Task: "t", At: start}, Review: &patterns.Decision{Actor: "a", Reason: "r"},
	}
	must(t, s.Commit(background, patterns.Changes{
		Patterns:    []patterns.Pattern{full(), pattern("plain")},
		Transitions: []patterns.Transition{transition("t", "p")},
		Entries:     []patterns.Entry{entry("e", "task"), review},
	}))
	want := full()
	want.CreatedAt, want.UpdatedAt, want.ArchivedAt = stored, stored.Add(time.Minute), stored.Add(time.Hour)
	want.Override.At, want.Revision = stored, 1
	expect(t, "the pattern", get(t, s, "p"), want)
	plain := pattern("plain")
	plain.CreatedAt, plain.UpdatedAt, plain.Revision = stored, stored, 1
	expect(t, "a pattern with little in it", get(t, s, "plain"), plain)

	wantTransition := transition("t", "p")
	wantTransition.At = stored
	expect(t, "the transitions", collect(t, s.Transitions(background, "p")), []patterns.Transition{wantTransition})

	wantEntry := entry("e", "task")
	wantEntry.Outcome.At, review.Outcome.At = stored, stored
	got, err := s.Entry(background, "e")
	must(t, err)
	expect(t, "the entry", got, wantEntry)
	got, err = s.Entry(background, "r")
	must(t, err)
	expect(t, "the review", got, review)
}

func missing(t tb, newStore NewStore) {
	s := open(t, newStore)
	_, err := s.Pattern(background, "none")
	expectIs(t, "a pattern", err, heed.ErrNotFound)
	_, err = s.Entry(background, "none")
	expectIs(t, "an entry", err, heed.ErrNotFound)
	expect(t, "transitions", len(collect(t, s.Transitions(background, "none"))), 0)
	expect(t, "patterns", len(collect(t, s.Patterns(background, patterns.PatternQuery{}))), 0)
	expect(t, "entries", len(collect(t, s.Entries(background, patterns.EntryQuery{Task: "none"}))), 0)
}

func revisions(t tb, newStore NewStore) {
	s := open(t, newStore)
	p := pattern("p")
	for want := range uint64(5) {
		expect(t, "the revision before", p.Revision, want)
		p.Content = fmt.Sprint("content ", want)
		put(t, s, p)
		p = get(t, s, "p")
		expect(t, "the content", p.Content, fmt.Sprint("content ", want))
	}
}

func conflicts(t tb, newStore NewStore) {
	s := open(t, newStore)
	put(t, s, pattern("p"))
	put(t, s, get(t, s, "p"))
	for _, revision := range []uint64{0, 1, 3} {
		p := pattern("p")
		p.Revision, p.Content = revision, "stale"
		expectIs(t, fmt.Sprint("revision ", revision), s.Commit(background, patterns.Changes{Patterns: []patterns.Pattern{p}}), heed.ErrConflict)
	}
	unknown := pattern("q")
	unknown.Revision = 1
	expectIs(t, "a revision of none", s.Commit(background, patterns.Changes{Patterns: []patterns.Pattern{unknown}}), heed.ErrConflict)
	expect(t, "what is stored", get(t, s, "p").Content, "Do p")
	_, err := s.Pattern(background, "q")
	expectIs(t, "what was not stored", err, heed.ErrNotFound)
}

func allOrNothing(t tb, newStore NewStore) {
	s := open(t, newStore)
	put(t, s, pattern("p"))
	for _, order := range [][]string{{"fresh", "p"}, {"p", "fresh"}} {
		c := patterns.Changes{
			Patterns:    []patterns.Pattern{pattern(order[0]), pattern(order[1])}, // "p" is no longer new
			Transitions: []patterns.Transition{transition("t", "fresh")},
			Entries:     []patterns.Entry{entry("e", "task")},
		}
		expectIs(t, "a commit of which a part conflicts", s.Commit(background, c), heed.ErrConflict)
	}
	_, err := s.Pattern(background, "fresh")
	expectIs(t, "its other pattern", err, heed.ErrNotFound)
	expect(t, "its transitions", len(collect(t, s.Transitions(background, "fresh"))), 0)
	_, err = s.Entry(background, "e")
	expectIs(t, "its entry", err, heed.ErrNotFound)
}

func invalidInput(t tb, newStore NewStore) {
	s := open(t, newStore)
	changed := func(change func(*patterns.Pattern)) patterns.Changes {
		p := pattern("p")
		change(&p)
		return patterns.Changes{Patterns: []patterns.Pattern{p}}
	}
	for what, c := range map[string]patterns.Changes{
		"no id":                    changed(func(p *patterns.Pattern) { p.ID = "" }),
		"an id that is too long":   changed(func(p *patterns.Pattern) { p.ID = patterns.PatternID(strings.Repeat("x", patterns.MaxID+1)) }),
		"no kind":                  changed(func(p *patterns.Pattern) { p.Kind = "" }),
		"no state":                 changed(func(p *patterns.Pattern) { p.State = "" }),
		"no content":               changed(func(p *patterns.Pattern) { p.Content = "" }),
		"content with a NUL":       changed(func(p *patterns.Pattern) { p.Content = "a\x00b" }),
		"content that is no UTF-8": changed(func(p *patterns.Pattern) { p.Content = "a\xffb" }),
		"too many examples":        changed(func(p *patterns.Pattern) { p.Examples = make([]string, patterns.MaxExamples+1) }),
		"an id twice":              {Patterns: []patterns.Pattern{pattern("p"), pattern("p")}},
		"a transition without id":  {Patterns: []patterns.Pattern{pattern("p")}, Transitions: []patterns.Transition{transition("", "p")}},
		"an entry without a task":  {Patterns: []patterns.Pattern{pattern("p")}, Entries: []patterns.Entry{entry("e", "")}},
	} {
		expectInput(t, what, s.Commit(background, c))
	}
	_, err := s.Pattern(background, "p")
	expectIs(t, "what was refused", err, heed.ErrNotFound)
}

func ids(all []patterns.Pattern) string {
	var names []string
	for _, p := range all {
		names = append(names, string(p.ID))
	}
	return strings.Join(names, " ")
}

func patternOrder(t tb, newStore NewStore) {
	s := open(t, newStore)
	put(t, s, pattern("c"), pattern("a"))
	put(t, s, pattern("b"))
	put(t, s, get(t, s, "c")) // it keeps its place
	want := []string{"c", "a", "b"}
	known := []patterns.Pattern{get(t, s, "c"), get(t, s, "a"), get(t, s, "b")}
	var both []patterns.Pattern
	for i := range 30 { // new ones and such that are not, by turns
		name := fmt.Sprint("new ", (7*i)%30)
		want = append(want, name)
		both = append(both, pattern(name))
		if i < len(known) {
			both = append(both, known[i])
		}
	}
	put(t, s, both...)
	expect(t, "all patterns", ids(collect(t, s.Patterns(background, patterns.PatternQuery{}))), strings.Join(want, " "))
}

func queries(t tb, newStore NewStore) {
	s := open(t, newStore)
	anti, tagged, proven := pattern("anti"), pattern("tagged"), pattern("proven")
	anti.Kind, anti.State = patterns.Anti, patterns.Inverted
	tagged.Tags, tagged.Content = []string{"go", "x"}, "Split by FILE type 100%"
	proven.State, proven.Tags, proven.Content = patterns.Proven, []string{"Go"}, "splitting by layer"
	put(t, s, anti, tagged, proven)
	for _, test := range []struct {
		query patterns.PatternQuery
		want  string
	}{
		{patterns.PatternQuery{Kind: patterns.Anti}, "anti"},
		{patterns.PatternQuery{Kind: patterns.Positive}, "tagged proven"},
		{patterns.PatternQuery{State: patterns.Proven}, "proven"},
		{patterns.PatternQuery{Tag: "go"}, "tagged"},
		{patterns.PatternQuery{Tag: "g"}, ""},
		{patterns.PatternQuery{Content: "SPLIT"}, "tagged proven"},
		{patterns.PatternQuery{Content: "file type"}, "tagged"},
		{patterns.PatternQuery{Content: "0%"}, "tagged"},
		{patterns.PatternQuery{Content: "s_lit"}, ""},
		{patterns.PatternQuery{Kind: patterns.Positive, Content: "split", Tag: "Go"}, "proven"},
	} {
		expect(t, fmt.Sprintf("%+v", test.query), ids(collect(t, s.Patterns(background, test.query))), test.want)
	}
}

func transitions(t tb, newStore NewStore) {
	s := open(t, newStore)
	for i := range 5 {
		one := transition(number("t", i), "p")
		one.At = start.Add(-time.Duration(i) * time.Hour) // it is the order of recording that counts
		must(t, s.Commit(background, patterns.Changes{Transitions: []patterns.Transition{one, transition(number("other", i), "q")}}))
	}
	again := transition("t-002", "p")
	again.Cause = "again"
	must(t, s.Commit(background, patterns.Changes{Transitions: []patterns.Transition{again}}))
	var got []string
	for _, one := range collect(t, s.Transitions(background, "p")) {
		got = append(got, one.ID+one.Cause)
	}
	expect(t, "the transitions", got, []string{"t-004c", "t-003c", "t-002c", "t-001c", "t-000c"})
}

func entries(t tb, newStore NewStore) {
	s := open(t, newStore)
	for i := range 6 {
		one := entry(number("e", i), number("task", i%2))
		one.Outcome.At = start.Add(-time.Duration(i) * time.Hour)
		must(t, s.Commit(background, patterns.Changes{Entries: []patterns.Entry{one}}))
	}
	again := entry("e-002", "task-001")
	again.Score.Value = 1
	must(t, s.Commit(background, patterns.Changes{Entries: []patterns.Entry{again}}))
	list := func(q patterns.EntryQuery) (got []string) {
		for _, one := range collect(t, s.Entries(background, q)) {
			got = append(got, fmt.Sprint(one.ID(), " ", one.Score.Value))
		}
		return got
	}
	expect(t, "all", list(patterns.EntryQuery{}), []string{"e-005 86", "e-004 86", "e-003 86", "e-002 86", "e-001 86", "e-000 86"})
	expect(t, "of a task", list(patterns.EntryQuery{Task: "task-000"}), []string{"e-004 86", "e-002 86", "e-000 86"})
	expect(t, "the last of a task", list(patterns.EntryQuery{Task: "task-001", Limit: 2}), []string{"e-005 86", "e-003 86"})
	expect(t, "the last", list(patterns.EntryQuery{Limit: 1}), []string{"e-005 86"})
}

func names(t tb, newStore NewStore) {
	s := open(t, newStore)
	all := []string{"a", "A", "a ", "é", "e\u0301", "x%y", "x_y", "'; --", "日本", strings.Repeat("x", patterns.MaxID)}
	for _, id := range all {
		put(t, s, pattern(id))
		must(t, s.Commit(background, patterns.Changes{
			Transitions: []patterns.Transition{transition(id, id)}, Entries: []patterns.Entry{entry(id, id)},
		}))
	}
	for _, id := range all {
		expect(t, "a pattern", get(t, s, patterns.PatternID(id)).Content, "Do "+id)
		expect(t, "the transitions of "+id, len(collect(t, s.Transitions(background, patterns.PatternID(id)))), 1)
		expect(t, "the entries of "+id, len(collect(t, s.Entries(background, patterns.EntryQuery{Task: id}))), 1)
	}
}

func copies(t tb, newStore NewStore) {
	s := open(t, newStore)
	p, e := full(), entry("e", "task")
	must(t, s.Commit(background, patterns.Changes{Patterns: []patterns.Pattern{p}, Entries: []patterns.Entry{e}}))
	spoil := func(p *patterns.Pattern, e *patterns.Entry) {
		p.Tags[0], p.Examples[0], p.Override.Decision.Actor = "spoilt", "spoilt", "spoilt"
		e.Outcome.Patterns[0], e.Outcome.Criteria[0], e.Outcome.Files[0] = "spoilt", "spoilt", "spoilt"
	}
	spoil(&p, &e)
	for range 2 {
		p, err := s.Pattern(background, "p")
		must(t, err)
		e, err := s.Entry(background, "e")
		must(t, err)
		listed, listedEntry := collect(t, s.Patterns(background, patterns.PatternQuery{}))[0], collect(t, s.Entries(background, patterns.EntryQuery{}))[0]
		for what, text := range map[string]string{
			"tags": p.Tags[0] + listed.Tags[0], "examples": p.Examples[0] + listed.Examples[0],
			"override": p.Override.Decision.Actor + listed.Override.Decision.Actor,
			"patterns": string(e.Outcome.Patterns[0] + listedEntry.Outcome.Patterns[0]),
			"criteria": e.Outcome.Criteria[0] + listedEntry.Outcome.Criteria[0], "files": e.Outcome.Files[0] + listedEntry.Outcome.Files[0],
		} {
			if strings.Contains(text, "spoilt") {
				t.Errorf("the caller's change of %s reached the store", what)
			}
		}
		spoil(&p, &e)
		spoil(&listed, &listedEntry)
	}
}

func concurrent(t tb, newStore NewStore) {
	s := open(t, newStore)
	put(t, s, pattern("p"))
	const workers, each = 8, 25
	failures := make(chan error, workers)
	var wait sync.WaitGroup
	for worker := range workers {
		wait.Go(func() {
			for i := range each {
				if err := raise(s, fmt.Sprint(worker, " ", i)); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	wait.Wait()
	close(failures)
	for err := range failures {
		t.Errorf("a worker failed: %v", err)
	}
	p := get(t, s, "p")
	expect(t, "what was counted", p.Base.Successes, workers*each)
	expect(t, "the revision", p.Revision, workers*each+1)
	expect(t, "the transitions", len(collect(t, s.Transitions(background, "p"))), workers*each)
}

// raise adds one to a count. Each time that it is in vain another worker got on, so that there is a limit to that.
func raise(s patterns.Store, id string) error {
	for range 10_000 {
		p, err := s.Pattern(background, "p")
		if err != nil {
			return err
		}
		p.Base.Successes++
		err = s.Commit(background, patterns.Changes{Patterns: []patterns.Pattern{p}, Transitions: []patterns.Transition{transition(id, "p")}})
		if !errors.Is(err, heed.ErrConflict) {
			return err
		}
	}
	return errors.New("there is a conflict each time")
}

func cancelled(t tb, newStore NewStore) {
	s := open(t, newStore)
	expectIs(t, "a commit", s.Commit(done(), patterns.Changes{Patterns: []patterns.Pattern{pattern("p")}}), context.Canceled)
	_, err := s.Pattern(background, "p")
	expectIs(t, "what it would have stored", err, heed.ErrNotFound)
	_, err = s.Pattern(done(), "p")
	expectIs(t, "reading a pattern", err, context.Canceled)
	_, err = s.Entry(done(), "e")
	expectIs(t, "reading an entry", err, context.Canceled)
}

func storeLoops(t tb, newStore NewStore) {
	s := open(t, newStore)
	for i := range 3 {
		id := number("p", i)
		must(t, s.Commit(background, patterns.Changes{
			Patterns: []patterns.Pattern{pattern(id)}, Entries: []patterns.Entry{entry(id, "task")},
			Transitions: []patterns.Transition{transition(id, "p-000")},
		}))
	}
	write := func() error {
		p, err := s.Pattern(background, "p-001")
		if err != nil {
			return err
		}
		return s.Commit(background, patterns.Changes{Patterns: []patterns.Pattern{p}})
	}
	loops(t, "patterns", 3, func(ctx context.Context) iter.Seq2[patterns.Pattern, error] {
		return s.Patterns(ctx, patterns.PatternQuery{})
	}, write)
	loops(t, "transitions", 3, func(ctx context.Context) iter.Seq2[patterns.Transition, error] {
		return s.Transitions(ctx, "p-000")
	}, write)
	loops(t, "entries", 3, func(ctx context.Context) iter.Seq2[patterns.Entry, error] {
		return s.Entries(ctx, patterns.EntryQuery{})
	}, write)
}
