package feedback

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/stores"
	"github.com/heedhq/heed/internal/text"
	"github.com/heedhq/heed/store"
)

// The kinds of records that a service keeps. Rules are never dropped for lack of room; an approval
// is refused instead.
var (
	// feedbackKind finds feedback by agent, gate, class, cluster and person. If it was erased, only
	// its id is left.
	feedbackKind = kindOf[Feedback]{store.View[Feedback]{
		Kind: store.Kind{
			Name: "feedback.record", Limits: store.Limits{Most: 100_000},
			Decided: []string{"reviewer_id", "resolver", "joiner"},
		},
		Place: func(r Feedback) (string, time.Time, []string) {
			if !r.Erased.IsZero() {
				return r.ID, r.Recorded, nil
			}
			keys := append([]string{store.Key("agent", r.Agent), store.Key("gate", r.Gate),
				// What was not evaluated has a key as well, because a sweep looks for it.
				store.Key("class", string(cmp.Or(r.Class, unclassified)))},
				stores.PersonKeys(r.Reviewer, r.Resolver, r.Joiner)...)
			if r.Cluster != "" {
				keys = append(keys, store.Key("cluster", r.Cluster),
					store.Key("clustered", string(r.Class)))
			}
			return r.ID, r.At, keys
		},
	}}
	// proposalKind finds proposals by status, agent, cluster, people, and the rules that they
	// supersede.
	proposalKind = kindOf[Proposal]{store.View[Proposal]{
		Kind: store.Kind{
			Name: "feedback.proposal", Limits: store.Limits{Most: 100_000},
			Decided: []string{"authors", "writers", "proposer", "approvals.*.actor", "decided_by"},
		},
		Place: func(p Proposal) (string, time.Time, []string) {
			keys := append([]string{store.Key("status", string(p.Status))},
				listKeys("agent", p.Agents, p.AllAgents)...)
			if p.Cluster != "" {
				keys = append(keys, store.Key("cluster", p.Cluster))
			}
			if len(p.replaces()) > 0 {
				keys = append(keys, groupKey(p.Supersedes))
			}
			return p.ID, p.Created, append(keys, stores.PersonKeys(p.people()...)...)
		},
	}}
	// ruleKind finds rules by status, agent, cluster and people, and active rules by agent. Its
	// version shows whether the rules that a process holds are current.
	ruleKind = kindOf[Rule]{store.View[Rule]{
		Kind: store.Kind{
			Name: "feedback.rule", Versioned: true, Limits: store.Limits{Most: 100_000, Refuse: true},
			Decided: []string{"authors", "writers", "approvals.*.actor"},
		},
		Place: func(r Rule) (string, time.Time, []string) {
			keys := append([]string{store.Key("status", string(r.Status))},
				listKeys("agent", r.Agents, r.AllAgents)...)
			if r.Status == StateActive {
				keys = append(keys, listKeys("active", r.Agents, r.AllAgents)...)
				if r.Effect.unfit() {
					keys = append(keys, unfitKey)
				}
			}
			keys = append(keys, listKeys("cluster", r.Clusters, false)...)
			return r.ID, r.Activated, append(keys, stores.PersonKeys(r.people()...)...)
		},
	}}
	// markKind has records that several changes rely on and raise. There is one for each agent.
	markKind = store.View[mark]{
		Kind:  store.Kind{Name: "feedback.mark", Limits: store.Limits{Most: 100_000}},
		Place: func(m mark) (string, time.Time, []string) { return m.Name, m.At, nil },
	}
)

// A mark is a record without content: only its revision or its time matters.
type mark struct {
	// Name is one of the names below, and At the time of the last change or run.
	Name string    `json:"name"`
	At   time.Time `json:"at"`
}

// The marks. Each change of a rule, and each proposal that is opened, raises the first. The others
// have the time of the last one: see [Service.Sweep].
const (
	rulesMark    = "rules"
	flushedMark  = "flushed"
	measuredMark = "measured"
)

// agentMark is what the evaluations of an agent's feedback raise.
func agentMark(agent string) string { return store.IDOf("agent", agent) }

// unfitKey finds active rules whose effect speaks for retiring them.
const unfitKey = "unfit"

// anyValue replaces each of many values in a key, and all agents.
const anyValue = "*"

// listKeys are the keys of a list: one for each value, or anyValue for many. A search for a value
// also looks for anyValue, and then at the list itself.
func listKeys(name string, values []string, all bool) (keys []string) {
	const many = 4
	if all || len(values) > many {
		return []string{store.Key(name, anyValue)}
	}
	for _, value := range values {
		keys = append(keys, store.Key(name, value))
	}
	return keys
}

// groupKey returns the key of a proposal that supersedes just these rules.
func groupKey(rules []string) string {
	return store.Key("supersedes", store.IDOf(text.Distinct(rules)...))
}

// A ProposalQuery selects proposals. A field that is not set selects all.
type ProposalQuery struct {
	// Status, Type and Cluster must be equal to the proposal's.
	Status        State
	Agent         string // is among those affected, or all are
	Type          string
	Cluster       string
	MinConfidence float64 // this or more
}

// selects reports whether the query selects a proposal that was found by one of its keys. A store
// finds by one key alone, so the other fields are compared here.
func (q *ProposalQuery) selects(p *Proposal) bool {
	return matches(q.Status, p.Status) && (q.Agent == "" || p.affects(q.Agent)) &&
		matches(q.Type, p.Type) && matches(q.Cluster, p.Cluster) && p.Confidence >= q.MinConfidence
}

// keys are what to look for: the proposals of any of these.
func (q *ProposalQuery) keys() [][]string {
	status := statusKeys(q.Status)
	if q.Cluster != "" {
		return [][]string{append([]string{store.Key("cluster", q.Cluster)}, status...)}
	}
	return agentKeys("agent", q.Agent, status)
}

// A RuleQuery selects rules. A field that is not set selects all.
type RuleQuery struct {
	// Status is the state that the rule has now.
	Status State
	Agent  string // is among those affected, or all are
	Unfit  bool   // active rules with a harmful effect or without effect: see [Service.Sweep]
	// Ranked orders them as [Rules.Inject] does, for a host that puts active rules into its prompts
	// and skills by their Draft.Place.
	Ranked bool
}

// selects reports whether the query selects a rule that was found by one of its keys.
func (q *RuleQuery) selects(r *Rule) bool {
	return matches(q.Status, r.Status) && (q.Agent == "" || r.affects(q.Agent))
}

// keys are what to look for: the rules of any of these. It prefers the key that the fewest rules
// have.
func (q *RuleQuery) keys() [][]string {
	switch {
	case q.Unfit:
		return [][]string{{unfitKey}}
	case q.Agent != "" && q.Status == StateActive:
		return agentKeys("active", q.Agent, nil)
	default:
		return agentKeys("agent", q.Agent, statusKeys(q.Status))
	}
}

// statusKeys returns the key of a status, or no key if all are wanted.
func statusKeys[S ~string](status S) []string {
	if status == "" {
		return nil
	}
	return []string{store.Key("status", string(status))}
}

// agentKeys are the keys of what is for an agent, or for all, and has these other keys.
func agentKeys(name, agent string, others []string) [][]string {
	if agent == "" {
		return [][]string{others}
	}
	return [][]string{append([]string{store.Key(name, agent)}, others...),
		append([]string{store.Key(name, anyValue)}, others...)}
}

// matches reports whether a field of a query selects a value.
func matches[T ~string](wanted, value T) bool { return wanted == "" || wanted == value }

// kindOf reads and makes the records of one kind. Values that it returns are copies.
type kindOf[T kept[T]] struct{ store.View[T] }

// kept is a value with the revision that it was read with.
type kept[T any] interface {
	// Each of the three kinds of values has these methods, so that one implementation reads and
	// writes all.
	at(revision uint64) T // a copy
	revision() uint64
}

// in returns a value as a step sees it, or [heed.ErrNotFound].
func (s *kindOf[T]) in(tx *store.Tx, id string) (value T, err error) {
	row, err := s.In(tx, id)
	switch {
	case err != nil:
		return value, err
	case row.Revision == 0:
		return value, fmt.Errorf("%s: %w", s.Name, heed.ErrNotFound)
	}
	return row.Value.at(row.Revision), nil
}

// find yields the values that a query finds, without reading all of them at once.
func (s *kindOf[T]) find(ctx context.Context, st store.Store, q store.Query) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for found, err := range s.Find(ctx, st, q) {
			if !yield(found.Value.at(found.Revision), err) {
				return
			}
		}
	}
}

// queries returns the queries of a union.
func (s *kindOf[T]) queries(sets [][]string) (all []store.Query) {
	for _, keys := range sets {
		all = append(all, store.Query{Kind: s.Name, Keys: keys})
	}
	return all
}

// all returns the values of these ids, in their order. One that is not there is missing.
func (s *kindOf[T]) all(tx *store.Tx, ids []string) ([]T, error) {
	var read store.Snapshot
	if err := tx.Read(&read, nil, s.refs(ids)); err != nil {
		return nil, err
	}
	return s.merge([][]store.Record{read.Records}, func(*T) bool { return true })
}

// refs names the records of ids, in their order.
func (s *kindOf[T]) refs(ids []string) (refs []store.Ref) {
	for _, id := range ids {
		refs = append(refs, s.Ref(id))
	}
	return refs
}

// union returns the values that have all keys of one of the sets, each once, and are selected.
func (s *kindOf[T]) union(tx *store.Tx, sets [][]string, selects func(*T) bool) ([]T, error) {
	var read store.Snapshot
	if err := tx.Read(&read, nil, nil, s.queries(sets)...); err != nil {
		return nil, err
	}
	return s.merge(read.Found, selects)
}

// merge returns the values of several lists, each once, that are selected. A record that is not
// there has the revision 0 and is left out. If records are damaged, it returns the others with the
// errors, joined.
func (s *kindOf[T]) merge(lists [][]store.Record, selects func(*T) bool) ([]T, error) {
	all := slices.Concat(lists...)
	if len(all) == 0 {
		return nil, nil
	}
	seen, values := make(map[string]bool, len(all)), make([]T, 0, len(all))
	var damaged []error
	for _, r := range all {
		if seen[r.ID] || r.Revision == 0 {
			continue
		}
		seen[r.ID] = true
		found, err := s.Of(r)
		if err != nil {
			damaged = append(damaged, err)
		} else if selects(&found.Value) {
			values = append(values, found.Value.at(found.Revision))
		}
	}
	return values, errors.Join(damaged...)
}

// record returns a value as a record to write, with the revision that it was read with.
func (s *kindOf[T]) record(value T) store.Record { return s.Record(value.at(0), value.revision()) }

// rulesRef names the mark that a change of proposals and rules relies on. It must be read with the
// rules and proposals, or before them.
func rulesRef() store.Ref { return markKind.Ref(rulesMark) }

// raise raises a mark. Other changes that raise it conflict then, and run again with what this one
// has changed: so the limits on pending proposals hold, and no proposal is opened, nor a rule made,
// next to rules that it has not seen.
func (c *change) raise(name string) error {
	row, err := markKind.In(c.Tx, name)
	c.write(markKind.Record(mark{name, c.now}, row.Revision))
	return err
}
