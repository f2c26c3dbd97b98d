package decision

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/heedhq/heed/prompt"
)

// An Ask is the question to put to a model: the prompt, and which heuristics it shows. It is plain
// data. A host may change System, Prompt, MaxTokens and Temperature before [Decider.Reply].
type Ask struct {
	System, Prompt string
	MaxTokens      int      // bounds the answer; 0 means [Config].MaxTokens
	Temperature    *float64 // how freely the model draws; nil leaves it to the model
	// Shown are the heuristics in the prompt, in the prompt's order.
	Shown []string
	// Withheld are the candidates that the prompt does not show, and that Reply compares with the
	// answer: see [Config].Withhold.
	Withheld []string
	// LeftOut are the heuristics of Shown whose condition or action is cut, because it is too long.
	LeftOut []string
}

// Ask returns what to ask a model about an event, whether a heuristic would answer or not. It calls
// no code of the host, and the same request always gives the same Ask. An invalid request is a
// [*heed.InputError].
func (d *Decider) Ask(r Request) (Ask, error) {
	if err := r.prepare(); err != nil {
		return Ask{}, fmt.Errorf("decision: ask: %w", err)
	}
	return d.ask(&r), nil
}

func (d *Decider) ask(r *Request) Ask {
	shown, withheld := d.shown(r)
	a := Ask{
		System: d.cfg.system(r, d.cfg.goals(r)), Prompt: d.cfg.ask(r, shown),
		MaxTokens: d.cfg.MaxTokens,
		Shown:     idsOf(shown), Withheld: idsOf(withheld),
	}
	for i := range shown {
		if d.cfg.cuts(&shown[i]) {
			a.LeftOut = append(a.LeftOut, shown[i].HeuristicID)
		}
	}
	return a
}

// shown returns the candidates that the prompt shows, in random order, and the candidates that the
// model's answer may be compared with, because the prompt does not show them.
func (d *Decider) shown(r *Request) (shown, withheld []Candidate) {
	most, share := d.cfg.tuning.MaxCandidates, *d.cfg.Withhold
	if r.ShowNone {
		most = 0
	} else if r.AskModel {
		share = 0
	}
	shown = slices.Clone(r.Candidates)
	if share > 0 {
		bar := d.cfg.threshold(r)
		rng := d.rng(r, forWithholding)
		hide := rng.Float64() < share
		shown = shown[:0]
		for _, c := range r.Candidates {
			switch trusted := c.Confidence >= bar; {
			case !trusted && (hide || len(shown) == most):
				withheld = append(withheld, c)
			case len(shown) < most:
				shown = append(shown, c)
			}
		}
	}
	shown = shown[:min(len(shown), most)]
	rng := d.rng(r, forOrder)
	rand.New(&rng).Shuffle(len(shown), func(i, j int) { shown[i], shown[j] = shown[j], shown[i] })
	return shown, withheld
}

func idsOf(candidates []Candidate) (ids []string) {
	for i := range candidates {
		ids = append(ids, candidates[i].HeuristicID)
	}
	return ids
}

// named returns the candidates of these ids, in the order of the ids.
func (r *Request) named(ids []string) (candidates []Candidate) {
	for _, id := range ids {
		if i := indexOf(r.Candidates, id); i >= 0 {
			candidates = append(candidates, r.Candidates[i])
		}
	}
	return candidates
}

func indexOf(candidates []Candidate, id string) int {
	return slices.IndexFunc(candidates, func(c Candidate) bool { return c.HeuristicID == id })
}

// cuts reports whether a prompt that shows a candidate has no room for all of its texts.
func (c *Config) cuts(shown *Candidate) bool {
	quoteCut := func(s string) bool {
		return len(s) > prompt.DefaultMax && prompt.Quote(s, 0) != prompt.Quote(s, len(s))
	}
	if !shown.Code {
		return quoteCut(shown.Condition) || quoteCut(shown.Action)
	}
	action, most := shown.Action, c.mostText()
	return quoteCut(shown.Condition) ||
		len(action) > most && prompt.Code(action, most) != prompt.Code(action, len(action))
}
