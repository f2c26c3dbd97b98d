package decision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/valid"
	"github.com/heedhq/heed/internal/watch"
	"github.com/heedhq/heed/prompt"
	"github.com/heedhq/heed/store"
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

// ExtractorConfig configures an [Extractor].
type ExtractorConfig struct {
	// LLM writes the heuristics. It must be set.
	LLM LLM
	// Store has the traces of the strategies. It must be set.
	Store store.Store
	// Nearest returns the heuristic that is most like one with this condition and message, of
	// whatever confidence, and their similarity in [0, 1]. An empty id means that no heuristic is
	// similar. A heuristic with the same condition and contrary advice must not count as similar,
	// because it would earn the praise of its opposite. Nearest must be safe for concurrent use. nil:
	// no heuristic is a duplicate. Set it, or praise for similar answers makes several heuristics.
	Nearest func(ctx context.Context, condition, message string) (heuristicID string,
		similarity float64, err error)
	// Now is the clock for the times that Observer receives. nil means time.Now.
	Now func() time.Time
	// Observer is called for each failure of the model ([heed.Failed]), which the extraction returns
	// as a refusal. nil switches it off.
	Observer heed.Observer
}

func (c ExtractorConfig) withDefaults() ExtractorConfig {
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default clock
	}
	return c
}

func (c *ExtractorConfig) validate() error {
	var found valid.Faults
	found.Check(c.LLM != nil, "LLM", nil, "must be set")
	found.Check(c.Store != nil, "Store", nil, "must be set")
	return found.Err()
}

// An Extractor makes heuristics of answers that were praised. It reads an answer by its trace. An
// Extractor is safe for concurrent use by multiple goroutines.
type Extractor struct {
	cfg    ExtractorConfig
	models *host.Gate
	watch  *watch.Watch
}

// extractions is how many calls of the model an extractor makes at a time. No person waits for
// them.
const extractions = 4

// NewExtractor returns an extractor, or all faults of its configuration, joined; each is a
// [*heed.ConfigError].
func NewExtractor(ctx context.Context, cfg ExtractorConfig) (*Extractor, error) {
	cfg = cfg.withDefaults()
	err := cfg.validate()
	if err == nil {
		err = declare(ctx, cfg.Store)
	}
	if err != nil {
		return nil, fmt.Errorf("decision: %w", err)
	}
	observed := watch.New(cfg.Observer, "decision/extractor", cfg.Now)
	return &Extractor{cfg, host.NewGate(extractions), observed}, nil
}

// An Extraction is the outcome of an attempt to make a heuristic. One of New, ReinforcedID and
// Refused is set.
type Extraction struct {
	// New is a heuristic to store, or nil.
	New *Extracted
	// ReinforcedID is the existing heuristic with the same advice, and Similarity how alike the two
	// are. Give it the praise too, unless it had the credit of the answer.
	ReinforcedID string
	Similarity   float64
	// Refused is the reason why there is neither.
	Refused string
}

// Extracted is a heuristic that a model wrote.
type Extracted struct {
	Name       string // from the condition
	Condition  string
	ActionType string
	Message    string
	Confidence float64 // 0.3, whatever the model thinks of it
	ResponseID string  // the answer that was praised
	Source     string  // of the event
	Domain     string
}

// Extract asks the model for the heuristic behind an answer, and checks it against the limits of
// the quality gate: 10 to 50 words in the condition and in the message, and a type of suggest,
// remind or warn. A heuristic whose similarity to one of the host's is at least 0.75 is that one. A
// failing model is a refusal and no error. Extract asks again when it is called again for the same
// answer; the host recognises the repetition by [Extracted].ResponseID. An answer without a trace
// is [heed.ErrNotFound].
func (e *Extractor) Extract(ctx context.Context, responseID string) (Extraction, error) {
	kept, err := getTrace(ctx, e.cfg.Store, responseID)
	t := kept.Value
	if err != nil {
		return Extraction{}, fmt.Errorf("decision: extract: %w", err)
	}
	if t.Cut {
		return Extraction{Refused: errCut.Error()}, nil
	}
	x, err := e.write(ctx, &t)
	if err != nil {
		e.watch.Failed(ctx, "model", err)
		return Extraction{Refused: err.Error()}, nil
	}
	same, err := e.nearest(ctx, x)
	switch {
	case err != nil:
		return Extraction{}, fmt.Errorf("decision: extract: nearest: %w", err)
	case same.ReinforcedID != "" && same.Similarity >= duplicate:
		return same, nil
	default:
		return Extraction{New: x}, nil
	}
}

// nearest asks the host for the heuristic that is most like a new one.
func (e *Extractor) nearest(ctx context.Context, written *Extracted) (Extraction, error) {
	if e.cfg.Nearest == nil {
		return Extraction{}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	return host.Pass(ctx, e.models, "Nearest", func(ctx context.Context) (x Extraction, err error) {
		x.ReinforcedID, x.Similarity, err = e.cfg.Nearest(ctx, written.Condition, written.Message)
		return x, err
	})
}

// write has the model write a heuristic.
func (e *Extractor) write(ctx context.Context, t *Trace) (*Extracted, error) {
	ctx, cancel := context.WithTimeout(ctx, defaultTimeout)
	defer cancel()
	request := LLMRequest{
		Prompt: fill(extraction, t.Text, t.Response, 2*prompt.DefaultMax),
		JSON:   true, MaxTokens: defaultTokens,
	}
	reply, err := host.Pass(ctx, e.models, "the model",
		func(ctx context.Context) (LLMResponse, error) { return e.cfg.LLM.Generate(ctx, request) })
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
func parse(reply string) (*Extracted, error) {
	found, malformed := findObjects(reply, "condition", "action")
	if malformed || len(found) != 1 || found[0].partial {
		return nil, errors.New("the reply does not have one object with a condition and an action")
	}
	action, n := found[0].field("action")
	if n != 1 || action.kind != objectKind {
		return nil, errors.New("action is no object")
	}
	kind, err := text(action.object, "type")
	if err == nil && !slices.Contains(actionTypes, kind) {
		err = fmt.Errorf("type is not one of %s", strings.Join(actionTypes, ", "))
	}
	condition, err2 := sentence(found[0], "condition")
	message, err3 := sentence(action.object, "message")
	if err := cmp.Or(err, err2, err3); err != nil {
		return nil, err
	}
	return &Extracted{Condition: condition, ActionType: kind, Message: message}, nil
}

func text(o *object, name string) (string, error) {
	f, n := o.field(name)
	if n != 1 || f.kind != textKind {
		return "", fmt.Errorf("%s is not one text", name)
	}
	return f.text, nil
}

// sentence returns a text of the right length that can stand in a prompt as it is.
func sentence(o *object, name string) (string, error) {
	s, err := text(o, name)
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
