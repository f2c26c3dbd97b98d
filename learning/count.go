package learning

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
)

// The cells of a heuristic: one for what was seen, and one for what was said of each target. They are apart so that what
// was said can be counted, and found in its history, beside any amount of what was seen.
const (
	cellSeen = "seen"
	cellSaid = "said"
)

// saidCell returns the name of the cell for what is said about a target.
func saidCell(t Target) string {
	if t == Both {
		return cellSaid
	}
	return cellSaid + "." + string(t)
}

var heuristicCells = [...]string{cellSeen, cellSaid, saidCell(Rule), saidCell(Response)}

// An entry is a signal on its way into the evidence.
type entry struct {
	signal   Signal
	cell     string
	batch    string // counts once, if not empty
	id       string // of the observations
	retract  []string
	person   string
	session  string
	at       time.Time
	explicit bool
	replaces []evidence.Observation // what is retracted of the same channel
	extra    []evidence.Observation // what else the batch tells, beside the confidence
}

// count puts a signal through: locked, feedback weight, diminishing returns, evidence, bounds. It reports whether the store
// has something new.
func (m *Module) count(ctx context.Context, e *entry) (Change, bool, error) {
	change := Change{Signal: e.signal}
	if err := e.signal.Validate(); err != nil {
		return change, false, fmt.Errorf("signal: %w", err)
	}
	if e.signal.neutral() {
		change.Limits = append(change.Limits, LimitNeutral)
		if !e.explicit && len(e.retract)+len(e.extra) == 0 {
			return change, false, nil
		}
	}
	if e.signal.HeuristicID == "" {
		counted, err := m.commit(ctx, e, nil, &change)
		return change, counted, err
	}
	h, err := m.cfg.Heuristics.Get(ctx, e.signal.HeuristicID)
	if err != nil {
		return change, false, fmt.Errorf("heuristic: %w", err)
	}
	b := m.believe(&h)
	parts, err := m.cfg.Evidence.Read(ctx, nil, m.cells(&h)...)
	if err != nil {
		return change, false, err
	}
	now := evidence.InstantOf(e.at)
	change.Old, _ = b.confidence(parts, now)
	change.New = change.Old
	if b.constraints.Lock == Locked {
		change.Limits = append(change.Limits, LimitLocked)
		if e.explicit || len(e.retract) > 0 {
			return change, false, nil
		}
		counted, err := m.commit(ctx, e, nil, &change)
		return change, counted, err
	}
	o := evidence.Observation{
		ID: e.id, Cell: m.cell(&h, e.cell), Channel: e.signal.Source, Source: e.person, Session: e.session,
		Reward: e.signal.reward(), Weight: m.weigh(e, b.constraints, parts, &change), At: e.at,
	}
	counted, err := m.commit(ctx, e, &o, &change)
	if err != nil || !counted && !m.cfg.DryRun {
		return change, counted, err
	}
	change.Weight = o.Weight
	if len(e.retract) > 0 && counted {
		if parts, err = m.cfg.Evidence.Read(ctx, parts[:0], m.cells(&h)...); err != nil {
			return change, counted, fmt.Errorf("it is counted, but: %w", err)
		}
	} else {
		parts = m.plus(parts, &o)
	}
	var limits []Limit
	change.New, limits = b.confidence(parts, now)
	change.Delta = change.New - change.Old
	change.Limits = append(change.Limits, limits...)
	return change, counted, nil
}

// weigh returns what a signal counts for.
func (m *Module) weigh(e *entry, c Constraints, parts []evidence.Part, change *Change) float64 {
	if e.signal.neutral() {
		return 0
	}
	if c.FeedbackWeight < 1 {
		change.Limits = append(change.Limits, LimitWeight)
	}
	weight := e.signal.Magnitude * c.FeedbackWeight
	if e.explicit && m.cfg.Diminish > 0 {
		if n := alike(parts, e.replaces, e.signal.Type == Positive); n > 0 {
			change.Limits = append(change.Limits, LimitDiminished)
			weight /= 1 + m.cfg.Diminish*float64(n)
		}
	}
	return min(weight, evidence.MaxWeight)
}

// alike returns how often the heuristic was judged the same way, without what is being replaced.
func alike(parts []evidence.Part, replaced []evidence.Observation, positive bool) (n int) {
	for i := range parts {
		switch {
		case parts[i].Cell.Name == cellSeen:
		case positive:
			n += int(parts[i].Tally.Positive.N)
		default:
			n += int(parts[i].Tally.Negative.N)
		}
	}
	for i := range replaced {
		if r := replaced[i].Reward; positive && r > 0.5 || !positive && r < 0.5 {
			n--
		}
	}
	return max(n, 0)
}

// commit hands a batch to the store and reports whether it was new. The observation may be nil.
func (m *Module) commit(ctx context.Context, e *entry, o *evidence.Observation, change *Change) (bool, error) {
	batch := evidence.Batch{ID: e.batch, Policies: m.policies, Retract: e.retract, Observations: slices.Clone(e.extra)}
	if o != nil {
		batch.Observations = append(batch.Observations, *o)
	}
	if m.cfg.DryRun {
		change.Limits = append(change.Limits, LimitDryRun)
		m.cfg.Logger.WarnContext(ctx, "learning: dry run: a signal is not counted", "source", e.signal.Source, "type", e.signal.Type)
		return false, nil
	}
	if len(batch.Observations)+len(batch.Retract) == 0 {
		return false, nil
	}
	receipt, err := m.cfg.Evidence.Commit(ctx, batch)
	if err != nil {
		return false, err
	}
	if receipt.Duplicate {
		change.Limits = append(change.Limits, LimitDuplicate)
	}
	return !receipt.Duplicate, nil
}

// plus returns the parts as they are with one more observation.
func (m *Module) plus(parts []evidence.Part, o *evidence.Observation) []evidence.Part {
	policy := m.cfg.policy()
	channel, source := o.Channel, o.Source
	if !policy.ByOrigin {
		channel, source = "", ""
	}
	i := slices.IndexFunc(parts, func(p evidence.Part) bool {
		return p.Cell == o.Cell && p.Channel == channel && p.Source == source
	})
	if i < 0 {
		i = len(parts)
		parts = append(parts, evidence.Part{Cell: o.Cell, Channel: channel, Source: source, Tally: evidence.Tally{HalfLife: policy.HalfLife}})
	}
	parts[i].Tally.Add(o.Weight, o.Reward, evidence.InstantOf(o.At))
	return parts
}

func (m *Module) cell(h *Heuristic, name string) evidence.Cell {
	return evidence.Cell{Kind: m.kinds.heuristic, Scope: h.Domain, Item: h.ID, Name: name}
}

func (m *Module) cells(h *Heuristic) []evidence.Cell {
	cells := make([]evidence.Cell, len(heuristicCells))
	for i, name := range heuristicCells {
		cells[i] = m.cell(h, name)
	}
	return cells
}

// hash makes a name of fixed length of texts of any.
func hash(parts ...string) string {
	var all []byte
	for _, part := range parts {
		all = binary.LittleEndian.AppendUint64(all, uint64(len(part)))
		all = append(all, part...)
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:16])
}

func errEmpty(field string) error { return &heed.InputError{Field: field, Reason: "must not be empty"} }
