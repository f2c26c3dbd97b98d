package mcp

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/loop"
)

// add adds a tool whose errors are told in the tool's own words.
func add[In, Out any](s *server, to *sdk.Server, tool *sdk.Tool, do func(context.Context, *speaker, *In) (Out, error)) {
	sdk.AddTool(to, tool, func(ctx context.Context, req *sdk.CallToolRequest, in In) (*sdk.CallToolResult, Out, error) {
		who := s.speaker(req.Session, req.Extra)
		out, err := do(ctx, &who, &in)
		return nil, out, told(err)
	})
}

// writes annotates a tool that adds to what heed knows, and asks nobody but heed.
func writes(name, title, description string) *sdk.Tool {
	no := false
	return &sdk.Tool{Name: name, Description: description, Annotations: &sdk.ToolAnnotations{Title: title, DestructiveHint: &no, OpenWorldHint: &no}}
}

// reads annotates a tool that changes nothing.
func reads(name, title, description string) *sdk.Tool {
	tool := writes(name, title, description)
	tool.Annotations.ReadOnlyHint, tool.Annotations.IdempotentHint = true, true
	return tool
}

func (s *server) addTools(to *sdk.Server) {
	add(s, to, writes("prepare", "Prepare an answer",
		"Call this first, with each message of the user. It gives either the answer, or what to tell the model."), s.prepare)
	add(s, to, writes("answered", "Tell the answer",
		"Call this once with the answer that you give the user after prepare, or with the error why there is none."), s.answered)
	add(s, to, writes("tool_result", "Tell what a tool gave",
		"Call this with each result of another tool, while you answer. Set before to ask first whether a rule is against the call."), s.toolResult)
	add(s, to, writes("outcome", "Tell what came of an answer",
		"Call this when it turns out whether an answer worked: tests that passed, a ticket that was closed. A later outcome replaces it."), s.outcome)
	add(s, to, writes("react", "Tell how the user liked an answer",
		"Call this when the user has praised or rejected an answer. Never call it with an opinion of your own."), s.react)
	add(s, to, writes("undo", "Take an answer back", "Call this when the user takes an answer back."), s.undo)
	add(s, to, writes("correct", "Tell what was wrong with an answer",
		"Call this when the user said what was wrong with an answer. Corrections that say the same become a proposal for a rule."), s.correct)
	add(s, to, writes("propose", "Propose a rule",
		"Proposes a rule for all future answers, in the name of the user. Other people decide about it: see review."), s.propose)
	add(s, to, reads("explain", "Explain an answer", "Says why an answer was given, and what became of it."), s.explain)
}

type prepareIn struct {
	Text         string `json:"text" jsonschema:"the message of the user, in the user's own words"`
	Message      string `json:"message,omitempty" jsonschema:"the id that the client has for the message. The same message again gets the same answer. Leave it out if you do not know one"`
	Conversation string `json:"conversation,omitempty" jsonschema:"the id that the client has for the conversation"`
	Domain       string `json:"domain,omitempty" jsonschema:"what the message is about, such as billing"`
	Task         string `json:"task,omitempty" jsonschema:"the id of the task that the answer plans or carries out"`
	Item         string `json:"item,omitempty" jsonschema:"the thing that the message is about, such as a customer or a repository"`
	Context      string `json:"context,omitempty" jsonschema:"the kind of situation, such as interactive or batch"`
	AskModel     bool   `json:"ask_model,omitempty" jsonschema:"has the model answer, and no heuristic, as where the answer must have a form"`
}

type prepareOut struct {
	ID      string   `json:"id" jsonschema:"of the answer. All other tools want it"`
	Ready   bool     `json:"ready" jsonschema:"text is the answer. Ask no model, and do not call answered"`
	Text    string   `json:"text,omitempty" jsonschema:"the answer, if ready"`
	System  string   `json:"system,omitempty" jsonschema:"what to add to the system prompt"`
	Prompt  string   `json:"prompt,omitempty" jsonschema:"what to ask the model in place of the message"`
	Arm     string   `json:"arm,omitempty" jsonschema:"the way of answering that was chosen"`
	Model   string   `json:"model,omitempty" jsonschema:"the model that the arm wants"`
	Tools   []string `json:"tools,omitempty" jsonschema:"the tools that the arm allows. Without the field, all"`
	Undone  []string `json:"undone,omitempty" jsonschema:"the answers that the message took back"`
	Command bool     `json:"command,omitempty" jsonschema:"the message is a command to take an answer back. Without undone, there was nothing to take back"`
	Broken  []broken `json:"violations,omitempty" jsonschema:"the rules that the answer breaks"`
}

func (s *server) prepare(ctx context.Context, who *speaker, in *prepareIn) (prepareOut, error) {
	if in.Text == "" {
		return prepareOut{}, fault("text", "must not be empty")
	}
	conversation := who.conversation(in.Conversation)
	plan, err := s.agent.Prepare(ctx, loop.Event{
		ID: who.message(in.Message, conversation), Text: in.Text, Session: conversation, Person: who.person,
		Domain: in.Domain, Task: in.Task, Item: in.Item, Context: in.Context, AskModel: in.AskModel,
	})
	if err != nil {
		return prepareOut{}, err
	}
	out := prepareOut{ID: plan.Event.ID, Ready: plan.Ready, Undone: plan.Undone, Command: plan.Command, Broken: brokenBy(plan.Violations)}
	if plan.Ready {
		out.Text = plan.Text
		return out, nil
	}
	s.plans.Put(who.person, plan)
	out.System, out.Prompt, out.Arm, out.Model, out.Tools = plan.System, plan.Prompt, plan.Arm.ID, plan.Arm.ModelName, plan.Arm.Tools
	return out, nil
}

type answeredIn struct {
	ID           string  `json:"id" jsonschema:"what prepare gave"`
	Text         string  `json:"text,omitempty" jsonschema:"the whole answer"`
	Error        string  `json:"error,omitempty" jsonschema:"why there is no answer"`
	Cut          bool    `json:"cut,omitempty" jsonschema:"text ends too early, as at the most tokens"`
	Model        string  `json:"model,omitempty" jsonschema:"the name of the model"`
	InputTokens  int     `json:"input_tokens,omitempty"`
	OutputTokens int     `json:"output_tokens,omitempty"`
	Latency      float64 `json:"latency_ms,omitempty" jsonschema:"how long the model took, in milliseconds"`
}

type answeredOut struct {
	ID     string   `json:"id"`
	Text   string   `json:"text,omitempty" jsonschema:"the answer as it is kept: without the model's thoughts. Show this one"`
	Kept   bool     `json:"kept" jsonschema:"reactions and outcomes can be told of it"`
	Reason string   `json:"reason,omitempty" jsonschema:"why it is not kept"`
	Broken []broken `json:"violations,omitempty" jsonschema:"the rules that the answer breaks"`
}

func (s *server) answered(ctx context.Context, who *speaker, in *answeredIn) (answeredOut, error) {
	latency, err := millis("latency_ms", in.Latency)
	if err != nil {
		return answeredOut{}, err
	}
	if in.InputTokens < 0 {
		return answeredOut{}, fault("input_tokens", "must not be negative")
	}
	if in.OutputTokens < 0 {
		return answeredOut{}, fault("output_tokens", "must not be negative")
	}
	plan, ok := s.plans.Get(who.person, in.ID)
	if !ok {
		return answeredOut{}, fault("id", "prepare has not given it to this person, or too long ago, or the answer was ready")
	}
	reply := loop.Reply{
		Text: in.Text, Model: in.Model, Cut: in.Cut, InputTokens: in.InputTokens, OutputTokens: in.OutputTokens, Latency: latency,
	}
	if in.Error != "" {
		reply.Err = errors.New(in.Error)
	}
	answer, err := s.agent.Answered(ctx, plan, reply)
	if err != nil {
		return answeredOut{}, err
	}
	out := answeredOut{ID: answer.ID, Text: answer.Text, Kept: answer.Text != "", Broken: brokenBy(answer.Violations)}
	if !out.Kept {
		out.Reason = string(answer.Result.Reason)
	}
	return out, nil
}

type toolIn struct {
	ID     string `json:"id" jsonschema:"what prepare gave"`
	Name   string `json:"name" jsonschema:"of the tool"`
	Call   string `json:"call,omitempty" jsonschema:"the id of the call. A result that is told again under one id counts once"`
	Before bool   `json:"before,omitempty" jsonschema:"the tool was not called yet: ask the rules"`
	Input  string `json:"input,omitempty" jsonschema:"the arguments of the call, as text"`
	Text   string `json:"text,omitempty" jsonschema:"what the tool gave"`
	Error  string `json:"error,omitempty" jsonschema:"why the tool failed"`
}

type toolOut struct {
	Broken []broken `json:"violations,omitempty" jsonschema:"the rules that the call breaks. Do not call the tool then"`
}

func (s *server) toolResult(ctx context.Context, who *speaker, in *toolIn) (toolOut, error) {
	r := loop.ToolResult{ID: in.Call, Name: in.Name, Before: in.Before, Input: in.Input, Text: in.Text}
	if in.Error != "" {
		r.Err = errors.New(in.Error)
	}
	if plan, ok := s.plans.Get(who.person, in.ID); ok {
		r.Task = plan.Event.Task
	}
	found, err := s.agent.Tool(ctx, in.ID, r)
	return toolOut{brokenBy(found)}, err
}

type outcomeIn struct {
	ID       string   `json:"id" jsonschema:"of the answer"`
	Success  *bool    `json:"success,omitempty" jsonschema:"whether it worked. Needed without reward and withdraw"`
	Reward   *float64 `json:"reward,omitempty" jsonschema:"how good it was, from -1 to 1. Without it, 1 for a success and -1 for a failure"`
	Withdraw bool     `json:"withdraw,omitempty" jsonschema:"takes back what was told before, in place of success and reward"`
	Errors   int      `json:"errors,omitempty" jsonschema:"how many errors there were"`
	Retries  int      `json:"retries,omitempty" jsonschema:"how many retries it took"`
	Duration float64  `json:"duration_ms,omitempty" jsonschema:"how long it took, in milliseconds"`
	Failure  string   `json:"failure,omitempty" jsonschema:"in a word, how it failed"`
	Cost     float64  `json:"cost,omitempty" jsonschema:"what it cost"`
}

// done is the result of a tool that has nothing to tell.
type done struct {
	ID   string `json:"id"`
	Done bool   `json:"done"`
}

func (s *server) outcome(ctx context.Context, who *speaker, in *outcomeIn) (done, error) {
	took, err := millis("duration_ms", in.Duration)
	if err == nil {
		err = s.agent.Outcome(ctx, in.ID, loop.Outcome{
			Success: in.Success, Reward: in.Reward, Withdraw: in.Withdraw, Errors: in.Errors, Retries: in.Retries, Duration: took, Failure: in.Failure, Cost: in.Cost,
			Source: who.person,
		})
	}
	return done{in.ID, err == nil}, err
}

type reactIn struct {
	ID    string  `json:"id" jsonschema:"of the answer"`
	Value float64 `json:"value" jsonschema:"how the user liked it: from -1 to 1. 0 withdraws what was told before"`
}

func (s *server) react(ctx context.Context, who *speaker, in *reactIn) (done, error) {
	err := s.agent.React(ctx, in.ID, loop.Reaction{Person: who.person, Value: in.Value})
	return done{in.ID, err == nil}, err
}

type undoIn struct {
	ID string `json:"id" jsonschema:"of the answer"`
}

func (s *server) undo(ctx context.Context, who *speaker, in *undoIn) (done, error) {
	err := s.agent.Undo(ctx, in.ID, who.person)
	return done{in.ID, err == nil}, err
}

type correctIn struct {
	ID       string   `json:"id" jsonschema:"of the answer"`
	Text     string   `json:"text" jsonschema:"in a sentence, what was wrong, as the user has said it"`
	Comment  string   `json:"comment,omitempty" jsonschema:"what else the user said of it"`
	Severity string   `json:"severity,omitempty" jsonschema:"low, medium, high or critical. By default medium"`
	Tags     []string `json:"tags,omitempty" jsonschema:"such as quality, completeness, scope or style"`
}

type correctOut struct {
	Correction string `json:"correction" jsonschema:"its id"`
	Class      string `json:"classification" jsonschema:"what was made of it"`
	Proposal   string `json:"proposal,omitempty" jsonschema:"the id of the proposal that it speaks for"`
}

func (s *server) correct(ctx context.Context, who *speaker, in *correctIn) (correctOut, error) {
	if err := who.named(); err != nil {
		return correctOut{}, err
	}
	if in.Text == "" {
		return correctOut{}, fault("text", "must not be empty")
	}
	made, err := s.agent.Correct(ctx, in.ID, loop.Correction{
		Reviewer: who.person, Text: in.Text, Comment: in.Comment, Severity: in.Severity, Tags: in.Tags,
	})
	return correctOut{made.ID, string(made.Class), made.Proposal}, err
}

type proposeIn struct {
	Text   string `json:"text" jsonschema:"the rule: one line of at most 500 characters"`
	Reason string `json:"reason" jsonschema:"why there should be such a rule"`
	Type   string `json:"type,omitempty" jsonschema:"GUIDELINE, CONSTRAINT, POSITIVE_EXAMPLE or NEGATIVE_EXAMPLE. By default GUIDELINE"`
}

type proposeOut struct {
	Proposal  string     `json:"proposal" jsonschema:"its id"`
	Status    string     `json:"status"`
	Conflicts []conflict `json:"conflicts,omitempty" jsonschema:"rules and proposals that it conflicts with"`
}

type conflict struct {
	Kind string `json:"kind"`
	ID   string `json:"id"`
	Why  string `json:"why"`
}

func (s *server) propose(ctx context.Context, who *speaker, in *proposeIn) (proposeOut, error) {
	if err := who.named(); err != nil {
		return proposeOut{}, err
	}
	rules, err := s.rules()
	if err != nil {
		return proposeOut{}, err
	}
	p, err := rules.Propose(ctx, feedback.Submission{
		Draft: feedback.Draft{Type: feedback.RuleType(in.Type), Text: in.Text, Agents: []string{s.agent.Name()}},
		Actor: who.person, Reason: in.Reason,
	})
	out := proposeOut{Proposal: p.ID, Status: string(p.Status)}
	for _, c := range p.Conflicts {
		out.Conflicts = append(out.Conflicts, conflict{c.Kind, c.ID, c.Explanation})
	}
	return out, err
}

type explainIn struct {
	ID string `json:"id" jsonschema:"of the answer"`
}

type explainOut struct {
	ID          string  `json:"id"`
	Path        string  `json:"path" jsonschema:"how it was answered"`
	Known       bool    `json:"known" jsonschema:"something is known of what became of it"`
	Worth       float64 `json:"worth" jsonschema:"what became of it, from -1 to 1"`
	Explanation string  `json:"explanation" jsonschema:"a tree of statements, each with what it rests on"`
}

func (s *server) explain(ctx context.Context, _ *speaker, in *explainIn) (explainOut, error) {
	account, err := s.agent.Explain(ctx, in.ID)
	if err != nil {
		return explainOut{}, err
	}
	return explainOut{in.ID, string(account.Path), account.Known, account.Worth, account.String()}, nil
}

// broken is a rule that is broken.
type broken struct {
	Rule      string `json:"rule" jsonschema:"its id"`
	Text      string `json:"text"`
	Reason    string `json:"reason"`
	Unchecked bool   `json:"unchecked,omitempty" jsonschema:"it is not known whether the rule is broken"`
}

func brokenBy(violations []feedback.Violation) (all []broken) {
	for _, v := range violations {
		all = append(all, broken{v.Rule, v.Text, v.Reason, v.Unchecked})
	}
	return slices.Clip(all)
}

// millis makes a duration of milliseconds.
func millis(field string, ms float64) (time.Duration, error) {
	const most = 1e12 // some 30 years
	if !(ms >= 0 && ms <= most) {
		return 0, fault(field, "must be in [0, 1e12]")
	}
	return time.Duration(math.Round(ms * float64(time.Millisecond))), nil
}

// rules returns the agent's rules, or an error if it has none.
func (s *server) rules() (*feedback.Rules, error) {
	if s.agent.Feedback() == nil {
		return nil, errors.New("this agent does not do that: it is without feedback")
	}
	return s.agent.Feedback().Rules(), nil
}
