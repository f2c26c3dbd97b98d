package loop

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/store"
)

// How past answers are imported. Rows become records as if the agent had answered, in commits of up
// to 2,000 rows. The hash of a commit's rows is a record in the same commit, so an import that runs
// again skips the commits that were made, and goes on where it ended. Limits on sources hold,
// because the statements take the same way as a live reaction.

// A Past is an answer that was given without heed, with what became of it. Several of one event may
// follow each other, for example one for each thumb.
type Past struct {
	// Event is what was asked. Its ID names the answer; if empty, the content names it. Without a
	// time, [Agent.Import] uses the current time. History, OnChunk and AskModel have no effect.
	Event Event
	Text  string // what was answered
	// Arm is the ID of the [Arm] that answered. If empty, no arm is credited. Propensity is the
	// probability with which the arm was chosen, in (0, 1]; 0 means unknown.
	Arm        string
	Propensity float64
	Spent      answer.Spent // what the answer took
	// Reactions, Outcomes and Corrections are what became of it. Without a time of their own they get
	// the time of the event.
	Reactions   []Reaction
	Outcomes    []Outcome
	Corrections []Correction
}

// Imported counts what [Agent.Import] read.
type Imported struct {
	// Rows counts all rows, and Known the rows without effect, because they were imported
	// before.
	Rows  int `json:"rows"`
	Known int `json:"known"`
	// Answers, Reactions, Outcomes and Corrections are those that were new.
	Answers     int `json:"answers"`
	Reactions   int `json:"reactions"`
	Outcomes    int `json:"outcomes"`
	Corrections int `json:"corrections"`
	// Arms are the new answers by arm.
	Arms map[string]int `json:"arms,omitempty"`
	// Proposals are the ids of the pending proposals that new corrections support.
	Proposals []string `json:"proposals,omitempty"`
}

// One commit of [Agent.Import] has at most this number of rows. With these bytes of text or this
// number of statements, it has no further row. The commits of the same rows are always the same.
// Larger ones hold up other writers for longer, and smaller ones take more of the time of a large
// import.
const (
	importStep       = 2000
	importBytes      = 4 << 20
	importStatements = 10_000
)

// Import learns from past answers, which need not be in the order of their times. The limits on
// sources hold as for the agent's own answers. Silence about a past answer does not count.
//
// Each commit has at most 2,000 rows. A row counts once: rows that were imported before are
// recognised by their content as long as they come in the same order, and by the id of their event
// for as long as answers are kept. So an import that was interrupted goes on if it is called with
// the same rows again. After an error, the commits before it remain. An error names the row,
// counted from 1, and is a [*heed.InputError] if the row is at fault.
//
// Corrections are evaluated after the last row, so that they may become proposals: see
// [Agent.Correct].
//
// If there was anything new, the audit log has one entry with the counts of [Imported], which each
// commit brings up to date. Its actor is who imports, and its subject where the rows come from, for
// example the name of a file. Either may be "".
func (a *Agent) Import(
	ctx context.Context, past iter.Seq2[Past, error], actor, from string,
) (done Imported, err error) {
	if err := valid.Texts(evidence.MaxText, "actor", actor, "from", from); err != nil {
		return done, wrap("import", err)
	}
	i := importing{Agent: a, done: Imported{Arms: make(map[string]int)}, entry: store.AuditEntry{
		At: a.cfg.Testing.Now(), Actor: actor, Action: a.cfg.Name + ".import", Subject: from,
	}}
	err = i.all(ctx, past)
	return i.done, wrap("import", err)
}

// An importing is one call of [Agent.Import].
type importing struct {
	*Agent
	done  Imported
	entry store.AuditEntry // without an ID until there was anything new
}

// all imports all rows.
func (a *importing) all(ctx context.Context, past iter.Seq2[Past, error]) error {
	rows, size, statements := make([]Past, 0, importStep), 0, 0
	for row, err := range past {
		if err != nil {
			return err
		}
		size += len(row.Text) + len(row.Event.Text)
		statements += len(row.Reactions) + len(row.Outcomes) + len(row.Corrections)
		if rows = append(rows, row); len(rows) == importStep || size >= importBytes ||
			statements >= importStatements {
			if err := a.importRows(ctx, rows); err != nil {
				return err
			}
			rows, size, statements = rows[:0], 0, 0
		}
	}
	if err := a.importRows(ctx, rows); err != nil {
		return err
	}
	if err := a.evaluate(ctx); err != nil || a.entry.ID == "" {
		return err
	}
	err := store.Do(ctx, a.own, func(tx *store.Tx) error { return a.record(tx, "", &a.done) })
	return errors.Join(err, a.recordChanges(ctx, a.entry.At))
}

// record puts the entry of the audit log about what an import has taught until now. The entry is
// replaced by each commit, so that what an import which fails has taught is in the log, too. Of
// people, only the actor's name is in it. first is the mark of the first commit.
func (a *importing) record(tx *store.Tx, first string, done *Imported) error {
	a.entry.ID = cmp.Or(a.entry.ID, store.IDOf("import", a.cfg.Name, a.entry.At.String(), first))
	e := a.entry
	before, err := tx.Get(e.Record().Ref)
	if err == nil && before.Revision > 0 { // the actor may have been forgotten since
		e, err = store.Decode[store.AuditEntry](before.Body)
	}
	if err != nil {
		return err
	}
	e.Details = make(map[string]string)
	for name, n := range map[string]int{
		"answers": done.Answers, "thumbs": done.Reactions, "outcomes": done.Outcomes,
		"corrections": done.Corrections, "proposals": len(done.Proposals), "known rows": done.Known,
	} {
		if n > 0 {
			e.Details[name] = strconv.Itoa(n)
		}
	}
	for arm, n := range done.Arms {
		e.Details["of arm "+arm] = strconv.Itoa(n)
	}
	r := e.Record()
	if before.Revision > 0 {
		r.Revision = before.Revision
	}
	tx.Put(r)
	return nil
}

// evaluate evaluates imported corrections. Its errors do not take back what was imported: a sweep
// evaluates again.
func (a *importing) evaluate(ctx context.Context) error {
	if a.done.Corrections == 0 {
		return nil
	}
	evaluated, err := a.feedback.EvaluateAll(ctx)
	for i := range evaluated {
		if p := evaluated[i].Proposal; p != "" && !slices.Contains(a.done.Proposals, p) {
			a.done.Proposals = append(a.done.Proposals, p)
		}
	}
	return err
}

// An importedRow marks rows that were imported in one commit.
type importedRow struct {
	ID   string    `json:"id"` // the hash of their content
	At   time.Time `json:"at"`
	Rows int       `json:"rows"`
}

// importsOf returns the kind of the marks of commits. They are kept for good, because the same file
// may be imported again at any time.
func importsOf(name string) store.View[importedRow] {
	return store.View[importedRow]{
		Kind:  store.Kind{Name: name + ".import"},
		Place: func(r importedRow) (string, time.Time, []string) { return r.ID, r.At, nil },
	}
}

// errFrozen refuses an import that would be lost. A frozen agent keeps statements without learning
// from them, and a later import of the same rows would skip them.
var errFrozen = &heed.ConfigError{Field: "Freeze", Value: true,
	Reason: "must be off while past answers are imported"}

// importRows imports rows in one commit. What needs no store, such as checking and hashing, is done
// before the step. The hash of the commit is of the rows' contents in their order, so the same file
// gives the same marks. Rows are named by their place in the whole import.
func (a *importing) importRows(ctx context.Context, rows []Past) error {
	if len(rows) == 0 {
		return nil
	}
	now := a.cfg.Testing.Now()
	all := sha256.New()
	items := make([]string, len(rows))
	for i := range rows {
		err := a.completePast(&rows[i], now, func(hash []byte) { all.Write(hash) })
		if err == nil {
			items[i], err = a.itemOf(ctx, &rows[i].Event)
		}
		if err != nil {
			return atRow(a.done.Rows+i+1, err)
		}
	}
	mark := importedRow{ID: hex.EncodeToString(all.Sum(nil)), At: now, Rows: len(rows)}
	var done Imported // with these rows; a step that runs again counts them again
	before, tried := a.entry.ID, false
	err := store.Do(ctx, a.own, func(tx *store.Tx) error {
		// The mark is in the same commit as the rows, so either both are there or neither.
		marked, err := a.imports.In(tx, mark.ID)
		if err == nil && tried && marked.Value.At.Equal(now) {
			return nil // the reply of the first run got lost
		}
		tried, done, a.entry.ID = true, a.done, before
		done.Arms = maps.Clone(a.done.Arms)
		done.Rows += len(rows)
		if err != nil || marked.Revision > 0 {
			done.Known += len(rows)
			return err
		}
		w := store.Wants{}
		for i := range rows {
			w.Refs = append(w.Refs, a.answers.Ref(answers.ID(rows[i].Event.ID)))
		}
		tx.Want(w)
		a.wantFrozen(tx)
		if frozen, err := a.isFrozen(tx); err != nil || frozen {
			return cmp.Or[error](err, errFrozen)
		}
		for i := range rows {
			if err := a.importRow(tx, &done, &rows[i], items[i], now); err != nil {
				return atRow(a.done.Rows+i+1, err)
			}
		}
		a.imports.Put(tx, mark, 0)
		if done.statements() == a.done.statements() {
			return nil
		}
		return a.record(tx, mark.ID, &done)
	})
	if err == nil {
		a.done = done
	}
	return err
}

// atRow names the row of an error.
func atRow(n int, err error) error { return fmt.Errorf("row %d: %w", n, err) }

// statements counts what was new.
func (i *Imported) statements() int { return i.Answers + i.Reactions + i.Outcomes + i.Corrections }

// completePast checks a row, and gives it an id and times. It hands over the hash of its content.
// The hash is of the row as it came, before the times and the id are filled in, so that a row
// without a time has the same hash tomorrow.
func (a *Agent) completePast(p *Past, now time.Time, hashed func([]byte)) error {
	e := &p.Event
	e.History, e.OnChunk = nil, nil
	content, err := json.Marshal(struct {
		Past
		OnChunk any `json:"Event"` // in place of the event, which has a function
		Fields  []string
		At      time.Time
	}{*p, nil, []string{e.ID, e.Text, e.Session, e.Person, e.Stream, e.Domain, e.Task,
		e.Item, e.Context}, e.At})
	if err != nil { // of a text that is no number
		return &heed.InputError{Field: "Past", Reason: err.Error()}
	}
	hash := sha256.Sum256(content)
	hashed(hash[:])
	e.ID = cmp.Or(e.ID, "past-"+hex.EncodeToString(hash[:12]))
	if e.At.IsZero() {
		e.At = now
	}
	p.Reactions, p.Outcomes = slices.Clone(p.Reactions), slices.Clone(p.Outcomes)
	p.Corrections = slices.Clone(p.Corrections)
	if err := cmp.Or(a.validate(e), valid.Time("Event.At", e.At, now),
		a.cfg.person("Event.Person", e.Person), a.validatePast(p)); err != nil {
		return err
	}
	for i := range p.Outcomes {
		o := &p.Outcomes[i]
		o.At = maxTime(o.At, e.At)
		if err := a.completeOutcome(o, now); err != nil {
			return err
		}
	}
	for i := range p.Corrections {
		c := &p.Corrections[i]
		if err := cmp.Or(a.cfg.person("Reviewer", c.Reviewer), optionalTime(c.At, now)); err != nil {
			return err
		}
	}
	return nil
}

// validatePast checks what only a past answer has.
func (a *Agent) validatePast(p *Past) error {
	_, known := a.arm(p.Arm)
	switch {
	case p.Arm != "" && !known:
		return valid.Input("Arm", "is %q, which is none of the agent's arms", p.Arm)
	case !(p.Propensity >= 0 && p.Propensity <= 1):
		return valid.Input("Propensity", "must be in (0, 1], or 0 if it is unknown")
	case !(p.Spent.Cost >= 0 && p.Spent.Cost <= evidence.MaxWeight):
		return valid.Input("Spent.Cost", "must be in [0, 1e6]")
	case p.Spent.Latency < 0 || p.Spent.Tokens < 0:
		return valid.Input("Spent", "must not be negative")
	}
	return nil
}

// importRow adds a row to a step. A row that adds no statement to an answer that is there counts as
// known. What it adds is settled as for a live statement, so evidence and records are in one
// commit.
func (a *Agent) importRow(tx *store.Tx, done *Imported, p *Past, item string, now time.Time) error {
	row, err := a.answers.In(tx, answers.ID(p.Event.ID))
	if err != nil {
		return err
	}
	// A later row of an event adds statements to the answer that an earlier one done.
	isNew := row.Value.Reply == nil
	if isNew {
		if row.Value, err = a.recordPast(tx.Context(), p, item); err != nil {
			return err
		}
		if done.Answers++; p.Arm != "" {
			done.Arms[p.Arm]++
		}
	}
	r, before := &row.Value, answers.ForArm(&row.Value)
	numbers, corrected := r.Numbers, done.Corrections
	if err := a.importStatements(tx, done, p, r, now); err != nil {
		return err
	}
	if !isNew && r.Numbers == numbers && done.Corrections == corrected {
		done.Known++
		return nil
	}
	return a.settle(tx, row, before, new(error))
}

// importStatements adds to a step what became of a past answer. They take the same way as live
// ones, so the limits on sources hold. Corrections are evaluated after the step, because a host's
// evaluator may take long.
func (a *Agent) importStatements(
	tx *store.Tx, done *Imported, p *Past, r *answer.Answer, now time.Time,
) error {
	for _, reaction := range p.Reactions {
		reaction.At = maxTime(reaction.At, p.Event.At)
		s, err := a.reaction(r.ID, reaction, now)
		if err != nil {
			return err
		}
		n := r.Numbers
		if _, err := a.reactIn(tx, r, s, now); err != nil {
			return err
		}
		done.Reactions += int(r.Numbers - n) //nolint:gosec // 0 or 1
	}
	for _, o := range p.Outcomes {
		n := r.Numbers
		if err := a.outcomeIn(tx, r, o, now); err != nil {
			return err
		}
		done.Outcomes += int(r.Numbers - n) //nolint:gosec // 0 or 1
	}
	for _, c := range p.Corrections {
		f := a.feedbackOf(r, c)
		known, err := a.feedback.RecordIn(tx, f)
		if err == nil && !known {
			done.Corrections++
			c.At = maxTime(c.At, r.At)
			err = a.complain(tx, r, &f, c, now)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// recordPast returns the record of a past answer. The choice has no draws. Its id is derived from
// the event, so that the same row gives the same choice. Silence about a past answer does not
// count, because it is not known whether a person was there to see it.
func (a *Agent) recordPast(ctx context.Context, p *Past, item string) (answer.Answer, error) {
	e := &p.Event
	reply := &answer.Reply{
		Path: string(decision.Model), Task: e.Task, Text: p.Text, About: e.Text, Spent: p.Spent,
	}
	if err := a.redact(&reply.Text, &reply.About); err != nil {
		return answer.Answer{}, err
	}
	reply.About = beginning(reply.About)
	plan := Plan{Event: *e, Text: p.Text, kept: keptPlan{Item: item}}
	reply.Followed = a.ways(ctx, &plan)
	r := answer.Answer{
		ID: e.ID, At: evidence.InstantOf(e.At).Time(), Person: e.Person,
		Session: e.Session, Domain: e.Domain, Stream: e.Stream, Reply: reply,
	}
	if p.Arm != "" {
		q := plan.query(nil)
		r.Choice = &answer.Choice{
			ID:      uuid.NewSHA1(uuid.NameSpaceOID, []byte(store.IDOf(a.cfg.Name, e.ID))),
			Learner: a.learner.Config().Name, Arm: answer.ArmID(p.Arm), Session: q.Session, Item: q.Item,
			Category: q.Category, Context: q.Context, At: r.At, Propensity: p.Propensity,
			IgnoreSilence: true,
		}
	}
	return r, nil
}
