//go:build !race

package answers_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/answers"
)

var (
	yes, no = true, false
	targets = []answer.Target{"", answer.TargetRule, answer.TargetResponse}
	weights = []float64{0, 0, 1, 0.25, 3, 1e6, 1e-9}
)

// statements draws any statement that a caller may make.
func statements(targets []answer.Target) *rapid.Generator[answer.Statement] {
	return rapid.Custom(func(t *rapid.T) answer.Statement {
		s := answer.Statement{
			How: rapid.SampledFrom([]answer.How{
				answers.Judged, answers.Judged, answers.Judged, answers.Outcome, answers.Outcome,
				answers.Undo, answers.Expected, answers.Ignored, answers.Silence,
			}).Draw(t, "how"),
			By: rapid.SampledFrom([]string{"", "ann", "bob", "cid"}).Draw(t, "by"),
			Of: rapid.SampledFrom([]string{"", "", "", "h"}).Draw(t, "of"),
			At: at(rapid.IntRange(0, 9).Draw(t, "at")),
		}
		s.Channel = rapid.SampledFrom([]string{string(s.How), string(s.How), "mail"}).Draw(t,
			"channel")
		switch s.How {
		case answers.Judged:
			judgement(t, &s, targets)
		case answers.Outcome:
			s.Value = rapid.SampledFrom([]float64{-1, -0.3, 0, 1}).Draw(t, "value")
			s.Worth = thumb * s.Value
			if s.Withdrawn = rapid.IntRange(0, 3).Draw(t, "withdrawn") == 0; s.Withdrawn {
				s.Value, s.Worth = 0, 0
			}
			s.Success = rapid.SampledFrom([]*bool{nil, &yes, &no}).Draw(t, "success")
		default:
			s.Worth = rapid.SampledFrom([]float64{-1, -0.4, 0, 0.4, 1}).Draw(t, "worth")
			if s.How == answers.Undo {
				s.Worth = -1
			}
		}
		return s
	})
}

func judgement(t *rapid.T, s *answer.Statement, targets []answer.Target) {
	s.Target = rapid.SampledFrom(targets).Draw(t, "target")
	s.Weight = rapid.SampledFrom(weights).Draw(t, "weight")
	if rapid.IntRange(0, 3).Draw(t, "scored") == 0 {
		s.Scale = rapid.SampledFrom([]string{"user", "dev"}).Draw(t, "scale")
		s.Score = rapid.IntRange(1, map[string]int{"user": 3, "dev": 5}[s.Scale]).Draw(t, "score")
	} else {
		s.Value = rapid.SampledFrom([]float64{-1, -0.3, 0, 0.5, 1}).Draw(t, "value")
	}
	value, weight := valueOf(*s)
	s.Worth = thumb * value * weight
}

func draw(t *rapid.T, targets []answer.Target, most int) []answer.Statement {
	return rapid.SliceOfN(statements(targets), 0, most).Draw(t, "statements")
}

// reply draws who answered: the model or a heuristic.
func reply(t *rapid.T) *answer.Reply {
	heuristic := rapid.SampledFrom([]string{"", "h"}).Draw(t, "heuristic")
	if heuristic == "" && rapid.Bool().Draw(t, "alone") {
		return nil
	}
	return &answer.Reply{Heuristic: heuristic}
}

// deep returns a copy that shares no memory.
func deep(t require.TestingT, a *answer.Answer) (c answer.Answer) {
	text, err := json.Marshal(a)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &c))
	return c
}

// compare holds an answer to the oracle.
func compare(t require.TestingT, a *answer.Answer, o *oracle) {
	for _, of := range []string{"", "h"} {
		want, got := o.received(of), answers.ReceptionOf(a, of)
		assert.Equal(t, want.praises, got.Praise.N)
		assert.Equal(t, want.complaints, got.Complaint.N)
		for _, pair := range [][2]float64{
			{want.praise, got.Praise.Weight}, {want.praiseShare, got.Praise.Share},
			{want.complaint, got.Complaint.Weight}, {want.complaintShare, got.Complaint.Share},
		} {
			assert.InEpsilon(t, 1+pair[0], 1+pair[1], 1e-12)
		}
		for how, s := range map[answer.How]*answer.Statement{
			answers.Undo: want.undo, answers.Expected: want.expected,
			answers.Ignored: want.ignored, answers.Silence: want.idle,
		} {
			on := got.Of(how)
			require.Equal(t, s == nil, on == nil, how)
			if s != nil {
				assert.Equal(t, s.At, on.At)
				assert.InDelta(t, s.Worth, on.Worth, 0)
			}
		}
		for _, independent := range []bool{false, true} {
			assert.Equal(t, want.implicit(independent), got.Implicit(independent))
			assert.Equal(t, want.fate(independent), got.Fate(independent))
			sources(t, a, of, independent)
		}
	}
	// Two judgements of one person can be alike but in what has no part in this.
	key := func(how answer.How, by, channel string, at time.Time, value, trust,
		share float64) string {
		return fmt.Sprintf("%s %s %s %v %g %g %.6f", how, by, channel, at.Sub(start), value,
			trust, share)
	}
	var want, got []string
	for _, p := range o.pieces() {
		s := p.statement
		want = append(want, key(s.How, s.By, armChannel(s), s.At, p.value, p.trust, p.share))
	}
	for _, p := range answers.Parts(a) {
		got = append(got, key(p.How, p.Source, p.Channel, p.At, p.Value, p.Trust, p.Share))
	}
	slices.Sort(want)
	slices.Sort(got)
	assert.Equal(t, want, got)

	worth, known := o.worth()
	value, _, is := answers.WorthOf(a)
	assert.Equal(t, known, is)
	assert.InDelta(t, worth, value, 1e-9)
}

// sources checks whose the fate and the agreement are.
func sources(t require.TestingT, a *answer.Answer, of string, independent bool) {
	r := answers.ReceptionOf(a, of)
	forgotten := slices.ContainsFunc(a.Statements, func(s answer.Statement) bool {
		return s.Forgotten()
	})
	fate, by := r.Fate(independent), r.Decider(independent)
	if fate == 0 {
		assert.Nil(t, by)
	} else if by != nil {
		assert.False(t, by.Forgotten())
		assert.Equal(t, of, by.Of)
		assert.Positive(t, by.Worth*float64(fate))
	} else {
		assert.True(t, forgotten)
	}
	for _, agrees := range []bool{false, true} {
		worth := r.Agreement(agrees, independent, 0.24, 0.072)
		sum, seen := 0., make(map[string]bool)
		for _, p := range r.AgreementParts(agrees, independent, 0.24, 0.072) {
			assert.Positive(t, p.Worth*worth)
			assert.False(t, seen[p.Source], p.Source)
			sum, seen[p.Source] = sum+p.Worth, true
			assert.True(t, slices.ContainsFunc(a.Statements, func(s answer.Statement) bool {
				return s.Of == of && s.By == p.Source && !s.Forgotten()
			}))
		}
		assert.True(t, sum*worth >= 0 && sum*sum <= worth*worth+1e-9)
		if !forgotten {
			assert.InDelta(t, worth, sum, 1e-9)
		}
	}
}

// told lets the same statements arrive at an answer and at the oracle, and forgets a person.
func told(t *rapid.T, all []answer.Statement) {
	a := &answer.Answer{ID: "e", At: start, Person: "asker", Reply: reply(t)}
	a.Choice = &answer.Choice{IgnoreSilence: rapid.Bool().Draw(t, "deaf")}
	o := &oracle{heuristic: answers.HeuristicOf(a), forgotten: make(map[string]bool),
		deaf: a.Choice.IgnoreSilence}
	for _, s := range all {
		answers.Say(a, s)
		o.add(s)
	}
	compare(t, a, o)
	forget(a, "bob")
	o.forgotten["bob"] = true
	compare(t, a, o)
}

// Whatever is stated in whatever order counts as the tables have it. A source that judges the whole
// between two parts is in the next test.
func TestAnyOrderCountsAsInTheTables(t *testing.T) {
	for _, some := range [][]answer.Target{{""}, {answer.TargetRule, answer.TargetResponse},
		{"", answer.TargetRule}} {
		rapid.Check(t, func(t *rapid.T) { told(t, draw(t, some, 30)) })
	}
}

// Whatever is stated in the order in which it was made counts as the tables have it.
func TestWhatArrivesInOrderCountsAsInTheTables(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := draw(t, targets, 30)
		slices.SortStableFunc(all, func(a, b answer.Statement) int { return a.At.Compare(b.At) })
		told(t, all)
	})
}

// TestSayIsSound has what holds after every statement, and around the bounds.
func TestSayIsSound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := said()
		if rapid.IntRange(0, 3).Draw(t, "crowded") == 0 {
			a = crowd(answers.MaxStated - rapid.IntRange(0, 3).Draw(t, "free"))
			for i := range answers.MaxUndos - rapid.IntRange(0, 3).Draw(t, "free") {
				answers.Say(a, undo(fmt.Sprint("undoer ", i), i))
			}
		}
		a.Reply = reply(t)
		for _, s := range draw(t, targets, 25) {
			if rapid.IntRange(0, 9).Draw(t, "forget") == 0 {
				forget(a, "cid")
			}
			say(t, a, s)
		}
	})
}

// say has an answer hear a statement, and checks all that must hold.
func say(t *rapid.T, a *answer.Answer, s answer.Statement) {
	given, before := *a, deep(t, a)
	on, gone, effect := answers.Say(a, s)
	same := deep(t, &given)
	require.Equal(t, before, same, "what was given is unchanged")
	switch effect {
	case answers.Holds:
		assert.Equal(t, before.Numbers+1, on.N)
		assert.Len(t, a.Statements, len(before.Statements)+1-len(gone))
		assert.Equal(t, on, a.Statements[len(a.Statements)-1])
		s.N, s.Named = on.N, s.By != ""
		assert.Equal(t, s, on)
		for _, o := range gone {
			assert.True(t, has(before.Statements, o))
			assert.False(t, has(a.Statements, o))
		}
		_, _, again := answers.Say(a, s)
		if on.How == answers.Judged || on.How == answers.Outcome {
			assert.Equal(t, answers.Repeated, again)
		}
	case answers.Repeated:
		i := slices.IndexFunc(before.Statements, func(o answer.Statement) bool { return o.N == on.N })
		require.GreaterOrEqual(t, i, 0)
		if was := &before.Statements[i]; !was.At.Equal(on.At) { // it was repeated later
			assert.True(t, on.At.Equal(s.At) && on.At.After(was.At))
			was.At = on.At
			before.Numbers++
		}
		assert.Equal(t, before.Statements[i], on)
		fallthrough
	default:
		assert.Contains(t, []answers.Disposition{answers.Repeated, answers.Outdated, answers.Refused},
			effect)
		assert.Empty(t, gone)
		assert.Equal(t, before, deep(t, a), "it changes nothing")
	}
	sound(t, a)
}

func has(all []answer.Statement, s answer.Statement) bool {
	return slices.ContainsFunc(all, func(o answer.Statement) bool {
		return reflect.DeepEqual(o,
			s)
	})
}

// sound checks what holds of every record.
func sound(t require.TestingT, a *answer.Answer) {
	stated, undos := 0, make(map[string]int)
	for _, s := range a.Statements {
		switch s.How {
		case answers.Judged, answers.Outcome:
			stated++
		case answers.Undo:
			undos[s.Of]++
			assert.LessOrEqual(t, undos[s.Of], answers.MaxUndos)
		default:
		}
	}
	assert.LessOrEqual(t, stated, answers.MaxStated)

	sum := 0.
	names := make(map[string]bool)
	for _, p := range answers.Parts(a) {
		assert.True(t, p.Share >= 0 && p.Share <= 1, "%v", p)
		assert.True(t, p.Value >= -1 && p.Value <= 1, "%v", p)
		assert.True(t, p.Trust > 0 && p.Trust <= 1, "%v", p)
		assert.False(t, names[p.Of], "%v", p)
		names[p.Of] = true
		sum += p.Share
	}
	worth, _, known := answers.WorthOf(a)
	assert.True(t, worth >= -1 && worth <= 1)
	if known {
		assert.InDelta(t, 1, sum, 1e-9)
	} else {
		assert.Zero(t, sum)
	}
	people := answers.People(a)
	assert.ElementsMatch(t, people, caused(t, a))
	assert.NotContains(t, people, "")
	c := deep(t, a)
	again := deep(t, &c)
	assert.Equal(t, c, again)
	assert.Equal(t, a.Statements, append([]answer.Statement(nil), c.Statements...))
	assert.Equal(t, answers.Parts(a), answers.Parts(&c))
}

// TestARecordIsKeptAsJSON has a record with a value in every field.
func TestARecordIsKeptAsJSON(t *testing.T) {
	var a answer.Answer
	n := 0
	fill(t, reflect.ValueOf(&a).Elem(), &n)
	require.Greater(t, n, 150, "fields")
	assert.Equal(t, a, deep(t, &a))
}

// fill sets everything in a value, to something different each time.
func fill(t require.TestingT, v reflect.Value, n *int) {
	*n++
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(at(*n)))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(t, v.Field(i), n)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			fill(t, v.Index(i), n)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, n)
		fill(t, value, n)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(fmt.Sprint("text ", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Float64:
		v.SetFloat(float64(*n) + 0.1)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint64:
		v.SetUint(uint64(*n))
	case reflect.Uint8:
		v.SetUint(uint64(*n % 256))
	default:
		require.Fail(t, "can't fill", v.Type().String())
	}
}

// armChannel is the channel of a part: an implicit signal has its own.
func armChannel(s answer.Statement) string {
	switch s.How {
	case answers.Judged, answers.Outcome:
		return s.Channel
	case answers.Expected:
		return "outcome"
	default:
		return string(s.How)
	}
}
