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
	words map[string]float64
}

func newOutspoken() outspoken {
	return outspoken{map[string]float64{
		"thanks": 1, "perfect": 1, "undo": -1, "wrong": -1,
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
	s := learning.Signal{
		HeuristicID: f.HeuristicID, EventID: f.EventID, Channel: learning.ChannelExplicit,
		Target: f.Target, Worth: -1,
	}
	if good {
		s.Worth = 1
	}
	return s, nil
}

func (o outspoken) InterpretUndo(text string, answers []learning.Answer) ([]learning.Signal,
	error) {
	if text == "" {
		text = "undo"
	}
	for _, word := range strings.Fields(strings.ToLower(text)) {
		if worth, ok := o.words[strings.Trim(word, ".,!?")]; ok && len(answers) > 0 {
			last := answers[len(answers)-1] // words are about what was shown last
			return []learning.Signal{{HeuristicID: last.HeuristicID, EventID: last.EventID,
				Channel: "user_words", Worth: worth}}, nil
		}
	}
	return nil, nil
}

func (o outspoken) InterpretTimeout(t learning.Answer) (learning.Signal, error) {
	return learning.Signal{HeuristicID: t.HeuristicID, EventID: t.EventID,
			Channel: learning.ChannelTimeout},
		nil
}

func (o outspoken) InterpretIgnore(i learning.Answer) (learning.Signal, error) {
	return learning.Signal{HeuristicID: i.HeuristicID, EventID: i.EventID,
			Channel: learning.ChannelIgnored},
		nil
}

func (o outspoken) InterpretOutcome(a learning.Answer) (learning.Signal, error) {
	return learning.Signal{HeuristicID: a.HeuristicID, EventID: a.EventID,
			Channel: learning.ChannelOutcome},
		nil
}

// IsUndo can't say no cheaper than InterpretUndo can.
func (o outspoken) IsUndo(string) bool { return true }

func (o outspoken) IsThanks(string) (thanks, doubt bool) { return false, false }

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
			fmt.Printf("%q is worth %+g: %.2f to %.2f\n", text, change.Signal.Worth,
				change.Old, change.New)
		}
	}
	// Output:
	// "Thanks, perfect!" is worth +1: 0.30 to 0.53
	// "that was wrong" is worth -1: 0.53 to 0.40
}
