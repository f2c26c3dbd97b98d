package learning

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/heedhq/heed/answer"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/store"
)

// A belief is what a heuristic's confidence is made of, beside its evidence.
type belief struct {
	prior       evidence.Beta
	caps        evidence.Caps
	agreement   float64     // the greatest mass of agreement
	constraints Constraints // of all layers; the range lies within the bounds
}

func (m *Module) believe(a *account) belief {
	h := &a.heuristic.Value
	c := a.pin.Value.Constraints.over(h.Constraints).over(m.cfg.Packs[h.Pack]).over(m.cfg.Packs[""])
	c = c.over(Constraints{Lock: Unlocked, Range: m.cfg.tuning.Bounds, FeedbackWeight: 1})
	c.Range = Range{m.cfg.tuning.Bounds.clamp(c.Range.Floor), m.cfg.tuning.Bounds.clamp(c.Range.Ceiling)}
	initial := cmp.Or(h.Initial, m.cfg.Initial)
	prior := evidence.Beta{Alpha: initial * m.cfg.tuning.Strength, Beta: (1 - initial) * m.cfg.tuning.Strength}
	return belief{prior, m.cfg.Caps, m.agreement.most, c}
}

// confidence reads the parts of a heuristic at a moment, and says what limits the result.
func (b *belief) confidence(parts []evidence.Part, now evidence.Instant) (float64, []Limit) {
	var limits []Limit
	mean, capped, unlike := b.mean(parts, now)
	if capped {
		limits = append(limits, limitCap)
	}
	if unlike {
		limits = append(limits, limitDisagreement)
	}
	switch r := b.constraints.Range; {
	case mean < r.Floor:
		limits = append(limits, limitFloor)
	case mean > r.Ceiling:
		limits = append(limits, limitCeiling)
	}
	return b.constraints.Range.clamp(mean), limits
}

// mean reads the parts of a heuristic within the caps. Agreement and disagreement have a cap on both together, which leaves their mean
// as it is. Disagreement takes back at most what agreement gave, as a model that never agrees may only use other words. The mean rises with
// what speaks for the heuristic and falls with what speaks against it, whatever else is there. A limit on disagreement that grows with
// agreement would not do: whoever rejects an agreement would lower the limit, and so might raise the mean.
func (b *belief) mean(parts []evidence.Part, now evidence.Instant) (mean float64, capped, unlike bool) {
	agreements, comparisons, rest := split(parts)
	own := b.caps.Pool(rest, now)
	capped = (evidence.Caps{}).Pool(rest, now).Mass > own.Mass*(1+1e-12)
	of := func(compared evidence.Sums) float64 {
		return own.Plus(atMost(compared, b.agreement)).Posterior(b.prior).Mean()
	}
	agreed, _ := b.compared(agreements, rest, now)
	both, limited := b.compared(comparisons, rest, now)
	capped = capped || limited
	mean = of(both)
	if least := min(of(agreed), of(evidence.Sums{})); mean < least*(1-1e-12) {
		mean, both, unlike = least, agreed, true
	}
	return mean, capped || both.Mass > b.agreement, unlike
}

// split returns the parts of agreement, the parts of agreement and disagreement, and the others.
func split(parts []evidence.Part) (agreements, comparisons, rest []evidence.Part) {
	all := make([]evidence.Part, 0, len(parts))
	ends := [2]int{}
	for i, name := range [...]string{cellAgreed, cellDisagreed} {
		for j := range parts {
			if parts[j].Cell.Name == name {
				all = append(all, parts[j])
			}
		}
		ends[i] = len(all)
	}
	for _, p := range parts {
		switch p.Cell.Name {
		case cellAgreed, cellDisagreed:
			continue
		case cellSilence: // also where the store keeps no channels apart
			p.Channel = ChannelTimeout
		}
		all = append(all, p)
	}
	return all[:ends[0]], all[:ends[1]], all[ends[1]:]
}

// compared adds up parts of agreement and disagreement, and reports whether a cap on persons limits them. Their source is the person who
// asked, or who rejected the answer. It may have what the rest of that person's evidence leaves of the cap.
func (b *belief) compared(parts, rest []evidence.Part, now evidence.Instant) (all evidence.Sums, limited bool) {
	if b.caps.SourceMass == 0 || len(parts) == 0 {
		for i := range parts {
			all = all.Plus(parts[i].Tally.At(now))
		}
		return all, false
	}
	room, sources, of := b.room(rest, now), []string{}, map[string]evidence.Sums{}
	for i := range parts {
		source := parts[i].Source
		if _, known := of[source]; !known {
			sources = append(sources, source)
		}
		of[source] = of[source].Plus(parts[i].Tally.At(now))
	}
	for _, source := range sources {
		left, known := room[source]
		if !known {
			left = b.caps.SourceMass
		}
		limited = limited || of[source].Mass > left*(1+1e-12)
		all = all.Plus(atMost(of[source], left))
	}
	return all, limited
}

// room returns what people's evidence leaves of the cap on persons. Silence beyond its own limit takes no room.
func (b *belief) room(rest []evidence.Part, now evidence.Instant) map[string]float64 {
	type owned struct{ mass, silent, other float64 } // silent and other are rewards
	var sources []string
	own := make(map[string]owned, len(rest))
	for i := range rest {
		sums := rest[i].Tally.At(now)
		o, known := own[rest[i].Source]
		if !known {
			sources = append(sources, rest[i].Source)
		}
		if o.mass += sums.Mass; slices.Contains(b.caps.Silence, rest[i].Channel) {
			o.silent += sums.Reward
		} else {
			o.other += sums.Reward
		}
		own[rest[i].Source] = o
	}
	silent, limit := 0., b.caps.SilenceMass
	for _, source := range sources {
		o := own[source]
		scale := b.caps.SourceMass / max(o.mass, b.caps.SourceMass)
		own[source] = owned{o.mass * scale, o.silent * scale, o.other * scale}
		silent, limit = silent+o.silent*scale, limit+o.other*scale
	}
	over := 0. // the share of silence that does not count
	if silent > limit {
		over = 1 - limit/silent
	}
	room := make(map[string]float64, len(own))
	for source, o := range own {
		room[source] = max(b.caps.SourceMass-o.mass+over*o.silent, 0)
	}
	return room
}

// atMost scales sums down to a mass.
func atMost(s evidence.Sums, mass float64) evidence.Sums {
	if s.Mass <= mass {
		return s
	}
	f := max(mass, 0) / s.Mass
	return evidence.Sums{Mass: s.Mass * f, Squares: s.Squares * f, Reward: s.Reward * f, RewardSquares: s.RewardSquares * f}
}

// A Standing is where a heuristic stands.
type Standing struct {
	Heuristic  Heuristic
	Pin        Pin     // what a person has decided about it; the zero Pin if nobody has
	Confidence float64 // how far it is trusted
	// Fires is how often it was shown, and Considered how often it could have been.
	Fires, Considered uint64
	// Successes and Failures are fires that were received well or badly: by what was said of them, else by their implicit signal. People
	// who disagree count as neither. Successes/(Successes+Failures) is the rate at which it works.
	Successes, Failures uint64
}

// Standing returns where a heuristic stands now, or [heed.ErrNotFound].
func (m *Module) Standing(ctx context.Context, heuristicID string) (Standing, error) {
	all, err := m.Standings(ctx, heuristicID)
	s, found := all[heuristicID]
	if err == nil && !found {
		err = fmt.Errorf("learning: standing: %w", errNoHeuristic)
	}
	return s, err
}

// Standings returns where heuristics stand now, by id, in one read. Unknown ids are left out.
func (m *Module) Standings(ctx context.Context, heuristicIDs ...string) (_ map[string]Standing, err error) {
	defer doing("standings", &err)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return m.StandingsIn(store.Reading(ctx, m.cfg.Store), heuristicIDs...)
}

// ConfidencesIn returns how far heuristics are trusted now, by id, as a part of a step. They
// include what the step has counted so far. Unknown ids are left out. It reads what [Module.Wants]
// names.
func (m *Module) ConfidencesIn(
	tx *store.Tx, heuristicIDs ...string,
) (map[string]float64, error) {
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

// StandingsIn is [Module.Standings] as a part of a step. Confidences include what the step has
// counted so far; the numbers of answers do not.
func (m *Module) StandingsIn(tx *store.Tx, heuristicIDs ...string) (map[string]Standing, error) {
	l := m.ledger(tx)
	tx.Want(m.Wants(heuristicIDs...))
	var cells []evidence.Cell
	for _, id := range heuristicIDs {
		cells = m.answerCells(cells, id, m.edition(id))
	}
	tx.Want(store.Wants{Cells: cells})
	if err := l.read(heuristicIDs...); err != nil {
		return nil, err
	}
	cells = nil
	all := make(map[string]Standing, len(heuristicIDs))
	for _, id := range heuristicIDs {
		a := l.accounts[id]
		if _, twice := all[id]; a == nil || a.heuristic.Revision == 0 || twice {
			continue
		}
		all[id] = m.standing(a)
		cells = m.answerCells(cells, id, a.heuristic.Value.Edition)
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
	cellShown      = "shown"
	cellConsidered = "considered"
	cellEnded      = "ended"
)

var fireCells = [...]string{cellShown, cellConsidered, cellEnded}

// add adds the part of a cell of a heuristic's answers.
func (s *Standing) add(p *evidence.Part) {
	switch plain(p.Cell).Name {
	case cellShown:
		s.Fires += p.Tally.N()
	case cellConsidered:
		s.Considered += p.Tally.N()
	default:
		s.Successes += p.Tally.Positive.N
		s.Failures += p.Tally.Negative.N
	}
}

func (m *Module) standing(a *account) Standing {
	b := m.believe(a)
	s := Standing{Heuristic: heuristicOf(a.heuristic)}
	if a.pin.Value.Constraints != (Constraints{}) {
		s.Pin = a.pin.Value
	}
	s.Confidence, _ = b.confidence(a.parts, evidence.InstantOf(m.cfg.Now()))
	return s
}

// An Explanation says which evidence made a confidence.
type Explanation struct {
	Standing    Standing
	Prior       evidence.Beta // made of the initial confidence and its strength
	Constraints Constraints   // those in force, of all layers
	// Rule and Response are the beliefs about each target alone. Judgements of the target count in full, judgements of both count
	// half, and other evidence does not count. Bounds and caps do not limit them.
	Rule, Response float64
	// Shares are the parts of the confidence, before caps. Sources are told apart only with caps on them or Config.BySource. Without, there
	// is one share for silence, one for agreement, one for disagreement ("disagreement"), one for everything else that was seen, and one
	// for the judgements of each target.
	Shares  []Share
	History []evidence.Observation // those that the store still keeps, the newest first
	Limits  []Limit                // what holds the confidence now: "cap", "floor", "ceiling", "disagreement"
}

// A Share is what one origin contributes to a confidence now.
type Share struct {
	Said         bool          // in a judgement
	Target       answer.Target // of the judgement
	Channel      string        // of the signals
	Source       string        // the person
	For, Against float64
	Count        uint64
}

// Explain returns which evidence made a heuristic's confidence, or [heed.ErrNotFound].
func (m *Module) Explain(ctx context.Context, heuristicID string) (_ Explanation, err error) {
	defer doing("explain", &err)
	tx := store.Reading(ctx, m.cfg.Store)
	standings, err := m.StandingsIn(tx, heuristicID)
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
	targets := map[answer.Target]evidence.Sums{}
	for i := range parts {
		p := &parts[i]
		sums := p.Tally.At(now)
		share := Share{Channel: p.Channel, Source: p.Source, For: sums.Reward, Against: sums.Mass - sums.Reward, Count: p.Tally.N()}
		switch name, said := strings.CutPrefix(p.Cell.Name, cellSaid); {
		case said:
			share.Said, share.Target = true, answer.Target(strings.TrimPrefix(name, "."))
			targets[share.Target] = targets[share.Target].Plus(sums)
		case p.Cell.Name == cellAgreed:
			share.Channel = ChannelAgreement
		case p.Cell.Name == cellDisagreed:
			share.Channel = string(limitDisagreement)
		case p.Cell.Name == cellSilence:
			share.Channel = ChannelTimeout
		}
		e.Shares = append(e.Shares, share)
	}
	both := targets[""]
	both.Mass, both.Reward = both.Mass/2, both.Reward/2
	e.Rule = both.Plus(targets[answer.TargetRule]).Posterior(b.prior).Mean()
	e.Response = both.Plus(targets[answer.TargetResponse]).Posterior(b.prior).Mean()
	for _, name := range heuristicCells {
		for o, err := range m.cfg.Store.History(ctx, m.cell(heuristicID, a.heuristic.Value.Edition, name)) {
			if err != nil {
				return Explanation{}, err
			}
			e.History = append(e.History, o)
		}
	}
	slices.SortStableFunc(e.History, func(a, b evidence.Observation) int { return b.At.Compare(a.At) })
	return e, nil
}
