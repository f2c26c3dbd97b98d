//go:build !race

package answers_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
)

// What follows is how records of answers worked before there was this package: an arm's record had
// its own rules, and a heuristic's had others. Where both say the same, the package must.

// An earlierRow is what the record of an answer had about its arm.
type earlierRow struct {
	said                    []earlierSaid
	undone, ignored, silent time.Time
	undoer                  string
	seen                    *earlierSeen
	numbers                 uint64
}

type earlierSaid struct {
	person, channel string
	target          answer.Target
	value, weight   float64
	at              time.Time
	n               uint64
}

type earlierSeen struct {
	value           float64
	source          string
	told, withdrawn bool
	at              time.Time
	n               uint64
}

type earlierPart struct {
	channel, source     string
	value, trust, share float64
}

func (s earlierSaid) counts() bool { return s.value != 0 && s.weight != 0 }

func (r *earlierRow) number() uint64 {
	r.numbers++
	return r.numbers
}

func (r *earlierRow) say(s earlierSaid) {
	i := slices.IndexFunc(r.said, func(o earlierSaid) bool {
		return o.person == s.person && o.channel == s.channel && o.target == s.target
	})
	switch {
	case i >= 0 && r.said[i].at.After(s.at), i < 0 && (!s.counts() || !r.makeRoom(&s)):
	case i >= 0:
		s.n = r.said[i].n
		r.said[i] = s
	default:
		s.n = r.number()
		r.said = append(r.said, s)
	}
}

func (r *earlierRow) makeRoom(s *earlierSaid) bool {
	if len(r.said) < 100 {
		return true
	}
	goes := slices.IndexFunc(r.said, func(o earlierSaid) bool { return !o.counts() })
	if goes < 0 {
		many, who := make(map[string]int), s.person
		for _, o := range r.said {
			many[o.person]++
		}
		for _, o := range r.said {
			if many[o.person] > many[who] {
				who = o.person
			}
		}
		if many[who] < 2 && who != s.person {
			return false
		}
		for i, o := range r.said {
			if o.person == who && (goes < 0 || o.at.Before(r.said[goes].at)) {
				goes = i
			}
		}
	}
	r.said = slices.Delete(slices.Clone(r.said), goes, goes+1)
	return true
}

// turn is a report of an outcome, or a message that shows one that was expected.
func (r *earlierRow) turn(s earlierSeen) {
	if old := r.seen; old != nil && old.told {
		if !s.told || old.at.After(s.at) || s.withdrawn && old.source != s.source {
			return
		}
	}
	s.n = r.number()
	r.seen = &s
}

func (r *earlierRow) statements() (all []earlierPart) {
	left := 1.
	add := func(value, trust, share float64, channel, source string) {
		all = append(all, earlierPart{channel, source, value, trust, left * share})
	}
	seen := r.seen
	if seen != nil && seen.withdrawn {
		seen = nil
	}
	if !r.undone.IsZero() {
		add(-1, 1, 1, "undo", r.undoer)
		left = 0
	}
	parts := r.partsOfSaid()
	told := seen != nil && seen.told
	if len(parts) > 0 && told {
		left /= 2
	}
	for i, s := range r.said {
		if s.counts() {
			add(s.value, 1, parts[i], s.channel, s.person)
		}
	}
	if len(parts) > 0 && !told {
		left = 0
	}
	if seen != nil {
		add(seen.value, 1, 1, "outcome", seen.source)
		left = 0
	}
	if !r.ignored.IsZero() {
		add(-0.5, 0.5, 1, "ignored", "asker")
		left = 0
	}
	if !r.silent.IsZero() {
		add(0.8, 0.3, 1, "silence", "asker")
	}
	return all
}

func (r *earlierRow) partsOfSaid() map[int]float64 {
	type sum struct{ most, all float64 }
	people := make(map[string]sum)
	for _, s := range r.said {
		if s.counts() {
			p := people[s.person]
			people[s.person] = sum{max(p.most, s.weight), p.all + s.weight}
		}
	}
	var all float64
	for _, name := range slices.Sorted(maps.Keys(people)) {
		all += people[name].most
	}
	parts := make(map[int]float64)
	for i, s := range r.said {
		if s.counts() {
			p := people[s.person]
			parts[i] = p.most / all * s.weight / p.all
		}
	}
	return parts
}

func (r *earlierRow) worth() (value float64, channel string, known bool) {
	parts := make(map[string]float64)
	var most float64
	for _, s := range r.statements() {
		if s.share > 0 {
			value, known = value+s.share*s.value, true
			parts[s.channel] += s.share
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

// hear is a statement that reaches the arm's record.
func (r *earlierRow) hear(s answer.Statement) {
	switch s.How {
	case answers.Judged:
		r.say(earlierSaid{s.By, s.Channel, s.Target, s.Value, cmp.Or(s.Weight, 1), s.At, 0})
	case answers.Outcome:
		r.turn(earlierSeen{s.Value, s.By, true, s.Withdrawn, s.At, 0})
	case answers.Undo:
		if r.undone.IsZero() {
			r.undone, r.undoer = s.At, s.By
		}
	case answers.Expected:
		if s.Worth != 0 {
			r.turn(earlierSeen{value: math.Copysign(1, s.Worth), at: s.At})
		}
	case answers.Ignored:
		r.ignored = s.At
	case answers.Silence:
		if s.Worth > 0 {
			r.silent = s.At
		}
	}
}

// earlierFacts is what the record of a heuristic's answer had.
type earlierFacts struct {
	praise, complaint              earlierSum
	undo, outcome, ignore, silence *earlierSignal
	live                           []answer.Statement // judgements that hold
}

type earlierSum struct {
	n             int
	weight, share float64
}

type earlierSignal struct{ worth float64 }

func (s *earlierSignal) sign() int {
	if s == nil {
		return 0
	}
	return cmp.Compare(s.worth, 0)
}

const (
	slotUndo, slotOutcome   = "undo", "expected"
	slotIgnore, slotSilence = "ignored", "silence"
)

var slots = [...]string{slotUndo, slotOutcome, slotIgnore, slotSilence}

func (f *earlierFacts) of(slot string) *earlierSignal {
	return map[string]*earlierSignal{
		slotUndo: f.undo, slotOutcome: f.outcome, slotIgnore: f.ignore, slotSilence: f.silence,
	}[slot]
}

func (f *earlierFacts) observed() bool {
	return f.undo != nil || f.outcome != nil || f.ignore != nil
}

func (f *earlierFacts) add(worth, share float64) {
	switch {
	case worth > 0:
		f.praise = earlierSum{f.praise.n + 1, f.praise.weight + worth, f.praise.share + share}
	case worth < 0:
		f.complaint = earlierSum{f.complaint.n + 1, f.complaint.weight - worth,
			f.complaint.share + share}
	}
}

func (f *earlierFacts) remove(worth, share float64) {
	less := func(s earlierSum, worth float64) earlierSum {
		if s.n <= 1 {
			return earlierSum{}
		}
		return earlierSum{s.n - 1, max(s.weight-worth, 0), max(s.share-share, 0)}
	}
	switch {
	case worth > 0:
		f.praise = less(f.praise, worth)
	case worth < 0:
		f.complaint = less(f.complaint, -worth)
	}
}

func (f *earlierFacts) slot(independent bool) (slot string) {
	praised, blamed := f.praise.n > 0 && !independent, f.complaint.n > 0 && !independent
	for _, s := range slots {
		it := f.of(s)
		switch {
		case it.sign() >= 0,
			s != slotUndo && praised && !blamed,
			(s == slotIgnore || s == slotSilence) && f.outcome.sign() > 0:
			continue
		case slot == "" || math.Abs(it.worth) > math.Abs(f.of(slot).worth):
			slot = s
		}
	}
	if slot != "" || blamed {
		return slot
	}
	for _, s := range slots[:3] {
		if f.of(s).sign() > 0 {
			return s
		}
	}
	if f.silence != nil && !praised && !f.observed() {
		return slotSilence
	}
	return ""
}

func (f *earlierFacts) fate(independent bool) int {
	sign := f.of(f.slot(independent)).sign()
	praised, blamed := f.praise.n > 0, f.complaint.n > 0
	switch {
	case sign < 0 || independent:
		return sign
	case praised && blamed:
		return 0
	case blamed:
		return -1
	case praised:
		return 1
	default:
		return sign
	}
}

func (f *earlierFacts) agreement(agrees, independent bool, agreement,
	disagreement float64) float64 {
	slot := f.slot(independent)
	fate, sign := f.fate(independent), f.of(slot).sign()
	share := 1.
	if sign <= 0 && f.praise.n > 0 {
		share = min(f.praise.share, 1)
	}
	switch {
	case !agrees && (f.complaint.n > 0 || f.observed() || sign > 0):
		return -disagreement
	case !agrees && fate > 0:
		return -disagreement * share
	case agrees && fate > 0:
		return agreement * share
	case agrees && fate < 0:
		worth := f.complaint.weight
		if sign < 0 {
			worth += math.Abs(f.of(slot).worth)
		}
		return -min(worth, disagreement)
	default:
		return 0
	}
}

// hear is a statement that reaches the heuristic's record. Outcomes that were reported reached it
// as judgements on a channel of their own, and a withdrawal as one of value 0.
func (f *earlierFacts) hear(s answer.Statement) {
	first := func(at **earlierSignal) {
		if *at == nil {
			*at = &earlierSignal{s.Worth}
		}
	}
	switch s.How {
	case answers.Undo:
		first(&f.undo)
	case answers.Expected:
		first(&f.outcome)
	case answers.Ignored:
		first(&f.ignore)
	case answers.Silence:
		first(&f.silence)
	default:
		f.judge(s)
	}
}

func (f *earlierFacts) judge(s answer.Statement) {
	share := func(s answer.Statement) float64 { return math.Abs(s.Value) * cmp.Or(s.Weight, 1) }
	replaces := func(o answer.Statement) bool {
		return o.By == s.By && o.Channel == s.Channel && overlap(o.Target, s.Target)
	}
	same := func(o answer.Statement) bool {
		return replaces(o) && o.At.Equal(s.At) && o.Target == s.Target && o.Value == s.Value &&
			cmp.Or(o.Weight, 1) == cmp.Or(s.Weight, 1)
	}
	late := func(o answer.Statement) bool { return replaces(o) && o.At.After(s.At) }
	if slices.ContainsFunc(f.live, same) || slices.ContainsFunc(f.live, late) {
		return
	}
	var live []answer.Statement
	for _, o := range f.live {
		if replaces(o) {
			f.remove(o.Worth, share(o))
		} else {
			live = append(live, o)
		}
	}
	if f.live = live; s.Worth != 0 {
		f.live = append(f.live, s)
	}
	f.add(s.Worth, share(s))
}

// agree holds the package to both records.
func agree(t require.TestingT, a *answer.Answer, r *earlierRow, f *earlierFacts) {
	if r != nil {
		var want, got []string
		for _, p := range r.statements() {
			if p.share > 0 {
				want = append(want, fmt.Sprintf("%s %s %g %g %.9f", p.channel, p.source, p.value,
					p.trust, p.share))
			}
		}
		for _, p := range answers.Parts(a) {
			if p.Share > 0 {
				got = append(got, fmt.Sprintf("%s %s %g %g %.9f", p.Channel, p.Source, p.Value,
					p.Trust, p.Share))
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		require.Equal(t, want, got)
		value, channel, known := r.worth()
		worth, by, is := answers.WorthOf(a)
		require.InDelta(t, value, worth, 1e-9)
		require.Equal(t, channel, by)
		require.Equal(t, known, is)
	}
	if f != nil {
		k := answers.ReceptionOf(a, "")
		require.Equal(t, []int{f.praise.n, f.complaint.n}, []int{k.Praise.N, k.Complaint.N})
		require.Equal(t, f.observed(), k.Observed())
		for _, independent := range []bool{false, true} {
			require.Equal(t, f.slot(independent), string(k.Implicit(independent)))
			require.Equal(t, f.fate(independent), k.Fate(independent))
			for _, agrees := range []bool{false, true} {
				require.InDelta(t, f.agreement(agrees, independent, 0.24, 0.072),
					k.Agreement(agrees, independent, 0.24, 0.072), 1e-9)
			}
		}
	}
}

// histories draws histories that the earlier records and the package understand alike. Each of the
// restrictions is one of the differences in TestDifferencesToEarlierRecords.
func histories(t *rapid.T) (all []answer.Statement) {
	all = draw(t, []answer.Target{""}, 25)
	ordered := rapid.Bool().Draw(t, "ordered")
	first := make(map[answer.How]answer.Statement)
	takesBack := slices.ContainsFunc(all, func(s answer.Statement) bool { return s.Withdrawn })
	all = slices.DeleteFunc(all, func(s answer.Statement) bool {
		return s.Of != "" || s.Scale != "" || s.How == answers.Expected && takesBack
	})
	for i := range all {
		s := &all[i]
		switch s.How {
		case answers.Judged:
			s.Channel = cmp.Or(s.Channel, "thumbs")
		case answers.Outcome:
			s.By, s.Channel, s.Success = "ci", "outcome", nil
		case answers.Expected:
			s.By, s.Channel = "", "outcome"
		case answers.Silence:
			s.By, s.Channel = "asker", "silence"
		default:
			s.Channel = string(s.How)
			s.By = "asker"
		}
		if !ordered && stated(*s) && s.Value == 0 { // it would withdraw what is still to arrive
			s.Withdrawn, s.Value, s.Worth = false, 1, thumb*cmp.Or(s.Weight, 1)
		}
		if before, ok := first[s.How]; ok && !stated(*s) {
			*s = before // it was observed once
		}
		first[s.How] = *s
	}
	if ordered {
		slices.SortStableFunc(all, func(a, b answer.Statement) int { return a.At.Compare(b.At) })
	}
	return all
}

func TestAgreementWithEarlierRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, r, f := said(), new(earlierRow), new(earlierFacts)
		for _, s := range histories(t) {
			answers.Say(a, s)
			r.hear(s)
			f.hear(s)
			agree(t, a, r, f)
		}
	})
}

// Judgements of parts and of the whole counted for heuristics as they do now.
func TestAgreementOnTargets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, f := said(), new(earlierFacts)
		for _, s := range draw(t, targets, 25) {
			if s.How != answers.Judged || s.Scale != "" {
				continue
			}
			if s.Of = ""; s.Value == 0 {
				s.Value, s.Worth = 1, thumb*cmp.Or(s.Weight, 1)
			}
			answers.Say(a, s)
			f.hear(s)
			agree(t, a, nil, f)
		}
	})
}

// If there is no room for a judgement, the same one goes as before.
func TestAgreementOnRoom(t *testing.T) {
	pairs := make([]answer.Statement, 150)
	for i := range pairs {
		pairs[i] = judged(fmt.Sprint("person ", i/3), 1, 0)
		pairs[i].Channel = fmt.Sprint("channel ", i%3)
	}
	rapid.Check(t, func(t *rapid.T) {
		a, r := said(), new(earlierRow)
		for i, s := range rapid.Permutation(pairs).Draw(t, "judgements") {
			s.At = at(i * 7 % 150)
			answers.Say(a, s)
			r.hear(s)
		}
		require.Len(t, r.said, answers.MaxStated)
		agree(t, a, r, nil)
	})
}

// Everything that can be known of an answer counted as it does now, in all combinations.
func TestAgreementOnAllReceptions(t *testing.T) {
	worths := []float64{math.NaN(), -1, -0.4, 0, 0.4, 1} // NaN: it was not observed
	signal := func(worth float64) (*answer.Statement, *earlierSignal) {
		if math.IsNaN(worth) {
			return nil, nil
		}
		return &answer.Statement{Worth: worth}, &earlierSignal{worth}
	}
	sums := []earlierSum{{}, {1, 0.4, 0.5}, {2, 1.6, 2}, {1, 0.01, 0.01}}
	n := 0
	for i := range 6 * 6 * 6 * 6 * 4 * 4 {
		var k answers.Reception
		var f earlierFacts
		k.Undo, f.undo = signal(worths[i%6])
		k.Expected, f.outcome = signal(worths[i/6%6])
		k.Ignored, f.ignore = signal(worths[i/36%6])
		k.Silence, f.silence = signal(worths[i/216%6])
		f.praise, f.complaint = sums[i/1296%4], sums[i/5184]
		k.Praise, k.Complaint = answers.Sum{N: f.praise.n, Weight: f.praise.weight,
			Share: f.praise.share},
			answers.Sum{N: f.complaint.n, Weight: f.complaint.weight, Share: f.complaint.share}
		for _, independent := range []bool{false, true} {
			require.Equal(t, f.slot(independent), string(k.Implicit(independent)))
			require.Equal(t, f.fate(independent), k.Fate(independent))
			for _, agrees := range []bool{false, true} {
				n++
				require.Equal(t, f.agreement(agrees, independent, 0.24, 0.072),
					k.Agreement(agrees, independent, 0.24, 0.072))
			}
		}
	}
	assert.Equal(t, 6*6*6*6*4*4*4, n)
}

// TestDifferencesToEarlierRecords has what is different now, on purpose.
func TestDifferencesToEarlierRecords(t *testing.T) {
	all := func(s ...answer.Statement) []answer.Statement { return s }
	rule := func(s answer.Statement) answer.Statement { return about(answer.TargetRule, s) }
	expected := func(worth float64, seconds int) answer.Statement {
		s := observed(answers.Expected, worth, seconds)
		s.By, s.Channel = "", "outcome"
		return s
	}
	for name, test := range map[string]struct {
		history      []answer.Statement
		before, now  float64
		known, knows bool
	}{
		// The two records disagreed about this. The arm's compared targets.
		"the whole replaces a part": {
			all(rule(weighing(3, judged("ann", 1, 1))), judged("ann", -1, 2)), 0.5, -1, true, true,
		},
		// There was no record of a withdrawal of what had not arrived.
		"a withdrawal arrives first": {all(judged("ann", 0, 2), judged("ann", 1, 1)), 1, 0, true,
			false},
		// There was a place for one outcome, of whatever source.
		"the latest of two outcomes is withdrawn": {
			all(outcome("ci", 1, 1), outcome("qa", -1, 2), withdrawn("qa", 3)), 0, 1, false, true,
		},
		"an earlier outcome is withdrawn before the latest arrives": {
			all(outcome("ci", 1, 1), withdrawn("ci", 3), outcome("qa", -1, 2)), 0, -1, false, true,
		},
		// The reported outcome had taken the place of the expected one.
		"a reported outcome is withdrawn": {
			all(expected(-1, 1), outcome("ci", 1, 2), withdrawn("ci", 3)), 0, -1, false, true,
		},
		"a reported outcome is withdrawn before an expected one comes": {
			all(outcome("ci", 1, 1), withdrawn("ci", 2), expected(1, 3)), 0, 1, false, true,
		},
		// A later message turned the outcome around.
		"an expected outcome comes twice": {all(expected(-1, 1), expected(1, 2)), 1, -1, true,
			true},
		// An undo by any person decided what the answer was worth.
		"another person takes it back": {all(judged("ann", 1, 1), undo("bob", 2)), -1, 0, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			a, r := said(), new(earlierRow)
			for _, s := range test.history {
				answers.Say(a, s)
				r.hear(s)
			}
			before, _, known := r.worth()
			now, _, knows := answers.WorthOf(a)
			assert.InDelta(t, test.before, before, 1e-12)
			assert.InDelta(t, test.now, now, 1e-12)
			assert.Equal(t, test.known, known)
			assert.Equal(t, test.knows, knows)
		})
	}
}

// Reported outcomes did not use up the room for judgements, and had no bound.
func TestOutcomesShareTheRoom(t *testing.T) {
	a, r := said(), new(earlierRow)
	for i := range answers.MaxStated {
		s := outcome(fmt.Sprint("source ", i), 1, i)
		answers.Say(a, s)
		r.hear(s)
	}
	r.hear(judged("ann", -1, 200))
	assert.Len(t, r.said, 1)
	_, _, effect := answers.Say(a, judged("ann", -1, 200))
	assert.Equal(t, answers.Refused, effect)
}
