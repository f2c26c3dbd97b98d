package feedback

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/feedback/internal/oppose"
	"github.com/heedhq/heed/store"
)

// Tests look into these.
const (
	RefinePrompt = refinePrompt
	UpdateSkill  = updateSkill
	DocumentOnly = documentOnly
	CreateRule   = createRule

	PositiveExample = positiveExample
	NegativeExample = negativeExample
	Constraint      = constraint
	Guideline       = guideline

	Restore = restore
	Pin     = pin
	Unpin   = unpin

	Positive = positive
	Archived = archived

	StateDocumented = stateDocumented
	StateExpired    = stateExpired
	StateSuperseded = stateSuperseded

	Heading    = heading
	Opening    = opening
	Ending     = ending
	MaxComment = maxComment
	MaxEvent   = maxEvent
	MaxPeople  = maxPeople

	WarnCleaned     = warnCleaned
	WarnVerbatim    = warnVerbatim
	WarnInstruction = warnInstruction
	WarnSingle      = warnSingle
)

var (
	ErrFull     = errFull
	CanonicalID = canonicalID
	WilsonLower = wilsonLower
	DecodeEvent = decodeEvent
)

// Stored returns values as the records that a service keeps of them.
func Stored(values ...any) (records []store.Record) {
	for _, value := range values {
		switch value := value.(type) {
		case Feedback:
			records = append(records, feedbackKind.record(value))
		case Proposal:
			records = append(records, proposalKind.record(value))
		case Rule:
			records = append(records, ruleKind.record(value))
		}
	}
	return records
}

// Kinds are the kinds of records that name people.
var Kinds = map[string]store.Kind{"record": feedbackKind.View.Kind,
	"proposal": proposalKind.View.Kind, "rule": ruleKind.View.Kind}

// Scores compares texts by the service's similarity.
func Scores(ctx context.Context, s *Service, text string, others []string) ([]float64, error) {
	return s.scores(ctx, text, others)
}

// SameTopic reports whether two opposed texts with this score speak of the same.
func SameTopic(s *Service, a, b string, score float64) bool { return s.sameTopic(a, b, score) }

// Measure returns the effect of a rule at a moment.
func Measure(ctx context.Context, s *Service, id string, at time.Time) (Effect, error) {
	rule, err := ruleKind.in(s.reading(ctx), id)
	if err != nil {
		return Effect{}, err
	}
	return s.measure(ctx, &rule, at)
}

// An Archive is what a service keeps, for tests that forge files or compare states.
type Archive struct {
	Feedback  []Feedback
	Proposals []Proposal
	Rules     []Rule
}

// Tree lays an archive out as files.
func (a Archive) Tree() (map[string][]byte, error) {
	return treeOf(a.Feedback, a.Proposals, a.Rules)
}

// Export returns what a service keeps, without revisions, each list sorted by id.
func Export(ctx context.Context, s *Service) (a Archive, err error) {
	tx := s.reading(ctx)
	a.Feedback, err = exported(tx, &feedbackKind, (*Feedback).kept)
	if err == nil {
		a.Proposals, err = exported(tx, &proposalKind, func(*Proposal) bool { return true })
	}
	if err == nil {
		a.Rules, err = exported(tx, &ruleKind, func(*Rule) bool { return true })
	}
	return a, err
}

func exported[T kept[T]](tx *store.Tx, kind *kindOf[T], of func(*T) bool) ([]T, error) {
	values, err := kind.union(tx, everything, of)
	slices.SortFunc(values, func(a, b T) int {
		one, _, _ := kind.Place(a)
		other, _, _ := kind.Place(b)
		return cmp.Compare(one, other)
	})
	for i, value := range values {
		values[i] = value.at(0)
	}
	return values, err
}

// Representative is the default of Config.Drafter.
var Representative = representative

// The ways in which texts are opposed.
const (
	OpposedPolarity    = string(oppose.Polarity)
	OpposedNumber      = string(oppose.Numbers)
	OpposedAntonym     = string(oppose.Meaning)
	OpposedOrder       = string(oppose.Order)
	OpposedName        = string(oppose.Names)
	OpposedWord        = string(oppose.Words)
	OpposedByEvaluator = byEvaluator
)

// Refusal returns the kind of a refusal: "state", "conflict", "stale", "unauthorized" or
// "ineligible", and "" of another error.
func Refusal(err error) string {
	var refused *RefusedError
	switch {
	case !errors.As(err, &refused):
		return ""
	case refused.State != "":
		return "state"
	case len(refused.Conflicts) > 0:
		return "conflict"
	case errors.Is(refused.Err, heed.ErrConflict):
		return "stale"
	case refused.Err != nil:
		return "unauthorized"
	}
	return "ineligible"
}

// Said is the text of a feedback that is compared.
func Said(f Feedback) string { return f.content() }

// Copy returns a value that shares nothing with this one.
func Copy[T kept[T]](value T) T { return value.at(value.revision()) }

// WarnWords says that the sources have other words.
const WarnWords = warnWords

// SameText reports whether two texts count as one.
func SameText(a, b string) bool { return plain(a) == plain(b) }

// Windowed returns a configuration that compares with so many of the latest decisions.
func Windowed(window int) Config { return Config{window: window} }

// Window is how many of the latest decisions are compared.
func Window(c Config) int { return c.window }

// KeepEffect stores what was measured of a rule.
func KeepEffect(ctx context.Context, s *Service, measured Rule, e Effect) error {
	return s.keepEffect(ctx, &measured, e)
}

// Expedite is the confidence from which on a cluster is proposed at once.
const Expedite = expedite

// Confidence returns what the confidence of this support is.
func Confidence(reviewers int, strength float64) float64 {
	return support{reviewers: reviewers, strength: strength}.confidence()
}

// CheckWith is a step that calls CheckIn.
func CheckWith(ctx context.Context, r *Rules, c Checked) (violations []Violation, err error) {
	err = store.Do(ctx, r.s.cfg.Store, func(tx *store.Tx) error {
		violations, err = r.CheckIn(tx, c)
		return err
	})
	return violations, err
}

// WantsOf names what RecordIn reads.
func WantsOf(s *Service, id string) store.Wants { return s.wants(id) }
