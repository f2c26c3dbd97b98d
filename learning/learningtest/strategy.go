// Package learningtest is the contract of [learning.Strategy] in executable form. Run it from the
// tests of your own:
//
//	func TestStrategy(t *testing.T) { learningtest.RunStrategy(t, mystrategy.New()) }
//
// It needs the standard library only. Later versions of the suite may test more of the contract.
package learningtest

import (
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
	judged := slices.Concat(praise, blame)
	for score := 1; score <= 5; score++ {
		judged = append(judged, learning.Judgement{Scale: learning.DevScale, Score: score})
		if score <= 3 {
			judged = append(judged, learning.Judgement{Scale: learning.UserScale, Score: score})
		}
	}
	for _, f := range judged {
		for _, target := range []answer.Target{"", answer.TargetRule, answer.TargetResponse} {
			for _, domain := range domains {
				f.HeuristicID, f.EventID, f.Person, f.Target, f.Domain = "h1", "e1", "ann", target, domain
				f.At = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
				all = append(all, f)
			}
		}
	}
	return all
}

// answers asks everything and returns the answers, each by what was asked.
func answers(s learning.Strategy) map[string][]learning.Signal {
	all := make(map[string][]learning.Signal)
	add := func(method string, question any, signal learning.Signal, err error) {
		if err != nil {
			signal.Metadata = map[string]string{"error": err.Error()}
		}
		key := fmt.Sprintf("%s of %T%+v", method, question, question)
		all[key] = append(all[key], signal)
	}
	for _, f := range judgements() {
		signal, err := s.InterpretJudgement(f)
		add("InterpretJudgement", f, signal, err)
	}
	for _, domain := range domains {
		for n := range 8 {
			a := learning.Answer{HeuristicID: "h1", EventID: "e1", Domain: domain,
				Age: time.Duration(n) * time.Minute, Consecutive: n, Success: n%2 == 0}
			signal, err := s.InterpretTimeout(a)
			add("InterpretTimeout", a, signal, err)
			signal, err = s.InterpretIgnore(a)
			add("InterpretIgnore", a, signal, err)
			signal, err = s.InterpretOutcome(a)
			add("InterpretOutcome", a, signal, err)
		}
	}
	for _, text := range texts {
		signals, err := s.InterpretUndo(text, shown())
		for _, signal := range signals {
			add("InterpretUndo", struct {
				Text    string
				Answers []learning.Answer
			}{text, shown()}, signal, err)
		}
	}
	return all
}

// countable reports the first fault of each method, because most faults are in all its signals.
func countable(t *checker, s learning.Strategy) {
	all, faulty := answers(s), make(map[string]bool)
	for _, question := range slices.Sorted(maps.Keys(all)) {
		method, _, _ := strings.Cut(question, " ")
		for _, signal := range all[question] {
			about := signal.HeuristicID != "" &&
				strings.Contains(question, "HeuristicID:"+signal.HeuristicID) &&
				(signal.EventID == "" || strings.Contains(question, "EventID:"+signal.EventID))
			err := signal.Validate()
			if err == nil && about || faulty[method] {
				continue
			}
			faulty[method] = true
			t.Errorf("%.200s: the signal %+v must be about what was asked, and valid: %v", question,
				signal, err)
		}
	}
}

func pointsRight(t *checker, s learning.Strategy) {
	check := func(judged []learning.Judgement, never float64) {
		for _, f := range judged {
			f.HeuristicID, f.EventID = "h1", "e1"
			signal, err := s.InterpretJudgement(f)
			t.Check(err == nil && signal.Worth*never <= 0, "%+v became %v: %v", f, signal.Worth, err)
			t.Check(signal.HeuristicID == "h1" && signal.EventID == "e1",
				"%+v is about %q and %q", f, signal.HeuristicID, signal.EventID)
		}
	}
	check(praise, -1)
	check(blame, 1)
}

func invalidJudgement(t *checker, s learning.Strategy) {
	for what, f := range map[string]learning.Judgement{
		"no such scale":           {Scale: "stars", Score: 1},
		"a score of 0":            {Scale: learning.UserScale},
		"a score of 4 of 3":       {Scale: learning.UserScale, Score: 4},
		"a score of 6 of 5":       {Scale: learning.DevScale, Score: 6},
		"a negative score":        {Scale: learning.DevScale, Score: -1},
		"no such target":          {Target: "author"},
		"a value above 1":         judged(2, ""),
		"an answer without event": judged(1, ""),
	} {
		f.HeuristicID = "h1"
		if f.EventID = "e1"; what == "an answer without event" {
			f.EventID = ""
		}
		signal, err := s.InterpretJudgement(f)
		t.Check(err != nil, "%s: no error, and %+v", what, signal)
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
	t.Check(err == nil && len(signals) > 0,
		"InterpretUndo of an empty text returns %d signals and the error %v, want a signal",
		len(signals),
		err)
	for _, signal := range signals {
		t.Check(signal.Worth <= 0, "it praised: %+v", signal)
	}
}

func sameAnswer(t *checker, s learning.Strategy) {
	first := answers(s)
	want := fmt.Sprint(first)
	t.AtOnce(8, func(int) {
		t.Check(fmt.Sprint(answers(s)) == want, "asked by many at once, it answers something else")
	})
	for _, signals := range first {
		for _, signal := range signals {
			for key := range signal.Metadata {
				signal.Metadata[key] = "spoilt"
			}
		}
	}
	t.Check(fmt.Sprint(answers(s)) == want, "a change of answers' metadata changed later ones")
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
