package evidencetest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/heedhq/heed/evidence"
	"github.com/heedhq/heed/evidence/evidencetest"
	"github.com/heedhq/heed/memstore"
)

type (
	batch       = evidence.Batch
	observation = evidence.Observation
)

// broken is a good store with some of its methods replaced. A nil function leaves the method as it is.
type broken struct {
	evidence.Store
	now     func() time.Time
	count   atomic.Int64
	commit  func(*broken, batch) (evidence.Receipt, error)
	read    func(*broken, []evidence.Part, []evidence.Cell) ([]evidence.Part, error)
	list    func(b *broken, kind, scope string) iter.Seq2[evidence.Part, error]
	scopes  func(b *broken, kind string) iter.Seq2[string, error]
	history func(*broken, evidence.Cell) iter.Seq2[observation, error]
	outbox  func(*broken) iter.Seq2[evidence.Event, error]
}

func (b *broken) Commit(ctx context.Context, batch evidence.Batch) (evidence.Receipt, error) {
	if b.commit == nil || ctx.Err() != nil {
		return b.Store.Commit(ctx, batch)
	}
	batch.Observations = slices.Clone(batch.Observations)
	return b.commit(b, batch)
}

func (b *broken) Read(ctx context.Context, dst []evidence.Part, cells ...evidence.Cell) ([]evidence.Part, error) {
	if b.read == nil {
		return b.Store.Read(ctx, dst, cells...)
	}
	return b.read(b, dst, cells)
}

func (b *broken) List(ctx context.Context, kind, scope string) iter.Seq2[evidence.Part, error] {
	if b.list == nil {
		return b.Store.List(ctx, kind, scope)
	}
	return b.list(b, kind, scope)
}

func (b *broken) Scopes(ctx context.Context, kind string) iter.Seq2[string, error] {
	if b.scopes == nil {
		return b.Store.Scopes(ctx, kind)
	}
	return b.scopes(b, kind)
}

func (b *broken) History(ctx context.Context, c evidence.Cell) iter.Seq2[observation, error] {
	if b.history == nil {
		return b.Store.History(ctx, c)
	}
	return b.history(b, c)
}

func (b *broken) Outbox(ctx context.Context) iter.Seq2[evidence.Event, error] {
	if b.outbox == nil {
		return b.Store.Outbox(ctx)
	}
	return b.outbox(b)
}

var background = context.Background()

// editing breaks a store by changing each observation on its way in.
func editing(edit func(*broken, *observation)) func(*broken) {
	return changing(func(b *broken, batch *batch) {
		for i := range batch.Observations {
			edit(b, &batch.Observations[i])
		}
	})
}

// changing breaks a store by changing each batch on its way in.
func changing(change func(*broken, *batch)) func(*broken) {
	return func(b *broken) {
		b.commit = func(b *broken, batch batch) (evidence.Receipt, error) {
			change(b, &batch)
			return b.Store.Commit(background, batch)
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
			"every delivery counts",
			editing(func(b *broken, o *observation) { o.ID = fmt.Sprint(o.ID, b.count.Add(1)) }),
			"an id counts once",
		},
		{
			"what looks alike counts once",
			editing(func(_ *broken, o *observation) { o.ID = fmt.Sprint(o.Cell, o.Reward, o.Weight, o.At) }),
			"concurrent sums are exact",
		},
		{
			"a batch is counted by its observations alone",
			changing(func(_ *broken, b *batch) { b.ID = "" }),
			"a batch with an id counts once",
		},
		{
			"weight 0 means 1",
			editing(func(_ *broken, o *observation) {
				if o.Weight == 0 {
					o.Weight = 1
				}
			}),
			"an observation of weight 0 is no evidence",
		},
		{
			"numbers are clamped",
			editing(func(_ *broken, o *observation) {
				o.Reward = min(max(o.Reward, 0), 1)
				if math.IsNaN(o.Reward) {
					o.Reward = 0.5
				}
			}),
			"input that is not valid is refused",
		},
		{
			"the future is brought to now",
			editing(func(b *broken, o *observation) {
				if now := b.now(); o.At.After(now) {
					o.At = now
				}
			}),
			"the future is refused",
		},
		{
			"evidence ages from its arrival",
			editing(func(b *broken, o *observation) {
				if !o.At.IsZero() {
					o.At = b.now()
				}
			}),
			"late evidence counts with its age",
		},
		{
			"a batch is applied piece by piece",
			func(b *broken) {
				b.commit = func(b *broken, whole batch) (evidence.Receipt, error) {
					for _, o := range whole.Observations {
						if _, err := b.Store.Commit(background, batch{Policies: whole.Policies, Observations: []observation{o}}); err != nil {
							return evidence.Receipt{}, err
						}
					}
					whole.Observations = nil
					return b.Store.Commit(background, whole)
				}
			},
			"a refused batch changes nothing",
		},
		{
			"of commits at the same time one is lost",
			func(b *broken) {
				b.commit = func(b *broken, batch batch) (evidence.Receipt, error) {
					defer b.count.Add(-1)
					if b.count.Add(1) > 1 && len(batch.Observations) > 0 {
						return evidence.Receipt{}, nil
					}
					time.Sleep(time.Microsecond)
					return b.Store.Commit(background, batch)
				}
			},
			"concurrent sums are exact",
		},
		{
			"another policy resets the cell",
			func(b *broken) {
				b.commit = func(b *broken, batch batch) (evidence.Receipt, error) {
					receipt, err := b.Store.Commit(background, batch)
					if conflict := (*evidence.PolicyError)(nil); errors.As(err, &conflict) {
						batch.Reset = append(batch.Reset, evidence.Selection{Kind: conflict.Cell.Kind, Scope: conflict.Cell.Scope})
						return b.Store.Commit(background, batch)
					}
					return receipt, err
				}
			},
			"a policy is kept until reset or rebuilt",
		},
		{
			"a rebuild is left for later",
			changing(func(_ *broken, b *batch) { b.Rebuild = nil }),
			"a rebuild counts the history anew",
		},
		{
			"a restart forgets all",
			changing(func(_ *broken, b *batch) {
				for _, r := range b.Restart {
					b.Reset = append(b.Reset, evidence.Selection{Kind: r.Cell.Kind, Scope: r.Cell.Scope, Item: r.Cell.Item, Name: r.Cell.Name})
				}
				b.Restart = nil
			}),
			"a restart leaves out what was before",
		},
		{
			"a retraction is a note",
			changing(func(_ *broken, b *batch) { b.Retract = nil }),
			"to retract is never to have seen",
		},
		{
			"a retraction of the unknown is no matter",
			func(b *broken) {
				b.commit = func(b *broken, batch batch) (evidence.Receipt, error) {
					receipt, err := b.Store.Commit(background, batch)
					if err != nil && len(batch.Retract) > 0 && len(batch.Observations) == 0 {
						return receipt, nil
					}
					return receipt, err
				}
			},
			"to retract what is unknown is ErrNotFound",
		},
		{
			"one source of several is expunged",
			changing(func(_ *broken, b *batch) { b.Expunge = b.Expunge[:min(1, len(b.Expunge))] }),
			"to expunge is never to have seen",
		},
		{
			"a reset takes the whole scope",
			changing(func(_ *broken, b *batch) {
				for i := range b.Reset {
					b.Reset[i].Item, b.Reset[i].Name = "", ""
				}
			}),
			"a reset forgets what it selects",
		},
		{
			"history is oldest first",
			func(b *broken) {
				b.history = func(b *broken, c evidence.Cell) iter.Seq2[observation, error] {
					var all []observation
					for o, err := range b.Store.History(background, c) {
						if err == nil {
							all = append(all, o)
						}
					}
					slices.Reverse(all)
					return func(yield func(observation, error) bool) {
						for _, o := range all {
							if !yield(o, nil) {
								return
							}
						}
					}
				}
			},
			"history is newest first",
		},
		{
			"list knows no scopes",
			func(b *broken) {
				b.list = func(b *broken, kind, _ string) iter.Seq2[evidence.Part, error] {
					return func(yield func(evidence.Part, error) bool) {
						for _, scope := range []string{"scope", "scope2"} {
							for part, err := range b.Store.List(background, kind, scope) {
								if !yield(part, err) {
									return
								}
							}
						}
					}
				}
			},
			"list shows one kind and scope",
		},
		{
			"scopes are those of every kind",
			func(b *broken) {
				b.scopes = func(b *broken, _ string) iter.Seq2[string, error] { return b.Store.Scopes(background, "suite.fading") }
			},
			"scopes are those with evidence",
		},
		{
			"read begins a new slice",
			func(b *broken) {
				b.read = func(b *broken, _ []evidence.Part, cells []evidence.Cell) ([]evidence.Part, error) {
					return b.Store.Read(background, nil, cells...)
				}
			},
			"parts are read in order",
		},
		{
			"the loop holds a lock",
			func(b *broken) {
				var locked atomic.Bool
				b.commit = func(b *broken, batch batch) (evidence.Receipt, error) {
					if locked.Load() {
						return evidence.Receipt{}, fmt.Errorf("would wait for ever")
					}
					return b.Store.Commit(background, batch)
				}
				b.outbox = func(b *broken) iter.Seq2[evidence.Event, error] {
					return func(yield func(evidence.Event, error) bool) {
						locked.Store(true)
						defer locked.Store(false)
						b.Store.Outbox(background)(yield)
					}
				}
			},
			"a loop may end early and call the store",
		},
		{
			"sent events come again",
			changing(func(_ *broken, b *batch) { b.Sent = nil }),
			"events stay in the outbox until they are sent",
		},
		{
			"payloads are shared",
			func(b *broken) {
				var shared []evidence.Event
				b.outbox = func(b *broken) iter.Seq2[evidence.Event, error] {
					if shared == nil {
						for e, err := range b.Store.Outbox(background) {
							if err == nil {
								shared = append(shared, e)
							}
						}
					}
					return func(yield func(evidence.Event, error) bool) {
						for _, e := range shared {
							if !yield(e, nil) {
								return
							}
						}
					}
				}
			},
			"what goes in and out is copied",
		},
		{
			"contexts are not looked at",
			func(b *broken) {
				b.read = func(b *broken, dst []evidence.Part, cells []evidence.Cell) ([]evidence.Part, error) {
					return b.Store.Read(background, dst, cells...)
				}
			},
			"a context that is done changes nothing",
		},
	} {
		t.Run(test.fault, func(t *testing.T) {
			t.Parallel()
			err := evidencetest.Check(func(now func() time.Time) (evidence.Store, error) {
				good, err := memstore.NewEvidence(memstore.EvidenceConfig{Now: now})
				b := &broken{Store: good, now: now}
				test.spoil(b)
				return b, err
			})
			require.Error(t, err)
			var caught []string
			for line := range strings.Lines(err.Error()) {
				caught = append(caught, line)
			}
			assert.True(t, slices.ContainsFunc(caught, func(line string) bool { return strings.HasPrefix(line, test.caughtBy) }),
				"the fault should be caught by %q, but was by:\n%s", test.caughtBy, err)
		})
	}
}

// TestGoodStorePasses is the other half: what is not broken is not called so.
func TestGoodStorePasses(t *testing.T) {
	require.NoError(t, evidencetest.Check(func(now func() time.Time) (evidence.Store, error) {
		return memstore.NewEvidence(memstore.EvidenceConfig{Now: now})
	}))
}
