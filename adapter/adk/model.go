package adk

import (
	"context"
	"iter"
	"maps"
	"slices"

	"google.golang.org/adk/v2/model"
	"google.golang.org/genai"

	"github.com/heedhq/heed/adapter/internal/turn"
)

// brief adds the plan of a turn to a request.
func brief(r *model.LLMRequest, t *turn.Turn) {
	p := &t.Plan
	config := genai.GenerateContentConfig{}
	if r.Config != nil {
		config = *r.Config
	}
	if p.System != "" {
		system := genai.Content{Role: genai.RoleUser}
		if config.SystemInstruction != nil {
			system = *config.SystemInstruction
		}
		system.Parts = append(slices.Clone(system.Parts), genai.NewPartFromText(p.System))
		config.SystemInstruction = &system
	}
	if p.Arm.Tools != nil {
		config.Tools = offered(t, config.Tools)
		tools := maps.Clone(r.Tools)
		maps.DeleteFunc(tools, func(name string, _ any) bool {
			return !slices.Contains(p.Arm.Tools, name)
		})
		r.Tools = tools
	}
	r.Config = &config
	for i, c := range slices.Backward(r.Contents) {
		if c != nil && c.Role == genai.RoleUser && textOf(c) == t.Said {
			r.Contents = slices.Clone(r.Contents) // the session's history keeps the message
			r.Contents[i] = withText(c, p.Prompt)
			return
		}
	}
}

// offered returns the tools that the arm lets the model call.
func offered(t *turn.Turn, tools []*genai.Tool) (kept []*genai.Tool) {
	for _, one := range tools {
		if one == nil || one.FunctionDeclarations == nil {
			kept = append(kept, one) // of the provider's, such as a search
			continue
		}
		some := *one
		some.FunctionDeclarations = turn.Offered(t, one.FunctionDeclarations,
			func(f *genai.FunctionDeclaration) string { return f.Name })
		if len(some.FunctionDeclarations) > 0 {
			kept = append(kept, &some)
		}
	}
	return kept
}

// withText returns a message with another text. All parts that are no text stay.
func withText(c *genai.Content, text string) *genai.Content {
	changed := &genai.Content{Role: c.Role}
	for _, part := range c.Parts {
		if part == nil || part.Thought || part.Text == "" {
			changed.Parts = append(changed.Parts, part)
			continue
		}
		if text != "" {
			other := *part
			other.Text, text = text, ""
			changed.Parts = append(changed.Parts, &other)
		}
	}
	return changed
}

// Model returns a model for an agent of ADK's. It asks the one of the models that the arm names,
// and main if the arm names no model. It takes thoughts in tags, such as <think>, out of a stream.
func (a *Adapter) Model(main model.LLM, models map[string]model.LLM) model.LLM {
	return &router{adapter: a, main: main, models: maps.Clone(models)}
}

type router struct {
	adapter *Adapter
	main    model.LLM
	models  map[string]model.LLM
}

func (r *router) Name() string { return r.main.Name() }

// choose returns the model of the arm that the run has.
func (r *router) choose(ctx context.Context) (model.LLM, error) {
	run, ok := ctx.(interface{ InvocationID() string })
	if !ok {
		return r.main, nil
	}
	t := r.adapter.turn(run.InvocationID(), "")
	if t == nil {
		return r.main, nil
	}
	t.Lock()
	defer t.Unlock()
	return turn.ModelOf(r.models, r.main, &t.Plan.Arm)
}

func (r *router) GenerateContent(ctx context.Context, request *model.LLMRequest,
	stream bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		chosen, err := r.choose(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		if chosen != r.main {
			other := *request
			other.Model = chosen.Name()
			request = &other
		}
		if !stream {
			chosen.GenerateContent(ctx, request, false)(yield)
			return
		}
		spoken(chosen.GenerateContent(ctx, request, true), yield)
	}
}

// spoken passes on what a model streams, without thoughts in tags.
func spoken(responses iter.Seq2[*model.LLMResponse, error],
	yield func(*model.LLMResponse, error) bool) {
	var speech turn.Speech
	for response, err := range responses {
		if err == nil && response != nil && response.Partial {
			response = spokenPart(response, speech.Say)
		} else if err == nil && response != nil {
			if rest := speech.Rest(); rest != "" { // it comes before the whole
				if !yield(&model.LLMResponse{Content: genai.NewContentFromText(rest, genai.RoleModel),
					Partial: true}, nil) {
					return
				}
			}
		}
		if !yield(response, err) {
			return
		}
	}
}

// spokenPart returns a piece of an answer with other texts.
func spokenPart(r *model.LLMResponse, say func(string) string) *model.LLMResponse {
	if r.Content == nil {
		return r
	}
	changed := *r
	changed.Content = &genai.Content{Role: r.Content.Role}
	for _, part := range r.Content.Parts {
		if part != nil && !part.Thought && part.Text != "" {
			other := *part
			if other.Text = say(part.Text); other.Text == "" {
				continue
			}
			part = &other
		}
		changed.Content.Parts = append(changed.Content.Parts, part)
	}
	return &changed
}

// formatted reports whether a request wants JSON or the like. ADK has some models give it by a
// tool.
func formatted(r *model.LLMRequest) bool {
	c := r.Config
	if c != nil && (c.ResponseSchema != nil || c.ResponseJsonSchema != nil ||
		c.ResponseMIMEType != "" && c.ResponseMIMEType != "text/plain") {
		return true
	}
	return r.Tools["set_model_response"] != nil || r.Tools["finish_task"] != nil
}
