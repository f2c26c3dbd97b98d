package learningtest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
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

// CheckStrategy runs the suite outside a test and returns all failures, joined: each begins with the name of its rule.
func CheckStrategy(strategy learning.Strategy) error {
	return conformance.Check(strategyRules, strategy)
}

type tb = conformance.TB

var strategyRules = []conformance.Rule[learning.Strategy]{
	{Name: "signals can be counted", Check: countable},
	{Name: "praise is no complaint, and a complaint no praise", Check: pointsRight},
	{Name: "a judgement that is not valid is an error", Check: invalidJudgement},
	{Name: "an undo speaks of what was shown, in its order, once", Check: undoInOrder},
	{Name: "without answers nothing is undone", Check: undoWithoutAnswers},
	{Name: "a text that undoes something is recognised", Check: recognised},
	{Name: "a command without words takes something back", Check: commanded},
	{Name: "the same request has the same answer", Check: sameAnswer},
	{Name: "requests stay as they are", Check: leavesRequests},
	{Name: "a caller may change what is returned", Check: answersApart},
	{Name: "the configuration names the strategy", Check: namesItself},
	{Name: "windows are not negative", Check: windowsPositive},
}

var (
	domains = []string{"", "home", "no such domain"}
	texts   = []string{"", "undo", "Please UNDO that, and revert it", "never  mind", "undoubtedly", "hello", "thanks, perfect",
		"\xff\xfe undo", "undo" + strings.Repeat("é", 5000), "\x00", "取消 undo ✓"}
)

// shown returns seven answers of three heuristics, the oldest first.
func shown() []learning.Answer {
	all := make([]learning.Answer, 7)
	for i := range all {
		all[i] = learning.Answer{HeuristicID: fmt.Sprint("h", i%3), EventID: fmt.Sprint("e", i), Domain: domains[i%len(domains)], Age: time.Duration(7-i) * time.Second}
	}
	return all
}

func said(value float64, channel string) learning.Judgement {
	return learning.Judgement{Value: value, Channel: channel}
}

var (
	praise = []learning.Judgement{
		said(1, ""), said(0.1, "user"), said(1, learning.ChannelDev),
		{Scale: learning.UserScale, Score: 3}, {Scale: learning.DevScale, Score: 5},
	}
	blame = []learning.Judgement{
		said(-1, ""), said(-0.1, "user"), said(-1, learning.ChannelDev),
		{Scale: learning.UserScale, Score: 1}, {Scale: learning.DevScale, Score: 1},
	}
)

// judgements returns valid ones of every kind, about every target and domain.
func judgements() (all []learning.Judgement) {
	said := slices.Concat(praise, blame)
	for score := 1; score <= 5; score++ {
		said = append(said, learning.Judgement{Scale: learning.DevScale, Score: score})
		if score <= 3 {
			said = append(said, learning.Judgement{Scale: learning.UserScale, Score: score})
		}
	}
	for _, f := range said {
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
	add := func(question any, signal learning.Signal, err error) {
		if err != nil {
			signal.Metadata = map[string]string{"error": err.Error()}
		}
		key := fmt.Sprintf("%T%+v", question, question)
		all[key] = append(all[key], signal)
	}
	for _, f := range judgements() {
		signal, err := s.InterpretJudgement(f)
		add(f, signal, err)
	}
	for _, domain := range domains {
		for n := range 8 {
			a := learning.Answer{HeuristicID: "h1", EventID: "e1", Domain: domain, Age: time.Duration(n) * time.Minute, Consecutive: n, Success: n%2 == 0}
			signal, err := s.InterpretTimeout(a)
			add(a, signal, err)
			signal, err = s.InterpretIgnore(a)
			add(a, signal, err)
			signal, err = s.InterpretOutcome(a)
			add(a, signal, err)
		}
	}
	for _, text := range texts {
		signals, err := s.InterpretUndo(text, shown())
		for _, signal := range signals {
			add(struct {
				Text    string
				Answers []learning.Answer
			}{text, shown()}, signal, err)
		}
	}
	return all
}

func countable(t tb, s learning.Strategy) {
	for question, signals := range answers(s) {
		for _, signal := range signals {
			if err := signal.Validate(); err != nil {
				t.Errorf("%.200s: %+v: %v", question, signal, err)
			}
			if !strings.Contains(question, "HeuristicID:"+signal.HeuristicID) || signal.HeuristicID == "" {
				t.Errorf("%.200s: the signal is about %q", question, signal.HeuristicID)
			}
			if signal.EventID != "" && !strings.Contains(question, "EventID:"+signal.EventID) {
				t.Errorf("%.200s: the signal is about the event %q", question, signal.EventID)
			}
		}
	}
}

func pointsRight(t tb, s learning.Strategy) {
	check := func(said []learning.Judgement, never learning.SignalType) {
		for _, f := range said {
			f.HeuristicID, f.EventID = "h1", "e1"
			signal, err := s.InterpretJudgement(f)
			if err != nil || signal.Type == never {
				t.Errorf("%+v became %s: %v", f, signal.Type, err)
			}
			if signal.HeuristicID != "h1" || signal.EventID != "e1" {
				t.Errorf("%+v is about %q and %q", f, signal.HeuristicID, signal.EventID)
			}
		}
	}
	check(praise, learning.Negative)
	check(blame, learning.Positive)
}

func invalidJudgement(t tb, s learning.Strategy) {
	for what, f := range map[string]learning.Judgement{
		"no such scale":           {Scale: "stars", Score: 1},
		"a score of 0":            {Scale: learning.UserScale},
		"a score of 4 of 3":       {Scale: learning.UserScale, Score: 4},
		"a score of 6 of 5":       {Scale: learning.DevScale, Score: 6},
		"a negative score":        {Scale: learning.DevScale, Score: -1},
		"no such target":          {Target: "author"},
		"a value above 1":         said(2, ""),
		"an answer without event": said(1, ""),
	} {
		f.HeuristicID = "h1"
		if f.EventID = "e1"; what == "an answer without event" {
			f.EventID = ""
		}
		if signal, err := s.InterpretJudgement(f); err == nil {
			t.Errorf("%s: no error, and %+v", what, signal)
		}
	}
}

func undoInOrder(t tb, s learning.Strategy) {
	answers := shown()
	for _, text := range texts {
		signals, err := s.InterpretUndo(text, slices.Clone(answers))
		if err != nil {
			t.Errorf("%.50q: %v", text, err)
		}
		next := 0
		for _, signal := range signals {
			place := slices.IndexFunc(answers[next:], func(f learning.Answer) bool {
				return f.HeuristicID == signal.HeuristicID && f.EventID == signal.EventID
			})
			if place < 0 {
				t.Errorf("%.50q: the signal about %q on %q is about nothing that was shown, or out of order, or the second",
					text, signal.HeuristicID, signal.EventID)
				break
			}
			next += place + 1
		}
	}
}

func undoWithoutAnswers(t tb, s learning.Strategy) {
	for _, text := range texts {
		if signals, err := s.InterpretUndo(text, nil); err != nil || len(signals) > 0 {
			t.Errorf("%.50q without answers: %+v, %v", text, signals, err)
		}
	}
}

func recognised(t tb, s learning.Strategy) {
	for _, text := range texts {
		if signals, _ := s.InterpretUndo(text, shown()); text != "" && len(signals) > 0 && !s.IsUndo(text) {
			t.Errorf("%.50q: IsUndo says no, and InterpretUndo has %d signals", text, len(signals))
		}
	}
}

func commanded(t tb, s learning.Strategy) {
	signals, err := s.InterpretUndo("", shown())
	if err != nil || len(signals) == 0 {
		t.Errorf("%d signals, %v", len(signals), err)
	}
	for _, signal := range signals {
		if signal.Type == learning.Positive {
			t.Errorf("it praised: %+v", signal)
		}
	}
}

func sameAnswer(t tb, s learning.Strategy) {
	want := answers(s)
	var wait sync.WaitGroup
	same := make([]bool, 8)
	for i := range same {
		wait.Go(func() { same[i] = reflect.DeepEqual(answers(s), want) })
	}
	wait.Wait()
	if slices.Contains(same, false) {
		t.Errorf("asked again, and by many at once, the strategy answers something else")
	}
}

func leavesRequests(t tb, s learning.Strategy) {
	for _, text := range texts {
		answers := shown()
		if _, err := s.InterpretUndo(text, answers); err != nil {
			t.Errorf("%.50q: %v", text, err)
		}
		if !slices.Equal(answers, shown()) {
			t.Errorf("%.50q: the answers were changed to %+v", text, answers)
		}
	}
}

// answersApart changes what an answer refers to, and asks again.
func answersApart(t tb, s learning.Strategy) {
	first := answers(s)
	want := fmt.Sprint(first)
	for _, signals := range first {
		for i := range signals {
			for key := range signals[i].Metadata {
				signals[i].Metadata[key] = "spoilt"
			}
		}
	}
	if fmt.Sprint(answers(s)) != want {
		t.Errorf("a change of the answers' metadata changed later ones")
	}
}

func namesItself(t tb, s learning.Strategy) {
	config := s.Config()
	if config["strategy"] == "" {
		t.Errorf("the configuration is %v, without the strategy's name", config)
	}
	kept := maps.Clone(config)
	clear(config)
	if again := s.Config(); !maps.Equal(again, kept) {
		t.Errorf("the configuration was %v, and after a caller cleared it %v", kept, again)
	}
}

func windowsPositive(t tb, s learning.Strategy) {
	for _, domain := range domains {
		if w := s.Windows(domain); w.Undo < 0 || w.Ignore < 0 || w.Silence < 0 || w != s.Windows(domain) {
			t.Errorf("the windows of %q are %+v", domain, w)
		}
	}
}
