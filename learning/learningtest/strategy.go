// Package learningtest is the contract of [learning.Strategy] in executable form. Run it from the
// tests of your own:
//
//	func TestStrategy(t *testing.T) { learningtest.RunStrategy(t, mystrategy.New()) }
//
// It needs the standard library only. Later versions of the suite may test more of the contract.
package learningtest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/internal/conformance"
	"github.com/heedhq/heed/learning"
)

// RunStrategy runs the suite for strategies, a subtest a rule.
func RunStrategy(t *testing.T, strategy learning.Strategy) {
	conformance.Run(t, strategyRules, strategy)
}

type checker = conformance.Checker

var strategyRules = []conformance.Rule[learning.Strategy]{
	conformance.Checked("signals can be counted", countable),
	conformance.Checked("praise is no complaint, and a complaint no praise", pointsRight),
	conformance.Checked("a judgement that is not valid is an error", invalidJudgement),
	conformance.Checked("an undo is recognised, and speaks of what was shown, in its order, once",
		undoes),
	conformance.Checked("a command without words takes something back", commanded),
	conformance.Checked("equal requests have equal answers, which a caller may change", sameAnswer),
	conformance.Checked("the configuration names the strategy", namesItself),
	conformance.Checked("windows are not negative", windowsPositive),
}

var (
	domains = []string{"", "home", "no such domain"}
	texts   = []string{"", "undo", "Please UNDO that, and revert it", "never  mind", "undoubtedly",
		"hello", "thanks, perfect",
		"\xff\xfe undo", "undo" + strings.Repeat("é", 5000), "\x00", "取消 undo ✓"}
)

// shown returns seven answers of three heuristics, the oldest first.
func shown() []learning.Answer {
	all := make([]learning.Answer, 7)
	for i := range all {
		all[i] = learning.Answer{HeuristicID: fmt.Sprint("h", i%3), EventID: fmt.Sprint("e", i),
			Domain: domains[i%len(domains)], Age: time.Duration(7-i) * time.Second}
	}
	return all
}

func judged(value float64, channel string) learning.Judgement {
	return learning.Judgement{Value: value, Channel: channel}
}

var (
	praise = []learning.Judgement{
		judged(1, ""), judged(0.1, "user"), judged(1, learning.ChannelDev),
		{Scale: learning.UserScale, Score: 3}, {Scale: learning.DevScale, Score: 5},
	}
	blame = []learning.Judgement{
		judged(-1, ""), judged(-0.1, "user"), judged(-1, learning.ChannelDev),
		{Scale: learning.UserScale, Score: 1}, {Scale: learning.DevScale, Score: 1},
	}
)

// judgements returns valid ones of every kind, about every target and domain.
func judgements() (all []learning.Judgement) {
	so := []learning.Judgement{
		{Scale: learning.UserScale, Score: 2}, {Scale: learning.DevScale, Score: 2},
		{Scale: learning.DevScale, Score: 3}, {Scale: learning.DevScale, Score: 4},
	}
	for _, j := range slices.Concat(praise, blame, so) {
		for _, j.Target = range []answer.Target{"", answer.TargetRule, answer.TargetResponse} {
			for _, j.Domain = range domains {
				j.HeuristicID, j.EventID, j.Person = "h1", "e1", "ann"
				j.At = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
				all = append(all, j)
			}
		}
	}
	return all
}

// A reply is what a strategy returned, and the answers that it was asked about.
type reply struct {
	call    string
	about   []learning.Answer
	signals []learning.Signal
	err     error
}

// replies asks everything.
func replies(s learning.Strategy) (all []reply) {
	add := func(method string, a learning.Answer, signal learning.Signal, err error) {
		call := fmt.Sprintf("%s of %+v", method, a)
		all = append(all, reply{call, []learning.Answer{a}, []learning.Signal{signal}, err})
	}
	for _, j := range judgements() {
		signal, err := s.InterpretJudgement(j)
		add("InterpretJudgement", learning.Answer{HeuristicID: "h1", EventID: "e1"}, signal, err)
	}
	for n, a := range shown() {
		a.Consecutive, a.Success = n, n%2 == 0
		for method, interpret := range map[string]func(learning.Answer) (learning.Signal, error){
			"InterpretTimeout": s.InterpretTimeout, "InterpretIgnore": s.InterpretIgnore,
			"InterpretOutcome": s.InterpretOutcome,
		} {
			signal, err := interpret(a)
			add(method, a, signal, err)
		}
	}
	for _, text := range texts {
		signals, err := s.InterpretUndo(text, shown())
		all = append(all, reply{fmt.Sprintf("InterpretUndo of %.50q", text), shown(), signals, err})
	}
	slices.SortStableFunc(all, func(a, b reply) int { return strings.Compare(a.call, b.call) })
	return all
}

// countable reports the first fault of each method, because most faults are in all its signals.
func countable(t *checker, s learning.Strategy) {
	faulty := make(map[string]bool)
	for _, r := range replies(s) {
		method, _, _ := strings.Cut(r.call, " ")
		err := r.err
		for _, signal := range r.signals {
			if !slices.ContainsFunc(r.about, func(a learning.Answer) bool {
				return signal.HeuristicID == a.HeuristicID &&
					(signal.EventID == "" || signal.EventID == a.EventID)
			}) {
				err = errors.Join(err, errors.New("it is about another answer"))
			}
			err = errors.Join(err, signal.Validate())
		}
		if err != nil && !faulty[method] {
			faulty[method] = true
			t.Errorf("%s: the signals %+v: %v", r.call, r.signals, err)
		}
	}
}

func pointsRight(t *checker, s learning.Strategy) {
	for never, judged := range map[float64][]learning.Judgement{-1: praise, 1: blame} {
		for _, j := range judged {
			j.HeuristicID, j.EventID = "h1", "e1"
			signal, err := s.InterpretJudgement(j)
			t.Check(err == nil && signal.Worth*never <= 0, "%+v became %v: %v", j, signal.Worth, err)
		}
	}
}

func invalidJudgement(t *checker, s learning.Strategy) {
	for _, j := range []learning.Judgement{
		{EventID: "e1", Scale: "stars", Score: 1},
		{EventID: "e1", Scale: learning.UserScale},
		{EventID: "e1", Scale: learning.UserScale, Score: 4},
		{EventID: "e1", Scale: learning.DevScale, Score: 6},
		{EventID: "e1", Scale: learning.DevScale, Score: -1},
		{EventID: "e1", Target: "author"},
		{EventID: "e1", Value: 2},
		{Value: 1}, // of no answer
	} {
		j.HeuristicID = "h1"
		signal, err := s.InterpretJudgement(j)
		t.Check(err != nil, "%+v: no error, and %+v", j, signal)
	}
}

// undoes undoes with each text, with answers and without.
func undoes(t *checker, s learning.Strategy) {
	for _, text := range texts {
		answers, next := shown(), 0
		signals, err := s.InterpretUndo(text, answers)
		t.Check(err == nil, "%.50q: %v", text, err)
		t.Equal("the answers that it was asked about", answers, shown())
		t.Check(text == "" || len(signals) == 0 || s.IsUndo(text),
			"%.50q: IsUndo returns false, and InterpretUndo returns %d signals", text, len(signals))
		for _, signal := range signals {
			place := slices.IndexFunc(shown()[next:], func(f learning.Answer) bool {
				return f.HeuristicID == signal.HeuristicID && f.EventID == signal.EventID
			})
			if place < 0 {
				t.Errorf("%.50q: the signal about %q on %q names no answer that was shown, or is out of "+
					"order, or the second", text, signal.HeuristicID, signal.EventID)
				break
			}
			next += place + 1
		}
		signals, err = s.InterpretUndo(text, nil)
		t.Check(err == nil && len(signals) == 0, "without answers, %.50q undoes %+v: %v", text, signals,
			err)
	}
}

func commanded(t *checker, s learning.Strategy) {
	signals, err := s.InterpretUndo("", shown())
	t.Check(err == nil && len(signals) > 0, "an empty text takes nothing back: %v", err)
	for _, signal := range signals {
		t.Check(signal.Worth <= 0, "it praised: %+v", signal)
	}
}

func sameAnswer(t *checker, s learning.Strategy) {
	first := replies(s)
	want := fmt.Sprint(first)
	t.AtOnce(8, func(int) {
		t.Check(fmt.Sprint(replies(s)) == want, "asked by many at once, it answers something else")
	})
	for _, r := range first {
		for _, signal := range r.signals {
			for key := range signal.Metadata {
				signal.Metadata[key] = "spoilt"
			}
		}
	}
	t.Check(fmt.Sprint(replies(s)) == want, "a change of answers' metadata changed later ones")
}

func namesItself(t *checker, s learning.Strategy) {
	config := s.Config()
	t.Check(config["strategy"] != "", "the configuration %v has no name", config)
	kept := maps.Clone(config)
	clear(config)
	again := s.Config()
	t.Check(maps.Equal(again, kept), "it was %v, and after a caller cleared it %v", kept, again)
}

func windowsPositive(t *checker, s learning.Strategy) {
	for _, domain := range domains {
		w := s.Windows(domain)
		t.Check(min(w.Undo, w.Ignore, w.Silence) >= 0 && w == s.Windows(domain),
			"the windows of %q are %+v", domain, w)
	}
}
