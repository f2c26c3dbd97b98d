package view

import (
	"cmp"
	"context"
	"strings"

	"github.com/heedhq/heed/internal/answers"
	"github.com/heedhq/heed/store"
)

// A Changed is something that changed: by a person, or because heed learned.
type Changed struct {
	// AuditEntry records the change. Its Action names the part of heed and what was done, for example
	// "rules.approve".
	store.AuditEntry
	Kind string `json:"kind"` // one of [Kinds]
}

// Kinds are the kinds of changes. Statements are not listed unless they are asked for.
var Kinds = []string{
	"arm", "heuristic", "rule", "way", "import", "incident", "setting", "person", "statement"}

// kindsOf are the kinds of actions whose names do not depend on who configures them.
var kindsOf = map[string]string{
	"leads": "arm", "answers": "heuristic", "stops": "heuristic", "pin": "heuristic",
	"unpin": "heuristic", "restart": "heuristic", "outage": "incident", "recovery": "incident",
	"settings": "setting", "rebuild": "setting", "freeze": "setting", "unfreeze": "setting",
	"import": "import", "forget": "person", "expunge": "person", "retract": "statement",
	"revise": "statement",
}

func changeOf(e *store.AuditEntry) Changed {
	c := Changed{*e, "way"}
	action := strings.TrimSuffix(e.Action, ".refused")
	known := kindsOf[action[strings.LastIndexByte(action, '.')+1:]]
	switch _, segment := e.Details["category"]; {
	case strings.HasPrefix(action, "feedback."):
		c.Kind = "rule"
	case segment && known != "statement":
		c.Kind = "arm"
	case known != "":
		c.Kind = known
	}
	return c
}

// Segment returns the segment that a change is about, if it is about one.
func (c *Changed) Segment() (category, context string, ok bool) {
	if c.Kind != "arm" {
		return "", "", false
	}
	if category, ok = c.Details["category"]; ok {
		return category, c.Details["context"], true
	}
	return answers.ParseScope(c.Subject)
}

// domain returns the domain that a change is about, or "".
func (c *Changed) domain() string {
	if category, _, ok := c.Segment(); ok {
		return category
	}
	return c.Details["domain"]
}

// A ChangeQuery selects changes. Times are as in an [AnswerQuery].
type ChangeQuery struct {
	Since string `json:"since,omitempty" placeholder:"TIME"`
	Until string `json:"until,omitempty" placeholder:"TIME"`
	// Kind is one of [Kinds]. "" means all but statements.
	Kind   string `json:"kind,omitempty" placeholder:"KIND"`
	Domain string `json:"domain,omitempty" placeholder:"NAME"`
	Name   string `json:"name,omitempty" placeholder:"TEXT"`   // who did it, or what it was done to
	Action string `json:"action,omitempty" placeholder:"TEXT"` // what its action begins with
	Page   `kong:"-"`
}

// Validate refuses a query with a fault.
func (q *ChangeQuery) Validate() error {
	return cmp.Or(aTime("since", q.Since), aTime("until", q.Until), oneOf("kind", q.Kind, Kinds...))
}

func (q *ChangeQuery) selects(c *Changed) bool {
	return (q.Kind == c.Kind || q.Kind == "" && (c.Kind != "statement" || q.Action != "")) &&
		(q.Domain == "" || q.Domain == c.domain()) && strings.HasPrefix(c.Action, q.Action)
}

// Changes lists the changes that a query selects, the newest first, as [Source.Answers] does.
func (s *Source) Changes(ctx context.Context, q ChangeQuery) (l List[Changed], err error) {
	if err := q.Validate(); err != nil {
		return l, err
	}
	found := store.Query{After: q.After}
	if found.Since, found.Until, err = s.span(q.Since, q.Until); err != nil {
		return l, err
	}
	if q.Name != "" {
		found.Keys = []string{store.PersonKey(q.Name)}
	}
	audit := store.View[store.AuditEntry]{Kind: store.Audit}
	return scan(ctx, s.Store, &audit, found, q.Limit, func(e *store.AuditEntry) (Changed, bool) {
		c := changeOf(e)
		return c, q.selects(&c)
	})
}

// Deed writes the action of an audit entry in words: "feedback.approve" is "approved", and
// "learning.pin" is "pinned (learning)".
func Deed(action string) string {
	action, refused := strings.CutSuffix(action, ".refused")
	action = strings.ToLower(strings.NewReplacer("_", " ", "-", " ").Replace(action))
	dot := strings.LastIndexByte(action, '.')
	verb, rest, _ := strings.Cut(action[dot+1:], " ")
	what := cmp.Or(irregular[verb], strings.TrimSuffix(verb, "e")+"ed")
	if refused {
		what = "tried to " + verb
	}
	if rest != "" {
		what += " " + rest
	}
	if part := action[:max(dot, 0)]; part != "" && part != "feedback" {
		what += " (" + part + ")"
	}
	return what
}

var irregular = map[string]string{
	"take": "took", "pin": "pinned", "unpin": "unpinned", "reset": "reset", "set": "set",
	"rebuild": "rebuilt", "forget": "forgot", "settings": "changed the settings",
	"activate": "made a rule of it", "modify": "edited", "freeze": "froze", "unfreeze": "unfroze",
}
