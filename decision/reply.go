package decision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/heedhq/heed/internal/host"
	"github.com/heedhq/heed/internal/thoughts"
)

// Reply puts an [Ask] to a model and makes a [Result] of the answer. It also asks for a prediction
// ([Config].Prediction) and compares the answer with the candidates that the prompt withheld. For
// an answer that is already there, pass an [LLMFunc] that returns it.
//
// The request must be the one that the Ask was made of. Reply does not write to the store or call
// the observer: see [Decider.TraceIn] and [Decider.Notify]. If model is nil, or the request can
// wait, the path is [Rejected]. A failing model is no error. An invalid request is a
// [*heed.InputError].
func (d *Decider) Reply(ctx context.Context, r Request, ask Ask, model LLM) (Result, error) {
	if err := ctx.Err(); err != nil {
		return Result{}, err
	}
	if err := r.prepare(); err != nil {
		return Result{}, fmt.Errorf("decision: reply: %w", err)
	}
	if res := d.begin(&r); res.rejects(&r, model) {
		return res, nil
	}
	return d.reply(ctx, &r, &ask, model), nil
}

// rejects makes the result a rejection if no model is to be asked.
func (res *Result) rejects(r *Request, model LLM) bool {
	switch {
	case model == nil:
		res.Path, res.Reason = Rejected, noModel
	case r.CanWait:
		res.Path, res.Reason = Rejected, notImmediate
	default:
		return false
	}
	return true
}

func (d *Decider) reply(ctx context.Context, r *Request, ask *Ask, model LLM) Result {
	res := d.begin(r)
	res.System, res.Prompt, res.ShownIDs = ask.System, ask.Prompt, slices.Clone(ask.Shown)
	left := d.cfg.Timeout
	reply, err := d.generate(ctx, model, &left, &res, LLMRequest{
		System: ask.System, Prompt: ask.Prompt,
		MaxTokens: cmp.Or(ask.MaxTokens, d.cfg.MaxTokens), Temperature: ask.Temperature,
	})
	res.Text, res.Thoughts = strings.TrimSpace(reply.Text), reply.Thoughts
	if err != nil || res.Text == "" {
		if res.Path = Fallback; res.Calls == 0 {
			res.Path = Rejected
		}
		res.Text, res.Reason, res.Err = "", reasonOf(ctx, err), err
		res.fail(modelFailed, cmp.Or(err, errNoResponse))
		return res
	}
	res.Path, res.LLM, res.Cut = Model, reply.Model, reply.Cut
	if len(r.Candidates) > 0 {
		res.MatchedID = r.Candidates[0].HeuristicID
	}
	if d.cfg.Prediction {
		d.predict(ctx, r, model, &left, &res)
	}
	if !res.Cut { // a part of an answer may mean something else than the whole
		d.compare(ctx, r, r.named(ask.Shown), r.named(ask.Withheld), &res)
	}
	return res
}

// generate calls a model, and takes its thoughts out of the text. The call has the time that is
// left, and takes what it needs of that. Waiting for a place does not use up that time.
func (d *Decider) generate(
	ctx context.Context, model LLM, left *time.Duration, res *Result, r LLMRequest,
) (LLMResponse, error) {
	if err := d.enter(ctx); err != nil {
		return LLMResponse{}, err
	}
	limited, cancel := context.WithTimeout(ctx, *left)
	defer cancel()
	var called atomic.Bool
	call := func(ctx context.Context) (LLMResponse, error) {
		called.Store(true)
		return model.Generate(ctx, r)
	}
	began := time.Now() //nolint:forbidigo // the time is real, like a context's deadline
	reply, err := host.Entered(limited, d.models, "the model", call)
	*left -= time.Since(began) //nolint:forbidigo // real time again
	if called.Load() {
		res.Calls++
	}
	res.InputTokens += max(reply.InputTokens, 0)
	res.OutputTokens += max(reply.OutputTokens, 0)
	return withoutThoughts(reply), cmp.Or(err, wholeReply(r, reply))
}

// enter waits for a place of the models.
func (d *Decider) enter(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	err := d.models.Enter(waiting)
	if errors.Is(err, host.ErrBusy) || errors.Is(err, host.ErrWaited) {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return err
}

// withoutThoughts takes the thoughts out of a reply's text, and what is no text.
func withoutThoughts(reply LLMResponse) LLMResponse {
	text, inside := thoughts.Answer(reply.Text)
	reply.Text, reply.Thoughts = text, strings.TrimSpace(reply.Thoughts+"\n\n"+inside)
	return reply
}

var (
	errNoResponse = errors.New("the answer was empty")
	errCut        = errors.New("the answer was cut off")
)

// wholeReply returns an error if JSON was asked for and ends too early.
func wholeReply(r LLMRequest, reply LLMResponse) error {
	if r.JSON && reply.Cut {
		return errCut
	}
	return nil
}

// reasonOf returns why there is no answer. ctx is the caller's.
func reasonOf(ctx context.Context, err error) string {
	switch {
	case err == nil:
		return noResponse
	case errors.Is(err, context.Canceled) && errors.Is(ctx.Err(), context.Canceled):
		return stopped
	case errors.Is(err, ErrBusy):
		return busy
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return timedOut
	default:
		return modelError
	}
}

// predict asks the model how probable it is that its answer succeeds. A failure costs only the
// prediction.
func (d *Decider) predict(
	ctx context.Context, r *Request, model LLM, left *time.Duration, res *Result,
) {
	reply, err := d.generate(ctx, model, left, res, LLMRequest{
		Prompt: d.cfg.predict(r.Text, res.Text, d.cfg.goals(r)), JSON: true,
		MaxTokens: d.cfg.MaxTokens,
	})
	p := Prediction{unknown, unknown}
	if err == nil {
		p, err = parsePrediction(reply.Text)
	} else {
		res.Err = err
	}
	if err != nil {
		res.PredictionFault = strings.ReplaceAll(err.Error(), "\n", ", ")
		res.fail("prediction", err)
	}
	res.Prediction = &Prediction{min(p.Success, ceiling), min(p.Confidence, ceiling)}
}
