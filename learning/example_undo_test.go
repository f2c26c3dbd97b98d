package learning_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/heedhq/heed/learning"
	"github.com/heedhq/heed/memstore"
)

// A modelReader has a model say whether a text takes the last answer back.
type modelReader struct {
	ask func(ctx context.Context, question string) (string, error) // the host's model
	// reads the text where the model can't
	heeds learning.Strategy

	mu   sync.Mutex
	text string // the last text that the model read, as heed asks about one text several times
	undo bool
}

func (m *modelReader) isUndo(text string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if text == m.text {
		return m.undo
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	answer, err := m.ask(ctx,
		"Does this message command you to take your last answer back? Answer yes or no.\n\n"+text)
	if err != nil {
		return m.heeds.IsUndo(text)
	}
	m.text, m.undo = text, strings.EqualFold(strings.Trim(answer, " .\n"), "yes")
	return m.undo
}

// The host's model reads which texts take an answer back, and heed's own reader does while the
// model fails.
func ExampleBayesianConfig_isUndo() {
	ctx := context.Background()
	ask := func(_ context.Context, question string) (string, error) { // stands for a call of a model
		switch {
		case strings.HasSuffix(question, "undo that"):
			return "", errors.New("the model is overloaded")
		case strings.HasSuffix(question, "The cat liked the old curtains."):
			return "Yes.", nil
		}
		return "No.", nil
	}
	heeds, err := learning.NewBayesian(learning.BayesianConfig{})
	if err != nil {
		panic(err)
	}
	reader := &modelReader{ask: ask, heeds: heeds}
	strategy, err := learning.NewBayesian(learning.BayesianConfig{IsUndo: reader.isUndo})
	if err != nil {
		panic(err)
	}
	module, err := learning.New(ctx, learning.Config{Store: &memstore.Store{}, Strategy: strategy})
	if err != nil {
		panic(err)
	}
	if _, err := module.Put(ctx, learning.Heuristic{ID: "dim the lights"}); err != nil {
		panic(err)
	}
	for _, text := range []string{"The cat liked the old curtains.", "undo that", "Is it raining?"} {
		if err := module.Fire(ctx, learning.Fire{HeuristicID: "dim the lights", EventID: text,
			Session: text}); err != nil {
			panic(err)
		}
		changes, err := module.Hear(ctx, learning.Message{Session: text, Text: text})
		if err != nil {
			panic(err)
		}
		fmt.Println(len(changes), "taken back:", text)
	}
	// Output:
	// 1 taken back: The cat liked the old curtains.
	// 1 taken back: undo that
	// 0 taken back: Is it raining?
}
