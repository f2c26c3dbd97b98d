package scorecard

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/lab/internal/card"
	"github.com/heedhq/heed/sqlstore"
	"github.com/heedhq/heed/store"
)

const aloneBar = "active rules without their quorum"

// gate is the approval gate of one proposal, in its right state: a status, and who approved.
var gate = porcupine.Model{
	Init: func() any { return string(feedback.StatePending) },
	Step: func(state, input, output any) (bool, any) {
		status, rest, _ := strings.Cut(state.(string), " ")
		people := strings.Fields(rest)
		in, out := input.(move), output.(told)
		if status != string(feedback.StatePending) {
			// A repeated approval or rejection gets the same answer.
			same := map[string]string{"approve": string(feedback.StateApproved),
				"reject": string(feedback.StateRejected)}[in.Verb] == status
			same = same && slices.Contains(people, in.Actor)
			return out.Open || out.Refused != same && out.Status == status, state
		}
		switch in.Verb {
		case "reject":
			status, people = string(feedback.StateRejected), []string{in.Actor}
		case "edit":
			status, people = string(feedback.StateSuperseded), nil
		case "approve":
			if !slices.Contains(people, in.Actor) {
				people = append(people, in.Actor)
				slices.Sort(people)
			}
			if len(people) >= 2 {
				status = string(feedback.StateApproved)
			}
		}
		return out.Open || !out.Refused && out.Status == status,
			strings.Join(append([]string{status}, people...), " ")
	},
	Equal: func(a, b any) bool { return a == b },
}

func approvalsLine(engine string) card.Line {
	run := func(h habit, short, long int) card.Attempt {
		return on(engine, func(ctx context.Context, s card.Settings, p place) (card.Result, error) {
			return approvals(ctx, s, p, h, card.Pick(s, short, long))
		})
	}
	return card.Line{
		Name: "S5 approvals, " + engine,
		Promise: "Several processes decide about proposals at once. Each rule has its quorum, and " +
			"each proposal one end, also when processes are killed.",
		Attack: "Three processes approve, reject and edit the same proposals, twelve calls at a " +
			"time, and are killed now and then. Porcupine must find an order " +
			"that the gate allows, and each active rule must have two approvers of its very text.",
		Bars:  card.None(illegalBar, aloneBar),
		Short: card.Form{Work: 600, Faults: 1, Budget: 3 * time.Minute},
		Long:  card.Form{Work: 5000, Faults: 8, Budget: 40 * time.Minute},
		Run:   run(sound, 800, 6000),
		Controls: []card.Control{
			{Name: string(remember), Misses: []string{illegalBar}, Run: run(remember, 600, 600)},
			{Name: string(lonely), Misses: []string{aloneBar}, Run: run(lonely, 60, 60)},
		},
	}
}

var openGate = feedback.Gate{PerProposer: 1 << 30, Pending: 1 << 30}

// approvals has processes decide about proposals, ten moves for each.
func approvals(ctx context.Context, s card.Settings, p place, h habit,
	moves int) (result card.Result, err error) {
	st, handle, err := p.store(ctx, sqlstore.Config{NoCache: true})
	if err != nil {
		return result, err
	}
	defer handle.Close() //nolint:errcheck // it is removed
	rules, err := proposed(ctx, st, moves)
	if err != nil {
		return result, err
	}
	r := race{place: p, job: "decide", habit: h, model: gate, moves: moves, rng: s.Rand(1),
		next: nextDecision}
	if result, err = r.run(ctx); err != nil {
		return result, err
	}
	return result, judgeRules(ctx, &result, rules, moves, h)
}

const movesEach = 10 // about one proposal

// proposed makes a proposal for every ten moves: p0, p1 and so on.
func proposed(ctx context.Context, st store.Store, moves int) (*feedback.Rules, error) {
	n := 0
	service, err := feedback.New(ctx, feedback.Config{Store: st, Gate: openGate,
		NewID: func() string { n++; return fmt.Sprint("p", n-1) }})
	if err != nil {
		return nil, err
	}
	for i := range moves/movesEach + 1 {
		n = i
		_, err := service.Rules().Propose(ctx, feedback.Submission{
			Draft: feedback.Draft{Text: "Be brief", Agents: []string{fmt.Sprint("agent", i)}},
			Actor: "paul", Reason: "seen often",
		})
		if err != nil {
			return nil, err
		}
	}
	return service.Rules(), nil
}

func nextDecision(rng *rand.Rand, done int) move {
	verbs := []string{"approve", "approve", "approve", "approve", "reject", "edit"}
	return move{Verb: verbs[rng.IntN(len(verbs))], Key: fmt.Sprint("p", done/movesEach),
		Actor: fmt.Sprint("reviewer", rng.IntN(4))}
}

// judgeRules counts the rules that came about without their quorum.
func judgeRules(ctx context.Context, result *card.Result, rules *feedback.Rules, moves int,
	h habit) error {
	all, err := rules.List(ctx, feedback.RuleQuery{})
	if err != nil {
		return err
	}
	alone := 0
	for _, r := range all {
		people := make(map[string]bool)
		for _, a := range r.Approvals {
			people[a.Actor] = a.Hash == r.Hash() && !slices.Contains(r.Writers, a.Actor)
		}
		if len(people) < 2 || slices.Contains([]bool{people[r.Approvals[0].Actor],
			people[r.Approvals[1].Actor]}, false) {
			alone++
		}
	}
	result.Note("%d rules were made", len(all))
	result.Values[aloneBar] = float64(alone)
	if len(all) < moves/movesEach/4 && h == sound {
		return fmt.Errorf("only %d rules were made", len(all))
	}
	return nil
}

// decides are the moves of a process on proposals.
func decides(ctx context.Context, st store.Store, h habit) (func(move) (told, error), error) {
	if h == remember {
		st = unchecked{st}
	}
	cfg := feedback.Config{Store: st, Gate: openGate}
	if h == lonely {
		cfg.Gate.Quorum = 1
	}
	service, err := feedback.New(ctx, cfg)
	if err != nil {
		return nil, err
	}
	rules := service.Rules()
	return func(m move) (told, error) {
		p, err := decide(ctx, rules, m)
		if refused := (*feedback.RefusedError)(nil); errors.As(err, &refused) {
			return told{Status: refused.State, Refused: true}, nil
		}
		return told{Status: string(p.Status)}, err
	}, nil
}

func decide(ctx context.Context, rules *feedback.Rules, m move) (p feedback.Proposal, err error) {
	seen, err := rules.Proposal(ctx, m.Key)
	if err != nil {
		return p, err
	}
	if m.Verb == "edit" {
		d := seen.Draft
		d.Text = "Be terse"
		_, err = rules.Propose(ctx, feedback.Submission{Replaces: m.Key, Draft: d, Actor: m.Actor,
			Reason: "shorter"})
		return feedback.Proposal{Status: feedback.StateSuperseded}, err
	}
	decision := feedback.Approved
	if m.Verb == "reject" {
		decision = feedback.Rejected
	}
	return rules.Review(ctx, feedback.Review{
		Proposal: m.Key, Decision: decision, Actor: m.Actor, Reason: "so it is", Hash: seen.Hash(),
	})
}

// unchecked is a store that does not look whether somebody else changed what a writer read.
type unchecked struct{ store.Store }

func (u unchecked) Commit(ctx context.Context, batches ...store.Batch) ([]store.Receipt, error) {
	time.Sleep(3 * time.Millisecond) // so that others come between
	for i := range batches {
		b := &batches[i]
		b.Expect = nil
		b.Records = slices.Clone(b.Records)
		for k, r := range b.Records {
			if r.Revision == store.Once {
				continue
			}
			var s store.Snapshot
			if err := u.Read(ctx, &s, nil, []store.Ref{r.Ref}); err != nil {
				return nil, err
			}
			b.Records[k].Revision = s.Records[0].Revision
		}
	}
	return u.Store.Commit(ctx, batches...)
}
