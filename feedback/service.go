package feedback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/lock"
	"github.com/heedhq/heed/internal/oppose"
	"github.com/heedhq/heed/internal/settings"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/store"
)

// A Service records what reviewers decide and finds out what can be learned from it. Make one with [New]; [Service.Rules]
// has what becomes of it. All that it knows is in the store: another service over the same store goes on where it stopped.
// It starts no goroutine and needs no closing.
//
// A Service is safe for concurrent use by multiple goroutines.
type Service struct {
	cfg        Config
	similarity heed.Similarity // cfg.Similarity, with a memory if it embeds
	evaluating lock.Lock       // one evaluation at a time, so that they don't lose races against each other
	governing  lock.Lock       // one change of proposals and rules at a time, likewise
	prompts    prompts
}

// New opens a service over what its store has, and keeps its settings there. Faults of its configuration come joined: each
// is a [*heed.ConfigError].
func New(ctx context.Context, cfg Config) (*Service, error) {
	given := cfg
	s, err := open(ctx, cfg, func(c *Config) error { return settings.Open(ctx, c.Store, c.Now(), c.component(&given)) })
	return s, wrap("new", err)
}

// Open returns the service with the settings that its application has left in the store, for a tool beside the application.
// It writes nothing, and the numbers of cfg give way to the stored ones. Without settings in the store Open returns
// [heed.ErrNotFound].
func Open(ctx context.Context, cfg Config) (*Service, error) {
	s, err := open(ctx, cfg, func(c *Config) error {
		return cmp.Or(settings.Adopt(ctx, c.Store, c.component(&Config{})), c.validate())
	})
	return s, wrap("open", err)
}

// open makes a service of a configuration after agree has reconciled it with the settings in the store.
func open(ctx context.Context, cfg Config, agree func(*Config) error) (*Service, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if err := cfg.Store.Declare(
		ctx, feedbackKind.Kind.Kind, proposalKind.Kind.Kind, ruleKind.Kind.Kind, markKind.Kind, laneKind.Kind, store.Audit,
	); err != nil {
		return nil, err
	}
	if err := agree(&cfg); err != nil {
		return nil, err
	}
	return &Service{cfg: cfg, similarity: remembering(cfg.Similarity), evaluating: lock.New(), governing: lock.New()}, nil
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
	switch err := s.add(ctx, Record{Feedback: f, Recorded: now}); {
	case errors.Is(err, errKnown):
		return Receipt{ID: f.ID, Duplicate: true}, nil
	case err != nil:
		return Receipt{}, wrap("record", err)
	}
	return Receipt{ID: f.ID}, nil
}

// errKnown says that there was nothing to take over.
var errKnown = errors.New("known")

// add keeps a feedback that is new. One that is known, or was erased, is errKnown.
func (s *Service) add(ctx context.Context, r Record) error {
	_, err := s.apply(ctx, change{records: []store.Record{feedbackKind.record(r)}})
	if !errors.Is(err, heed.ErrConflict) {
		return err
	}
	known, err := feedbackKind.get(ctx, s.cfg.Store, r.ID)
	if err != nil {
		return err
	}
	if !known.Erased.IsZero() || known.same(&r.Feedback) {
		return errKnown
	}
	return fmt.Errorf("another decision has this id: %w", heed.ErrConflict)
}

// prepare brings a feedback into the form in which it is kept, and reports what is wrong with it.
func (s *Service) prepare(f *Feedback, now time.Time) (err error) {
	if s.cfg.TakeChanged && f.Decision == Approved && f.changed() {
		f.Decision = ApprovedWithChanges
	}
	if s.cfg.Redact != nil {
		err := host.Call("Config.Redact", func() error {
			f.Summary, f.Comment = s.cfg.Redact(f.Summary), s.cfg.Redact(f.Comment)
			return nil
		})
		if err != nil {
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

// Feedback returns a feedback with what was made of it, or [heed.ErrNotFound].
func (s *Service) Feedback(ctx context.Context, id string) (Record, error) {
	r, err := feedbackKind.get(ctx, s.cfg.Store, id)
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

// records yields the feedback that a query selects, the newest first, and of one moment the last recorded first.
func (s *Service) records(ctx context.Context, q Query) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for r, err := range feedbackKind.find(ctx, s.cfg.Store, q.stored()) {
			if r.Erased.IsZero() && !yield(r, err) {
				return
			}
		}
	}
}

// List returns the feedback that a listing selects, the newest first, and how many there are without the limit.
func (s *Service) List(ctx context.Context, l Listing) (records []Record, total int, err error) {
	words := strings.Fields(strings.ToLower(l.Words))
	for r, err := range s.records(ctx, l.Query) {
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
	threshold = cmp.Or(threshold, s.cfg.Threshold)
	known, err := s.recent(ctx, &f)
	if err != nil {
		return nil, wrap("similar", err)
	}
	matches, err := s.compare(ctx, f.Text(), slices.DeleteFunc(known, func(r Record) bool { return !r.Corrects() }))
	return slices.DeleteFunc(matches, func(m Match) bool { return m.Score < threshold }), wrap("similar", err)
}

// recent returns the latest decisions about the feedback's agent, the newest first, without the feedback itself.
func (s *Service) recent(ctx context.Context, f *Feedback) (records []Record, err error) {
	for r, err := range s.records(ctx, Query{Agent: f.Agent}) {
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
func (s *Service) compare(ctx context.Context, one string, records []Record) ([]Match, error) {
	if !text.Comparable(one) {
		return nil, nil
	}
	var matches []Match
	var texts []string
	words := oppose.Read(one)
	for i := range records {
		if other := records[i].Text(); text.Comparable(other) {
			matches = append(matches, Match{Record: records[i], Opposed: string(words.Opposes(oppose.Read(other)))})
			texts = append(texts, other)
		}
	}
	scores, err := s.scores(ctx, one, texts)
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
	_, err := s.act(ctx, ActErase, id, actor, reason, nil, func(now time.Time, who string) (c change, err error) {
		r, err := feedbackKind.get(ctx, s.cfg.Store, id)
		if err != nil || !r.Erased.IsZero() {
			return c, err
		}
		lane, err := s.lane(ctx, r.Agent, now)
		if err != nil {
			return c, err
		}
		c.write(lane, feedbackKind.record(Record{Feedback: Feedback{ID: id}, Recorded: r.Recorded, Erased: now, Revision: r.Revision}))
		return c, nil
	})
	return wrap("erase", err)
}

// Audit returns who did what to what, when and why, refusals among it: the last first, and at most that many, or all where
// limit is negative.
func (s *Service) Audit(ctx context.Context, limit int) (entries []store.AuditEntry, err error) {
	if limit == 0 {
		return nil, nil
	}
	for entry, err := range store.AuditEntries(ctx, s.cfg.Store, store.AuditQuery{}) {
		if err != nil {
			return nil, wrap("audit", err)
		}
		if !strings.HasPrefix(entry.Action, auditPrefix) && (entry.Action != "settings" || entry.Subject != component) {
			continue
		}
		if entries = append(entries, entry); len(entries) == limit {
			break
		}
	}
	return entries, nil
}
