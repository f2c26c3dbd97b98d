package feedback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback/internal/oppose"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/settings"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/internal/watch"
	"github.com/heedhq/heed/store"
)

// A Service records what reviewers decide and finds out what can be learned from it;
// [Service.Rules] has what follows. Make one with [New]. It keeps everything in the store, starts
// no goroutine and needs no closing. It is safe for concurrent use by multiple goroutines.
type Service struct {
	cfg        Config
	similarity heed.Similarity // cfg.Similarity, with a memory if it embeds
	evaluating host.Lock       // one evaluation at a time, so that they don't lose races
	governing  host.Lock       // one change of proposals and rules at a time
	// The memos hold what follows from texts and from records that never change, or what is checked
	// by a version, so they are never out of date. readings are by text. Readings of longer texts
	// are fewer, because they take more memory.
	readings, longReadings *text.Memo[*reading]
	worded                 *text.Memo[oppose.Reading] // by text
	prompts                *text.Memo[promptLines]    // by agent
	version                atomic.Uint64              // of the rules, when lines were read last
	agents                 *text.Memo[string]         // by feedback, which never changes its agent
	watch                  *watch.Watch
	failures               *text.Memo[failure] // of parts of Sweep
}

// New opens a service over its store, and keeps its settings there. It reports all faults of its
// configuration, joined: each is a [*heed.ConfigError].
func New(ctx context.Context, cfg Config) (*Service, error) {
	s, err := open(ctx, cfg, func(c *Config, own settings.Component) error {
		return settings.Open(ctx, c.Store, c.Now(), own)
	})
	return s, wrap("new", err)
}

// Open returns the service with the settings that its application left in the store, for a tool
// next to the application. It does not write to the store, and the stored numbers override those in
// cfg. Without settings in the store Open returns [heed.ErrNotFound].
func Open(ctx context.Context, cfg Config) (*Service, error) {
	s, err := open(ctx, cfg, func(c *Config, own settings.Component) error {
		return cmp.Or(settings.Adopt(ctx, c.Store, own), c.validate())
	})
	return s, wrap("open", err)
}

// open makes a service of a configuration after agree has reconciled it with the settings in the
// store.
func open(
	ctx context.Context, cfg Config, agree func(*Config, settings.Component) error,
) (*Service, error) {
	s := &Service{
		cfg: cfg, evaluating: host.NewLock(), governing: host.NewLock(),
		readings: text.NewMemo[*reading](10_000), longReadings: text.NewMemo[*reading](1000),
		worded: text.NewMemo[oppose.Reading](1000), prompts: text.NewMemo[promptLines](1000),
		agents: text.NewMemo[string](1000), failures: text.NewMemo[failure](2),
	}
	own := s.cfg.complete()
	if err := s.cfg.validate(); err != nil {
		return nil, err
	}
	if err := cfg.Store.Declare(
		ctx, feedbackKind.View.Kind, proposalKind.View.Kind, ruleKind.View.Kind, markKind.Kind,
		store.Audit,
	); err != nil {
		return nil, err
	}
	if err := agree(&s.cfg, own); err != nil {
		return nil, err
	}
	s.similarity = remembering(s.cfg.Similarity)
	s.watch = watch.New(s.cfg.Observer, component, s.now)
	return s, nil
}

// Config returns the configuration in force, defaults filled in.
func (s *Service) Config() Config {
	cfg := s.cfg
	cfg.Agents = slices.Clone(cfg.Agents)
	return cfg
}

// Record keeps a feedback and returns when the store has it. It does not evaluate it: see
// [Service.Evaluate]. duplicate reports that it was not kept because its ID was recorded before or
// erased. Other content under a known ID is a [heed.ErrConflict] and a [*heed.InputError]. A
// reviewer who was forgotten since is recognized. Input that is not valid is a [*heed.InputError]
// and is not kept.
func (s *Service) Record(ctx context.Context, f Feedback) (duplicate bool, err error) {
	err = store.Do(ctx, s.cfg.Store, func(tx *store.Tx) (err error) {
		duplicate, err = s.record(tx, f)
		return err
	})
	return duplicate && err == nil, wrap("record", err)
}

// wants names what [Service.RecordIn] reads.
func (s *Service) wants(ids ...string) store.Wants {
	return store.Wants{Refs: append(feedbackKind.refs(ids), stores.PseudonymKeyRef())}
}

// RecordIn is [Service.Record] in a step. Evaluate the feedback when the step is committed.
func (s *Service) RecordIn(tx *store.Tx, f Feedback) (duplicate bool, err error) {
	duplicate, err = s.record(tx, f)
	return duplicate, wrap("record", err)
}

// record keeps a feedback, unless it is known.
func (s *Service) record(tx *store.Tx, f Feedback) (duplicate bool, err error) {
	now := s.now()
	if f, err = s.received(f, now); err != nil {
		return false, err
	}
	tx.Want(s.wants(f.ID))
	key, err := stores.PseudonymKeyIn(tx)
	if err != nil {
		return false, err
	}
	switch known, err := feedbackKind.in(tx, f.ID); {
	case errors.Is(err, heed.ErrNotFound):
	case err != nil:
		return false, err
	case known.Erased.IsZero() && !known.same(&f, key):
		return false, store.Final(fmt.Errorf("%w: %w", heed.ErrConflict, &heed.InputError{
			Field: "ID", Reason: "names another decision already; choose another one"}))
	default:
		duplicate = true
	}
	if !duplicate {
		tx.Put(feedbackKind.record(f))
	}
	tx.Then(func(_ store.Receipt, failed error) {
		if failed == nil {
			s.recorded(tx.Context(), &f, now, duplicate)
		}
	})
	return duplicate, nil
}

// recorded notifies the observer of a feedback.
func (s *Service) recorded(ctx context.Context, f *Feedback, now time.Time, duplicate bool) {
	if !duplicate {
		s.agents.Put(f.ID, f.Agent)
	}
	switch {
	case s.watch == nil:
	case duplicate:
		s.watch.Tell(ctx, heed.Duplicate{Component: component, At: now, What: "feedback", ID: f.ID})
	default:
		n := heed.Counted{Component: component, At: now, Subject: f.ID, Channel: f.Gate, Weight: 1}
		if !f.corrects() {
			n.Reward = 1
		}
		s.watch.Tell(ctx, n)
	}
}

// received returns a feedback in the form in which it is kept, or what is wrong with it. Redact
// comes first, so that what must not be kept is in no comparison and no error.
func (s *Service) received(f Feedback, now time.Time) (_ Feedback, err error) {
	f = f.at(0)
	f.Evaluation, f.Recorded, f.Erased = Evaluation{}, now, time.Time{}
	if s.cfg.Redact != nil {
		err := host.Call("Config.Redact", func() error {
			f.Summary, f.Comment = s.cfg.Redact(f.Summary), s.cfg.Redact(f.Comment)
			for i := range f.Tags { // which at has copied
				f.Tags[i] = s.cfg.Redact(f.Tags[i])
			}
			return nil
		})
		if err != nil {
			return f, err
		}
	}
	if f.Summary != "" && strings.TrimSpace(f.Summary) == "" {
		return f, valid.Input("Summary", "must not be blank: leave it empty")
	}
	f.normalize()
	if f.Reviewer, err = person("Reviewer", f.Reviewer); err != nil {
		return f, err
	}
	if len(s.cfg.Agents) > 0 && !slices.Contains(s.cfg.Agents, f.Agent) {
		return f, valid.Input("Agent", "is not one of Config.Agents")
	}
	return f, f.validate(now)
}

// Feedback returns a feedback with what was made of it, or [heed.ErrNotFound].
func (s *Service) Feedback(ctx context.Context, id string) (Feedback, error) {
	r, err := feedbackIn(s.reading(ctx), id)
	return r, valid.Wrap("feedback", err)
}

// feedbackIn returns a feedback as a step sees it. Of an erased one only the id is left, so it is
// not found.
func feedbackIn(tx *store.Tx, id string) (Feedback, error) {
	r, err := feedbackKind.in(tx, id)
	if err == nil && !r.Erased.IsZero() {
		err = fmt.Errorf("%s: it was erased: %w", feedbackKind.Name, heed.ErrNotFound)
	}
	return r, err
}

// A Listing selects feedback. A field that is not set selects all. Erased feedback is never
// selected.
type Listing struct {
	// Agent and Gate are the names that the feedback must have.
	Agent, Gate string
	// Class is what it was classified as, or "unclassified" for what was not evaluated yet.
	Class Classification
	// Cluster is the id of its cluster, for example to list what a proposal was made of.
	Cluster string
	// Since and Until bound Feedback.At: from Since on, and before Until.
	Since, Until time.Time
	// Words must all be in the summary, the comment or the rationale. Case does not matter. Words are
	// not indexed, so rare ones are looked for in everything that the other fields select.
	Words string
	// Limit is how many [Service.List] returns at most. 0 means 100.
	Limit int
}

// stored returns the query of a listing. A store finds records that have all of its keys.
func (l *Listing) stored() store.Query {
	q := store.Query{Kind: feedbackKind.Name, Since: l.Since, Until: l.Until}
	for _, key := range [...]struct{ name, value string }{{"cluster", l.Cluster},
		{"class", string(l.Class)}, {"agent", l.Agent}, {"gate", l.Gate}} {
		if key.value != "" {
			q.Keys = append(q.Keys, store.Key(key.name, key.value))
		}
	}
	return q
}

// records yields the feedback that a listing selects, the newest first.
func (s *Service) records(ctx context.Context, l Listing) iter.Seq2[Feedback, error] {
	return func(yield func(Feedback, error) bool) {
		for r, err := range feedbackKind.find(ctx, s.cfg.Store, l.stored()) {
			if r.Erased.IsZero() && !yield(r, err) {
				return
			}
		}
	}
}

// List returns the feedback that a listing selects, the newest first, and how many there are
// without the limit. It counts to 1,000, or to a higher limit, so that it need not read all. If
// records are damaged, it returns the others with a [heed.ErrDamaged].
func (s *Service) List(ctx context.Context, l Listing) (records []Feedback, total int, err error) {
	words, limit := strings.Fields(strings.ToLower(l.Words)), cmp.Or(l.Limit, 100)
	var failures []error
	for r, err := range s.records(ctx, l) {
		if err != nil {
			failures = append(failures, err)
			continue
		}
		text := strings.ToLower(r.Summary + "\n" + r.Comment + "\n" + r.Rationale)
		if slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			continue
		}
		if total++; total <= limit {
			records = append(records, r)
		}
		if total >= max(limit, 1000) {
			break
		}
	}
	return records, total, wrap("list", errors.Join(failures...))
}

// Similar returns the corrections of the same agent whose text is alike from the threshold on, the
// most alike first, among the latest 1,000 decisions. A threshold of 0 is
// [Config].Threshold. Match.Opposed marks which contradict the feedback.
func (s *Service) Similar(ctx context.Context, f Feedback, threshold float64) ([]Match, error) {
	if !(threshold >= 0 && threshold <= 1) {
		return nil, fmt.Errorf("feedback: similar: %w", valid.Input("threshold", "must be in [0, 1]"))
	}
	threshold = cmp.Or(threshold, s.cfg.Threshold)
	known, err := s.recent(s.reading(ctx), &f)
	if err != nil {
		return nil, wrap("similar", err)
	}
	matches, err := s.compare(ctx, f.content(), slices.DeleteFunc(known,
		func(r Feedback) bool { return !r.corrects() }), true)
	return slices.DeleteFunc(matches, func(m Match) bool { return m.Score < threshold }),
		wrap("similar", err)
}

// recent returns the latest decisions about the feedback's agent, the newest first, without the
// feedback itself. If there are more than the window, up to four windows are read, and decisions of
// a person beyond a quarter of the window only get the room that others leave. So one account that
// states a thousand things does not keep what others said from being compared.
func (s *Service) recent(tx *store.Tx, f *Feedback) ([]Feedback, error) {
	window, q := s.cfg.window, s.recentOf(f.Agent)
	tx.Want(peopleWants)
	key, err := stores.PseudonymKeyIn(tx)
	if err != nil {
		return nil, err
	}
	var all []Feedback
	var beyond []bool // a quarter of its person
	of, within := make(map[string]int), 0
	for range deepest {
		var read store.Snapshot
		if err := tx.Read(&read, nil, nil, q); err != nil {
			return nil, err
		}
		page, err := feedbackKind.merge(read.Found, func(o *Feedback) bool {
			return o.ID != f.ID && o.Erased.IsZero()
		})
		if err != nil {
			return nil, err
		}
		for _, o := range page {
			who := key.Of(o.Reviewer) // one person, though the name was forgotten in between
			of[who]++
			more := of[who] > max(window/4, 10)
			if all, beyond = append(all, o), append(beyond, more); !more {
				within++
			}
		}
		found := read.Found[0]
		if within >= window || len(found) < q.Limit {
			break
		}
		q.After = found[len(found)-1].Place
	}
	kept, room := all[:0], window-within
	for i, o := range all {
		if beyond[i] {
			room--
		}
		if !beyond[i] || room >= 0 {
			kept = append(kept, o)
		}
	}
	return kept[:min(len(kept), window)], nil
}

// deepest is how many windows are read to find decisions of enough people.
const deepest = 4

// recentOf selects the latest decisions about an agent, one more than the window.
func (s *Service) recentOf(agent string) store.Query {
	l := Listing{Agent: agent}
	q := l.stored()
	q.Limit = s.cfg.window + 1
	return q
}

// matches compares a feedback with the latest decisions about its agent.
func (s *Service) matches(tx *store.Tx, f *Feedback) ([]Match, error) {
	known, err := s.recent(tx, f)
	if err != nil {
		return nil, err
	}
	return s.compare(tx.Context(), f.content(), known, false)
}

// compare scores the records that have a text, the most alike first. Of equally alike ones those
// with the same text come first, and then the newest. A text that is too long to compare is only
// alike to the same text.
//
// Match.Opposed is set if the texts have the same topic, and of every match if all is set.
func (s *Service) compare(
	ctx context.Context, one string, records []Feedback, all bool,
) (matches []Match, err error) {
	if !text.Comparable(one) {
		return nil, nil
	}
	var found, long []*Match
	var texts []string
	for i := range records {
		switch other := records[i].content(); {
		case tooLong(one, other):
			if s.sameText(one, other) {
				long = append(long, &Match{Feedback: records[i], Score: 1, same: true})
			}
		case text.Comparable(other):
			found, texts = append(found, &Match{Feedback: records[i]}), append(texts, other)
		}
	}
	scores, err := s.scores(ctx, one, texts)
	if err != nil {
		return nil, err
	}
	for i, other := range texts {
		m := found[i]
		m.Score, m.same = scores[i], s.sameText(one, other)
		m.reworded = m.Score >= s.cfg.Threshold && s.reworded(one, other)
		if all || s.sameTopic(one, other, m.Score) {
			m.Opposed = string(s.opposed(one, other))
		}
	}
	found = append(found, long...)
	slices.SortStableFunc(found, func(a, b *Match) int { // a Match is too large to be moved
		return cmp.Or(cmp.Compare(b.Score, a.Score), compareBool(b.same, a.same))
	})
	for _, m := range found {
		matches = append(matches, *m)
	}
	return matches, nil
}

// Erase deletes the content of a feedback, for privacy, and a store erases its copies: see
// [store.Batch].Forgotten. Its id stays known, so that it does not
// come back when it is delivered again. Proposals still name it and keep their counts, and
// approvals of those that are pending are void. A rule that was made of it stays: revoke the rule
// if its text must go. Erasing a feedback again has no effect.
func (s *Service) Erase(ctx context.Context, o Act) error {
	_, err := act(ctx, s, Act{ID: o.ID, Actor: o.Actor, Reason: o.Reason, Kind: "erase"},
		func(c *change) (none Feedback, err error) {
			c.Want(waitingWants)
			r, err := feedbackKind.in(c.Tx, o.ID)
			if err != nil || !r.Erased.IsZero() {
				return none, err
			}
			if err := c.raise(agentMark(r.Agent)); err != nil {
				return none, err
			}
			c.write(feedbackKind.record(Feedback{ID: o.ID, Recorded: r.Recorded, Erased: c.now,
				Revision: r.Revision}))
			c.Add(store.Batch{Forgotten: []string{o.ID}})
			pending, err := waiting(c.Tx, c.now)
			for i := range pending {
				if p := &pending[i]; slices.Contains(p.Evidence, o.ID) {
					p.withdraw()
					c.write(proposalKind.record(*p))
				}
			}
			return none, err
		})
	return err
}
