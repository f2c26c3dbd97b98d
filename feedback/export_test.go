package feedback

import (
	"context"

	"github.com/heedhq/heed/store"
)

// Stored returns values as the records that a service keeps of them.
func Stored(values ...any) (records []store.Record) {
	for _, value := range values {
		switch value := value.(type) {
		case Record:
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
var Kinds = map[string]store.Kind{"record": feedbackKind.Kind.Kind, "proposal": proposalKind.Kind.Kind, "rule": ruleKind.Kind.Kind}

// MaxPeople is how many people a proposal may name.
const MaxPeople = maxPeople

// Scores compares texts by the service's similarity.
func Scores(ctx context.Context, s *Service, text string, others []string) ([]float64, error) {
	return s.scores(ctx, text, others)
}
