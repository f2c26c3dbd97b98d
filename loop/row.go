package loop

import (
	"cmp"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
	"github.com/heedhq/heed/internal/records"
	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/patterns"
	"github.com/heedhq/heed/store"
	"github.com/heedhq/heed/strategy"
)

// An answered event, as it is stored: what was in the answer, and what became of it as far as the arm is concerned.
type row struct {
	ID        string            `json:"id"`
	Response  string            `json:"response,omitempty"` // decision's name for the answer
	Person    string            `json:"person,omitempty"`
	Session   string            `json:"session,omitempty"`
	Domain    string            `json:"domain,omitempty"`
	Task      string            `json:"task,omitempty"`
	About     string            `json:"about,omitempty"` // what the task is, in words
	Path      decision.Path     `json:"path"`
	Text      string            `json:"text,omitempty"` // the answer
	Heuristic string            `json:"heuristic,omitempty"`
	Threshold float64           `json:"threshold,omitempty"` // the confidence that it took to answer
	Believed  float64           `json:"believed,omitempty"`  // that the heuristic had then
	Choice    *strategy.Choice  `json:"choice,omitempty"`
	Shown     []string          `json:"shown,omitempty"`    // heuristics in the prompt
	Compared  []heed.Comparison `json:"compared,omitempty"` // heuristics that the prompt withheld
	// Reinforced is the heuristic that says what the model said, by the extraction, and that the prompt did not show.
	Reinforced string               `json:"reinforced,omitempty"`
	Overruled  map[string]string    `json:"overruled,omitempty"` // heuristics, each with the rule that contradicts it
	Rules      []string             `json:"rules,omitempty"`
	Notes      []string             `json:"notes,omitempty"`
	Ways       []string             `json:"ways,omitempty"`     // ways of working that the prompt recommended
	Warnings   []string             `json:"warnings,omitempty"` // those that it warned of
	Followed   []patterns.PatternID `json:"followed,omitempty"`
	Undoes     []string             `json:"undoes,omitempty"` // the answers that the event's text took back
	At         time.Time            `json:"at"`
	Spent      spent                `json:"spent,omitzero"`

	Said []said `json:"said,omitempty"`
	// Corrected names the corrections that count as complaints, so that each counts once.
	Corrected []string  `json:"corrected,omitempty"`
	Undone    time.Time `json:"undone,omitzero"`
	Undoer    string    `json:"undoer,omitempty"` // who took the answer back
	Ignored   time.Time `json:"ignored,omitzero"`
	Silent    time.Time `json:"silent,omitzero"`
	Seen      *seen     `json:"seen,omitempty"`
	// Due is when silence counts for the arm; zero: it does not any more.
	Due time.Time `json:"due,omitzero"`
	// Owed says that the strategy has not been told of the worth as it is now. Told is how often it was told, and Stands what it
	// was told last, if that stands.
	Owed   bool   `json:"owed,omitempty"`
	Told   uint64 `json:"told,omitempty"`
	Stands *told  `json:"stands,omitempty"`
}

// told is an outcome of the choice, as the strategy knows it.
type told struct {
	ID         string  `json:"id"`
	Value      float64 `json:"value"`
	Confidence float64 `json:"confidence"`
	Dropped    bool    `json:"dropped,omitempty"` // it was too unsure to count, so nothing has to be replaced
	Cost       float64 `json:"cost,omitempty"`    // of the outcome
}

// said is a reaction that stands.
type said struct {
	Person  string      `json:"person,omitempty"`
	Channel string      `json:"channel,omitempty"`
	Target  heed.Target `json:"target,omitempty"`
	Value   float64     `json:"value"`
	Weight  float64     `json:"weight"`
	At      time.Time   `json:"at"`
}

// seen is what came of an answer.
type seen struct {
	Value  float64   `json:"value"`
	Source string    `json:"source,omitempty"`
	Told   bool      `json:"told,omitempty"` // by Agent.Outcome; else a message showed it
	At     time.Time `json:"at"`
}

const (
	month   = 30 * 24 * time.Hour
	maxSaid = 100 // reactions to an answer that count for its arm

	owed = "owed"
	open = "open"
)

func answersOf(name string) records.Kind[row] {
	return records.Kind[row]{
		Kind: store.Kind{
			Name: name + ".answer", Limits: store.Limits{For: month, Most: 100_000},
			Caused: []string{"person", "said.*.person", "seen.source", "undoer"},
		},
		Place: (row).place,
	}
}

func (r row) place() (id string, at time.Time, keys []string) {
	add := func(key string) {
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	person := func(name string) {
		if name != "" {
			add(store.PersonKey(name))
		}
	}
	person(r.Person)
	person(r.Undoer)
	for _, s := range r.Said {
		person(s.Person)
	}
	if r.Seen != nil {
		person(r.Seen.Source)
	}
	if r.Session != "" {
		add(store.Key("session", r.Session))
	}
	if r.Owed {
		add(store.Key("state", owed))
	}
	if !r.Due.IsZero() {
		add(store.Key("state", open))
	}
	return records.ID(r.ID), r.At, keys
}

// say notes a reaction, which replaces the one before of the same person, channel and target unless that is later.
func (r *row) say(s said) {
	i := slices.IndexFunc(r.Said, func(o said) bool {
		return o.Person == s.Person && o.Channel == s.Channel && o.Target == s.Target
	})
	if i < 0 && len(r.Said) >= maxSaid { // a withdrawn one makes room
		i = slices.IndexFunc(r.Said, func(o said) bool { return !o.counts() })
		if i < 0 {
			return
		}
		r.Said = slices.Delete(slices.Clone(r.Said), i, i+1)
		i = -1
	}
	switch {
	case i >= 0 && r.Said[i].At.After(s.At), i < 0 && !s.counts():
		return
	case i >= 0:
		r.Said = slices.Clone(r.Said)
		r.Said[i] = s
	default:
		r.Said = append(slices.Clone(r.Said), s)
	}
	r.settle()
}

// settle notes that something is known of the answer, so that silence does not count and the strategy has to be told.
func (r *row) settle() {
	r.Due = time.Time{}
	r.Owed = r.Choice != nil
}

// see notes what was seen of the answer by the time at which silence counts. approves says that silence is approval.
func (r *row) see(f learning.Fate, approves bool) {
	switch {
	case !f.Undone.IsZero():
		r.Undone, r.Undoer = f.Undone, r.Person
	case !f.Outcome.IsZero():
		value := -1.
		if f.Success {
			value = 1
		}
		r.Seen = &seen{Value: value, At: f.Outcome}
	case !f.Ignored.IsZero():
		r.Ignored = f.Ignored
	case approves:
		r.Silent = r.Due
	default:
		r.Due = time.Time{}
		return
	}
	r.settle()
}

// A worth is what became of an answer in a number, for the arm.
type worth struct {
	value, confidence float64
	channel, source   string
	at                time.Time
}

// The worth of signals, if nobody said anything.
const (
	passedOver      = -0.5
	passedOverTrust = 0.5
	// Silence counts about a quarter of a thumb: its weight times its value. No outcome of less than 0.3 counts by default.
	content      = 0.8
	contentTrust = 0.3
)

// counts reports whether a reaction says anything.
func (s said) counts() bool { return s.Value != 0 && s.Weight != 0 }

// worth returns what the answer was worth. An undo goes before all, and what is said before what is seen. With an outcome that was
// told, what is said is half of it.
func (r *row) worth() (w worth, known bool) {
	var sum, weight float64
	for _, s := range r.Said {
		if s.counts() {
			sum += s.Value * s.Weight
			weight += s.Weight
			if !s.At.Before(w.at) {
				w.source, w.at, w.channel = s.Person, s.At, s.Channel
			}
		}
	}
	switch {
	case !r.Undone.IsZero():
		return worth{-1, 1, "undo", r.Undoer, r.Undone}, true
	case weight > 0:
		w.value, w.confidence = sum/weight, 1
		if r.Seen != nil && r.Seen.Told {
			w.value = (w.value + r.Seen.Value) / 2
		}
		return w, true
	case r.Seen != nil:
		return worth{r.Seen.Value, 1, "outcome", r.Seen.Source, r.Seen.At}, true
	case !r.Ignored.IsZero():
		return worth{passedOver, passedOverTrust, "ignored", r.Person, r.Ignored}, true
	case !r.Silent.IsZero():
		return worth{content, contentTrust, "silence", r.Person, r.Silent}, true
	}
	return worth{}, false
}

// known returns all that is known of the answer. Its confidence is the share in the worth, times the confidence in that: 0 for what does
// not count.
func (r *row) known() (all []strategy.Result) {
	var weight float64
	for _, s := range r.Said {
		if s.counts() {
			weight += s.Weight
		}
	}
	left := 1. // for what comes next
	add := func(value, confidence float64, channel, source string, at time.Time) {
		all = append(all, strategy.Result{Value: value, Confidence: left * confidence, Channel: channel, Source: source, At: at})
	}
	if !r.Undone.IsZero() {
		add(-1, 1, "undo", r.Undoer, r.Undone)
		left = 0
	}
	if weight > 0 && r.Seen != nil && r.Seen.Told {
		left /= 2
	}
	for _, s := range r.Said {
		if s.counts() {
			add(s.Value, s.Weight/weight, s.Channel, s.Person, s.At)
		}
	}
	if weight > 0 && (r.Seen == nil || !r.Seen.Told) {
		left = 0
	}
	if r.Seen != nil {
		add(r.Seen.Value, 1, "outcome", r.Seen.Source, r.Seen.At)
		left = 0
	}
	if !r.Ignored.IsZero() {
		add(passedOver, passedOverTrust, "ignored", r.Person, r.Ignored)
		left = 0
	}
	if !r.Silent.IsZero() {
		add(content, contentTrust, "silence", r.Person, r.Silent)
	}
	return all
}

// An undoer is a message that took answers back, so that a second plan for it knows that, too.
type undoer struct {
	ID     string    `json:"id"`
	Undone []string  `json:"undone"`
	At     time.Time `json:"at"`
}

func undoersOf(name string) records.Kind[undoer] {
	return records.Kind[undoer]{
		Kind:  store.Kind{Name: name + ".undo", Limits: store.Limits{For: month, Most: 100_000}},
		Place: func(u undoer) (string, time.Time, []string) { return records.ID(u.ID), u.At, nil },
	}
}

// A noteRow is a note as it is stored.
type noteRow struct {
	Note
	At time.Time `json:"at"`
}

func notesOf(name string) records.Kind[noteRow] {
	return records.Kind[noteRow]{
		Kind: store.Kind{Name: name + ".note", Limits: store.Limits{Most: 100_000, Refuse: true}, Versioned: true},
		Place: func(n noteRow) (string, time.Time, []string) {
			return records.ID(n.ID), n.At, nil
		},
	}
}

// A lessonRow says that a heuristic was taught.
type lessonRow struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
}

func lessonsOf(name string) records.Kind[lessonRow] {
	return records.Kind[lessonRow]{
		Kind:  store.Kind{Name: name + ".lesson", Limits: store.Limits{Most: 100_000, Refuse: true}},
		Place: func(l lessonRow) (string, time.Time, []string) { return records.ID(l.ID), l.At, nil },
	}
}

// An edition says when the heuristics were last reevaluated.
type edition struct {
	Agent string    `json:"agent"`
	At    time.Time `json:"at"`
}

func editionsOf(name string) records.Kind[edition] {
	return records.Kind[edition]{
		Kind: store.Kind{Name: name + ".edition"},
		Place: func(e edition) (string, time.Time, []string) {
			return cmp.Or(e.Agent, defaultName), e.At, nil
		},
	}
}
