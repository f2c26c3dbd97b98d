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
	"github.com/heedhq/heed/internal/faults"
	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/watch"
	"github.com/heedhq/heed/prompt"
	"github.com/heedhq/heed/store"
)

// initialConfidence is the confidence of a heuristic that a model wrote, whatever the model thinks
// of it.
const initialConfidence = 0.3

// ExtractorConfig configures an [Extractor].
type ExtractorConfig struct {
	// LLM writes the heuristics. It must be set.
	LLM LLM
	// Store has the traces of the strategies, with texts that are not hashed. It must be set.
	Store store.Store
	// Nearest returns the heuristic that is most like one with this condition and message, of
	// whatever confidence, and their similarity in [0, 1]. An empty id says that there is none. A
	// heuristic with the same condition and contrary advice must not count as similar, as it would
	// earn the praise of its opposite. Nearest must be safe for concurrent use. nil: nothing is a
	// duplicate.
	Nearest func(ctx context.Context, condition, message string) (heuristicID string, similarity float64, err error)
	// Duplicate is the least similarity of two heuristics that are the same, in (0, 1]. 0 means 0.75.
	Duplicate float64
	// MinWords and MaxWords bound the words of a condition, and the words of a message. 0 means 10,
	// and 50.
	MinWords, MaxWords int
	// Types are the types of action. nil means suggest, remind, warn.
	Types []string
	// Prompt asks for a heuristic within the limits above. It must have {situation} and {response},
	// which JSON strings replace. "" means a default.
	Prompt string
	// Timeout, MaxInFlight and MaxTokens are as in [Config].
	Timeout     time.Duration
	MaxInFlight int
	MaxTokens   int
	// Now is the clock of what Observer is told. nil means time.Now.
	Now func() time.Time
	// Observer is told of each failure of the model ([heed.Failed]), which the extraction tells as
	// a refusal.
	Observer heed.Observer
}

func (c ExtractorConfig) withDefaults() ExtractorConfig {
	c.Duplicate = cmp.Or(c.Duplicate, 0.75)
	c.MinWords = cmp.Or(c.MinWords, 10)
	c.MaxWords = cmp.Or(c.MaxWords, 50)
	if c.Types == nil {
		c.Types = []string{"suggest", "remind", "warn"}
	}
	c.Types = slices.Clone(c.Types)
	c.Prompt = cmp.Or(c.Prompt, fmt.Sprintf("A user was content with this response.\n\nSituation: {situation}\nResponse: {response}\n\n"+
		"Write the rule behind it, so that it can be used in similar situations: the condition under which it holds, in %[1]d to %[2]d "+
		"words, without names and numbers that matter only here, and the message to give then, in %[1]d to %[2]d words. Answer with JSON "+
		"only: {\"condition\": \"...\", \"action\": {\"type\": \"%[3]s\", \"message\": \"...\"}}",
		c.MinWords, c.MaxWords, strings.Join(c.Types, " | ")))
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.MaxInFlight = cmp.Or(c.MaxInFlight, 4)
	c.MaxTokens = cmp.Or(c.MaxTokens, 1024)
	if c.Now == nil {
		c.Now = time.Now //nolint:forbidigo // the default clock
	}
	return c
}

func (c *ExtractorConfig) validate() error {
	var found faults.List
	found.Check(c.LLM != nil, "LLM", nil, "must be set")
	found.Check(c.Store != nil, "Store", nil, "must be set")
	checkShare(&found, "Duplicate", c.Duplicate)
	found.Check(c.MinWords > 0, "MinWords", c.MinWords, "must not be negative")
	found.Check(c.MaxWords >= c.MinWords, "MaxWords", c.MaxWords, "must not be less than MinWords")
	found.Check(len(c.Types) > 0 && !slices.Contains(c.Types, ""), "Types", c.Types, "must not be empty")
	checkTemplate(&found, "Prompt", c.Prompt)
	checkCalls(&found, c.Timeout, c.MaxInFlight, c.MaxTokens)
	return found.Err()
}

// An Extractor makes heuristics of answers that were praised. It reads an answer by its trace. An
// Extractor is safe for concurrent use by multiple goroutines.
type Extractor struct {
	cfg    ExtractorConfig
	models *host.Gate
	watch  *watch.Watch
}

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
	return &Extractor{cfg, host.NewGate(cfg.MaxInFlight), watch.New(cfg.Observer, "decision/extractor", cfg.Now)}, nil
}

// An Extraction is the outcome of an attempt to make a heuristic. One of New, ReinforcedID and
// Refused is set.
type Extraction struct {
	// New is a heuristic to store, or nil.
	New *Extracted
	// ReinforcedID is the heuristic that says the same already, and Similarity how alike they are.
	// Give it the praise too, unless it had the credit of the answer.
	ReinforcedID string
	Similarity   float64
	// Refused says why there is neither.
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
// the configuration. A failing model is a refusal and no error. Extract asks again when it is
// called again for the same answer; the host can tell by [Extracted].ResponseID. An answer without
// a trace is [heed.ErrNotFound], and one with hashed texts is a [*heed.InputError].
func (e *Extractor) Extract(ctx context.Context, responseID string) (Extraction, error) {
	kept, err := getTrace(ctx, e.cfg.Store, responseID)
	t := kept.Value
	if err == nil && t.Hashed {
		err = &heed.InputError{Field: "responseID", Reason: "has a trace without texts"}
	}
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
	case same.ReinforcedID != "" && same.Similarity >= e.cfg.Duplicate:
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
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	return host.Pass(ctx, e.models, "Nearest", func(ctx context.Context) (x Extraction, err error) {
		x.ReinforcedID, x.Similarity, err = e.cfg.Nearest(ctx, written.Condition, written.Message)
		return x, err
	})
}

// write has the model write a heuristic.
func (e *Extractor) write(ctx context.Context, t *Trace) (*Extracted, error) {
	ctx, cancel := context.WithTimeout(ctx, e.cfg.Timeout)
	defer cancel()
	request := LLMRequest{Prompt: fill(e.cfg.Prompt, t.Text, t.Response, 2*prompt.DefaultMax), JSON: true, MaxTokens: e.cfg.MaxTokens}
	reply, err := host.Pass(ctx, e.models, "the model", func(ctx context.Context) (LLMResponse, error) { return e.cfg.LLM.Generate(ctx, request) })
	if err = cmp.Or(err, wholeReply(request, reply)); err != nil {
		return nil, fmt.Errorf("the model did not answer: %w", err)
	}
	x, err := e.parse(reply.Text)
	if err != nil {
		return nil, err
	}
	x.Name = "Learned: " + prompt.Line(x.Condition, 50)
	x.Confidence, x.ResponseID = initialConfidence, t.ResponseID
	x.Source, x.Domain = t.Source, t.Domain
	return x, nil
}

// parse reads a heuristic from a reply and checks its limits.
func (e *Extractor) parse(reply string) (*Extracted, error) {
	found, malformed := findObjects(reply, "condition", "action")
	if malformed || len(found) != 1 || found[0].partial {
		return nil, errors.New("the reply does not have one object with a condition and an action")
	}
	action, n := found[0].field("action")
	if n != 1 || action.kind != objectKind {
		return nil, errors.New("action is no object")
	}
	kind, err := text(action.object, "type")
	if err == nil && !slices.Contains(e.cfg.Types, kind) {
		err = fmt.Errorf("type is none of %s", strings.Join(e.cfg.Types, ", "))
	}
	condition, err2 := e.sentence(found[0], "condition")
	message, err3 := e.sentence(action.object, "message")
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
func (e *Extractor) sentence(o *object, name string) (string, error) {
	s, err := text(o, name)
	if err != nil {
		return "", err
	}
	words := strings.Fields(s)
	if len(words) < e.cfg.MinWords || len(words) > e.cfg.MaxWords {
		return "", fmt.Errorf("%s has %d words, must have %d to %d", name, len(words), e.cfg.MinWords, e.cfg.MaxWords)
	}
	s = strings.Join(words, " ")
	if err := prompt.Check(s); err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}
