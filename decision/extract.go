package decision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/prompt"
)

const (
	// initialConfidence is the confidence of a heuristic that a model wrote, whatever the model
	// thinks of it.
	initialConfidence = 0.3
	// duplicate is the least similarity of two heuristics that are the same.
	duplicate = 0.75
	// minWords and maxWords bound the words of a condition, and the words of a message.
	minWords, maxWords = 10, 50
)

// actionTypes are the types of action that a model may choose from.
var actionTypes = []string{"suggest", "remind", "warn"}

// extraction asks for a heuristic within these limits. JSON strings replace the braces.
var extraction = fmt.Sprintf("A user was content with this response.\n\n"+
	"Situation: {situation}\nResponse: {response}\n\n"+
	"Write the rule behind it, so that it can be used in similar situations: the condition under "+
	"which it holds, in %[1]d to %[2]d words, without names and numbers that matter only here, and "+
	"the message to give then, in %[1]d to %[2]d words. Answer with JSON only: "+
	`{"condition": "...", "action": {"type": "%[3]s", "message": "..."}}`,
	minWords, maxWords, strings.Join(actionTypes, " | "))

// extractions is how many extractions ask the model, or the host, at a time. No person waits for
// them.
const extractions = 4

// An Extraction is the outcome of an attempt to make a heuristic. It is a heuristic to store, or
// ReinforcedID or Refused is set.
type Extraction struct {
	Name       string // from the condition
	Condition  string // "" if there is no heuristic to store
	ActionType string
	Message    string
	Confidence float64 // 0.3, whatever the model thinks of it
	ResponseID string  // the answer that was praised
	Source     string  // of the event
	Domain     string

	// ReinforcedID is the existing heuristic with the same advice, and Similarity how alike the two
	// are. Give it the praise too, unless it had the credit of the answer.
	ReinforcedID string
	Similarity   float64
	// Refused is the reason why there is neither.
	Refused string
}

// Extract asks the model for the heuristic behind an answer, and checks it against the limits of
// the quality gate: 10 to 50 words in the condition and in the message, and a type of suggest,
// remind or warn. A heuristic whose similarity to one of the host's is at least 0.75 is that one. A
// failing model is a refusal and no error. Extract asks again when it is called again for the same
// answer; the host recognises the repetition by [Extraction].ResponseID. An answer without a trace
// is [heed.ErrNotFound].
//
// nearest returns the heuristic that is most like one with this condition and message, of whatever
// confidence, and their similarity in [0, 1]. An empty id means that no heuristic is similar. A
// heuristic with the same condition and contrary advice must not count as similar, because it would
// earn the praise of its opposite. nearest must be safe for concurrent use. If it is nil, no
// heuristic is a duplicate.
func (d *Decider) Extract(ctx context.Context, responseID string,
	nearest func(ctx context.Context, condition, message string) (heuristicID string,
		similarity float64, err error)) (Extraction, error) {
	kept, err := getTrace(ctx, d.cfg.Store, responseID)
	t := kept.Value
	switch {
	case err != nil:
		return Extraction{}, fmt.Errorf("decision: extract: %w", err)
	case t.Cut:
		return Extraction{Refused: errCut.Error()}, nil
	case d.cfg.LLM == nil:
		return Extraction{Refused: "there is no model"}, nil
	}
	x, err := d.write(ctx, &t)
	if err != nil {
		d.watch.Failed(ctx, "model", err)
		return Extraction{Refused: err.Error()}, nil
	}
	if nearest == nil {
		return *x, nil
	}
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	same, err := host.Pass(ctx, d.extracting, "nearest",
		func(ctx context.Context) (same Extraction, err error) {
			same.ReinforcedID, same.Similarity, err = nearest(ctx, x.Condition, x.Message)
			return same, err
		})
	switch {
	case err != nil:
		return Extraction{}, fmt.Errorf("decision: extract: nearest: %w", err)
	case same.ReinforcedID != "" && same.Similarity >= duplicate:
		return same, nil
	default:
		return *x, nil
	}
}

// write has the model write a heuristic.
func (d *Decider) write(ctx context.Context, t *Trace) (*Extraction, error) {
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	request := LLMRequest{
		Prompt: fill(extraction, t.Text, t.Response, 2*prompt.DefaultMax),
		JSON:   true, MaxTokens: defaultTokens,
	}
	reply, err := host.Pass(ctx, d.extracting, "the model",
		func(ctx context.Context) (LLMResponse, error) { return d.cfg.LLM.Generate(ctx, request) })
	if err = cmp.Or(err, wholeReply(request, reply)); err != nil {
		return nil, fmt.Errorf("the model did not answer: %w", err)
	}
	x, err := parse(reply.Text)
	if err != nil {
		return nil, err
	}
	x.Name = "Learned: " + prompt.Line(x.Condition, 50)
	x.Confidence, x.ResponseID = initialConfidence, t.ResponseID
	x.Source, x.Domain = t.Source, t.Domain
	return x, nil
}

// parse reads a heuristic from a reply and checks its limits.
func parse(reply string) (*Extraction, error) {
	found := findObjects(reply, "condition", "action")
	if len(found) != 1 {
		return nil, errors.New("the reply does not have one object with a condition and an action")
	}
	action, err := one[object](found[0], "action", "object")
	if err != nil {
		return nil, err
	}
	kind, err := one[string](action, "type", "text")
	if err == nil && !slices.Contains(actionTypes, kind) {
		err = fmt.Errorf("type is not one of %s", strings.Join(actionTypes, ", "))
	}
	condition, err2 := sentence(found[0], "condition")
	message, err3 := sentence(action, "message")
	if err := cmp.Or(err, err2, err3); err != nil {
		return nil, err
	}
	return &Extraction{Condition: condition, ActionType: kind, Message: message}, nil
}

// one returns the value of a field that is there once and of the right type.
func one[T any](o object, name, kind string) (value T, err error) {
	if len(o[name]) == 1 {
		if value, ok := o[name][0].(T); ok {
			return value, nil
		}
	}
	return value, fmt.Errorf("%s is not one %s", name, kind)
}

// sentence returns a text of the right length that can stand in a prompt as it is.
func sentence(o object, name string) (string, error) {
	s, err := one[string](o, name, "text")
	if err != nil {
		return "", err
	}
	words := strings.Fields(s)
	if len(words) < minWords || len(words) > maxWords {
		return "", fmt.Errorf("%s has %d words, must have %d to %d",
			name, len(words), minWords, maxWords)
	}
	s = strings.Join(words, " ")
	if err := prompt.Check(s); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}
