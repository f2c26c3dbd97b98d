package sqlstore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
)

// Forget takes a person out of all that the stores keep, by the name that the host gives to heed: wholly, or it returns an error
// and changes nothing. To call it again does no harm.
//
// What the person caused goes, or loses its cause. There the name is compared as it is.
//
//   - Their evidence goes, as by [evidence.Batch].Expunge, and the cells of their name that are empty then.
//   - Results of choices and outcomes of patterns stay, without a source.
//   - In the outbox and in streams, their observations and the source of their results go from a learner's events
//     ([strategy.Event]), and attributions of theirs ([strategy.AttributionEvent]) go as a whole.
//
// Where the person decided something, a pseudonym takes the place of their name, so that what was decided stays so: as reviewer
// and resolver of feedback, also of such that waits in a stream ([feedback.DecodeEvent]); as author, writer, approver and decider
// of proposals and rules; as the actor of overrides, transitions and reviews of patterns, of a learner's events, and of both audit
// logs, in that of the evidence also as the subject. There names are compared as [feedback.CanonicalID] has them; a host with a
// [feedback.Config].Canonical of its own calls Forget for what that makes of the name, too.
//
// The pseudonym is the same throughout a call, so that the approvals of two people stay those of two, and an audit log tells
// one actor from another. It is random, and nothing leads from it to the name. Another call makes another.
//
// What stays:
//
//   - Texts that people wrote, whoever they name: comments, reasons, rules, the texts of errors. [feedback.Service.Erase] deletes the
//     content of a feedback.
//   - Ids, under which nothing counts again. Those of clicks and of reactions are hashes of the name with other things.
//   - What the host has named after the person: items, sessions, categories, places where events come from; and its own
//     payloads in the outbox and in streams.
//
// Afterwards the person is unknown, and who comes under the name is somebody else. They can approve once more what they had
// approved, or even had proposed, and count as another person: where that must not be, the [feedback.Authorizer] has to refuse
// them. A decision of theirs that is delivered again is a [heed.ErrConflict], as its reviewer is another.
//
// Whoever has read a value of package feedback or patterns before, and writes it afterwards, gets [heed.ErrConflict]. What else
// is under way while Forget runs (a delivery in hand, an answer whose silence is awaited) comes in afterwards, with the name:
// call Forget again then. Reads of stores that cache see it within their EvidenceConfig.Stale, and learners by a Refresh.
//
// It returns [evidence.ErrForgotten] where sums have evidence from sources that the history no longer names, as it may be the
// person's: the cells, of which the error names one's kind and scope, have to be reset then. Cells that keep sources apart
// ([evidence.Policy].ByOrigin, BySource in the packages' configurations) never come to that. A row that has the name in it and
// can't be read is an error, too. Forget reads whole tables, and nobody else writes meanwhile.
//
// [strategy.Event]: https://pkg.go.dev/github.com/heedhq/heed/strategy#Event
// [strategy.AttributionEvent]: https://pkg.go.dev/github.com/heedhq/heed/strategy#AttributionEvent
// [heed.ErrConflict]: https://pkg.go.dev/github.com/heedhq/heed#ErrConflict
func (db *DB) Forget(ctx context.Context, person string) error {
	store := &Evidence{db: db, cfg: EvidenceConfig{}.withDefaults()}
	c, err := store.begin(ctx, &evidence.Batch{Expunge: []string{person}})
	if err != nil {
		return err
	}
	err = db.write(ctx, lockAlone, func(t *tx) error {
		if _, err := t.exec(lockTables); err != nil {
			return err
		}
		if _, err := c.run(t, true); err != nil {
			return err
		}
		f := &forgetting{t, person, canonical(person), "forgotten-" + uuid.NewString()}
		return f.run()
	})
	if err != nil {
		return fmt.Errorf("sqlstore: forget: %w", err)
	}
	return nil
}

// A forgetting is a call of Forget, in its transaction.
type forgetting struct {
	t         *tx
	person    string
	canonical string
	pseudonym string
}

// lockTables keeps out those who write without a lock that lockAlone excludes.
var lockTables = either(`DELETE FROM heed_schema WHERE version < 0`,
	`LOCK TABLE heed_choices, heed_stream, heed_documents IN SHARE ROW EXCLUSIVE MODE`)

var dropNamed = both(`DELETE FROM heed_cells WHERE (scope = $1 OR item = $1 OR name = $1)
	AND NOT EXISTS (SELECT 1 FROM heed_tallies t WHERE t.cell = heed_cells.cell)
	AND NOT EXISTS (SELECT 1 FROM heed_history h WHERE h.cell = heed_cells.cell)`)

func (f *forgetting) run() error {
	if _, err := f.t.exec(dropNamed, f.person); err != nil {
		return err
	}
	if err := f.results(); err != nil {
		return err
	}
	if err := f.audit(); err != nil {
		return err
	}
	for _, p := range places {
		if err := f.documents(p); err != nil {
			return fmt.Errorf("%s: %w", p.sort, err)
		}
	}
	for _, q := range queues {
		if err := f.events(q); err != nil {
			return err
		}
	}
	return nil
}

// caused reports whether a value is the person's name.
func (f *forgetting) caused(value any) bool { return value == f.person }

// decided reports whether a value is the person's name in whatever form.
func (f *forgetting) decided(value any) bool {
	name, ok := value.(string)
	return ok && canonical(name) == f.canonical
}

func canonical(name string) string {
	if form, err := feedback.CanonicalID(name); err == nil {
		return form
	}
	return name
}

// remove takes the person's name from a place in a JSON object, and reports whether it was there.
func (f *forgetting) remove(object map[string]any, path string) (found bool) {
	at(object, strings.Split(path, "."), func(value any) any {
		if !f.caused(value) {
			return value
		}
		found = true
		return nil
	})
	return found
}

// rename puts the pseudonym there.
func (f *forgetting) rename(object map[string]any, path string) (found bool) {
	at(object, strings.Split(path, "."), func(value any) any {
		if !f.decided(value) {
			return value
		}
		found = true
		return f.pseudonym
	})
	return found
}

// at calls a function with what there is at a path of keys, and puts what it returns into its place; nil is taken out. A
// star stands for each element of a list. As for who reads JSON in Go, the case of letters in a key is of no account.
func at(node any, path []string, do func(any) any) {
	first, rest := path[0], path[1:]
	switch node := node.(type) {
	case map[string]any:
		for key, value := range node {
			switch {
			case !strings.EqualFold(key, first):
			case len(rest) > 0:
				at(value, rest, do)
			default:
				if node[key] = do(value); node[key] == nil && value != nil {
					delete(node, key)
				}
			}
		}
	case []any:
		for i := range node {
			switch {
			case first != "*":
			case len(rest) > 0:
				at(node[i], rest, do)
			default:
				node[i] = do(node[i])
			}
		}
	}
}

// object reads a JSON object, and nothing behind it. Numbers stay as they are written, and so does what heed knows nothing of.
func object(text []byte) (o map[string]any, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&o); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: there is something behind the JSON object", errDamaged)
	}
	return o, nil
}

// A row is one in which the name may be.
type row struct {
	seq      int64
	id       string
	revision int64
	text     []byte
}

// each calls a function with the rows that a query finds, which takes as its last argument behind which number to begin.
func (f *forgetting) each(q *query, do func(row) error, args ...any) error {
	for last := int64(0); ; {
		var page []row
		err := f.t.each(q, slices.Concat(args, []any{last}), func(scan func(...any) error) error {
			var r row
			err := scan(&r.seq, &r.id, &r.revision, &r.text)
			page = append(page, r)
			return err
		})
		if err != nil {
			return err
		}
		for _, r := range page {
			if err := do(r); err != nil {
				return err
			}
			last = r.seq
		}
		if len(page) < pageSize {
			return nil
		}
	}
}

// quoted is a text as it stands in JSON.
func quoted(name string) string {
	text, _ := json.Marshal(name) //nolint:errchkjson // a string always can be
	return string(text)
}

var (
	resultsOf  = both(`SELECT id, result FROM heed_choices WHERE result_by <> '' AND result_by = $1 LIMIT 500`)
	keepResult = both(`UPDATE heed_choices SET result = $1, result_by = '' WHERE id = $2`)
)

// results takes the name out of the results of choices.
func (f *forgetting) results() error {
	for {
		results := make(map[string][]byte)
		err := f.t.each(resultsOf, []any{f.person}, func(scan func(...any) error) error {
			var id string
			var text []byte
			err := scan(&id, &text)
			results[id] = text
			return err
		})
		if err != nil || len(results) == 0 {
			return err
		}
		for id, text := range results {
			result, err := object(text)
			if err != nil {
				return fmt.Errorf("choice %s: %w", id, err)
			}
			f.remove(result, "source")
			after, err := json.Marshal(result)
			if err != nil {
				return err
			}
			if _, err := f.t.exec(keepResult, string(after), id); err != nil {
				return err
			}
		}
	}
}

// What may have the name in it is found in whatever letters it is written there.
var (
	auditOf = either(`SELECT seq, '', 0, entry FROM heed_audit
		WHERE instr(lower(entry), lower($1)) > 0 AND seq > $2 ORDER BY seq LIMIT 500`,
		`SELECT seq, '', 0, entry FROM heed_audit
		WHERE strpos(lower(entry), lower($1 COLLATE "C")) > 0 AND seq > $2 ORDER BY seq LIMIT 500`)
	keepAudit = both(`UPDATE heed_audit SET entry = $1 WHERE seq = $2`)

	documentsOf = either(`SELECT seq, id, revision, body FROM heed_documents
		WHERE sort = $1 AND instr(lower(body), lower($2)) > 0 AND seq > $3 ORDER BY seq LIMIT 500`,
		`SELECT seq, id, revision, body FROM heed_documents
		WHERE sort = $1 AND strpos(lower(body), lower($2 COLLATE "C")) > 0 AND seq > $3 ORDER BY seq LIMIT 500`)
	keepDocument = both(`UPDATE heed_documents SET revision = $1, body = $2 WHERE seq = $3`)
)

func (f *forgetting) audit() error {
	return f.each(auditOf, func(r row) error {
		entry, err := object(r.text)
		if err != nil {
			return fmt.Errorf("audit entry %d: %w", r.seq, err)
		}
		actor, subject := f.rename(entry, "actor"), f.rename(entry, "subject")
		if !actor && !subject {
			return nil
		}
		text, err := json.Marshal(entry)
		if err != nil {
			return err
		}
		_, err = f.t.exec(keepAudit, string(text), r.seq)
		return err
	}, quoted(f.person))
}

// A place is where documents of a sort have names: of who caused it, which goes; and of who decided something.
type place struct {
	sort    string
	caused  string
	decided []string
}

var places = []place{
	{sort: "pattern", decided: []string{"override.decision.actor"}},
	{sort: "transition", decided: []string{"actor"}},
	{sort: "entry", caused: "outcome.source", decided: []string{"review.actor"}},
}

func (f *forgetting) documents(p place) error {
	return f.each(documentsOf, func(r row) error {
		body, err := object(r.text)
		if err != nil {
			return err
		}
		found := f.remove(body, p.caused)
		for _, path := range p.decided {
			found = f.rename(body, path) || found
		}
		if !found {
			return nil
		}
		if _, compared := body["revision"]; compared {
			r.revision++
			body["revision"] = r.revision
		}
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		_, err = f.t.exec(keepDocument, r.revision, string(text), r.seq)
		return err
	}, p.sort, quoted(f.person))
}
