package feedbacktest_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed"
	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/feedback"
	"github.com/heedhq/heed/feedback/feedbacktest"
	"github.com/heedhq/heed/memstore"
)

var background = context.Background()

// broken is a good store with some of its methods replaced. A nil function leaves the method as it is.
type broken struct {
	feedback.Store
	mu      sync.Mutex
	apply   func(*broken, feedback.Change) error
	record  func(*broken, string) (feedback.Record, error)
	records func(*broken, feedback.Query) iter.Seq2[feedback.Record, error]
	audit   func(*broken) iter.Seq2[evidence.AuditEntry, error]
	anyCtx  bool
	kept    []feedback.Change
}

func (b *broken) ctx(ctx context.Context) context.Context {
	if b.anyCtx {
		return background
	}
	return ctx
}

func (b *broken) Apply(ctx context.Context, c feedback.Change) error {
	if b.apply == nil || ctx.Err() != nil {
		return b.Store.Apply(b.ctx(ctx), c)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c.Records, c.Proposals, c.Rules, c.Audit = slices.Clone(c.Records), slices.Clone(c.Proposals), slices.Clone(c.Rules), slices.Clone(c.Audit)
	return b.apply(b, c)
}

func (b *broken) Record(ctx context.Context, id string) (feedback.Record, error) {
	if b.record == nil || ctx.Err() != nil {
		return b.Store.Record(ctx, id)
	}
	return b.record(b, id)
}

func (b *broken) Records(ctx context.Context, q feedback.Query) iter.Seq2[feedback.Record, error] {
	if b.records == nil || ctx.Err() != nil {
		return b.Store.Records(ctx, q)
	}
	return b.records(b, q)
}

func (b *broken) Audit(ctx context.Context) iter.Seq2[evidence.AuditEntry, error] {
	if b.audit == nil || ctx.Err() != nil {
		return b.Store.Audit(ctx)
	}
	return b.audit(b)
}

// changing breaks a store by changing each change on its way in.
func changing(change func(*broken, *feedback.Change)) func(*broken) {
	return func(b *broken) {
		b.apply = func(b *broken, c feedback.Change) error {
			change(b, &c)
			return b.Store.Apply(background, c)
		}
	}
}

// asking breaks a store by changing each query for records.
func asking(change func(*feedback.Query)) func(*broken) {
	return func(b *broken) {
		b.records = func(b *broken, q feedback.Query) iter.Seq2[feedback.Record, error] {
			change(&q)
			return b.Store.Records(background, q)
		}
	}
}

// TestSuiteBites runs the suite against stores that each break one rule, and expects it to say so.
func TestSuiteBites(t *testing.T) {
	for _, test := range []struct {
		fault    string
		spoil    func(*broken)
		caughtBy string
	}{
		{
			"a comment is lost",
			changing(func(_ *broken, c *feedback.Change) {
				for i := range c.Records {
					c.Records[i].Comment = ""
				}
			}),
			"what was stored is read back",
		},
		{
			"what is missing is no error",
			func(b *broken) {
				b.record = func(b *broken, id string) (feedback.Record, error) {
					r, err := b.Store.Record(background, id)
					if errors.Is(err, heed.ErrNotFound) {
						return feedback.Record{}, nil
					}
					return r, err
				}
			},
			"what is not there is ErrNotFound",
		},
		{
			"the last writer wins",
			changing(func(b *broken, c *feedback.Change) {
				for i := range c.Proposals {
					known, err := b.Store.Proposal(background, c.Proposals[i].ID)
					if c.Proposals[i].Revision = 0; err == nil {
						c.Proposals[i].Revision = known.Revision
					}
				}
			}),
			"a value is written only over the revision",
		},
		{
			"named revisions do not hold",
			changing(func(b *broken, c *feedback.Change) {
				expect := map[string]uint64{}
				for name := range c.Expect {
					revisions, _ := b.Store.Revisions(background, name)
					expect[name] = revisions[0]
				}
				c.Expect = expect
			}),
			"a named revision is raised",
		},
		{
			"what is refused leaves its audit entries",
			func(b *broken) {
				b.apply = func(b *broken, c feedback.Change) error {
					_ = b.Store.Apply(background, feedback.Change{Audit: c.Audit})
					return b.Store.Apply(background, c)
				}
			},
			"a change is made wholly or not at all",
		},
		{
			"values are written one by one",
			func(b *broken) {
				b.apply = func(b *broken, c feedback.Change) error {
					for _, r := range c.Records {
						if err := b.Store.Apply(background, feedback.Change{Records: []feedback.Record{r}}); err != nil {
							return err
						}
					}
					c.Records = nil
					return b.Store.Apply(background, c)
				}
			},
			"a change is made wholly or not at all",
		},
		{
			"revisions are checked before the lock",
			func(b *broken) {
				b.apply = func(b *broken, c feedback.Change) error {
					var stale error
					for _, p := range c.Proposals {
						known, _ := b.Store.Proposal(background, p.ID)
						if known.Revision != p.Revision {
							stale = heed.ErrConflict
						}
					}
					if stale != nil {
						return stale
					}
					b.mu.Unlock() // others come in
					time.Sleep(100 * time.Microsecond)
					b.mu.Lock()
					for i := range c.Proposals {
						if known, err := b.Store.Proposal(background, c.Proposals[i].ID); err == nil {
							c.Proposals[i].Revision = known.Revision
						}
					}
					return b.Store.Apply(background, c)
				}
			},
			"of concurrent changes that expect the same",
		},
		{
			"audit entries can be overwritten",
			func(b *broken) {
				b.audit = func(b *broken) iter.Seq2[evidence.AuditEntry, error] {
					return func(yield func(evidence.AuditEntry, error) bool) {
						for e, err := range b.Store.Audit(background) {
							for _, c := range b.kept {
								for _, later := range c.Audit {
									if later.ID == e.ID {
										e = later
									}
								}
							}
							if !yield(e, err) {
								return
							}
						}
					}
				}
				b.apply = func(b *broken, c feedback.Change) error {
					b.kept = append(b.kept, c)
					return b.Store.Apply(background, c)
				}
			},
			"audit entries are kept once",
		},
		{
			"records come in no order",
			func(b *broken) {
				b.records = func(b *broken, q feedback.Query) iter.Seq2[feedback.Record, error] {
					return func(yield func(feedback.Record, error) bool) {
						var records []feedback.Record
						for r, err := range b.Store.Records(background, q) {
							if err != nil {
								yield(r, err)
								return
							}
							records = append(records, r)
						}
						slices.Reverse(records)
						for _, r := range records {
							if !yield(r, nil) {
								return
							}
						}
					}
				}
			},
			"records are listed newest first",
		},
		{"the gate is of no account", asking(func(q *feedback.Query) { q.Gate = "" }), "a query selects records"},
		{"names are compared without case", asking(func(q *feedback.Query) { q.Agent = strings.ToLower(q.Agent) }), "times and texts"},
		{"the end of a time is within it", asking(func(q *feedback.Query) {
			if !q.Until.IsZero() {
				q.Until = q.Until.Add(1000)
			}
		}), "a query selects records"},
		{
			"what is erased is gone with its id",
			func(b *broken) {
				b.record = func(b *broken, id string) (feedback.Record, error) {
					r, err := b.Store.Record(background, id)
					if err == nil && !r.Erased.IsZero() {
						return feedback.Record{}, heed.ErrNotFound
					}
					return r, err
				}
			},
			"what was erased is found by its id",
		},
		{
			"what is read is the stored value itself",
			func(b *broken) {
				cache := map[string]feedback.Record{}
				b.record = func(b *broken, id string) (feedback.Record, error) {
					r, err := b.Store.Record(background, id)
					if known, ok := cache[id]; ok && known.Revision == r.Revision {
						return known, nil
					}
					cache[id] = r
					return r, err
				}
			},
			"what goes in and out is copied",
		},
		{
			"times are kept to the second",
			changing(func(_ *broken, c *feedback.Change) {
				for i := range c.Records {
					c.Records[i].At = c.Records[i].At.Truncate(1e9)
				}
			}),
			"times and texts come back",
		},
		{"contexts are of no account", func(b *broken) { b.anyCtx = true }, "a context that is done"},
		{
			"nothing can be written while a loop runs",
			func(b *broken) {
				looping := false
				b.records = func(b *broken, q feedback.Query) iter.Seq2[feedback.Record, error] {
					return func(yield func(feedback.Record, error) bool) {
						looping = true
						defer func() { looping = false }()
						b.Store.Records(background, q)(yield)
					}
				}
				b.apply = func(b *broken, c feedback.Change) error {
					if looping {
						return errors.New("busy")
					}
					return b.Store.Apply(background, c)
				}
			},
			"a loop may end early and call the store",
		},
	} {
		t.Run(test.fault, func(t *testing.T) {
			err := feedbacktest.Check(func() (feedback.Store, error) {
				b := &broken{Store: &memstore.Feedback{}}
				test.spoil(b)
				return b, nil
			})
			require.Error(t, err)
			assert.Contains(t, err.Error(), test.caughtBy)
		})
	}
}

func TestAGoodStorePasses(t *testing.T) {
	require.NoError(t, feedbacktest.Check(func() (feedback.Store, error) { return &memstore.Feedback{}, nil }))
}
