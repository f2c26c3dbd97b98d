package answers

import (
	"maps"
	"slices"

	"github.com/heedhq/heed/answer"
)

// FireOf returns the fire of a heuristic, or of the model for "", or nil. The caller may change
// what it points to after [OwnFires].
func FireOf(a *answer.Answer, heuristic string) *answer.Fire {
	for i := range a.Fires {
		if a.Fires[i].Heuristic == heuristic {
			return &a.Fires[i]
		}
	}
	return nil
}

// OwnFires replaces the fires by a copy, so that the caller may change them.
func OwnFires(a *answer.Answer) { a.Fires = slices.Clone(a.Fires) }

// TaskOf returns the task of the answer, or "".
func TaskOf(a *answer.Answer) string {
	if a.Reply == nil {
		return ""
	}
	return a.Reply.Task
}

// HeuristicOf returns the heuristic that answered, or "" if the model did.
func HeuristicOf(a *answer.Answer) string {
	if a.Reply == nil {
		return ""
	}
	return a.Reply.Heuristic
}

// People returns every name in the record, each once: who asked and who stated something.
func People(a *answer.Answer) (names []string) {
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	add(a.Person)
	for i := range a.Statements {
		s := &a.Statements[i]
		add(s.By)
		if s.Credit != nil {
			add(s.Credit.Source)
		}
		for i := range s.Kept {
			add(s.Kept[i].Source)
		}
	}
	for i := range a.Fires {
		c := &a.Fires[i].Counted
		for _, credit := range []*answer.Credit{c.Seen, c.Ended} {
			if credit != nil {
				add(credit.Source)
			}
		}
		for _, heuristic := range slices.Sorted(maps.Keys(c.Agreed)) {
			for _, credit := range c.Agreed[heuristic] {
				add(credit.Source)
			}
		}
	}
	return names
}

// Caused are the paths to the names of people in a record, for the declaration of a kind of
// records.
func Caused() []string {
	return []string{
		"person", "statements.*.by", "statements.*.credit.source", "statements.*.kept.*.source",
		"fires.*.counted.seen.source", "fires.*.counted.ended.source",
		"fires.*.counted.agreed.*.*.source",
	}
}
