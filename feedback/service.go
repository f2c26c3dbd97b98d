package feedback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// A Service records what reviewers decide and finds out what can be learned from it. Make one with [New]; [Service.Rules]
// has what becomes of it. All that it knows is in the store: another service over the same store goes on where it stopped.
// It starts no goroutine and needs no closing.
//
// A Service is safe for concurrent use by multiple goroutines.
type Service struct {
	cfg        Config
	evaluating turn // one evaluation at a time, so that they don't lose races against each other
	governing  turn // one change of proposals and rules at a time, likewise
}

// New returns a service, or all faults of its configuration, joined: each is a [*heed.ConfigError].
func New(cfg Config) (*Service, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("feedback: %w", err)
	}
	return &Service{cfg: cfg, evaluating: make(turn, 1), governing: make(turn, 1)}, nil
}

// Config returns the configuration in force, defaults filled in.
func (s *Service) Config() Config { return s.cfg.withDefaults() }

// A Receipt says what became of a feedback that was recorded.
type Receipt struct {
	ID        string
	Duplicate bool // it was known, or it was erased: nothing was kept
}

// Record keeps a feedback and returns when the store has it. It does not evaluate it: see [Service.Evaluate]. What is
// recorded again with the same content is a duplicate, and what has the id of another decision with other content is a
// [heed.ErrConflict]. Input that is not valid is a [*heed.InputError] and changes nothing.
func (s *Service) Record(ctx context.Context, f Feedback) (Receipt, error) {
	if err := ctx.Err(); err != nil {
		return Receipt{}, err
	}
	now := s.now()
	f = f.clone()
	if err := s.prepare(&f, now); err != nil {
		return Receipt{}, fmt.Errorf("feedback: record: %w", err)
	}
	err := s.apply(ctx, Change{Records: []Record{{Feedback: f, Recorded: now}}})
	if !errors.Is(err, heed.ErrConflict) {
		return Receipt{ID: f.ID}, wrap("record", err)
	}
	known, err := s.cfg.Store.Record(ctx, f.ID)
	if err != nil {
		return Receipt{}, wrap("record", err)
	}
	known.normalize()
	if !known.Erased.IsZero() || known.same(&f) {
		return Receipt{ID: f.ID, Duplicate: true}, nil
	}
	return Receipt{}, fmt.Errorf("feedback: record: another decision has this id: %w", heed.ErrConflict)
}

// prepare brings a feedback into the form in which it is kept, and reports what is wrong with it.
func (s *Service) prepare(f *Feedback, now time.Time) (err error) {
	if s.cfg.TakeChanged && f.Decision == Approved && f.changed() {
		f.Decision = ApprovedWithChanges
	}
	if s.cfg.Redact != nil {
		if err := s.redact(f); err != nil {
			return err
		}
	}
	f.normalize()
	if f.Reviewer, err = s.person("Reviewer", f.Reviewer); err != nil {
		return err
	}
	if len(s.cfg.Agents) > 0 && !slices.Contains(s.cfg.Agents, f.Agent) {
		return invalid("Agent", "is none of Config.Agents")
	}
	return f.validate(now)
}

func (s *Service) redact(f *Feedback) (err error) {
	defer contain("Config.Redact", &err)
	f.Summary, f.Comment = s.cfg.Redact(f.Summary), s.cfg.Redact(f.Comment)
	return nil
}

// Feedback returns a feedback with what was made of it, or [heed.ErrNotFound].
func (s *Service) Feedback(ctx context.Context, id string) (Record, error) {
	r, err := s.cfg.Store.Record(ctx, id)
	if err == nil && !r.Erased.IsZero() {
		err = fmt.Errorf("it was erased: %w", heed.ErrNotFound)
	}
	if err != nil {
		return Record{}, wrap("feedback", err)
	}
	return r, nil
}

// A Listing selects feedback for people to look at.
type Listing struct {
	Query
	Words string // words that must all be in the summary, the comment or the rationale, in whatever case
	Limit int    // how many to return at most. 0 means 100
}

// List returns the feedback that a listing selects, the newest first, and how many there are without the limit.
func (s *Service) List(ctx context.Context, l Listing) (records []Record, total int, err error) {
	words := strings.Fields(strings.ToLower(l.Words))
	for r, err := range s.cfg.Store.Records(ctx, l.Query) {
		if err != nil {
			return nil, 0, wrap("list", err)
		}
		text := strings.ToLower(r.Summary + "\n" + r.Comment + "\n" + r.Rationale)
		if slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) }) {
			continue
		}
		if total++; total <= cmp.Or(l.Limit, 100) {
			records = append(records, r)
		}
	}
	return records, total, nil
}

// Similar returns the corrections of the same agent whose text is alike, the most alike first: from the threshold on, or
// from the similarity's own where it is 0. Those that contradict the feedback say so in Match.Opposed. Of the agent's
// decisions, the latest [Config].Window are looked at.
func (s *Service) Similar(ctx context.Context, f Feedback, threshold float64) ([]Match, error) {
	if !(threshold >= 0 && threshold <= 1) {
		return nil, fmt.Errorf("feedback: similar: %w", invalid("threshold", "must be in [0, 1]"))
	}
	threshold = cmp.Or(threshold, s.cfg.Similarity.Traits().Threshold)
	known, err := s.recent(ctx, &f)
	if err != nil {
		return nil, wrap("similar", err)
	}
	matches, err := s.compare(ctx, f.Text(), slices.DeleteFunc(known, func(r Record) bool { return !r.Corrects() }))
	return slices.DeleteFunc(matches, func(m Match) bool { return m.Score < threshold }), wrap("similar", err)
}

// recent returns the latest decisions about the feedback's agent, the newest first, without the feedback itself.
func (s *Service) recent(ctx context.Context, f *Feedback) (records []Record, err error) {
	for r, err := range s.cfg.Store.Records(ctx, Query{Agent: f.Agent}) {
		if err != nil {
			return nil, err
		}
		if r.ID == f.ID {
			continue
		}
		if records = append(records, r); len(records) == s.cfg.Window {
			break
		}
	}
	return records, nil
}

// compare scores the records that have a text, the most alike first, and of those equally alike the newest.
func (s *Service) compare(ctx context.Context, text string, records []Record) ([]Match, error) {
	if !comparable(text) {
		return nil, nil
	}
	var matches []Match
	var texts []string
	words := read(text)
	for i := range records {
		if other := records[i].Text(); comparable(other) {
			matches = append(matches, Match{Record: records[i], Opposed: oppose(words, read(other))})
			texts = append(texts, other)
		}
	}
	scores, err := s.scores(ctx, text, texts)
	if err != nil {
		return nil, err
	}
	for i := range matches {
		matches[i].Score = scores[i]
	}
	slices.SortStableFunc(matches, func(a, b Match) int { return cmp.Compare(b.Score, a.Score) })
	return matches, nil
}

// Erase deletes the content of a feedback, for privacy. Its id stays known, so that it does not come back when it is
// delivered again; proposals go on to name it, and keep the counts that they had. A rule that was made of it stays: revoke
// it where its text has to go. To erase it again changes nothing.
func (s *Service) Erase(ctx context.Context, id, actor, reason string) error {
	return wrap("erase", s.act(ctx, ActErase, id, actor, reason, nil, func(now time.Time, who string) (Change, error) {
		r, err := s.cfg.Store.Record(ctx, id)
		if err != nil || !r.Erased.IsZero() {
			return Change{}, err
		}
		revisions, err := s.cfg.Store.Revisions(ctx, lane(r.Agent))
		if err != nil {
			return Change{}, err
		}
		gone := Record{Feedback: Feedback{ID: id}, Recorded: r.Recorded, Erased: now, Revision: r.Revision}
		return Change{Expect: map[string]uint64{lane(r.Agent): revisions[0]}, Records: []Record{gone}}, nil
	}))
}

// Audit returns who did what to what, when and why, refusals among it: the last first, and at most that many.
func (s *Service) Audit(ctx context.Context, limit int) (entries []evidence.AuditEntry, err error) {
	for entry, err := range s.cfg.Store.Audit(ctx) {
		if err != nil {
			return nil, wrap("audit", err)
		}
		if len(entries) == limit {
			break
		}
		entries = append(entries, entry)
	}
	return entries, nil
}
