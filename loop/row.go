package loop

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/decision"
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
	Spare     bool              `json:"spare,omitempty"`    // a fallback answered, as the arm's model failed
	Cut       bool              `json:"cut,omitempty"`      // the model's text ends too early
	Shown     []string          `json:"shown,omitempty"`    // heuristics in the prompt
	Compared  []heed.Comparison `json:"compared,omitempty"` // heuristics that the prompt withheld
	Known     []string          `json:"known,omitempty"`    // heuristics that it withheld, and that the model was told all the same
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
	// Named says that the Undoer has a name, which may be forgotten since.
	Named bool `json:"named,omitempty"`
	// Numbers is the last number of a statement.
	Numbers uint64 `json:"numbers,omitempty"`
	// Owed says that the strategy has not been told of the worth as it is now. Told is how many outcomes it was told, and Stands are
	// those that stand.
	Owed   bool   `json:"owed,omitempty"`
	Told   uint64 `json:"told,omitempty"`
	Stands []told `json:"stands,omitempty"`
}

// told is an outcome of the choice, as the strategy knows it.
type told struct {
	ID      string  `json:"id"`
	Dropped bool    `json:"dropped,omitempty"` // it was too unsure to count, so nothing has to be replaced
	Cost    float64 `json:"cost,omitempty"`    // of the outcome
	part
}

// said is a reaction that stands.
type said struct {
	Person  string      `json:"person,omitempty"`
	Channel string      `json:"channel,omitempty"`
	Target  heed.Target `json:"target,omitempty"`
	Value   float64     `json:"value"`
	Weight  float64     `json:"weight"`
	At      time.Time   `json:"at"`
	N       uint64      `json:"n"`               // the number of this person's statement
	Named   bool        `json:"named,omitempty"` // the person had a name when it was said
	// Judged and Backed say that package learning was told of it, for the heuristic that answered and for the one that says the same.
	Judged bool `json:"judged,omitempty"`
	Backed bool `json:"backed,omitempty"`
}

// forgotten reports whether the person was forgotten since. Then what they said does not count.
func (s *said) forgotten() bool { return s.Named && s.Person == "" }

// seen is what came of an answer.
type seen struct {
	Value  float64   `json:"value"`
	Source string    `json:"source,omitempty"`
	Told   bool      `json:"told,omitempty"` // by Agent.Outcome; else a message showed it
	At     time.Time `json:"at"`
	N      uint64    `json:"n"`
	Named  bool      `json:"named,omitempty"`
	Judged bool      `json:"judged,omitempty"` // package learning was told of it
	// Withdrawn says that the outcome was taken back at this moment. Then nothing is known.
	Withdrawn bool `json:"withdrawn,omitempty"`
}

const (
	month   = 30 * 24 * time.Hour
	maxSaid = 100 // reactions to an answer that count for its arm

	owed = "owed"
	open = "open"
)

func answersOf(name string) store.View[row] {
	return store.View[row]{
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
	return store.IDOf(r.ID), r.At, keys
}

// number returns the number of a new statement.
func (r *row) number() uint64 {
	r.Numbers++
	return r.Numbers
}

// say notes a reaction, which replaces the one before of the same person, channel and target unless that is later. It reports whether the
// reaction holds now.
func (r *row) say(s said) bool {
	s.Named = s.Person != ""
	i := slices.IndexFunc(r.Said, func(o said) bool {
		return o.Person == s.Person && o.Named == s.Named && o.Channel == s.Channel && o.Target == s.Target
	})
	switch {
	case i >= 0 && r.Said[i].At.After(s.At), i < 0 && (!s.counts() || !r.makeRoom(&s)):
		return false
	case i >= 0:
		r.Said = slices.Clone(r.Said)
		s.N, s.Backed = r.Said[i].N, r.Said[i].Backed
		r.Said[i] = s
	default:
		s.N = r.number()
		r.Said = append(slices.Clone(r.Said), s)
	}
	r.settle()
	return true
}

// makeRoom makes room for one more reaction, and reports whether there is any. A withdrawn one goes first, and then the oldest one of the person with
// the most, so that nobody takes the places of others.
func (r *row) makeRoom(s *said) bool {
	if len(r.Said) < maxSaid {
		return true
	}
	goes := slices.IndexFunc(r.Said, func(o said) bool { return !o.counts() })
	if goes < 0 {
		many, who := make(map[string]int), s.Person
		for _, o := range r.Said {
			many[o.Person]++
		}
		for _, o := range r.Said {
			if many[o.Person] > many[who] {
				who = o.Person
			}
		}
		if many[who] < 2 && who != s.Person {
			return false
		}
		for i, o := range r.Said {
			if o.Person == who && (goes < 0 || o.At.Before(r.Said[goes].At)) {
				goes = i
			}
		}
	}
	r.Said = slices.Delete(slices.Clone(r.Said), goes, goes+1)
	return true
}

// judged reports whether package learning was told what a person made of the answer.
func (r *row) judged(person string) bool {
	by := func(s said) bool { return s.Judged && s.Person == person && s.Named == (person != "") }
	return slices.ContainsFunc(r.Said, by) || r.Seen != nil && r.Seen.Judged && r.Seen.Source == person && r.Seen.Named == (person != "")
}

// back notes that a person backs the heuristic that says the same, and reports whether they did before.
func (r *row) back(person string) (before bool) {
	r.Said = slices.Clone(r.Said)
	for i := range r.Said {
		if s := &r.Said[i]; s.Person == person && s.Named == (person != "") {
			before, s.Backed = before || s.Backed, true
		}
	}
	return before
}

// turn notes how the answer turned out.
func (r *row) turn(s seen) {
	s.Named = s.Source != ""
	if old := r.Seen; old != nil && old.Source == s.Source && old.Named == s.Named {
		s.N = old.N
	} else {
		s.N = r.number()
	}
	r.Seen = &s
	r.settle()
}

// hasNewer reports whether an outcome that was told goes before another one.
func (r *row) hasNewer(o *Outcome) bool {
	s := r.Seen
	return s != nil && s.Told && (s.At.After(o.At) || o.Withdraw && (s.Source != o.Source || s.Named != (o.Source != "")))
}

// undo notes that a person takes the answer back.
func (r *row) undo(at time.Time, person string) {
	r.Undone, r.Undoer, r.Named = at, person, person != ""
	r.settle()
}

// undone reports whether the answer was taken back, by somebody who was not forgotten since.
func (r *row) undone() bool { return !r.Undone.IsZero() && (r.Undoer != "" || !r.Named) }

// outcome returns how the answer turned out, by somebody who was not forgotten since, or nil. It is nil, too, if that was withdrawn.
func (r *row) outcome() *seen {
	if r.Seen == nil || r.Seen.Withdrawn || r.Seen.Named && r.Seen.Source == "" {
		return nil
	}
	return r.Seen
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
		r.undo(f.Undone, r.Person)
	case !f.Outcome.IsZero():
		value := -1.
		if f.Success {
			value = 1
		}
		r.turn(seen{Value: value, At: f.Outcome})
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

// The worth of signals, if nobody said anything.
const (
	passedOver      = -0.5
	passedOverTrust = 0.5
	// Silence counts about a quarter of a thumb: its weight times its value. No outcome of less than 0.3 counts by default.
	content      = 0.8
	contentTrust = 0.3
)

// counts reports whether a reaction says anything.
func (s said) counts() bool { return s.Value != 0 && s.Weight != 0 && !s.forgotten() }

// A part is a statement about an answer, as far as it counts for the arm.
type part struct {
	Of    string  `json:"of"` // which statement
	Value float64 `json:"value"`
	Trust float64 `json:"trust"` // in the value
	Share float64 `json:"share"` // of all that the answer is worth
}

// A statement is what somebody said, or what was seen, of an answer.
type statement struct {
	part
	channel, source string
	at              time.Time
}

// statements returns all that is known of the answer, each statement with its share: 0 for what does not count. An undo goes before all,
// and what is said before what is seen. With an outcome that was told, what is said is half of it.
func (r *row) statements() (all []statement) {
	left := 1. // for what comes next
	add := func(of string, value, trust, share float64, channel, source string, at time.Time) {
		all = append(all, statement{part{of, value, trust, left * share}, channel, source, at})
	}
	seen := r.outcome()
	if r.undone() {
		add("undo", -1, 1, 1, "undo", r.Undoer, r.Undone)
		left = 0
	}
	parts := r.partsOfSaid()
	outcome := seen != nil && seen.Told
	if len(parts) > 0 && outcome {
		left /= 2
	}
	for i, s := range r.Said {
		if s.counts() {
			add(fmt.Sprint("said ", s.N), s.Value, 1, parts[i], s.Channel, s.Person, s.At)
		}
	}
	if len(parts) > 0 && !outcome {
		left = 0
	}
	if seen != nil {
		add(fmt.Sprint("seen ", seen.N), seen.Value, 1, 1, "outcome", seen.Source, seen.At)
		left = 0
	}
	if !r.Ignored.IsZero() {
		add("ignored", passedOver, passedOverTrust, 1, "ignored", r.Person, r.Ignored)
		left = 0
	}
	if !r.Silent.IsZero() {
		add("silence", content, contentTrust, 1, "silence", r.Person, r.Silent)
	}
	return all
}

// ofArm returns what counts for the arm. Where its model failed, that does, and nothing of the fallback's answer.
func (r *row) ofArm() []statement {
	switch {
	case r.Choice == nil:
		return nil
	case r.Spare:
		return []statement{{part{"failed", -1, 1, 1}, "error", "", r.At}}
	}
	return r.statements()
}

// partsOfSaid returns the part of each reaction in all that was said. A person has a part by the largest weight of their reactions, which
// share it by their weights.
func (r *row) partsOfSaid() map[int]float64 {
	type sum struct{ most, all float64 }
	people := make(map[string]sum)
	for _, s := range r.Said {
		if s.counts() {
			p := people[s.Person]
			people[s.Person] = sum{max(p.most, s.Weight), p.all + s.Weight}
		}
	}
	var all float64
	for _, name := range slices.Sorted(maps.Keys(people)) { // in one order, so that the sum is the same again
		all += people[name].most
	}
	parts := make(map[int]float64)
	for i, s := range r.Said {
		if s.counts() {
			p := people[s.Person]
			parts[i] = p.most / all * s.Weight / p.all
		}
	}
	return parts
}

// worth returns what the answer was worth, by which channels that is known, and whether anything is. The channel is the one with
// the greatest part. Several with equal parts are in the order of their names, joined by commas. An answer that took another one back is worth nothing.
func (r *row) worth() (value float64, channel string, known bool) {
	if len(r.Undoes) > 0 {
		return 0, "", false
	}
	parts := make(map[string]float64)
	var most float64
	for _, s := range r.statements() {
		if s.Share > 0 {
			value, known = value+s.Share*s.Value, true
			parts[s.channel] += s.Share
			most = max(most, parts[s.channel])
		}
	}
	var channels []string
	for _, c := range slices.Sorted(maps.Keys(parts)) {
		if parts[c] > most-1e-9 {
			channels = append(channels, c)
		}
	}
	return value, strings.Join(channels, ", "), known
}

// known returns all that is known of the answer. Its confidence is the share in the worth, times the confidence in that: 0 for what does
// not count.
func (r *row) known() (all []strategy.Result) {
	for _, s := range r.statements() {
		stands := slices.IndexFunc(r.Stands, func(t told) bool { return t.Of == s.Of })
		switch {
		case r.Spare || len(r.Undoes) > 0:
			s.Share = 0
		case stands >= 0 && !r.Owed: // it is another share if somebody was forgotten since
			s.Share = r.Stands[stands].Share
		}
		all = append(all, strategy.Result{Value: s.Value, Confidence: s.Share * s.Trust, Channel: s.channel, Source: s.source, At: s.at})
	}
	return all
}

// changer returns who made the last statement, or withdrew it. It is "" if nobody is known.
func (r *row) changer() (person string) {
	var last time.Time
	for _, s := range r.statements() {
		if s.Share > 0 && !s.at.Before(last) {
			person, last = s.source, s.at
		}
	}
	for _, s := range r.Said {
		if s.Value == 0 && !s.At.Before(last) {
			person, last = s.Person, s.At
		}
	}
	if s := r.Seen; s != nil && s.Withdrawn && !s.At.Before(last) {
		person = s.Source
	}
	return person
}

// An undoer is a message that took answers back, so that a second plan for it knows that, too.
type undoer struct {
	ID     string    `json:"id"`
	Undone []string  `json:"undone"`
	At     time.Time `json:"at"`
}

func undoersOf(name string) store.View[undoer] {
	return store.View[undoer]{
		Kind:  store.Kind{Name: name + ".undo", Limits: store.Limits{For: month, Most: 100_000}},
		Place: func(u undoer) (string, time.Time, []string) { return store.IDOf(u.ID), u.At, nil },
	}
}

// A noteRow is a note as it is stored.
type noteRow struct {
	Note
	At time.Time `json:"at"`
}

func notesOf(name string) store.View[noteRow] {
	return store.View[noteRow]{
		Kind: store.Kind{Name: name + ".note", Limits: store.Limits{Most: 100_000, Refuse: true}, Versioned: true},
		Place: func(n noteRow) (string, time.Time, []string) {
			return store.IDOf(n.ID), n.At, nil
		},
	}
}

// A lessonRow says that a heuristic was taught.
type lessonRow struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
}

func lessonsOf(name string) store.View[lessonRow] {
	return store.View[lessonRow]{
		Kind:  store.Kind{Name: name + ".lesson", Limits: store.Limits{Most: 100_000, Refuse: true}},
		Place: func(l lessonRow) (string, time.Time, []string) { return store.IDOf(l.ID), l.At, nil },
	}
}

// An edition says when the heuristics were last reevaluated.
type edition struct {
	Agent string    `json:"agent"`
	At    time.Time `json:"at"`
}

func editionsOf(name string) store.View[edition] {
	return store.View[edition]{
		Kind: store.Kind{Name: name + ".edition"},
		Place: func(e edition) (string, time.Time, []string) {
			return cmp.Or(e.Agent, defaultName), e.At, nil
		},
	}
}
