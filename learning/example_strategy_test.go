package learning_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/learning/learningtest"
)

// outspoken is a strategy that learns from words alone: silence and ignoring say nothing, and a
// "thanks" is worth as much as an undo.
type outspoken struct {
	words map[string]learning.SignalType
}

func newOutspoken() outspoken {
	return outspoken{map[string]learning.SignalType{
		"thanks": learning.Positive, "perfect": learning.Positive, "undo": learning.Negative,
		"wrong": learning.Negative,
	}}
}

func (o outspoken) InterpretJudgement(f learning.Judgement) (learning.Signal, error) {
	if err := f.Validate(); err != nil {
		return learning.Signal{}, err
	}
	good := f.Value > 0
	switch f.Scale { // the middle of a scale is no praise
	case learning.UserScale:
		good = f.Score > 2
	case learning.DevScale:
		good = f.Score > 3
	}
	s := learning.NewSignal(learning.Negative, f.HeuristicID, f.EventID, learning.ChannelExplicit)
	if s.Target = f.Target; good {
		s.Type = learning.Positive
	}
	return s, nil
}

func (o outspoken) InterpretUndo(text string, answers []learning.Answer) ([]learning.Signal,
	error) {
	if text == "" {
		text = "undo"
	}
	for _, word := range strings.Fields(strings.ToLower(text)) {
		if t, ok := o.words[strings.Trim(word, ".,!?")]; ok && len(answers) > 0 {
			last := answers[len(answers)-1] // words are about what was shown last
			return []learning.Signal{learning.NewSignal(t, last.HeuristicID, last.EventID, "user_words")},
				nil
		}
	}
	return nil, nil
}

func (o outspoken) InterpretTimeout(t learning.Answer) (learning.Signal, error) {
	return learning.NewSignal(learning.Neutral, t.HeuristicID, t.EventID, learning.ChannelTimeout),
		nil
}

func (o outspoken) InterpretIgnore(i learning.Answer) (learning.Signal, error) {
	return learning.NewSignal(learning.Neutral, i.HeuristicID, i.EventID, learning.ChannelIgnored),
		nil
}

func (o outspoken) InterpretOutcome(a learning.Answer) (learning.Signal, error) {
	return learning.NewSignal(learning.Neutral, a.HeuristicID, a.EventID, learning.ChannelOutcome),
		nil
}

// IsUndo can't say no cheaper than InterpretUndo can.
func (o outspoken) IsUndo(string) bool { return true }

func (o outspoken) IsThanks(string) bool { return false }

func (o outspoken) Windows(string) learning.Windows {
	return learning.Windows{Undo: time.Minute, Ignore: time.Minute}
}

func (o outspoken) Config() map[string]string { return map[string]string{"strategy": "outspoken"} }

func TestOutspoken(t *testing.T) { learningtest.RunStrategy(t, newOutspoken()) }

// A second strategy: nine methods, no counting, and the suite of learningtest to say whether they
// keep the contract.
func Example_strategy() {
	ctx := context.Background()
	module := newModule(learning.Config{Strategy: newOutspoken()})
	for _, text := range []string{"Thanks, perfect!", "hm", "that was wrong"} {
		if err := module.Fire(ctx, learning.Fire{HeuristicID: "close the window",
			EventID: "before: " + text, Session: "s"}); err != nil {
			panic(err)
		}
		changes, err := module.Hear(ctx, learning.Message{Text: text, Session: "s"})
		if err != nil {
			panic(err)
		}
		for _, change := range changes {
			fmt.Printf("%q is %s: %.2f to %.2f\n", text, change.Signal.Type, change.Old, change.New)
		}
	}
	// Output:
	// "Thanks, perfect!" is positive: 0.30 to 0.53
	// "that was wrong" is negative: 0.53 to 0.40
}
