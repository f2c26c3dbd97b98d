package learning

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/internal/fair"
	"github.com/heedhq/heed/store"
)

// A belief is what a heuristic's confidence is made of, apart from its evidence.
type belief struct {
	prior       evidence.Beta
	trust       *evidence.Trust
	crowd       *crowd      // nil if everybody is believed
	agreement   float64     // the greatest mass of agreement
	constraints Constraints // of all layers; the range lies within the bounds
}

// believe returns what a heuristic's confidence is made of, with the constraints of all layers.
func (m *Module) believe(a *account) belief {
	h := &a.heuristic.Value
	c := h.pin().Constraints.over(h.Constraints).over(m.cfg.Packs[h.Pack]).over(m.cfg.Packs[""])
	most := m.cfg.tuning.Bounds
	c = c.over(Constraints{Lock: unlocked, Floor: most.Floor, Ceiling: most.Ceiling,
		FeedbackWeight: 1})
	c.Floor, c.Ceiling = most.clamp(c.Floor), most.clamp(c.Ceiling)
	initial := cmp.Or(h.Initial, m.cfg.Initial)
	prior := evidence.Beta{Alpha: initial * m.cfg.tuning.Strength,
		Beta: (1 - initial) * m.cfg.tuning.Strength}
	b := belief{prior, &m.cfg.Trust, a.crowd, m.agreement.most, c}
	if m.cfg.tuning.Unlimited {
		b.crowd = nil
	}
	return b
}

// confidence reads the parts of a heuristic at a moment, and returns what limits the result.
func (b *belief) confidence(parts []evidence.Part, now evidence.Instant) (float64, []string) {
	var limits []string
	counted := b.counted(parts, now)
	mean, capped, unlike := b.mean(parts, counted)
	if limited(parts, counted, now) {
		limits = append(limits, limitPeople)
	}
	if capped {
		limits = append(limits, limitCap)
	}
	if unlike {
		limits = append(limits, limitDisagreement)
	}
	switch c := &b.constraints; {
	case mean < c.Floor:
		limits = append(limits, limitFloor)
	case mean > c.Ceiling:
		limits = append(limits, limitCeiling)
	}
	return b.constraints.bounds().clamp(mean), limits
}

// counted returns what each part counts for, with what people may state at most. Who rejects an
// answer of the model that agreed counts against the heuristic only together with others, because
// one who rejects every answer would else keep good heuristics from starting.
func (b *belief) counted(parts []evidence.Part, now evidence.Instant) []evidence.Sums {
	n := 1.
	if b.crowd != nil {
		n = b.crowd.people(now)
	}
	return fair.Counted(*b.trust, n, parts, now, func(p *evidence.Part) bool {
		return p.Cell.Name == cellAgreed
	})
}

// mean adds up what the parts of a heuristic count for. Agreement and disagreement have a limit on
// both together, which leaves their mean as it is. Disagreement takes back at most what agreement
// gave, because a model that never agrees may only use other words. The mean rises with what speaks
// for the heuristic and falls with what speaks against it, whatever else is there. A limit on
// disagreement that grows with agreement would not do: a person who rejects an agreement would
// lower the limit, and so might raise the mean.
func (b *belief) mean(
	parts []evidence.Part, counted []evidence.Sums,
) (mean float64, capped, unlike bool) {
	var own, silence, agreed, both evidence.Sums
	for i := range parts {
		switch p := &parts[i]; {
		case p.Cell.Name == cellAgreed:
			agreed, both = agreed.Plus(counted[i]), both.Plus(counted[i])
		case p.Cell.Name == cellDisagreed:
			both = both.Plus(counted[i])
		case slices.Contains(b.trust.Silence, p.Channel):
			silence = silence.Plus(counted[i])
		default:
			own = own.Plus(counted[i])
		}
	}
	if over := silence.Reward - own.Reward - silenceMass; over > 0 {
		silence.Mass, silence.Reward, capped = silence.Mass-over, silence.Reward-over, true
	}
	own = own.Plus(silence)
	of := func(compared evidence.Sums) float64 {
		if compared.Mass > b.agreement {
			compared = fair.Scale(compared, b.agreement/compared.Mass)
		}
		return own.Plus(compared).Posterior(b.prior).Mean()
	}
	mean = of(both)
	if least := min(of(agreed), of(evidence.Sums{})); mean < least*(1-1e-12) {
		mean, both, unlike = least, agreed, true
	}
	return mean, capped || both.Mass > b.agreement, unlike
}

// limited reports whether a person stated more than counts.
func limited(parts []evidence.Part, counted []evidence.Sums, now evidence.Instant) bool {
	for i := range parts {
		if parts[i].Tally.At(now).Mass > counted[i].Mass*(1+1e-12) {
			return true
		}
	}
	return false
}

// silenceMass is what silence counts for without another positive signal: see [evidence.Trust].
const silenceMass = 1

// A Standing is the confidence of a heuristic at a moment, with what it is made of.
type Standing struct {
	Heuristic Heuristic
	// Pin is what a person decided about it. It is zero without a decision.
	Pin Pin
	// Confidence is how far the heuristic is trusted, in [0, 1], within all bounds.
	Confidence float64
	// Fires is how often it was shown.
	Fires uint64
	// Successes and Failures are fires that were received well or badly: by people's judgements, else
	// by their implicit signal. People who disagree count as neither. Successes/(Successes+Failures)
	// is the rate at which it works.
	Successes, Failures uint64
}

// Standing returns the present standing of a heuristic, or [heed.ErrNotFound].
func (m *Module) Standing(ctx context.Context, heuristicID string) (Standing, error) {
	all, err := m.Standings(ctx, heuristicID)
	s, found := all[heuristicID]
	if err == nil && !found {
		err = fmt.Errorf("learning: standing: %w", errNoHeuristic)
	}
	return s, err
}

// Standings returns the present standings of heuristics, by id, in one read. Unknown ids are left
// out.
func (m *Module) Standings(ctx context.Context, heuristicIDs ...string) (_ map[string]Standing,
	err error) {
	defer doing("standings", &err)
	return m.standingsIn(store.Reading(ctx, m.cfg.Store), heuristicIDs...)
}

// ConfidencesIn returns how far heuristics are trusted now, by id, within a step. They include what
// the step counted so far. Unknown ids are left out. It reads what Wants names.
func (m steps) ConfidencesIn(tx *store.Tx, heuristicIDs ...string) (map[string]float64, error) {
	l := m.ledger(tx)
	if err := l.read(heuristicIDs...); err != nil {
		return nil, err
	}
	now := evidence.InstantOf(m.cfg.Now())
	all := make(map[string]float64, len(heuristicIDs))
	for _, id := range heuristicIDs {
		if a := l.accounts[id]; a != nil && a.heuristic.Revision > 0 {
			b := m.believe(a)
			all[id], _ = b.confidence(a.parts, now)
		}
	}
	return all, nil
}

// standingsIn is [Module.Standings] as a part of a step. Confidences include what the step has
// counted so far; the numbers of answers do not.
func (m *Module) standingsIn(tx *store.Tx, heuristicIDs ...string) (map[string]Standing, error) {
	l := m.ledger(tx)
	tx.Want(m.Steps().Wants(heuristicIDs...))
	var cells []evidence.Cell
	for _, id := range heuristicIDs {
		cells = m.answerCells(cells, id, m.seen(id).version)
	}
	tx.Want(store.Wants{Cells: cells})
	if err := l.read(heuristicIDs...); err != nil {
		return nil, err
	}
	cells = nil
	now := evidence.InstantOf(m.cfg.Now())
	all := make(map[string]Standing, len(heuristicIDs))
	for _, id := range heuristicIDs {
		a := l.accounts[id]
		if _, twice := all[id]; a == nil || a.heuristic.Revision == 0 || twice {
			continue
		}
		b, h := m.believe(a), a.heuristic
		s := Standing{Heuristic: heuristicOf(h), Pin: h.Value.pin()}
		s.Confidence, _ = b.confidence(a.parts, now)
		all[id] = s
		cells = m.answerCells(cells, id, h.Value.Edition)
	}
	var s store.Snapshot
	if err := tx.Read(&s, cells, nil); err != nil {
		return nil, err
	}
	for i := range s.Parts {
		of := all[s.Parts[i].Cell.Item]
		of.add(&s.Parts[i])
		all[of.Heuristic.ID] = of
	}
	return all, nil
}

// The cells of a heuristic's fires.
const (
	cellShown = "shown"
	cellEnded = "ended"
)

var fireCells = [...]string{cellShown, cellEnded}

// add adds the part of a cell of a heuristic's answers.
func (s *Standing) add(p *evidence.Part) {
	switch plain(p.Cell).Name {
	case cellShown:
		s.Fires += p.Tally.N()
	default:
		s.Successes += p.Tally.Positive.N
		s.Failures += p.Tally.Negative.N
	}
}

// An Explanation lists the evidence that made a confidence.
type Explanation struct {
	Standing Standing
	// Prior is made of the initial confidence and its strength.
	Prior evidence.Beta
	// Constraints are those in force, of all layers.
	Constraints Constraints
	// Shares are the parts of the confidence, each with its source.
	Shares []Share
	// History lists the observations that the store still keeps, the newest first.
	History []evidence.Observation
	// People is how many there are in the domain: see [Config].Trust.
	People float64
	// Limits are what holds the confidence now: "people", "cap", "floor", "ceiling" or
	// "disagreement".
	Limits []string
}

// A Share is what one origin contributes to a confidence now. It is immutable.
type Share struct {
	// Said is true for judgements, and false for signals that were observed.
	Said bool
	// Channel is how the evidence is known.
	Channel string
	// Source is the person or instrument, or "" if it is unknown.
	Source string
	// Kind is whether the source is a person or an instrument, by the configuration.
	Kind answer.SourceKind
	// For and Against are the evidence as it was stated, faded until now.
	For, Against float64
	// CountsFor and CountsAgainst are what counts of it within the limits on people.
	CountsFor, CountsAgainst float64
	// Count is how many observations there are.
	Count uint64
}

// Explain returns which evidence made a heuristic's confidence, or [heed.ErrNotFound].
func (m *Module) Explain(ctx context.Context, heuristicID string) (_ Explanation, err error) {
	defer doing("explain", &err)
	tx := store.Reading(ctx, m.cfg.Store)
	standings, err := m.standingsIn(tx, heuristicID)
	if err != nil {
		return Explanation{}, err
	}
	a, err := m.ledger(tx).account(heuristicID)
	if err != nil {
		return Explanation{}, err
	}
	b, parts := m.believe(a), a.parts
	now := evidence.InstantOf(m.cfg.Now())
	e := Explanation{Standing: standings[heuristicID], Prior: b.prior, Constraints: b.constraints}
	_, e.Limits = b.confidence(parts, now)
	e.People = a.crowd.people(now)
	counted := b.counted(parts, now)
	for i := range parts {
		p := &parts[i]
		sums := p.Tally.At(now)
		share := Share{
			Channel: p.Channel, Source: p.Source, Kind: m.cfg.kindOf(p.Source),
			For: sums.Reward, Against: sums.Mass - sums.Reward, Count: p.Tally.N(),
			CountsFor: counted[i].Reward, CountsAgainst: counted[i].Mass - counted[i].Reward,
		}
		switch p.Cell.Name {
		case cellJudged:
			share.Said = true
		case cellAgreed:
			share.Channel = ChannelAgreement
		case cellDisagreed:
			share.Channel = limitDisagreement
		case cellSilence:
			share.Channel = ChannelTimeout
		}
		e.Shares = append(e.Shares, share)
	}
	for _, name := range heuristicCells {
		for o, err := range m.cfg.Store.History(ctx,
			m.cell(heuristicID, a.heuristic.Value.Edition, name)) {
			if err != nil {
				return Explanation{}, err
			}
			e.History = append(e.History, o)
		}
	}
	slices.SortStableFunc(e.History, func(a, b evidence.Observation) int {
		return b.At.Compare(a.At)
	})
	return e, nil
}
