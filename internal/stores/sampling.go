package stores

import "context"

type sampleKey struct{}

// A Sample lets a reader of a long listing say that a sample of its items would do. A store that
// supports samples draws one. Other stores list all, as the contract of a store has it. A Sample
// serves one listing, and is read when that has ended.
type Sample struct {
	// Most is about how many items the reader wants. A store draws more than a fifth, and fewer than
	// twice as many. It must not go by the order of the items' names, nor by when they came. Of a
	// listing that is no longer than Most it gives all.
	Most int
	// Given is how many items were listed, of about All that there are. All is 0 if the listing was
	// whole.
	Given, All int
}

// WithSample returns a context whose listings may be the sample.
func WithSample(ctx context.Context, s *Sample) context.Context {
	return context.WithValue(ctx, sampleKey{}, s)
}

// Wanted returns the sample that a listing may be, or nil.
func Wanted(ctx context.Context) *Sample {
	s, _ := ctx.Value(sampleKey{}).(*Sample)
	return s
}

// Share returns the share of the items that were listed.
func (s *Sample) Share() float64 {
	if s.All == 0 {
		return 1
	}
	return float64(s.Given) / float64(s.All)
}
